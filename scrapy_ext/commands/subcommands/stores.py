"""``scrapy platform backup``, ``restore``, ``migrate`` and ``vacuum``, which work on a whole store."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.options import argument
from scrapy_ext.commands.stores import add_store_options, chosen_store, named_store, opened
from scrapy_ext.commands.subcommand import INTERRUPTED, OK, RunCommand, Subcommand, failed
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.server.store.copying import Report
    from scrapy_ext.server.store.engine.interface import Engine

_STORE: Final = (
    "sqlite (the project's data directory), postgresql (the database of SERVER_DATABASE), a directory, or the URL of a "
    "database"
)


async def _backup(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.copying import new_file
    from scrapy_ext.server.store.store import now_ms

    where, file = chosen_store(settings, options), options.file
    if file.exists() and not options.replace:
        raise StoreError(f"{file} exists. Name another file, or replace it with --replace.")
    async with opened(where, must_exist=True) as source, new_file(file, now_ms()) as target:
        return await _copied(source, target, str(where), str(file), replace=False)


async def _restore(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store.copying import old_file
    from scrapy_ext.server.store.store import now_ms

    where = chosen_store(settings, options)
    async with old_file(options.file, now_ms()) as source, opened(where, must_exist=False) as target:
        return await _copied_into_store(source, target, str(options.file), str(where), replace=options.replace)


async def _migrate(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store import StoreError

    source, target = (named_store(settings, name) for name in (options.source, options.target))
    if source == target:
        raise StoreError(f"{source} is both source and target. Name two stores.")
    async with opened(source, must_exist=True) as old, opened(target, must_exist=False) as new:
        return await _copied_into_store(old, new, str(source), str(target), replace=options.replace)


async def _vacuum(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store.engine.opening import FILE
    from scrapy_ext.server.store.removals import purge

    where = chosen_store(settings, options)
    file = where / FILE if isinstance(where, Path) else None
    async with opened(where, must_exist=True) as engine:
        before = file.stat().st_size if file else 0
        await purge(engine, pause=False)
        await engine.vacuum()
    return f"{where}: {before} bytes before, {file.stat().st_size} now" if file else f"{where}: done"


async def _copied(source: Engine, target: Engine, origin: str, name: str, *, replace: bool) -> str:
    """Copy the store ``origin`` into ``name``, with bars in a terminal, and return a summary of its contents."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.copying import contents, copy, count_rows
    from scrapy_ext.server.store.store import now_ms

    async with source.snapshot() as snapshot:
        rows = await count_rows(snapshot)
        if not any(rows.values()):
            raise StoreError(f"There is no data in {origin}. Name the store that has the data.")
        with _bars(rows) as report:
            found = await copy(snapshot, target, origin, now_ms(), name=name, replace=replace, report=report)
        held = [f"{number} {unit}" for unit, number in (await target.read(contents)).items()]
    total = sum(digest.rows for digest in found.values())
    return f"{name}: {', '.join([*held, f'{total} rows in all'])}, verified"


async def _copied_into_store(source: Engine, target: Engine, origin: str, name: str, *, replace: bool) -> str:
    """Copy into a store for servers. After an interruption, report the command that starts the copy over."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.schema import check_whole

    if not replace:
        await target.read(check_whole, name)
    try:
        return await _copied(source, target, origin, name, replace=replace)
    except (asyncio.CancelledError, StoreError, OSError):
        try:
            await target.read(check_whole)
        except StoreError:
            again = f"The store is incomplete, and no server opens it. Start over with:\n  {_command_again()}\n"
            sys.stderr.write(again)
        raise


def _command_again() -> str:
    """Return this command with ``--replace``; URLs are shown without their password."""
    # Scrapy has removed the name of its command from the arguments.
    words = ["scrapy", "platform", *(_without_password(word) for word in sys.argv[1:])]
    return shlex.join(words if "--replace" in words else [*words, "--replace"])


def _without_password(word: str) -> str:
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.engine.address import DatabaseUrl

    option, equals, rest = word.partition("=") if word.startswith("--") else ("", "", word)
    if "://" not in rest:
        return word
    try:
        return f"{option}{equals}{DatabaseUrl(rest)}"
    except StoreError:
        return f"{option}{equals}..."


@contextlib.contextmanager
def _bars(rows: Mapping[str, int]) -> Iterator[Report]:
    """Show a bar for each table with rows in a terminal; yields the function that receives the progress."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars = {table: progress.add_task(table, total=number) for table, number in rows.items() if number}

        def report(table: str, done: str, number: int) -> None:
            if table in bars:
                progress.update(bars[table], completed=number, description=f"{table} {done}")

        yield report


def _run(work: Callable[[BaseSettings, argparse.Namespace], Coroutine[Any, Any, str]]) -> RunCommand:
    """Return the run of a subcommand that prints the result of ``work``, or reports a failure in one line."""

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        from scrapy_ext.server.store import StoreError

        try:
            sys.stdout.write(f"{asyncio.run(work(settings, options))}\n")
        except KeyboardInterrupt:
            sys.stderr.write(f"scrapy platform {options.command}: interrupted\n")
            return INTERRUPTED
        except (StoreError, SettingError, EmbeddedServerError, OSError) as error:
            return failed(options.command, error)
        return OK

    return run


SUBCOMMANDS: Final = (
    Subcommand(
        name="backup",
        examples=(
            ("scrapy platform backup crawls.db", "in a project: all data of its crawls"),
            ("scrapy platform backup --data DIR crawls.db", "all data of a server, which keeps running"),
        ),
        arguments=(
            argument("file", type=Path, metavar="FILE", help="file to write"),
            add_store_options,
            argument("--replace", action="store_true", help="replace FILE if it exists"),
        ),
        run=_run(_backup),
    ),
    Subcommand(
        name="restore",
        examples=(
            ("scrapy platform restore crawls.db", "into the project's store, which must be empty"),
            ("scrapy platform restore --database postgresql://USER@HOST/DATABASE crawls.db", "into a database"),
        ),
        arguments=(
            argument("file", type=Path, metavar="FILE", help="file that backup wrote"),
            add_store_options,
            argument("--replace", action="store_true", help="delete the data of the store first"),
        ),
        run=_run(_restore),
    ),
    Subcommand(
        name="migrate",
        examples=(
            ("scrapy platform migrate --from sqlite --to postgresql", "from the project's file to SERVER_DATABASE"),
            ("scrapy platform migrate --from postgresql --to DIR", "back, into a new data directory"),
        ),
        arguments=(
            argument("--from", dest="source", required=True, metavar="STORE", help=f"the source: {_STORE}"),
            argument("--to", dest="target", required=True, metavar="STORE", help="the target, likewise; must be empty"),
            argument("--replace", action="store_true", help="delete the data of the target first"),
        ),
        run=_run(_migrate),
    ),
    Subcommand(
        name="vacuum",
        examples=(
            ("scrapy platform vacuum", "in a project: the store of its crawls; writes wait until it is done"),
            (
                "scrapy platform vacuum --data DIR",
                "also: servers return free space of this file by themselves from then",
            ),
        ),
        arguments=(add_store_options,),
        run=_run(_vacuum),
    ),
)
