"""Checks of the database of a server on this machine: reachable, supported, and migrated."""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from scrapy_ext.commands.doctor.checking import SECONDS, Check, Finding, in_thread, ok, problem, warning
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.server.store.schema import migrations

_SUBJECT: Final = "database"
_SCHEMA: Final = "SELECT max(version) FROM schema_version"
#: Seconds by which the clocks of a server and of its database may differ.
_DIFFERS: Final = 5.0


def check(where: Path | DatabaseUrl) -> Check:
    """Return the check of a data folder or of a PostgreSQL database."""
    if isinstance(where, DatabaseUrl):
        return Check(_SUBJECT, lambda: _postgresql(where), 2 * SECONDS)
    return in_thread(_SUBJECT, lambda: _sqlite(where / FILE))


def _schema(name: str, present: int | None, backup: str) -> Finding:
    """Return the finding about the version of the schema."""
    newest = migrations()[-1][0]
    if not present:
        return ok(_SUBJECT, f"{name} has no tables yet; the server makes them")
    if present > newest:
        text = f"{name} has schema version {present}, and this version of scrapy-ext supports {newest}"
        return problem(_SUBJECT, text, "pip install --upgrade scrapy-ext")
    if present < migrations()[0][0]:
        text = f"{name} has schema version {present}, of a development version, which cannot be migrated"
        return problem(_SUBJECT, text, "Use a new data directory, or a new database.")
    if present < newest:
        text = f"{name} has schema version {present}; the next start of a server migrates it to {newest}"
        return warning(_SUBJECT, text, f"Before that: {backup}")
    return ok(_SUBJECT, f"{name} has schema version {present}, the newest")


def _sqlite(file: Path) -> Iterator[Finding]:
    if not file.exists():
        yield ok(_SUBJECT, f"there is none in {file.parent} yet; it is made when data is stored")
        return
    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=SECONDS / 2)
        ) as connection:
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone()
            others = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            present = connection.execute(_SCHEMA).fetchone()[0] if tables else None
    except sqlite3.Error as error:
        yield problem(
            _SUBJECT, f"{file} cannot be read: {error}",
            "Check its owner and the disk; bring the data back with scrapy platform restore FILE.",
        )  # fmt: skip
        return
    if others and not tables:
        yield problem(_SUBJECT, f"{file} is a database of another program", "Choose another folder with --data.")
        return
    backup = f"scrapy platform backup --data {shlex.quote(str(file.parent))} FILE"
    yield _schema(f"SQLite {sqlite3.sqlite_version}, {file}", present, backup)


async def _postgresql(url: DatabaseUrl) -> list[Finding]:
    try:
        # Imported where it is used: the driver is an extra.
        from scrapy_ext.server.store.engine.postgresql.connection import connect
        from scrapy_ext.server.store.engine.postgresql.errors import translated
    except ImportError as error:
        if error.name != "asyncpg":
            raise
        return [problem(_SUBJECT, f"{url} needs asyncpg", 'pip install "scrapy-ext[postgresql]"')]
    try:
        connection = await connect(url)
        try:
            return await _connected(connection, url)
        finally:
            connection.terminate()
    except StoreError as error:
        text, _, remedy = str(error).rpartition(". ")
        return [problem(_SUBJECT, text, remedy)]
    except Exception as error:  # those of the driver
        text, _, remedy = str(translated(error, url)).rpartition(". ")
        return [problem(_SUBJECT, text, remedy)]


async def _connected(connection: Any, url: DatabaseUrl) -> list[Finding]:
    version = connection.get_server_version()
    began = time.time()
    seconds = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
    middle = (began + time.time()) / 2
    present = (
        await connection.fetchval(_SCHEMA)
        if await connection.fetchval("SELECT to_regclass('schema_version') IS NOT NULL")
        else None
    )
    name = f"PostgreSQL {version.major}.{version.minor}, {url}"
    found = [_schema(name, present, f"scrapy platform backup --database {shlex.quote(str(url))} FILE")]
    if abs(seconds - middle) > _DIFFERS:
        side = "ahead of" if seconds > middle else "behind"
        text = f"the clock of the database is {abs(seconds - middle):.0f} s {side} that of this machine"
        found.append(warning("clock", text, "Synchronise both: timedatectl set-ntp true"))
    if await connection.fetchval("SHOW fsync") == "off":
        found.append(
            warning(_SUBJECT, f"{url} has fsync off: a power cut may lose data", "Set fsync = on in postgresql.conf.")
        )
    return found
