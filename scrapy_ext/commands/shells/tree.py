"""What can be written after ``scrapy platform``, read from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from scrapy_ext.commands.subcommand import Subcommand, add_setting_option

#: Stand for names that are looked up when they are completed: those of spiders, and the keys of jobs.
SPIDERS: Final = "@spiders"
JOBS: Final = "@jobs"
_KINDS: Final = {"spider": SPIDERS, "job": JOBS, "jobs": JOBS, "other": JOBS}


class Option(NamedTuple):
    """An option: its names, what may follow it (None: nothing, empty: anything), and its help."""

    names: tuple[str, ...]
    values: tuple[str, ...] | None
    help: str


class Place(NamedTuple):
    """A place in a command line: the subcommand, and the action if it has such, then ``options`` and ``arguments``."""

    key: str
    summary: str
    options: tuple[Option, ...]
    arguments: tuple[str, ...]


def places(subcommand: Subcommand, summary: str) -> Iterator[Place]:
    """The places of a subcommand: itself, and its actions."""
    parser = argparse.ArgumentParser(add_help=False)
    if subcommand.actions:
        names = tuple(action.name for action in subcommand.actions)
        yield Place(subcommand.name, summary, (_HELP,), names)
        for action in subcommand.actions:
            of_action = argparse.ArgumentParser(add_help=False)
            add_setting_option(of_action)
            action.add_options(of_action)
            yield _place(f"{subcommand.name} {action.name}", action.summary, of_action)
        return
    add_setting_option(parser)
    try:
        subcommand.add_options(parser)
    except SystemExit:  # its libraries are not installed
        parser = argparse.ArgumentParser(add_help=False)
    yield _place(subcommand.name, summary, parser)


def _place(key: str, summary: str, parser: argparse.ArgumentParser) -> Place:
    options, arguments = [_HELP], list[str]()
    for action in parser._actions:
        values = _values(action.dest, action.choices, action.metavar)
        if not action.option_strings:
            arguments += values
        elif action.help != argparse.SUPPRESS:
            takes_none = action.nargs == 0
            options.append(Option(tuple(action.option_strings), None if takes_none else values, _told(action)))
    return Place(key, summary, tuple(options), tuple(dict.fromkeys(arguments)))


_HELP: Final = Option(("-h", "--help"), None, "show its help")


def _values(dest: str, choices: Iterable[object] | None, metavar: object) -> tuple[str, ...]:
    if choices is not None:
        return tuple(map(str, choices))
    # Only a name: what `--spider` of another command is, is one too.
    return (_KINDS[dest],) if dest in _KINDS and metavar is not None else ()


def _told(action: argparse.Action) -> str:
    """The help, as one line without what is in brackets."""
    text = (action.help or "").split(" (")[0].split("; ")[0]
    return " ".join(text.replace("%%", "%").split())
