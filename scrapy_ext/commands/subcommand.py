"""The record of a subcommand of ``scrapy platform``, and the run of one that uses the platform's API."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound, PlatformError
from scrapy_ext.commands.options import SETTING, AddOptions, view_options
from scrapy_ext.commands.output import Column, OutputError, StandardOutput, each_of, one_line
from scrapy_ext.crawl.session.embedded import EmbeddedServerError, check_installed
from scrapy_ext.crawl.session.project import data_directory
from scrapy_ext.crawl.session.services import Configured, platform_client
from scrapy_ext.server import launch
from scrapy_ext.settings import SettingError

T = TypeVar("T")

OK: Final = 0
FAILED: Final = 1
#: Exit code that a shell reports for a process that SIGINT ended.
INTERRUPTED: Final = 130
#: Options of every action whose value is the next word.
_WITH_VALUE: Final = ("-s", "--set", "--project")


class CommandError(Exception):
    """A subcommand failed; the message is one line with the reason and the remedy."""


@dataclass(frozen=True)
class View:
    """Context of a subcommand that uses the platform's API. ``embedded``: the server ends with the command."""

    client: PlatformClient
    project: int
    options: argparse.Namespace
    output: StandardOutput
    embedded: bool = False
    #: Settings of the project and the command line.
    settings: BaseSettings = field(default_factory=BaseSettings)

    async def show(self, rows: Iterable[object], columns: Sequence[Column] | None = None, note: str = "") -> None:
        """Write records in the form of the output, and ``note`` below a table."""
        await self.output.records(each_of(rows), columns)
        if note:
            await self.output.note(note)

    async def found(self, call: Awaitable[T], missing: str) -> T:
        """Return the result of a call; raise :class:`CommandError` with ``missing`` when there is no such resource."""
        try:
            return await call
        except NotFound:
            raise CommandError(missing) from None

    def say(self, message: str) -> None:
        """Write a line for people to standard error; standard output has the result alone."""
        sys.stderr.write(f"{one_line(message)}\n")
        sys.stderr.flush()


#: Shows something, and returns the exit code; None for 0.
Show = Callable[[View], Awaitable[int | None]]
RunCommand = Callable[[BaseSettings, argparse.Namespace], int]


@dataclass(frozen=True)
class CommandAction:
    """An action of a subcommand that has several, with its own arguments."""

    name: str
    summary: str
    show: Show
    arguments: Sequence[AddOptions] = ()

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        for add in (*self.arguments, view_options()):
            add(parser)


@dataclass(frozen=True)
class Subcommand:
    """A subcommand: its arguments, its run, and examples of its use with their meaning.

    With ``actions``, the first argument is the name of one; the first action is the default. ``in_full`` returns the
    arguments with the action for arguments that begin with another word. With ``takes_script``, the option
    ``script_args`` has the arguments after ``--``. ``details`` follows the summary in its help.
    """

    name: str
    examples: Sequence[tuple[str, str]]
    arguments: Sequence[AddOptions]
    run: RunCommand
    actions: Sequence[CommandAction] = ()
    takes_script: bool = False
    in_full: Callable[[list[str]], list[str]] | None = None
    details: str = ""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        for add in self.arguments:
            add(parser)

    def with_action(self, words: list[str]) -> list[str]:
        """Return the arguments with the name of an action before them."""
        if not self.actions or words[:1] in (["-h"], ["--help"]):
            return words
        place = _after_options(words)
        if place and words[place:] and any(words[place] == action.name for action in self.actions):
            words = [words[place], *words[:place], *words[place + 1 :]]
        if not words or words[0].startswith("-"):
            return [self.actions[0].name, *words]
        if self.in_full is None or words[0] in (action.name for action in self.actions):
            return words
        return self.in_full(words)


def _after_options(words: Sequence[str]) -> int:
    """Return the number of words of the options that every action has, before the first other word."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _WITH_VALUE else 1
    return place


def with_platform(show: Show, *, runner: bool = False) -> RunCommand:
    """Return the run of a subcommand that calls ``show`` with a client of the platform.

    A failure is one line on standard error. ``runner``: an embedded server runs jobs too.
    """

    async def with_client(settings: BaseSettings, options: argparse.Namespace) -> int:
        output = StandardOutput.of(options)
        embedded = Configured.read(settings).platform_urls is None
        if embedded:
            check_installed()
            where = data_directory(settings)
            if not runner and not names.SERVER_DATABASE.read(settings) and not where.exists():
                raise CommandError(f"nothing is stored in {where}; run a crawl, or set PLATFORM_URL to use a platform")
        # With --follow, the command reports an outage at once and retries by itself.
        attempts = 1 if getattr(options, "follow", False) else None
        try:
            async with platform_client(settings, runner=runner, attempts=attempts) as (client, project):
                return await show(View(client, project, options, output, embedded, settings)) or OK
        except asyncio.CancelledError:
            # After Ctrl-C, errors of interrupted threads are not reported.
            asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
            raise

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        if getattr(options, "project", None) is not None:
            settings = settings.copy()
            settings.set(names.PLATFORM_PROJECT.name, options.project, priority="cmdline")
        try:
            return asyncio.run(with_client(settings, options))
        except KeyboardInterrupt:
            _discard_output()
            return INTERRUPTED
        except (CommandError, PlatformError, EmbeddedServerError, SettingError, ContractError) as error:
            return failed(options.command, error)

    return run


def run_subcommand(chosen: Subcommand, settings: BaseSettings, options: argparse.Namespace) -> int:
    """Run a subcommand and return its exit code, also where its output cannot be written."""
    try:
        return chosen.run(settings, options)
    except BrokenPipeError:
        _discard_output()  # The reader of the pipe has closed it.
    except OutputError as error:
        _discard_output()
        return failed(options.command, error)
    return OK


def platform_command(
    name: str,
    show: Show,
    examples: Sequence[tuple[str, str]],
    *arguments: AddOptions,
    csv: bool = False,
    details: str = "",
) -> Subcommand:
    """Return a subcommand that calls ``show`` with a client of the platform, and has the options of its output."""
    return Subcommand(name, examples, (*arguments, view_options(csv=csv)), with_platform(show), details=details)


def with_actions(
    name: str,
    actions: Sequence[CommandAction],
    examples: Sequence[tuple[str, str]],
    *,
    takes_script: bool = False,
    in_full: Callable[[list[str]], list[str]] | None = None,
) -> Subcommand:
    """Return a subcommand that has several actions."""
    shows = {action.name: action.show for action in actions}

    def add_actions(parser: argparse.ArgumentParser) -> None:
        choices = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for action in actions:
            of_action = choices.add_parser(
                action.name, help=action.summary, description=f"{first_upper(action.summary)}.", allow_abbrev=False
            )
            SETTING(of_action)
            action.add_options(of_action)

    async def show(view: View) -> int | None:
        return await shows[view.options.action](view)

    return Subcommand(name, examples, (add_actions,), with_platform(show), actions, takes_script, in_full)


def first_upper(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _discard_output() -> None:
    # Python flushes standard output at exit, which would fail again, and change the exit code.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failed(command: str, error: Exception) -> int:
    """Report the failure of a subcommand in one line on standard error, and return the exit code."""
    sys.stderr.write(_failure(command, error))
    return FAILED


def _failure(command: str, error: Exception) -> str:
    return f"scrapy platform {command}: {one_line(str(error))}\n"


def need_server(parser: argparse.ArgumentParser) -> None:
    """End a subcommand when the server's libraries are not installed, with the command that installs them."""
    try:
        if launch.UNSUPPORTED:
            raise EmbeddedServerError(launch.UNSUPPORTED)
        check_installed()
    except EmbeddedServerError as error:
        parser.exit(FAILED, _failure(parser.get_default("command"), error))


async def note_shown(view: View, records: str, number: int, total: int) -> None:
    """Write the line below a table of ``number`` records of ``total``, with the option that shows the next ones."""
    start: int = view.options.start
    more = f"; the next: --start {start + number}" if number and start + number < total else ""
    skipped = f", after the first {start}" if start else ""
    await view.output.note(f"{records}: {number} of {total}{skipped}{more}")
