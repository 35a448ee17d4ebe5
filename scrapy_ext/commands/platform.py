"""``scrapy platform``: runs jobs, shows what the platform stores, or runs the services.

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
    "run": "run a spider or a script",
    "jobs": "list jobs",
    "job": "show a job: what it stored, its metadata and stats",
    "stop": "stop jobs",
    "delete": "delete jobs with what they stored",
    "tags": "show, add or remove tags of jobs",
    "schedule": "list, add, change, pause or delete periodic jobs",
    "items": "show a job's items",
    "requests": "show a job's request records",
    "logs": "show a job's log",
    "stats": "show a job's stats, or compare those of two",
    "collections": "list, read, write, count, rename or delete collections",
    "frontier": "list, count, dump, move or delete what frontiers hold",
    "activity": "show what happened in the project",
    "webhooks": "add, list, test or remove webhooks of a project",
    "serve": "run the services, with pages for people",
    "worker": "run jobs of a server's database on this machine, too",
    "keys": "add, list or remove API keys of a server",
    "backup": "write the whole store to a file, while it is in use",
    "restore": "fill an empty store from such a file",
    "migrate": "copy a store from one database to another",
    "vacuum": "give the room of deleted data back to the disk",
    "deploy": "send the project's code to the platform as a version",
    "versions": "list deployed versions, or go back to one",
    "completion": "print what makes a shell complete these commands",
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
        return "Run jobs, show what the platform stores, or serve it"

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
            raise UsageError(_unknown(opts.subcommand))
        opts.chosen = _load(opts.subcommand)
        parser = parser_of(opts.chosen)
        rest, script_args = _split(opts.rest) if opts.chosen.takes_script else (opts.rest, [])
        opts.parsed = parser.parse_args(opts.chosen.with_action(rest))
        opts.parsed.script_args = script_args
        opts.set = opts.parsed.set
        super().process_options([], opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:  # Scrapy's signature
        """Run the subcommand."""
        self.exitcode = opts.chosen.run(cast("Settings", self.settings), opts.parsed)


def _unknown(name: str | None) -> str:
    from scrapy_ext.server.config.parser import did_you_mean

    if name and (meant := did_you_mean(name, SUBCOMMANDS)):
        return f"unknown command {name!r}; {meant} All commands: scrapy platform --help"
    wrong = f"unknown command {name!r}" if name else "a command is missing"
    return f"{wrong}: choose one of {', '.join(SUBCOMMANDS)}"


def _load(name: str) -> Subcommand:
    found: Subcommand = importlib.import_module(f"scrapy_ext.commands.subcommands.{name}").SUBCOMMAND
    return found


def _split(rest: list[str]) -> tuple[list[str], list[str]]:
    """What stands before ``--``, and behind it. argparse would take it for more of what stands before."""
    place = rest.index("--") if "--" in rest else len(rest)
    return rest[:place], rest[place + 1 :]


def parser_of(chosen: Subcommand) -> argparse.ArgumentParser:
    """What reads the arguments of a subcommand."""
    from scrapy_ext.commands.subcommand import add_setting_option
    from scrapy_ext.server.config.parser import SuggestingParser

    width = max(len(example) for example, _ in chosen.examples)
    examples = "\n".join(f"  {example:<{width}}  {meaning}" for example, meaning in chosen.examples)
    parser = SuggestingParser(
        prog=f"scrapy platform {chosen.name}",
        description=f"{SUBCOMMANDS[chosen.name][0].upper()}{SUBCOMMANDS[chosen.name][1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=chosen.name)
    if not chosen.actions:
        add_setting_option(parser)
    chosen.add_options(parser)
    return parser
