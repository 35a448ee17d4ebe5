"""The store: one database with everything that the platform keeps, a part for each resource."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.activity import ActivityStore
from scrapy_ext.server.store.chunks import ITEMS, LOGS, REQUESTS
from scrapy_ext.server.store.collections import CollectionStore
from scrapy_ext.server.store.discards import purge
from scrapy_ext.server.store.engine import Engine, SqliteEngine
from scrapy_ext.server.store.errors import StoreError
from scrapy_ext.server.store.frontier import FrontierStore
from scrapy_ext.server.store.jobs import JobStore
from scrapy_ext.server.store.keys import KeyStore
from scrapy_ext.server.store.measures import Measures
from scrapy_ext.server.store.records import RecordStore
from scrapy_ext.server.store.schema import migrate, touch

_FILE: Final = "platform.db"


def now_ms() -> int:
    """The time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Store:
    """Opened by :meth:`open`; every call raises :class:`StoreError` when the database fails."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self.clock = clock
        self._engine = engine
        self.items = RecordStore(engine, clock, ITEMS)
        self.requests = RecordStore(engine, clock, REQUESTS)
        self.logs = RecordStore(engine, clock, LOGS)
        self.collections = CollectionStore(engine, clock)
        self.frontier = FrontierStore(engine)
        self.jobs = JobStore(engine, clock)
        self.activity = ActivityStore(engine, clock)
        self.keys = KeyStore(engine, clock)

    @classmethod
    async def open(cls, data: Path, clock: Callable[[], int] = now_ms) -> Store:
        """Open the database in a directory, which is created when it is missing; raises :class:`StoreError`."""
        try:
            await asyncio.to_thread(data.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The data directory {data} cannot be created ({error.strerror}). Choose another with --data."
            ) from error
        engine = await SqliteEngine.open(data / _FILE)
        try:
            await engine.write(migrate, clock())
        except BaseException:
            await engine.close()
            raise
        return cls(engine, clock)

    async def purge(self) -> None:
        """Remove the rows of what was deleted by name."""
        await purge(self._engine)

    async def probe(self) -> None:
        """Read and write something; raises :class:`StoreError` when that fails."""
        await self._engine.write(touch, self.clock())
        await self.keys.named()

    @property
    def measures(self) -> Measures:
        """What the database was asked to do so far."""
        return self._engine.measures

    async def size(self) -> int:
        """Bytes that the database takes on disk."""
        return await self._engine.size()

    async def close(self) -> None:
        """Finish what was begun and close the database."""
        await self._engine.close()
