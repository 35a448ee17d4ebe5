"""Command line of the server, of the options in ``config``; values may also come from settings and the environment."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn, get_args

import msgspec
from msgspec.structs import replace

from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.config.option import Option, Role
from scrapy_ext.server.config.secret_files import SUFFIX, SecretFileError, secret_in

logger = logging.getLogger(__name__)

# ── the parser of command lines, with one-line errors that suggest a correction ──

#: The errors of argparse for a value, and for an option, that do not exist (Python 3.11 to 3.14).
_CHOICE: Final = re.compile(r"invalid choice: '?([^']*?)'? \(choose from (.*)\)", re.DOTALL)
_OPTION: Final = re.compile(r"unrecognized arguments: (-[^\s=]+)")


#: The exit code of a wrong call, as in argparse.
_USAGE: Final = 2


def did_you_mean(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return ``"did you mean 'items'?"`` for the nearest known word, or "". ``least``: share of what must be equal."""
    from difflib import get_close_matches

    nearest = get_close_matches(word, list(known), 1, least)
    return f"did you mean {nearest[0]!r}?" if nearest else ""


_HELP: Final = frozenset({"-h", "--help"})


class SuggestingParser(argparse.ArgumentParser):
    """A parser that takes options between positional arguments, and whose errors suggest its own options and actions,
    and the options of those."""

    _intermixes = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # The other method calls this one, for the options and then for the rest. It takes the defaults of positional
        # arguments away meanwhile, which the help may show.
        if self._intermixes or self._subparsers is not None or not _HELP.isdisjoint(args or ()):
            return super().parse_known_args(args, namespace)
        self._intermixes = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixes = False

    def error(self, message: str) -> NoReturn:
        if found := _CHOICE.search(message):
            meant = did_you_mean(found[1], re.findall(r"[^\s',]+", found[2]))
        elif found := _OPTION.match(message):
            meant = did_you_mean(found[1], _options(self))
        else:
            meant = ""
        message = f"{message}; {meant}" if meant else message
        # The error would be hard to find below a full screen of options.
        self.exit(_USAGE, f"usage: {self.prog} …; see {self.prog} --help\n{self.prog}: error: {message}\n")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for of_action in action.choices.values():
                yield from _options(of_action)


#: The environment variable with the password of PostgreSQL's own clients.
DATABASE_PASSWORD: Final = "PGPASSWORD"  # noqa: S105 - the name of the variable
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def table(config: type[ServerConfig]) -> tuple[Option, ...]:
    """Return the options among the fields of a configuration."""
    return tuple(
        replace(option, field=field.name, type=get_args(field.type)[0], value=field.default)
        for field in msgspec.structs.fields(config)
        for option in get_args(field.type)[1:]
        if isinstance(option, Option)
    )


OPTIONS: Final = table(ServerConfig)
#: Environment variables that hold secrets.
SECRETS: Final = (*(option.variable for option in OPTIONS if option.secret), DATABASE_PASSWORD)
_PREFIX: Final = "SERVER_"
_VARIABLES: Final = frozenset(
    name for option in OPTIONS for name in (option.variable, option.secret and option.variable + SUFFIX) if name
)
#: So near to the name of a variable, another one is a misspelling, or may be one: others have ``SERVER_PUBLIC_IP``.
_SAME, _NEAR = 0.9, 0.84


def add_options(parser: argparse.ArgumentParser, role: Role = Role.SERVER) -> None:
    # A worker stores code in its directory, and data in the database of its server.
    store = parser if role is Role.WORKER else parser.add_mutually_exclusive_group()
    for option in OPTIONS:
        if option.roles & role and option.options:
            option.add_to(store if option.field in ("data", "database") else parser)


def config_from(
    options: argparse.Namespace,
    environ: Mapping[str, str],
    settings: Mapping[str, Any] = _NOTHING,
    role: Role = Role.SERVER,
) -> ServerConfig:
    """Return the configuration from parsed options, Scrapy settings by name, and the environment; raises ConfigError.

    Options precede settings, and settings precede the environment. Values of a repeatable option are added to those of
    the setting. Values of the environment are used without either, so that ``--allow-host`` alone defines the allowed
    hosts; proxies, whose passwords belong there, are always added.
    """
    _refuse_misspelt(environ)
    given = {option.field: _value(option, options, environ, settings) for option in OPTIONS if option.roles & role}
    values = {field: value for field, value in given.items() if value is not None}
    if role is Role.SERVER and getattr(options, "data", None) is not None:
        values.pop("database", None)
    if role is Role.WORKER:
        if "database" not in values:
            raise ConfigError(
                "A worker needs the database of a server. Write --database postgresql://USER@HOST:PORT/DATABASE, or "
                "the "
                "environment variable SERVER_DATABASE"
            )
        values |= {"worker": True, "port": 0}
    if "database" in values and (password := _in_environment(DATABASE_PASSWORD, environ, secret=True)):
        values["database"] = values["database"].with_password(password)
    return ServerConfig(**values)


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that is nearly one of the server's, since it would have no effect; warn of one
    that may be."""
    for name in environ:
        if not name.startswith(_PREFIX) or name in _VARIABLES:
            continue
        if meant := did_you_mean(name, sorted(_VARIABLES), _SAME):
            raise ConfigError(f"{name} is no variable of the server; {meant} Rename it, or remove it")
        if meant := did_you_mean(name, sorted(_VARIABLES), _NEAR):
            logger.warning(
                "%s is no variable of the server and has no effect here. Rename it if it is meant for the server: %s",
                name,
                meant,
            )


def _value(option: Option, options: argparse.Namespace, environ: Mapping[str, str], settings: Mapping[str, Any]) -> Any:
    """Return the value of an option; None without one."""
    given = getattr(options, option.field, None)
    if given is not None and not option.repeatable:
        return given
    source, value = option.setting, settings.get(option.setting)
    if option.repeatable:
        values = (*(given or ()), *_split(option, source, value))
        from_environment = option.variable and (option.secret or not values)
        variable = option.variable
        if not from_environment:
            return values
        return (*values, *_split(option, variable, _in_environment(variable, environ, secret=option.secret)))
    if value in (None, "", []) and option.variable:
        source, value = option.variable, _in_environment(option.variable, environ, secret=option.secret)
    if value in (None, ""):
        return None
    return _read(option, source, value) if isinstance(value, str) else value


def _in_environment(name: str, environ: Mapping[str, str], *, secret: bool) -> str | None:
    """Return the value of a variable, of a secret also from its file."""
    try:
        return secret_in(environ, name) if secret else environ.get(name)
    except SecretFileError as error:
        raise ConfigError(str(error)) from None


def _split(option: Option, source: str, value: str | Iterable[object] | None) -> list[str]:
    pieces = (value.split(option.separator) if isinstance(value, str) else value) or ()
    return [_read(option, source, str(piece)) for piece in pieces if piece]


def _read(option: Option, source: str, value: str) -> Any:
    try:
        return option.reader(value)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"{source}: {error}") from None
