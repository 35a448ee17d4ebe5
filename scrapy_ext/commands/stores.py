"""What the commands that work on a whole store share: which store, what a person sees, how failures are told."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.subcommand import FAILED, INTERRUPTED, OK, failure, need_server
from scrapy_ext.crawl.session.embedded import EmbeddedServerError, data_directory
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.server.store.copying import Report
    from scrapy_ext.server.store.engine.address import DatabaseUrl
    from scrapy_ext.server.store.engine.interface import Engine

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
#: Settings that name a platform elsewhere.
_REMOTE: Final = (names.PLATFORM_URL, names.PLATFORM_APP_URL, names.PLATFORM_STORAGE_URL)
#: What is meant for one of them, and would be a new directory.
_MISSPELT: Final = ("postgres", "psql", "pg", "sqlite3")

Work = Callable[[BaseSettings, argparse.Namespace], Coroutine[Any, Any, str]]


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """``--data``, ``--database`` and ``--local``."""
    need_server(parser)
    # Only these commands need the server's code.
    from scrapy_ext.server.config.option import Role
    from scrapy_ext.server.config.options import add_options

    add_options(parser, Role.STORE)
    parser.add_argument(
        "--local",
        action="store_true",
        help="the project's own store, although PLATFORM_URL names a platform that has another",
    )


def add_file_options(parser: argparse.ArgumentParser, file: str, replace: str) -> None:
    """``FILE``, the store, and ``--replace``: what a backup and a restore take, each with its meaning of them."""
    parser.add_argument("file", type=Path, metavar="FILE", help=file)
    add_store_options(parser)
    add_replace_option(parser, replace)


def add_replace_option(parser: argparse.ArgumentParser, what: str) -> None:
    """``--replace``."""
    parser.add_argument("--replace", action="store_true", help=what)


def chosen_store(settings: BaseSettings, options: argparse.Namespace) -> Path | DatabaseUrl:
    """The store that options name, else the one that the project uses.

    Raises :class:`SettingError` where the project uses a platform elsewhere, whose store this command does not reach.
    """
    if options.data is not None:
        return Path(options.data)
    if options.database is not None:
        given: DatabaseUrl = options.database
        return given
    own = own_store(settings)
    for setting in _REMOTE if not options.local else ():
        if remote := setting.read(settings):
            raise SettingError(
                setting.name,
                f"is set, and `scrapy platform {options.command}` is about a store on this machine, not about {remote}",
                f"Run it where that platform runs, with its --data or --database, or add --local for {own}.",
            )
    return own


def own_store(settings: BaseSettings) -> Path | DatabaseUrl:
    """The store of the settings."""
    database: str | None = names.SERVER_DATABASE.read(settings)
    return _url(database) if database else data_directory(settings)


def named_store(settings: BaseSettings, name: str) -> Path | DatabaseUrl:
    """``sqlite``: the project's data directory; ``postgresql``: the database of SERVER_DATABASE; else an address
    or a directory."""
    if name == SQLITE:
        return data_directory(settings)
    if name == POSTGRESQL:
        database = names.SERVER_DATABASE.read(settings)
        if not database:
            raise SettingError("SERVER_DATABASE", "is not set", "Set it, or give the database's address itself.")
        return _url(database)
    if name in _MISSPELT and not Path(name).is_dir():
        raise SettingError(name, "is neither sqlite nor postgresql", f"Write one of them, or ./{name} for a directory.")
    return _url(name) if "://" in name else Path(name)


def _url(text: str) -> DatabaseUrl:
    from scrapy_ext.server.store.engine.address import DatabaseUrl

    return DatabaseUrl(text)


@contextlib.asynccontextmanager
async def opened(where: Path | DatabaseUrl, *, must_exist: bool) -> AsyncIterator[Engine]:
    """A store of the newest version; raises ``StoreError``."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.engine.opening import open_engine
    from scrapy_ext.server.store.schema import is_made, migrate
    from scrapy_ext.server.store.store import now_ms

    if must_exist and isinstance(where, Path):
        check_there(where)
    engine = await open_engine(where)
    try:
        if must_exist and not isinstance(where, Path) and not await engine.read(is_made):
            raise StoreError(f"There is no store in {where}. Name another database, or a directory with --data.")
        await engine.write(migrate, now_ms())
        yield engine
    finally:
        await engine.close()


def check_there(data: Path) -> None:
    """Raise ``StoreError`` for a directory without a store."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.engine.opening import FILE

    if not (data / FILE).exists():
        raise StoreError(f"There is no store in {data}. Name its directory, or a database.")


async def copied(source: Engine, target: Engine, origin: str, name: str, *, replace: bool) -> str:
    """Copy the store ``origin`` into ``name``, with bars for a person who watches; returns what it had, in words."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.copying import contents, copy, count_rows
    from scrapy_ext.server.store.store import now_ms

    async with source.snapshot() as snapshot:
        rows = await count_rows(snapshot)
        if not any(rows.values()):
            raise StoreError(f"There is nothing in {origin}. Is it the store that was meant?")
        with _bars(rows) as report:
            found = await copy(snapshot, target, origin, now_ms(), name=name, replace=replace, report=report)
        held = [f"{number} {what}" for what, number in (await snapshot.read(contents)).items()]
    rows_in_all = sum(digest.rows for digest in found.values())
    return f"{name}: {', '.join([*held, f'{rows_in_all} rows in all'])}, verified"


async def copied_into_store(source: Engine, target: Engine, origin: str, name: str, *, replace: bool) -> str:
    """The same into a store that servers are to use: whoever ends it early is told how to start over."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.copying import check_whole

    if not replace:
        await target.read(check_whole, name)
    try:
        return await copied(source, target, origin, name, replace=replace)
    except (asyncio.CancelledError, StoreError, OSError):
        try:
            await target.read(check_whole)
        except StoreError:
            again = f"The store is not whole now, and no server opens it. Start over with:\n  {_command_again()}\n"
            sys.stderr.write(again)
        raise


def _command_again() -> str:
    """The command that runs, with ``--replace``; an address is shown without its password."""
    # Scrapy has taken the name of its command out of the arguments.
    words = ["scrapy", "platform", *(_shown(word) for word in sys.argv[1:])]
    return shlex.join(words if "--replace" in words else [*words, "--replace"])


def _shown(word: str) -> str:
    from scrapy_ext.server.store import StoreError

    option, equals, rest = word.partition("=") if word.startswith("--") else ("", "", word)
    if "://" not in rest:
        return word
    try:
        return f"{option}{equals}{_url(rest)}"
    except StoreError:
        return f"{option}{equals}..."


@contextlib.contextmanager
def _bars(rows: Mapping[str, int]) -> Any:
    """A bar for each table that has something, in a terminal; told as copying tells it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars = {table: progress.add_task(table, total=number) for table, number in rows.items() if number}

        def report(table: str, done: str, number: int) -> None:
            if table in bars:
                progress.update(bars[table], completed=number, description=f"{table} {done}")

        told: Report = report
        yield told


def run_on_store(work: Work) -> Callable[[BaseSettings, argparse.Namespace], int]:
    """The run of a subcommand: what ``work`` returns is printed, and its failures told in one line."""

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        from scrapy_ext.server.store import StoreError

        try:
            print(asyncio.run(work(settings, options)))  # noqa: T201 - a command speaks
        except KeyboardInterrupt:
            sys.stderr.write(f"scrapy platform {options.command}: interrupted\n")
            return INTERRUPTED
        except (StoreError, SettingError, EmbeddedServerError, OSError) as error:
            sys.stderr.write(failure(options.command, error))
            return FAILED
        return OK

    return run
