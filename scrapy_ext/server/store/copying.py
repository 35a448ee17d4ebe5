"""Copies of a whole store between engines and backup files, for backup, restore and migration.

Tables are copied in the order of their keys, page by page, from one snapshot of the source. An interrupted copy leaves
a row in ``copies``, and no server opens such a database. The copy is read back and compared: the number of rows of each
table, and an order-independent hash of them.

Rows that no reader may see are left out: those whose owner was deleted (``removals``), records that were removed, also
while they are being restored, and the staged items and snapshots of deleted jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.job_data import OWNED_COLLECTIONS
from scrapy_ext.server.store.collections.selections import Collection, hidden_keys, number_of
from scrapy_ext.server.store.engine.errors import SchemaError, StoreError
from scrapy_ext.server.store.engine.interface import Engine, Row, Snapshot, Transaction
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine
from scrapy_ext.server.store.engine.sqlite.transaction import statements_for_sqlite
from scrapy_ext.server.store.records.removal import READABLE
from scrapy_ext.server.store.removals import is_kept
from scrapy_ext.server.store.schema import check_whole, migrate, migrations

#: Rows of one page, and its approximate bytes, unless one row is larger.
_PAGE_ROWS: Final = 2000
_PAGE_BYTES: Final = 8 * 1024 * 1024
#: Tables of a database itself, which are not copied: a copy must not remove the objects of deliveries under way.
_OWN: Final = ("schema_version", "copies", "nodes", "locks", "leases", "delivery_attempts", "restores")

#: Contents of a store in users' terms. Rows are no measure: a row may have a thousand items.
_CONTENTS: Final = {
    "jobs": "SELECT count(*) FROM jobs WHERE state <> 'deleted'",
    **{
        f"{name}s": f"SELECT CAST(COALESCE(sum(records), 0) AS BIGINT) FROM record_totals "
        f"WHERE kind = '{kind}' AND removed IS NULL"
        for name, kind in (("item", "items"), ("request record", "requests"), ("log line", "logs"))
    },
    "collection records": f"SELECT count(*) FROM collection_records WHERE {is_kept('collection_records')}",
    "queued requests": "SELECT CAST(COALESCE(sum(size), 0) AS BIGINT) FROM frontier_batches "
    f"WHERE {is_kept('frontier_batches')}",
}

#: Suffixes of the files of an SQLite database.
_SUFFIXES: Final = ("", "-wal", "-shm")

#: Called with a table's name, the action, and the number of rows so far.
Report = Callable[[str, str, int], None]


class Table(NamedTuple):
    """A table: its columns, those of its key, and those that may be large."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    large: tuple[str, ...]


class _Page(NamedTuple):
    """Rows to copy, and the key after which the next page begins; None at the end of the table."""

    rows: list[Row]
    after: Row | None


class Digest(NamedTuple):
    """The number of rows, and the sum of their hashes."""

    rows: int = 0
    hashes: int = 0

    def of(self, rows: Sequence[Row]) -> Digest:
        total = self.hashes
        for row in rows:
            hashed = hashlib.blake2b(msgspec.msgpack.encode(row), digest_size=16).digest()
            total += int.from_bytes(hashed, "big")
        return Digest(self.rows + len(rows), total % 2**128)


def tables() -> list[Table]:
    """Return the tables of the newest schema."""
    with closing(sqlite3.connect(":memory:")) as database:
        for _, sql in migrations():
            for statement in statements_for_sqlite(sql):
                database.execute(statement)
        names = [
            row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        return [_table(database, name) for name in names if name not in _OWN]


def _table(database: sqlite3.Connection, name: str) -> Table:
    columns = database.execute(f"PRAGMA table_info({name})").fetchall()
    key = sorted((place, column) for _, column, _, _, _, place in columns if place)
    return Table(
        name,
        tuple(column for _, column, *_ in columns),
        tuple(column for _, column in key),
        tuple(column for _, column, kind, *_ in columns if kind == "BYTEA"),
    )


async def count_rows(source: Snapshot) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {table.name: await source.read(_count, table) for table in tables()}


async def copy(
    source: Snapshot, target: Engine, origin: str, now: int, *, name: str, replace: bool, report: Report
) -> dict[str, Digest]:
    """Copy everything into a database of the newest schema and verify it; return the contents of each table.

    ``origin`` names the source in an unfinished copy, ``name`` the target in errors. ``replace`` deletes the target's
    contents first. Raises :class:`StoreError`.
    """
    found = tables()
    await source.read(check_whole, origin)
    await target.write(_begin, found, origin, now, name=name, replace=replace)
    copied = {}
    for table in found:
        digest = Digest()
        async for rows in _pages(source, table):
            await target.write(_put, table, rows)
            digest = digest.of(rows)
            report(table.name, "copied", digest.rows)
        copied[table.name] = digest
    async with target.snapshot() as arrived:
        for table in found:
            present = await _digest(arrived, table, report)
            if present != copied[table.name]:
                raise StoreError(
                    f"Table {table.name} has {present.rows} rows after copying {copied[table.name].rows}, or they "
                    "differ. Stop all other writers of the database, and copy again with --replace."
                )
    await target.write(_end)
    return copied


async def contents(tx: Transaction) -> dict[str, int]:
    """Return the contents of a store in users' terms, without empty ones."""
    found = {}
    for name, query in _CONTENTS.items():
        row = await tx.fetchrow(query)
        if row is not None and row[0]:
            found[name] = int(row[0])
    return found


async def _digest(snapshot: Snapshot, table: Table, report: Report) -> Digest:
    digest = Digest()
    async for rows in _pages(snapshot, table):
        digest = digest.of(rows)
        report(table.name, "verified", digest.rows)
    return digest


async def _pages(snapshot: Snapshot, table: Table) -> AsyncIterator[list[Row]]:
    """Yield the rows of a table that are copied, ordered by key."""
    page = await snapshot.read(_page, table, None)
    while page.after is not None:
        if page.rows:
            yield page.rows
        page = await snapshot.read(_page, table, page.after)


def _key(table: Table, row: Row) -> Row:
    return tuple(row[table.columns.index(column)] for column in table.key)


async def _count(tx: Transaction, table: Table) -> int:
    # Names of our own schema, here and below.
    row = await tx.fetchrow(f"SELECT count(*) FROM {table.name} WHERE {_visible(table.name)}")
    return row[0] if row else 0


def _visible(table: str) -> str:
    """Return the SQL condition on the rows of a table that are copied; :func:`_without_hidden` has a further one."""
    conditions = (is_kept(table), READABLE if table == "record_chunks" else "")
    return " AND ".join(each for each in conditions if each) or "true"


async def _begin(tx: Transaction, found: Sequence[Table], origin: str, now: int, *, name: str, replace: bool) -> None:
    if not replace:
        await check_whole(tx, name)
    for table in found:
        if replace:
            await tx.execute(f"DELETE FROM {table.name}")
        elif await tx.fetchrow(f"SELECT 1 FROM {table.name} LIMIT 1"):
            raise StoreError(f"{name} is not empty. Use --replace to delete its contents first.")
    await tx.execute("DELETE FROM copies")
    await tx.execute("INSERT INTO copies (started, source) VALUES ($1, $2)", now, origin)


async def _end(tx: Transaction) -> None:
    await tx.execute("DELETE FROM copies")


async def _put(tx: Transaction, table: Table, rows: Sequence[Row]) -> None:
    marks = ", ".join(f"${place}" for place in range(1, len(table.columns) + 1))
    await tx.insert_many(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})", rows)


async def _page(tx: Transaction, table: Table, after: Row | None) -> _Page:
    """Return the rows after a key, ordered by key, as many as fit a page."""
    key = ", ".join(table.key)
    conditions = [_visible(table.name)]
    arguments: list[Any] = []

    def keys(comparison: str, values: Row) -> None:
        first = len(arguments) + 1
        marks = ", ".join(f"${place}" for place in range(first, first + len(values)))
        conditions.append(f"({key}) {comparison} ({marks})")
        arguments.extend(values)

    def query(columns: str) -> str:
        where = " AND ".join(conditions)
        return f"SELECT {columns} FROM {table.name} WHERE {where} ORDER BY {key} LIMIT {_PAGE_ROWS}"

    if after is not None:
        keys(">", after)
    # Large rows are measured before they are read into memory.
    if table.large:
        size = " + ".join(f"COALESCE(length({column}), 0)" for column in table.large)
        sizes = await tx.fetch(query(f"{key}, {size}"), *arguments)
        if not sizes:
            return _Page([], None)
        keys("<=", _last_that_fits(sizes))
    rows = await tx.fetch(query(", ".join(table.columns)), *arguments)
    if not rows:
        return _Page([], None)
    shown = await _without_hidden(tx, table, rows) if table.name == "collection_records" else rows
    return _Page(shown, _key(table, rows[-1]))


async def _without_hidden(tx: Transaction, table: Table, rows: list[Row]) -> list[Row]:
    """Return rows of collections without those that belong to deleted jobs."""
    keys: dict[tuple[int, int], list[bytes]] = {}
    for row in rows:
        project, number, key = _key(table, row)
        keys.setdefault((project, number), []).append(key)
    hidden: set[Row] = set()
    for (project, number), own in keys.items():
        for name, owned in OWNED_COLLECTIONS.items():
            which = Collection(project, owned.type, name)
            if await number_of(tx, which) == number:
                hidden |= {(project, number, key) for key in await hidden_keys(tx, which, own)}
    return [row for row in rows if _key(table, row) not in hidden]


def _last_that_fits(sizes: Sequence[Row]) -> Row:
    total, last = 0, sizes[0]
    for row in sizes:
        total += row[-1]
        if total > _PAGE_BYTES:
            break
        last = row
    return last[:-1]


# ── backup files ──


@contextlib.asynccontextmanager
async def new_file(path: Path, now: int) -> AsyncIterator[Engine]:
    """Open an empty store that becomes the file when the block ends without an error. Raises :class:`StoreError`."""
    if not path.parent.is_dir():
        raise StoreError(f"There is no directory {path.parent}. Make it, or name another file.")
    part = path.with_name(path.name + ".part")
    await asyncio.to_thread(_remove_file, part)
    try:
        engine = await SqliteEngine.open(part)
        try:
            await engine.write(migrate, now)
            yield engine
        finally:
            await engine.close()
        await asyncio.to_thread(_publish, part, path)
    finally:
        await asyncio.to_thread(_remove_file, part)


@contextlib.asynccontextmanager
async def old_file(path: Path, now: int) -> AsyncIterator[Engine]:
    """Open the store in a file; one of an older version is migrated in a copy. Raises :class:`StoreError`."""
    version = await asyncio.to_thread(_version_of, path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".restore-") as folder:
        # Opening a database writes to it, but a backup must not change. The copy is a hard link where possible.
        copied = Path(folder) / path.name
        await asyncio.to_thread(shutil.copyfile, path, copied)
        engine = await SqliteEngine.open(copied)
        try:
            if version < migrations()[-1][0]:
                await engine.write(migrate, now)
            yield engine
        finally:
            await engine.close()


def _version_of(path: Path) -> int:
    if not path.exists():
        raise StoreError(f"{path} does not exist. Name a file written by scrapy platform backup.")
    if path.with_name(path.name + "-wal").exists():
        raise StoreError(f"{path} is in use. For a data directory, use scrapy platform migrate --from DIRECTORY.")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as database:
            version: int = database.execute("SELECT max(version) FROM schema_version").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"{path} is not a backup ({error}). Name a file of scrapy platform backup.") from error
    newest = migrations()[-1][0]
    if version > newest:
        raise SchemaError(
            f"{path} has schema version {version}, but this scrapy-ext supports {newest}. Upgrade scrapy-ext."
        )
    return version


def _publish(part: Path, path: Path) -> None:
    for name in (part, part.parent):
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if name == part:
            os.replace(part, path)


def _remove_file(part: Path) -> None:
    for suffix in _SUFFIXES:
        part.with_name(part.name + suffix).unlink(missing_ok=True)
