"""Which database: the engine for an address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.interface import Engine
from scrapy_ext.server.store.engine.postgresql.pool_sizes import SERVER, Line
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine

#: The database in a data directory.
FILE: Final = "platform.db"


async def open_engine(where: Path | DatabaseUrl, line: Line = SERVER) -> Engine:
    """The database of a data directory, which is created when it is missing, or that of an address.

    Raises :class:`StoreError`.
    """
    if isinstance(where, DatabaseUrl):
        return await _open_postgresql(where, line)
    try:
        await asyncio.to_thread(where.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The data directory {where} cannot be created ({error.strerror}). Choose another with --data."
        ) from error
    return await SqliteEngine.open(where / FILE)


async def _open_postgresql(url: DatabaseUrl, line: Line) -> Engine:
    try:
        # Imported where it is used: the driver is an extra.
        from scrapy_ext.server.store.engine.postgresql.postgresql import PostgresqlEngine
    except ImportError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError(f'{url} needs asyncpg: pip install "scrapy-ext[postgresql]".') from error
    return await PostgresqlEngine.open(url, line)
