"""A look at a store that changes nothing: no migration, no new file."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.opening import driver_of
from scrapy_ext.server.store.schema import migrations

_SCHEMA: Final = "SELECT max(version) FROM schema_version"
_REPLICATED: Final = """SELECT current_setting('synchronous_standby_names') <> ''
    AND current_setting('synchronous_commit') NOT IN ('off', 'local')"""
#: Seconds to wait for a lock.
_WAIT: Final = 5.0
_BUFFERS: Final = "SELECT pg_size_bytes(current_setting('shared_buffers'))"
_KEYS: Final = "SELECT sum(pg_indexes_size(relid))::bigint FROM pg_partition_tree('collection_records')"


class Inspected(NamedTuple):
    """A database. ``engine``: its name and version. ``schema``: version of the schema; 0 without tables."""

    engine: str
    schema: int
    #: Seconds by which its clock is ahead of that of this machine.
    ahead: float = 0.0
    #: False: a commit may return before its data is on the disk.
    is_synced: bool = True
    #: The server that takes writes, if the address has several.
    primary: str = ""
    #: True: a commit returns after a standby has it.
    is_replicated: bool = False
    #: Bytes of PostgreSQL's buffers, and of the indexes of collections.
    buffers: int = 0
    keys: int = 0


def supported_schemas() -> tuple[int, int]:
    """Return the oldest version of a schema that can be migrated, and the newest one."""
    known = migrations()
    return known[0][0], known[-1][0]


def of_file(file: Path) -> Inspected:
    """Look at an SQLite file; raises :class:`StoreError` for another file, and ``sqlite3.Error``."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "schema_version" not in tables:
            raise StoreError(f"{file} is a database of another program. Choose another folder with --data.")
        ((version,),) = connection.execute(_SCHEMA).fetchall() if tables else ((0,),)
        return Inspected(f"SQLite {sqlite3.sqlite_version}", version or 0)


async def of_database(url: DatabaseUrl) -> Inspected:
    """Look at a PostgreSQL database; raises :class:`StoreError`."""
    with driver_of(url):
        from scrapy_ext.server.store.engine.postgresql.connection import connect
        from scrapy_ext.server.store.engine.postgresql.errors import translated
        from scrapy_ext.server.store.engine.postgresql.primary import primary_of
    try:
        connection = await connect(url)
        try:
            version = connection.get_server_version()
            began = time.time()
            seconds = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
            middle = (began + time.time()) / 2
            has_tables = await connection.fetchval("SELECT to_regclass('schema_version') IS NOT NULL")
            schema = await connection.fetchval(_SCHEMA) if has_tables else 0
            is_synced = await connection.fetchval("SHOW fsync") != "off"
            is_replicated = await connection.fetchval(_REPLICATED)
            buffers = await connection.fetchval(_BUFFERS)
            keys = await connection.fetchval(_KEYS) if schema else 0
            primary = primary_of(url).server
        finally:
            connection.terminate()
    except StoreError:
        raise
    except Exception as error:  # those of the driver
        raise translated(error, url) from None
    # Since PostgreSQL 10, the driver has the second number of a version as the third.
    name = f"PostgreSQL {version.major}.{version.minor or version.micro}"
    ahead = seconds - middle
    return Inspected(name, schema or 0, ahead, is_synced, str(primary or ""), is_replicated, buffers, keys)
