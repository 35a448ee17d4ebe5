"""What a subcommand is, and the run of one that looks at stored data."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.terminal.output import Output, one_line
from scrapy_ext.crawl.session.embedded import (
    Configured,
    EmbeddedServerError,
    check_installed,
    platform_client,
)
from scrapy_ext.crawl.session.project import data_directory
from scrapy_ext.settings import SettingError

OK: Final = 0
FAILED: Final = 1
#: What a shell reports for a process that SIGINT ended.
INTERRUPTED: Final = 130


class CommandError(Exception):
    """What was asked for cannot be shown; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Subcommand:
    """A subcommand: its options, what it does, and examples of its use with their meaning.

    One with ``actions`` takes the name of one as its first argument; without it, the first is meant. What begins with
    another word ``in_full`` completes. One that ``takes_script`` has what stands behind ``--`` in the option
    ``script_args``.
    """

    name: str
    examples: Sequence[tuple[str, str]]
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[BaseSettings, argparse.Namespace], int]
    actions: Sequence[Action] = ()
    takes_script: bool = False
    in_full: Callable[[list[str]], list[str]] | None = None

    def with_action(self, words: list[str]) -> list[str]:
        """Arguments with the name of an action before them."""
        if not self.actions or words[:1] in (["-h"], ["--help"]):
            return words
        if not words or words[0].startswith("-"):
            return [self.actions[0].name, *words]
        if self.in_full is None or words[0] in (action.name for action in self.actions):
            return words
        return self.in_full(words)


@dataclass(frozen=True)
class Action:
    """One of the things that a subcommand does."""

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    show: Callable[[View], Awaitable[int | None]]


@dataclass(frozen=True)
class View:
    """What a subcommand that looks at stored data works with. ``embedded``: the server ends with the command."""

    client: PlatformClient
    project: int
    options: argparse.Namespace
    output: Output
    embedded: bool = False

    def say(self, message: str) -> None:
        """A line on standard error, for people; standard output is for what was asked for."""
        sys.stderr.write(f"{one_line(message)}\n")
        sys.stderr.flush()


def look(
    show: Callable[[View], Awaitable[int | None]], *, runner: bool = False
) -> Callable[[BaseSettings, argparse.Namespace], int]:
    """The run of a subcommand: ``show`` with a client of the platform, and its failures told in one line.

    What ``show`` returns is the exit code. ``runner``: an embedded server runs jobs too.
    """

    async def with_client(settings: BaseSettings, options: argparse.Namespace) -> int:
        output = Output.of(options)
        embedded = Configured.read(settings).platform_urls is None
        if embedded:
            check_installed()
            where = data_directory(settings)
            if not runner and not names.SERVER_DATABASE.read(settings) and not where.exists():
                told = "run a crawl, or set PLATFORM_URL to look at a platform"
                raise CommandError(f"nothing is stored in {where}; {told}")
        # Who follows tells at once that the platform is away, and waits by itself.
        attempts = 1 if getattr(options, "follow", False) else None
        try:
            async with platform_client(settings, runner=runner, attempts=attempts) as (client, project):
                return await show(View(client, project, options, output, embedded)) or OK
        except asyncio.CancelledError:
            # Ctrl-C: what it cuts off in other threads is no error to tell of.
            asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
            raise

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        if getattr(options, "project", None) is not None:
            settings = settings.copy()
            settings.set(names.PLATFORM_PROJECT.name, options.project, priority="cmdline")
        try:
            return asyncio.run(with_client(settings, options))
        except BrokenPipeError:
            _write_no_more()  # The reader has seen enough.
        except KeyboardInterrupt:
            _write_no_more()
            return INTERRUPTED
        except (CommandError, PlatformError, EmbeddedServerError, SettingError, ContractError) as error:
            print(failure(options.command, error), end="", file=sys.stderr)  # noqa: T201  # a command speaks
            return FAILED
        return OK

    return run


def with_actions(
    name: str,
    actions: Sequence[Action],
    examples: Sequence[tuple[str, str]],
    *,
    takes_script: bool = False,
    in_full: Callable[[list[str]], list[str]] | None = None,
) -> Subcommand:
    """A subcommand that does several things."""
    shows = {action.name: action.show for action in actions}

    def add_options(parser: argparse.ArgumentParser) -> None:
        choices = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for action in actions:
            of_action = choices.add_parser(
                action.name, help=action.summary, description=f"{first_upper(action.summary)}.", allow_abbrev=False
            )
            add_setting_option(of_action)
            action.add_options(of_action)

    async def show(view: View) -> int | None:
        return await shows[view.options.action](view)

    return Subcommand(name, examples, add_options, look(show), actions, takes_script, in_full)


def first_upper(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]


def add_setting_option(parser: argparse.ArgumentParser) -> None:
    """``-s``, as Scrapy's own commands have it."""
    parser.add_argument("-s", "--set", action="append", default=[], metavar="NAME=VALUE", help="set a Scrapy setting")


def _write_no_more() -> None:
    """What Python would still flush at exit must neither complain nor change the exit code: nobody may be reading."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failure(command: str, error: Exception) -> str:
    """What a subcommand says on standard error when it fails: one line."""
    return f"scrapy platform {command}: {one_line(str(error))}\n"


def need_server(parser: argparse.ArgumentParser) -> None:
    """End a subcommand, with what to install, where the server's code is not."""
    try:
        check_installed()
    except EmbeddedServerError as error:
        parser.exit(FAILED, failure(parser.get_default("command"), error))


async def note_shown(view: View, what: str, number: int, total: int) -> None:
    """The line below a table of ``number`` records of ``total``: how to see those that follow."""
    start: int = view.options.start
    more = f"; the next: --start {start + number}" if number and start + number < total else ""
    skipped = f" behind the first {start}" if start else ""
    await view.output.note(f"{what}: {number} of {total}{skipped}{more}")


def add_view_options(parser: argparse.ArgumentParser, *, csv: bool = False) -> None:
    """The options of whatever looks at a project: ``--project``, and those of the output."""
    parser.add_argument("--project", type=project_number, metavar="N", help="the project, instead of PLATFORM_PROJECT")
    add_output_options(parser, csv=csv)


def project_number(text: str) -> int:
    """An option that is the number of a project."""
    try:
        return number_of(text, "project")
    except ContractError as error:
        raise argparse.ArgumentTypeError(error.violations[0].rule) from None


def add_output_options(parser: argparse.ArgumentParser, *, csv: bool = False) -> None:
    """``--json``, and ``--csv`` for records of any shape."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="JSON lines, as in a pipe, instead of a table")
    if csv:
        group.add_argument("--csv", action="store_true", help="CSV with a header line")


def add_paging_options(parser: argparse.ArgumentParser, what: str, *, start: bool = True) -> None:
    """``--count`` and ``--start``."""
    parser.add_argument(
        "--count", type=_count, metavar="N", help=f"at most N {what} (default: 50 in a terminal, else all)"
    )
    if start:
        parser.add_argument("--start", type=_start, default=0, metavar="N", help=f"leave out the first N {what}")


def _count(text: str) -> int:
    number = _start(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def seconds(text: str) -> float:
    """An option that is a length of time."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds over 0, got {text!r}")
    return number


def pair(text: str) -> tuple[str, str]:
    """An option of the form NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def _start(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)
