"""Migrations: ``migrations/NNNN_*.sql``, applied in order, each in one transaction with its version row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.engine.errors import SchemaError, StoreError
from scrapy_ext.server.store.engine.interface import Transaction

_MIGRATIONS: Final = Path(__file__).with_name("migrations")
_FILE: Final = re.compile(r"(\d{4})_\w+\.sql", re.ASCII)


def migrations() -> list[tuple[int, str]]:
    """Return version and SQL of every migration, in order."""
    found = [(match[1], entry) for entry in _MIGRATIONS.iterdir() if (match := _FILE.fullmatch(entry.name))]
    return sorted((int(number), entry.read_text("utf-8")) for number, entry in found)


async def migrate(tx: Transaction, now: int) -> int:
    """Migrate a database to the newest version and return that; raise :class:`SchemaError`.

    It always writes a row, so that a disk that refuses writes is noticed when the server starts. Of several processes
    that start at once one migrates, and the others wait for the row of version 0.
    """
    await tx.script("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY, opened BIGINT)")
    await tx.execute("INSERT INTO schema_version (version) VALUES (0) ON CONFLICT DO NOTHING")
    await tx.fetchrow("SELECT version FROM schema_version WHERE version = 0 FOR UPDATE")
    applied = [
        row[0] for row in await tx.fetch("SELECT version FROM schema_version WHERE version > 0 ORDER BY version")
    ]
    known = migrations()
    _check_applied(applied, [version for version, _ in known])
    for version, sql in known[len(applied) :]:
        await tx.script(sql)
        await tx.execute("INSERT INTO schema_version (version) VALUES ($1)", version)
    await touch(tx, now)
    return known[-1][0]


def _check_applied(applied: Sequence[int], known: Sequence[int]) -> None:
    """Raise :class:`SchemaError` unless the versions of a database are the first ones of those that are known."""
    if applied and applied[-1] > known[-1]:
        raise SchemaError(
            f"The database has schema version {applied[-1]}, but this version of scrapy-ext supports {known[-1]}. "
            "Upgrade scrapy-ext, or use another data directory or database, such as one restored from a backup of this "
            "version."
        )
    if list(applied) == list(known[: len(applied)]):
        return
    lacks = "".join(
        f" without version {version}" for version in known if version not in applied and version < applied[-1]
    )
    raise SchemaError(
        f"The database has schema version {applied[-1]}{lacks}, of a development version before the first release, "
        "which cannot be migrated. Use a new data directory or a new, empty database."
    )


async def check_version(tx: Transaction, opened: int) -> None:
    """Raise :class:`SchemaError` if a newer server has migrated a database since it was opened with a version."""
    row = await tx.fetchrow("SELECT max(version) FROM schema_version")
    if row is not None and row[0] > opened:
        raise SchemaError(
            f"A newer server has migrated the database to schema version {row[0]}, but this server supports {opened}. "
            "Stop this server, and start it with the newer version of scrapy-ext."
        )


async def check_whole(tx: Transaction, name: str = "The database") -> None:
    """Raise :class:`StoreError` for a database into which a store was not copied to the end."""
    row = await tx.fetchrow("SELECT source FROM copies LIMIT 1")
    if row is not None:
        raise StoreError(
            f"{name} is not whole: copying {row[0]} into it has not ended. If no copy is running, "
            "repeat the command (restore or migrate) with --replace."
        )


async def is_made(tx: Transaction) -> bool:
    """Return true when a PostgreSQL database contains a store of any version."""
    row = await tx.fetchrow(
        """SELECT 1 FROM information_schema.tables
           WHERE table_name = 'schema_version' AND table_schema = ANY (current_schemas(false))"""
    )
    return row is not None


async def touch(tx: Transaction, now: int) -> None:
    """Write a row, which fails if writes are refused."""
    await tx.execute(
        "UPDATE schema_version SET opened = $1 WHERE version = (SELECT max(version) FROM schema_version)", now
    )
