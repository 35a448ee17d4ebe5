"""Migrations: ``migrations/NNNN_*.sql``, applied in order, each in one transaction with its version row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.engine.errors import SchemaError
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
    row = await tx.fetchrow("SELECT max(version) FROM schema_version")
    present = row[0] if row is not None and row[0] is not None else 0
    known = migrations()
    oldest, newest = known[0][0], known[-1][0]
    if 0 < present < oldest:
        raise SchemaError(
            f"The database has schema version {present}, of a development version before the first release, which "
            "cannot be migrated. Use a new data directory or a new, empty database."
        )
    if present > newest:
        raise SchemaError(
            f"The database has schema version {present}, but this version of scrapy-ext supports {newest}. "
            "Upgrade scrapy-ext, or use another data directory."
        )
    for version, sql in known:
        if version > present:
            await tx.script(sql)
            await tx.execute("INSERT INTO schema_version (version) VALUES ($1)", version)
    await touch(tx, now)
    return newest


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
