"""Descriptions of the commands for the documentation, from their parsers.

Arguments that all commands have (``-h``, ``-s``, ``--project``, ``--json``) are left out: the page says them once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from scrapy_ext.commands import extract
from scrapy_ext.commands.platform import SUBCOMMANDS, load
from tools.restructured import code, escape, wrapped

#: Options of which the page has one description, unless a command has another.
COMMON = {
    "--help": None,
    "--json": "JSON lines instead of a table (the default in a pipe)",
    "--project": "number of the project (default: PLATFORM_PROJECT)",
}


def platform_commands(_: str) -> Iterator[str]:
    """Every command of ``scrapy platform``."""
    for name, summary in SUBCOMMANDS.items():
        subcommand = load(name)
        parser = argparse.ArgumentParser(prog=f"scrapy platform {name}")
        subcommand.add_options(parser)
        yield code(f"scrapy platform {' '.join((name, *_positional(parser)))}")
        yield from _described(f"{summary[0].upper()}{summary[1:]}.", subcommand.examples, parser)
        for action in subcommand.actions:
            of_action = argparse.ArgumentParser()
            action.add_options(of_action)
            yield f"   {code(' '.join((name, action.name, *_positional(of_action))))}"
            yield from (f"   {line}".rstrip() for line in _described(_summary(parser, action.name), (), of_action))


def extract_command(_: str) -> Iterator[str]:
    """``scrapy extract``."""
    parser = argparse.ArgumentParser()
    extract.add_options(parser)
    yield code(f"scrapy extract {extract.Command().syntax()}")
    yield from _described("", extract.EXAMPLES, parser)


def _described(summary: str, examples: Iterable[tuple[str, str]], parser: argparse.ArgumentParser) -> Iterator[str]:
    if summary:
        yield f"   {escape(summary)}"
        yield ""
    arguments = [action for action in _arguments(parser) if not _is_common(action)]
    for action in arguments:
        yield from wrapped(_shown(action), "   * ")
    if arguments:
        yield ""
    for number, (example, meaning) in enumerate(examples):
        yield from () if number else ("   Examples:", "")
        yield f"   * {code(example)}: {escape(meaning)}"
    yield ""


def _shown(action: argparse.Action) -> str:
    """Return the names, the value and the meaning of an argument."""
    value = _value(action)
    names = ", ".join(code(f"{name} {value}".strip()) for name in action.option_strings) or code(value)
    meaning = (action.help or "") % {**vars(action), "choices": ", ".join(map(str, action.choices or ()))}
    return f"{names}: {escape(' '.join(meaning.split()))}" if meaning else names


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices is not None else ""
    named = action.metavar or choices or (action.dest if not action.option_strings else action.dest.upper())
    value = named if isinstance(named, str) else " ".join(named)
    return {"*": f"[{value} ...]", "+": f"{value} [{value} ...]", "?": f"[{value}]"}.get(str(action.nargs), value)


def _positional(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in _arguments(parser):
        if not action.option_strings:
            yield _value(action)
    if any(isinstance(action, argparse._SubParsersAction) for action in parser._actions):
        yield "ACTION"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Return the arguments, positional ones first, without actions of the command and hidden ones."""
    found = [each for each in parser._actions if not isinstance(each, argparse._SubParsersAction)]
    yield from sorted(
        (each for each in found if each.help != argparse.SUPPRESS), key=lambda each: bool(each.option_strings)
    )


def _is_common(action: argparse.Action) -> bool:
    names = [name for name in action.option_strings if name in COMMON]
    return any(COMMON[name] in (None, action.help) for name in names)


def _summary(parser: argparse.ArgumentParser, name: str) -> str:
    """Return the meaning of an action of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action._choices_actions:
                if each.dest == name and each.help:
                    return f"{each.help[0].upper()}{each.help[1:]}."
    return ""
