"""Directives that insert the help of commands, as the commands print it.

``.. platform-commands::`` inserts all ``scrapy platform`` commands, ``.. extract-command::`` ``scrapy extract``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from sphinx.application import Sphinx
from tables import Generated, code

from scrapy_ext.commands import extract
from scrapy_ext.commands.platform import SUBCOMMANDS, load, module_of

#: Columns of the help.
WIDTH = 84


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=WIDTH)


class PlatformCommands(Generated):
    """Descriptions of all commands."""

    sources = (
        "scrapy_ext.commands.platform",
        "scrapy_ext.server.config.config",
        "scrapy_ext.commands.options",
        *sorted(set(map(module_of, SUBCOMMANDS))),
    )

    def lines(self) -> Iterable[str]:
        for name, summary in SUBCOMMANDS.items():
            subcommand = load(name)
            parser = _parser(f"scrapy platform {name}")
            subcommand.add_options(parser)
            yield f".. describe:: scrapy platform {name}"
            yield ""
            yield f"   {summary[0].upper()}{summary[1:]}."
            yield ""
            yield from _examples(subcommand.examples)
            yield from _help(parser)
            for action in subcommand.actions:
                of_action = _parser(f"scrapy platform {name} {action.name}")
                action.add_options(of_action)
                yield from _help(of_action)


class ExtractCommand(Generated):
    """Description of ``scrapy extract``."""

    sources = ("scrapy_ext.commands.extract",)

    def lines(self) -> Iterable[str]:
        parser = _parser("scrapy extract")
        parser.usage = f"scrapy extract {extract.Command().syntax()}"
        extract.add_options(parser)
        parser.epilog = None  # The examples are a list here.
        yield ".. describe:: scrapy extract"
        yield ""
        yield from _examples(extract.EXAMPLES)
        yield from _help(parser)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, formatter_class=_Formatter, allow_abbrev=False)
    parser.add_argument("-s", "--set", action="append", metavar="NAME=VALUE", help="set a Scrapy setting")
    return parser


def _examples(examples: Iterable[tuple[str, str]]) -> Iterable[str]:
    for example, meaning in examples:
        yield f"   * {code(example)}: {meaning}"
    yield ""


def _help(parser: argparse.ArgumentParser) -> Iterable[str]:
    parser.formatter_class = _Formatter
    yield "   .. code-block:: text"
    yield ""
    for line in parser.format_help().splitlines():
        yield f"      {line}".rstrip()
    yield ""


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("platform-commands", PlatformCommands)
    app.add_directive("extract-command", ExtractCommand)
    return {"parallel_read_safe": True}
