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
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.output import Output, one_line
from scrapy_ext.embedded import Configured, EmbeddedServerError, check_installed, data_directory, platform_client
from scrapy_ext.settings import SettingError

OK: Final = 0
FAILED: Final = 1
#: What a shell reports for a process that SIGINT ended.
INTERRUPTED: Final = 130


class CommandError(Exception):
    """What was asked for cannot be shown; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Subcommand:
    """A subcommand: its options, what it does, and examples of its use with their meaning."""

    name: str
    examples: Sequence[tuple[str, str]]
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[BaseSettings, argparse.Namespace], int]


@dataclass(frozen=True)
class View:
    """What a subcommand that looks at stored data works with."""

    client: PlatformClient
    project: int
    options: argparse.Namespace
    output: Output


def look(show: Callable[[View], Awaitable[None]]) -> Callable[[BaseSettings, argparse.Namespace], int]:
    """The run of a subcommand: ``show`` with a client of the platform, and its failures told in one line."""

    async def with_client(settings: BaseSettings, options: argparse.Namespace) -> None:
        output = Output.of(options)
        if Configured.read(settings).platform_urls is None:
            check_installed()
            where = data_directory(settings)
            if not names.SERVER_DATABASE.read(settings) and not where.exists():
                told = "run a crawl, or set PLATFORM_URL to look at a platform"
                raise CommandError(f"nothing is stored in {where}; {told}")
        try:
            async with platform_client(settings) as (client, project):
                await show(View(client, project, options, output))
        except asyncio.CancelledError:
            # Ctrl-C: what it cuts off in other threads is no error to tell of.
            asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
            raise

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        try:
            asyncio.run(with_client(settings, options))
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


def _write_no_more() -> None:
    """What Python would still flush at exit must neither complain nor change the exit code: nobody may be reading."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failure(command: str, error: Exception) -> str:
    """What a subcommand says on standard error when it fails: one line."""
    return f"scrapy platform {command}: {one_line(str(error))}\n"


async def note_shown(view: View, what: str, number: int, total: int) -> None:
    """The line below a table of ``number`` records of ``total``: how to see those that follow."""
    start: int = view.options.start
    more = f"; the next: --start {start + number}" if number and start + number < total else ""
    skipped = f" behind the first {start}" if start else ""
    await view.output.note(f"{what}: {number} of {total}{skipped}{more}")


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


def _start(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)
