"""The record of a server option, and the readers of option values."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import os
from collections.abc import Callable
from enum import Flag, auto
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.masking import shown_address
from scrapy_ext.api.platform.deliveries import target_faults
from scrapy_ext.api.platform.users import parse_allowed, parse_group_role
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError

_MOST: Final = 1_000_000
_BELOW: Final = 1_000_000_000
_METAVARS: Final = {"seconds": "SECONDS", "days": "DAYS", "MiB": "MIB"}


class Role(Flag):
    """Commands with an option: ``serve``, ``worker``, and those that open a store, such as ``backup``."""

    SERVER = auto()
    WORKER = auto()
    STORE = auto()
    #: The commands that run jobs and their extraction.
    NODE = SERVER | WORKER


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An option; ``field``, ``type`` and ``value`` (its default) come from the configuration."""

    meaning: str
    roles: Role = Role.NODE
    #: Names on the command line. None: derived from the field's name; empty: no such option.
    names: tuple[str, ...] | None = None
    unit: str = ""
    #: The least whole number, and its reason.
    least: int = 1
    why: str = ""
    #: Reader of a value; by default that of the type and the unit.
    read: Callable[[str], Any] | None = None
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    #: The default in words, if the value needs an explanation.
    default: str = ""
    #: The environment variable, and the separator of several values in it (None: white space).
    variable: str = ""
    separator: str | None = ","
    #: The Scrapy setting for the embedded server and, in a project, for `serve` and `worker`.
    setting: str = ""
    secret: bool = False
    field: str = ""
    type: Any = str
    value: Any = None

    @property
    def repeatable(self) -> bool:
        """True for an option that is repeated for several values."""
        return self.type == tuple[str, ...] and self.read is not tags

    @property
    def options(self) -> tuple[str, ...]:
        if self.names is not None:
            return self.names
        return (f"--{'no-' if self.value is True else ''}{self.field.replace('_', '-')}",)

    @property
    def reader(self) -> Callable[[str], Any]:
        """The function that reads a value from text; raises ``argparse.ArgumentTypeError``."""
        if self.read is not None:
            return self.read
        if int in self._types:
            return whole(self.unit, least=self.least, why=self.why)
        if float in self._types:
            return positive(self.unit)
        if DatabaseUrl in self._types:
            return database_url
        return Path if Path in self._types else str

    @property
    def default_text(self) -> str:
        """The default in words; empty for none."""
        if self.default or self.value in (None, ()) or isinstance(self.value, bool):
            return self.default
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)

    @property
    def help(self) -> str:
        """The meaning, with the default and the environment variable."""
        notes = [
            self.repeatable and "repeatable",
            self.default_text and f"default: {self.default_text}",
            self.variable and f"environment variable: {self.variable}",
        ]
        more = "; ".join(note for note in notes if note)
        hidden = ", which does not show in process lists" if self.secret and self.variable else ""
        return f"{self.meaning} ({more}{hidden})" if more else self.meaning

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add the option to a parser, with None as default."""
        text = self.help.replace("%", "%%")
        if self.type is bool:
            parser.add_argument(
                *self.options, dest=self.field, action="store_const", const=not self.value, default=None, help=text
            )
            return
        parser.add_argument(
            *self.options,
            dest=self.field,
            type=self.reader,
            action="append" if self.repeatable else "store",
            choices=self.choices,
            metavar=self._metavar(),
            help=text,
        )

    def _metavar(self) -> str | None:
        if self.metavar is not None or self.choices is not None:
            return self.metavar
        if self.read is None and (self.unit or int in self._types):
            return _METAVARS.get(self.unit, "N")
        return self.options[0].removeprefix("--").upper().replace("-", "_")

    @property
    def _types(self) -> tuple[Any, ...]:
        return get_args(self.type) or (self.type,)


def port(text: str) -> int:
    """Return a port to listen on, 0 for a free one."""
    if text.isascii() and text.isdigit() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be 0 to 65535, got {text!r}")


def listen_address(text: str) -> str:
    """Return an address to listen on, ``HOST:PORT`` or ``[IPV6]:PORT``."""
    host, colon, number = text.rpartition(":")
    if host and colon and ("]" in host) == (":" in host):
        with contextlib.suppress(argparse.ArgumentTypeError):
            return f"{host}:{port(number)}"
    raise argparse.ArgumentTypeError(f"must be HOST:PORT, such as 0.0.0.0:8700, got {text!r}")


def program(text: str) -> str:
    path = Path(text).expanduser()
    if path.is_file() and os.access(path, os.X_OK):
        return text
    raise argparse.ArgumentTypeError(f"{text} is not a program; name a Chromium, or leave it out")


def tags(text: str) -> tuple[str, ...]:
    """Return the distinct tags of a comma-separated list, sorted."""
    return tuple(sorted({tag.strip() for tag in text.split(",") if tag.strip()}))


def project_folder(text: str) -> Path:
    folder = Path(text).expanduser().absolute()
    if (folder / "scrapy.cfg").is_file():
        return folder
    raise argparse.ArgumentTypeError(f"{text} has no scrapy.cfg; name the folder of a Scrapy project")


def archive_target(text: str) -> str:
    """Return the URL of a folder or bucket for deliveries; credentials in it are refused."""
    faults = list(target_faults(text))
    if faults:
        # A URL with credentials is not repeated.
        raise argparse.ArgumentTypeError(f"{faults[0].rule}. {faults[0].remedy}")
    return text.rstrip("/")


def existing_path(text: str) -> str:
    """Return the absolute path of an existing file or folder."""
    path = Path(text).expanduser().absolute()
    if path.exists():
        return str(path)
    raise argparse.ArgumentTypeError(f"{text} does not exist; name a file or folder")


def denied_address(text: str) -> str:
    """Return a network with an optional port: ``NETWORK`` or ``NETWORK PORT``."""
    network, port = text, ""
    if text.startswith("["):
        network, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        network, _, port = text.partition(":")
    try:
        found = ipaddress.ip_network(network)
    except ValueError:
        found = None
    if found is None or (port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65535)):
        raise argparse.ArgumentTypeError(f"must be NETWORK or NETWORK:PORT, such as 10.0.0.0/8, got {text!r}")
    return f"{found} {port}".strip()


def positive(unit: str) -> Callable[[str], float]:
    """Return a reader of numbers over 0."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if 0 < number < _BELOW:
            return number
        raise argparse.ArgumentTypeError(f"must be a number of {unit} over 0 and below {_BELOW}, got {text!r}")

    return read


def whole(unit: str = "", *, least: int = 1, why: str = "") -> Callable[[str], int]:
    """Return a reader of whole numbers; ``why`` is the reason of ``least`` in its error."""
    rule = f"must be a whole number{unit and f' of {unit}'} from {least} to {_MOST}{why and f' ({why})'}"

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text[:10]) <= _MOST:
            return int(text)
        raise argparse.ArgumentTypeError(f"{rule}, got {text[:60]!r}")

    return read


def network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an address or network such as 10.0.0.0/8, got {text!r}") from None


def database_url(text: str) -> DatabaseUrl:
    try:
        return DatabaseUrl(text)
    except StoreError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def server_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.username:
        return text.rstrip("/")
    raise argparse.ArgumentTypeError(
        f"must be the address of a server, such as http://10.0.0.5:8700{shown_address(text)}"
    )


def group_role(text: str) -> str:
    return _checked(parse_group_role, text)


def allowed_user(text: str) -> str:
    _checked(parse_allowed, text)
    return parse_allowed(text)


def _checked(parse: Callable[[str], Any], text: str) -> str:
    """Return a text that the contract's parser accepts."""
    try:
        parse(text)
    except ContractError as error:
        first = error.violations[0]
        raise argparse.ArgumentTypeError(f"{first.rule}. {first.remedy}") from None
    return text
