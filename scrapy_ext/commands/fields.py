"""Options of the fields of a record, and the values that they give."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from scrapy_ext.api.fields import Described, Kind, fields_of
from scrapy_ext.commands.options import AddOptions, argument, pair, positive_number, repeated, whole_number
from scrapy_ext.commands.subcommand import CommandError


def options_of(record: type[msgspec.Struct]) -> tuple[AddOptions, ...]:
    """Return the arguments and options of the fields of a record that have a help text."""
    return tuple(_option(each) for each in fields_of(record).values() if each.words.help)


def option_of(record: type[msgspec.Struct], name: str) -> AddOptions:
    """Return the argument or option of one field."""
    return _option(fields_of(record)[name])


def given_fields(record: type[msgspec.Struct], options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that the options of :func:`options_of` give; raise :class:`CommandError`."""
    return dict(_given(record, options))


def _given(record: type[msgspec.Struct], options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    for name, each in fields_of(record).items():
        value: Any = getattr(options, name) if each.words.help else None
        if value is None or value is False or value == []:
            continue
        if each.kind is Kind.PAIRS:
            yield name, dict(value)
        else:
            yield name, _json_in(value) if each.kind is Kind.JSON else value


def _json_in(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{path} cannot be read as JSON: {error}") from None


def _option(each: Described) -> AddOptions:
    words, option = each.words, each.option
    meaning = words.help.replace("%", "%%")
    if not option.startswith("-"):
        return argument(option, help=meaning, metavar=words.metavar, **_positional(each))
    if each.kind is Kind.FLAG:
        return argument(option, dest=each.name, action="store_true", help=meaning)
    if each.kind in (Kind.TEXTS, Kind.PAIRS):
        kind = pair if each.kind is Kind.PAIRS else str
        return repeated(option, dest=each.name, type=kind, metavar=words.metavar, help=meaning)
    if each.choices:
        return argument(option, dest=each.name, choices=each.choices, help=meaning)
    return argument(option, dest=each.name, type=_type(each), metavar=words.metavar, help=meaning)


def _positional(each: Described) -> dict[str, Any]:
    if each.kind is not Kind.TEXTS:
        return {}
    if each.required:
        return {"nargs": "+", "choices": each.choices}
    # Not as choices: Python before 3.12 refuses the empty list of an argument with choices.
    return {"nargs": "*", "type": _choice(each.choices)}


def _type(each: Described) -> Callable[[str], Any]:
    if each.kind is not Kind.NUMBER:
        return str
    return positive_number if each.least else whole_number


def _choice(choices: Sequence[str]) -> Callable[[str], str]:
    def choice(text: str) -> str:
        if text in choices:
            return text
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(choices)}, got {text!r}")

    return choice
