"""``scrapy platform``: run jobs, show the stored data, or run the services.

Scrapy imports this module for each ``scrapy`` command, so it imports a subcommand only to run it.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from scrapy_ext.commands.subcommand import Subcommand

#: Summary of each subcommand.
SUBCOMMANDS: Final = {
    "run": "run a spider or a script",
    "jobs": "list jobs",
    "job": "show a job: its counts, metadata and stats",
    "stop": "stop jobs",
    "delete": "delete jobs and their stored data",
    "tags": "show, add or remove tags of jobs",
    "schedule": "list, add, change, pause or delete periodic jobs",
    "items": "show a job's items",
    "requests": "show a job's request records",
    "logs": "show a job's log",
    "snapshots": "list or save the pages of a job whose callbacks raised",
    "stats": "show a job's stats, or compare those of two jobs",
    "compare": "compare the items of two jobs: new, gone and changed ones",
    "collections": "list, read, write, count, rename or delete collections",
    "frontier": "list, count, dump, move or delete frontiers and their requests",
    "project": "list projects, or name one",
    "activity": "show the activity of the project",
    "deliveries": "list, add, preview or remove rules by which finished jobs are delivered to other storage",
    "restore-job": "bring back the records of an archived job",
    "webhooks": "add, list, test or remove webhooks of a project",
    "monitors": "list, add, preview or remove monitors of jobs, and show their results",
    "alerts": "add, list, test or remove the receivers of messages about monitors",
    "retention": "list, add, preview or remove rules by which old data is removed",
    "proxies": "show the success of a server's proxies, by site",
    "serve": "run the services, with web pages",
    "worker": "run jobs of a server's database on this machine",
    "users": "list the people who log in to the pages, give them roles, or disable them",
    "keys": "add, list, suspend or remove API keys of a server",
    "backup": "write the whole store to a file, also while servers use it",
    "restore": "fill an empty store from a backup",
    "migrate": "copy a store from one database to another",
    "import": "copy projects from another platform, and continue an interrupted copy",
    "vacuum": "return the disk space of deleted data at once",
    "usage": "show what uses the storage: bytes by kind, spider, age and project",
    "deploy": "deploy the project's code to the platform as a version",
    "versions": "list or delete deployed versions, or choose the current one",
    "mcp": "offer jobs, items and schedules to an agent as tools, over standard input and output",
    "doctor": "check versions, keys, addresses, clock, browser, database and disk",
    "completion": "print a script that completes these commands in a shell",
}
#: Modules of the subcommands that share one; the others have a module of their own name.
_MODULES: Final = {
    **dict.fromkeys(("job", "stats"), "jobs"),
    **dict.fromkeys(("stop", "delete", "tags"), "job_changes"),
    **dict.fromkeys(("items", "requests", "logs"), "records"),
    "worker": "serve",
    **dict.fromkeys(("retention", "deliveries", "restore-job"), "rules"),
    "proxies": "usage",
    "versions": "deploy",
    "import": "importing",
    **dict.fromkeys(("webhooks", "alerts"), "receivers"),
    **dict.fromkeys(("backup", "restore", "migrate", "vacuum"), "stores"),
}

_EPILOG: Final = """\
commands:
{commands}

Each has its own help: scrapy platform items --help
"""


class Command(ScrapyCommand):
    """The command ``platform`` of Scrapy."""

    requires_crawler_process = False
    # Failures are reported in one line; a log would hide the result.
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """Return the form of a call, for the usage line."""
        return "COMMAND [options] …"

    def short_desc(self) -> str:
        """Return the line in Scrapy's list of commands."""
        return "Run jobs, show their stored data, or run the services"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the name of the subcommand, and the rest of the line, which the subcommand parses."""
        super().add_options(parser)
        lines = "\n".join(f"  {name:<13} {summary}" for name, summary in SUBCOMMANDS.items())
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = _EPILOG.format(commands=lines)
        parser.add_argument("subcommand", metavar="COMMAND", nargs="?", help="see the list below")
        parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Parse the subcommand's options; raises :class:`UsageError`."""
        super().process_options(args, opts)
        if args:
            raise UsageError(f"unknown option {args[0]}; write the options of a command after its name")
        if opts.subcommand not in SUBCOMMANDS:
            raise UsageError(_unknown(opts.subcommand))
        opts.chosen = load(opts.subcommand)
        parser = parser_of(opts.chosen)
        rest, script_args = _split(opts.rest) if opts.chosen.takes_script else (opts.rest, [])
        opts.parsed = parser.parse_args(opts.chosen.with_action(rest))
        opts.parsed.script_args = script_args
        opts.set = opts.parsed.set
        super().process_options([], opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:  # Scrapy's signature
        from scrapy_ext.commands.subcommand import run_subcommand

        self.exitcode = run_subcommand(opts.chosen, cast("Settings", self.settings), opts.parsed)


def _unknown(name: str | None) -> str:
    from scrapy_ext.server.config.command_line import did_you_mean

    if name and (meant := did_you_mean(name, SUBCOMMANDS)):
        return f"unknown command {name!r}; {meant} All commands: scrapy platform --help"
    wrong = f"unknown command {name!r}" if name else "a command is missing"
    return f"{wrong}: choose one of {', '.join(SUBCOMMANDS)}"


def module_of(name: str) -> str:
    """Return the name of the module of a subcommand."""
    return f"scrapy_ext.commands.subcommands.{_MODULES.get(name, name)}"


def load(name: str) -> Subcommand:
    found: Sequence[Subcommand] = importlib.import_module(module_of(name)).SUBCOMMANDS
    return next(each for each in found if each.name == name)


def _split(rest: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before ``--`` and those after it, which argparse would mix with the first."""
    place = rest.index("--") if "--" in rest else len(rest)
    return rest[:place], rest[place + 1 :]


def parser_of(chosen: Subcommand) -> argparse.ArgumentParser:
    from textwrap import fill

    from scrapy_ext.commands.options import SETTING
    from scrapy_ext.commands.subcommand import first_upper
    from scrapy_ext.server.config.command_line import SuggestingParser

    width = max(len(example) for example, _ in chosen.examples)
    examples = "\n".join(f"  {example:<{width}}  {meaning}" for example, meaning in chosen.examples)
    parser = SuggestingParser(
        prog=f"scrapy platform {chosen.name}",
        description=f"{first_upper(SUBCOMMANDS[chosen.name])}.\n\n{fill(chosen.details, 100)}".rstrip(),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=chosen.name)
    if not chosen.actions:
        SETTING(parser)
    chosen.add_options(parser)
    return parser
