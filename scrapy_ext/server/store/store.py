"""The store: one database with all data of the platform, with a part for each resource."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.activity import ActivityStore
from scrapy_ext.server.store.collections.collections import CollectionStore
from scrapy_ext.server.store.collections.writes import CollectionImportStore
from scrapy_ext.server.store.comments import CommentStore
from scrapy_ext.server.store.deliveries import DeliveryStore
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import SERVER, ConnectionLimits
from scrapy_ext.server.store.engine.interface import Engine, Measures, Space, Transaction
from scrapy_ext.server.store.engine.opening import open_engine
from scrapy_ext.server.store.expiry.expiry import ExpiryStore
from scrapy_ext.server.store.fencing import LeaseStore
from scrapy_ext.server.store.frontier.feeds import FeedStore
from scrapy_ext.server.store.frontier.frontier import FrontierStore
from scrapy_ext.server.store.frontier.overview import FrontierOverview
from scrapy_ext.server.store.jobs.attempts import AttemptStore
from scrapy_ext.server.store.jobs.groups import GroupStore
from scrapy_ext.server.store.jobs.imported import ImportStore
from scrapy_ext.server.store.jobs.jobs import JobStore
from scrapy_ext.server.store.jobs.nodes import NodeStore
from scrapy_ext.server.store.jobs.placing import WaitingStore
from scrapy_ext.server.store.keys import KeyStore
from scrapy_ext.server.store.monitors.alerts import AlertStore
from scrapy_ext.server.store.monitors.monitors import MonitorStore
from scrapy_ext.server.store.periodic_jobs import PeriodicStore
from scrapy_ext.server.store.projects import ProjectStore
from scrapy_ext.server.store.records.chunks import ITEMS, LOGS, REQUESTS, SAMPLES
from scrapy_ext.server.store.records.records import RecordStore
from scrapy_ext.server.store.records.stored import count_stored
from scrapy_ext.server.store.removals import Freed, Purge
from scrapy_ext.server.store.restores import RestoreStore
from scrapy_ext.server.store.retention import RetentionStore
from scrapy_ext.server.store.schema import check_version, check_whole, migrate, touch
from scrapy_ext.server.store.spiders import SpiderStore
from scrapy_ext.server.store.usage import UsageStore
from scrapy_ext.server.store.users import UserStore
from scrapy_ext.server.store.verdicts import VerdictStore
from scrapy_ext.server.store.versions import VersionStore
from scrapy_ext.server.store.webhooks import WebhookStore

#: Bytes of a test write: those of the largest record.
_TEST_BYTES: Final = 1024 * 1024
#: Seconds between two test writes.
_TEST_INTERVAL: Final = 2.0
#: Key of the test row, which belongs to no project.
_TEST_ROW: Final = (-1, "room")


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Refusals:
    """Check whether the last write that the disk or the database refused would be refused again.

    A full disk may have room for a small row but not for a large record. So after a refused write the store is not
    ready until a test write of the largest record's size succeeds.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._again = 0.0

    async def check(self) -> None:
        """Raise the last refusal unless a test write succeeds now."""
        refusal = self._engine.measures.refusal
        if refusal is None:
            return
        if time.monotonic() < self._again:
            raise refusal
        self._again = time.monotonic() + _TEST_INTERVAL
        # Two commits: data written and deleted in one transaction may never reach the disk.
        await self._engine.write(_fill_test_row, os.urandom(_TEST_BYTES))
        await self._engine.write(_remove_test_row)
        self._engine.measures.refusal = None


async def _fill_test_row(tx: Transaction, data: bytes) -> None:
    await tx.execute(
        """INSERT INTO project_settings (project, name, value) VALUES ($1, $2, $3)
           ON CONFLICT (project, name) DO UPDATE SET value = excluded.value""",
        *_TEST_ROW,
        data,
    )


async def _remove_test_row(tx: Transaction) -> None:
    await tx.execute("DELETE FROM project_settings WHERE project = $1 AND name = $2", *_TEST_ROW)


class Store:
    """The store, opened by :meth:`open`; every call raises :class:`StoreError` when the database fails."""

    def __init__(self, engine: Engine, clock: Callable[[], int], schema: int) -> None:
        self.clock = clock
        self._engine = engine
        #: Version of the schema when the database was opened.
        self._schema = schema
        self._refusals = Refusals(engine)
        #: Set when something was deleted through this process, whose rows are to be purged.
        self.deleted = asyncio.Event()
        self._purge = Purge(engine)
        #: Bytes of free space that this process has returned to the file system.
        self.returned = 0
        self.items = RecordStore(engine, clock, ITEMS)
        self.requests = RecordStore(engine, clock, REQUESTS)
        self.logs = RecordStore(engine, clock, LOGS)
        self.samples = RecordStore(engine, clock, SAMPLES)
        self.collections = CollectionStore(engine, clock)
        self.frontier = FrontierStore(engine, clock)
        self.feeds = FeedStore(engine, clock, self.frontier.filters)
        self.frontier_overview = FrontierOverview(engine, clock)
        self.jobs = JobStore(engine, clock, self.deleted.set)
        self.imports = ImportStore(engine, clock)
        self.collection_imports = CollectionImportStore(engine, clock)
        self.spiders = SpiderStore(engine, clock)
        self.projects = ProjectStore(engine, clock)
        self.periodic = PeriodicStore(engine, clock)
        self.comments = CommentStore(engine, clock)
        self.activity = ActivityStore(engine, clock)
        self.webhooks = WebhookStore(engine, clock)
        self.retention = RetentionStore(engine, clock, self.deleted.set)
        self.keys = KeyStore(engine, clock)
        self.users = UserStore(engine, clock)
        self.versions = VersionStore(engine, clock)
        self.nodes = NodeStore(engine, clock)
        self.waiting = WaitingStore(engine, clock)
        self.attempts = AttemptStore(engine, clock)
        self.groups = GroupStore(engine, clock)
        self.leases = LeaseStore(engine, clock)
        self.deliveries = DeliveryStore(engine, clock)
        self.restores = RestoreStore(engine, clock)
        self.monitors = MonitorStore(engine, clock)
        self.alerts = AlertStore(engine, clock)
        self.verdicts = VerdictStore(engine, clock)
        self.usage = UsageStore(engine, clock)
        self.expiry = ExpiryStore(engine, clock)

    @classmethod
    async def open(
        cls, where: Path | DatabaseUrl, clock: Callable[[], int] = now_ms, limits: ConnectionLimits = SERVER
    ) -> Store:
        """Open the database in a directory, which is created if missing, or on a PostgreSQL server.

        Raises :class:`StoreError`.
        """
        engine = await open_engine(where, limits)
        try:
            schema = await engine.write(migrate, clock())
            await engine.read(check_whole)
        except BaseException:
            await engine.close()
            raise
        return cls(engine, clock, schema)

    async def with_pool(self, where: DatabaseUrl, limits: ConnectionLimits) -> Store:
        """Open the same database with its own connection pool; raise :class:`StoreError`."""
        return Store(await open_engine(where, limits), self.clock, self._schema)

    async def purge(self) -> Freed:
        """Remove the rows of deleted jobs, collections and slots, in steps that leave time to other writers."""
        return await self._purge.run()

    @property
    def freed(self) -> Freed:
        """Rows and bytes of deleted jobs, collections and slots that this process has removed."""
        return self._purge.freed

    async def count_stored(self) -> int:
        """Count the stored bytes of records of earlier versions; return the number of jobs' kinds counted."""
        return await count_stored(self._engine)

    async def return_space(self) -> int:
        """Return much free space to the file system, if the database does not do that by itself; return its bytes."""
        returned = await self._engine.return_space()
        self.returned += returned
        return returned

    async def space(self) -> Space:
        """Return the size of the database on disk, and the part of it that is free."""
        return await self._engine.space()

    async def probe(self) -> None:
        """Read and write a row, and as much as was refused last; raise :class:`StoreError` on failure.

        After a migration by a newer server, this one fails.
        """
        await self._engine.read(check_version, self._schema)
        await self._refusals.check()
        await self._engine.write(touch, self.clock())
        await self.keys.named()

    @property
    def measures(self) -> Measures:
        """Statistics of the database calls so far."""
        return self._engine.measures

    @property
    def trouble(self) -> str | None:
        """The reason why the database is unavailable while calls wait for it; None if it is not known to be."""
        return self._engine.trouble

    async def size(self) -> int:
        """Return the size of the database on disk, in bytes."""
        return await self._engine.size()

    async def close(self) -> None:
        """Finish pending work and close the database."""
        await self.usage.close()
        await self._engine.close()
