"""``scrapy platform``: shows what the platform stores, or runs the services.

Scrapy loads this module for every ``scrapy`` command there is, so it imports a subcommand only to run it.
"""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from scrapy_ext.commands.subcommand import Subcommand

#: Name and summary of every subcommand; its module has the same name.
SUBCOMMANDS: Final = {
    "serve": "run the services, with pages for people",
    "backup": "write the whole store to a file, while it is in use",
    "restore": "fill an empty store from such a file",
    "migrate": "copy a store from one database to another",
    "vacuum": "give the room of deleted data back to the disk",
    "jobs": "list jobs",
    "job": "show a job's metadata",
    "items": "show a job's items",
    "requests": "show a job's request records",
    "logs": "show a job's log",
    "frontier": "list frontiers, their slots, or a slot's next requests",
    "collections": "list collections, or a collection's records",
    "deploy": "send the project's code to the platform as a version",
    "versions": "list deployed versions, or go back to one",
    "webhooks": "add, list, test or remove webhooks of a project",
    "keys": "add, list or remove API keys of a server",
}

_EPILOG: Final = """\
commands:
{commands}

Each has its own help: scrapy platform items --help
"""


class Command(ScrapyCommand):
    """The command as Scrapy runs it."""

    requires_crawler_process = False
    # Diagnostics go to standard error in one line; a log would bury what was asked for.
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """The form of a call."""
        return "COMMAND [options] …"

    def short_desc(self) -> str:
        """The line in Scrapy's list of commands."""
        return "Show what the platform stores, or serve it"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Take the subcommand's name, and leave the rest of the line to the subcommand."""
        super().add_options(parser)
        lines = "\n".join(f"  {name:<13} {summary}" for name, summary in SUBCOMMANDS.items())
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = _EPILOG.format(commands=lines)
        parser.add_argument("subcommand", metavar="COMMAND", nargs="?", help="what to do, see below")
        parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Parse the subcommand's options; raises :class:`UsageError`."""
        super().process_options(args, opts)
        if args:
            raise UsageError(f"unknown option {args[0]}; options of a command come after its name")
        if opts.subcommand not in SUBCOMMANDS:
            wrong = f"unknown command {opts.subcommand!r}" if opts.subcommand else "a command is missing"
            raise UsageError(f"{wrong}: choose one of {', '.join(SUBCOMMANDS)}")
        opts.chosen = _load(opts.subcommand)
        parser = _parser(opts.chosen)
        opts.chosen.add_options(parser)
        opts.parsed = parser.parse_args(opts.rest)
        opts.set = opts.parsed.set
        super().process_options([], opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:  # Scrapy's signature
        """Run the subcommand."""
        self.exitcode = opts.chosen.run(cast("Settings", self.settings), opts.parsed)


def _load(name: str) -> Subcommand:
    found: Subcommand = importlib.import_module(f"scrapy_ext.commands.{name}").SUBCOMMAND
    return found


def _parser(chosen: Subcommand) -> argparse.ArgumentParser:
    width = max(len(example) for example, _ in chosen.examples)
    examples = "\n".join(f"  {example:<{width}}  {meaning}" for example, meaning in chosen.examples)
    parser = argparse.ArgumentParser(
        prog=f"scrapy platform {chosen.name}",
        description=f"{SUBCOMMANDS[chosen.name].capitalize()}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=chosen.name)
    parser.add_argument("-s", "--set", action="append", default=[], metavar="NAME=VALUE", help="set a Scrapy setting")
    return parser
