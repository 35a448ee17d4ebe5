"""Engines by the location of a database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import SERVER, ConnectionLimits
from scrapy_ext.server.store.engine.errors import OTHER_PLACE, StoreError
from scrapy_ext.server.store.engine.interface import Engine
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine

#: The database in a data directory.
FILE: Final = "platform.db"


@contextlib.contextmanager
def driver_of(url: DatabaseUrl) -> Iterator[None]:
    """Raise :class:`StoreError` when an import in the block lacks the driver, which is an extra."""
    try:
        yield
    except ImportError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError(f'{url} needs asyncpg: pip install "scrapy-ext[postgresql]".') from error


async def open_engine(where: Path | DatabaseUrl, limits: ConnectionLimits = SERVER) -> Engine:
    """Open the database of a directory, which is created if missing, or of a URL; raise :class:`StoreError`."""
    if isinstance(where, DatabaseUrl):
        with driver_of(where):
            from scrapy_ext.server.store.engine.postgresql.postgresql import PostgresqlEngine
        return await PostgresqlEngine.open(where, limits)
    try:
        await asyncio.to_thread(where.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The data directory {where} cannot be created ({error.strerror}). {OTHER_PLACE}") from error
    return await SqliteEngine.open(where / FILE)
