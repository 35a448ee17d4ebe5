"""Stores of snapshots, and the queue before them.

A crawl never waits for a snapshot, except for a bounded time at its end, and never ends because of one: pages wait in a
bounded queue, one at a time is written, and failures are counted and logged once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from scrapy.statscollectors import StatsCollector

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.snapshots import Part, Snapshot, new_id
from scrapy_ext.client.platform.snapshots import Snapshots
from scrapy_ext.crawl.snapshots.files import write_files
from scrapy_ext.crawl.snapshots.pages import FailedPage, content_of

logger = logging.getLogger(__name__)

#: Bytes of pages that may wait; one page is always taken.
WAITING: Final = 32 * 2**20
#: Seconds for which the end of a crawl waits for the last snapshots.
GRACE: Final = 30.0


class SnapshotStore(Protocol):
    @property
    def place(self) -> str:
        """Place of the snapshots, for the log."""

    async def count(self) -> int:
        """Return the number of snapshots that earlier runs of the crawl have stored."""

    async def write(self, snapshot: Snapshot, parts: Mapping[Part, bytes]) -> None:
        """Store a snapshot."""


class JobSnapshots:
    """Snapshots of a job on the platform."""

    def __init__(self, client: Snapshots, job: JobKey, *, resumed: bool) -> None:
        self._client = client
        self._job = job
        self._resumed = resumed

    @property
    def place(self) -> str:
        return f"on the page of job {self._job}, and by: scrapy platform snapshots {self._job}"

    async def count(self) -> int:
        return await self._client.count(self._job) if self._resumed else 0

    async def write(self, snapshot: Snapshot, parts: Mapping[Part, bytes]) -> None:
        await self._client.write(self._job, new_id(snapshot.time), snapshot, parts)


class SnapshotFolder:
    """Snapshots as files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return f"in {self._folder}"

    async def count(self) -> int:
        # Crawls without a job are not known to continue others.
        return 0

    async def write(self, snapshot: Snapshot, parts: Mapping[Part, bytes]) -> None:
        await asyncio.to_thread(write_files, self._folder, new_id(snapshot.time), snapshot, parts)


class SnapshotQueue:
    """Queue of the pages of one crawl, of which the first ``most`` are stored."""

    def __init__(self, store: SnapshotStore, most: int, stats: StatsCollector) -> None:
        self._store = store
        self._most = most
        self._limit = f"{most} are the most of a crawl (EXTRACT_API_SNAPSHOTS_ON_ERROR)"
        self._stats = stats
        self._waiting: deque[FailedPage] = deque()
        self._waiting_bytes = 0
        #: Snapshots that were taken, of earlier runs as well once these are counted.
        self._taken = 0
        self._is_counted = False
        self._task: asyncio.Task[None] | None = None
        self._logged: set[str] = set()

    @property
    def has_room(self) -> bool:
        """Return false if a further page would not be stored, and count it."""
        if self._taken >= self._most:
            self._skip(self._limit)
        elif self._waiting_bytes >= WAITING:
            self._skip(f"{WAITING // 2**20} MiB of them wait to be stored")
        else:
            return True
        return False

    def add(self, page: FailedPage) -> None:
        """Take a page for which there is room."""
        self._taken += 1
        self._waiting.append(page)
        self._waiting_bytes += page.size
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._store_all())

    async def close(self) -> None:
        """Wait until all pages are stored, for a bounded time."""
        if self._task is None:
            return
        _, unfinished = await asyncio.wait([self._task], timeout=GRACE)
        if unfinished:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._fail(f"the platform took longer than {GRACE:g} s at the end of the crawl", 1 + len(self._waiting))

    async def _store_all(self) -> None:
        while self._waiting:
            page = self._waiting.popleft()
            try:
                if await self._is_within_limit():
                    snapshot, parts = await asyncio.to_thread(content_of, page)
                    await self._store.write(snapshot, parts)
                    self._stats.inc_value("extract_api/snapshots/stored")
                    self._log_once("stored", logging.INFO, f"Pages whose callbacks raise are kept {self._store.place}")
            except Exception as error:
                self._fail(f"{type(error).__name__}: {error}")
            finally:
                self._waiting_bytes -= page.size

    async def _is_within_limit(self) -> bool:
        """Count those of earlier runs first, when there is a page to store."""
        if not self._is_counted:
            earlier = await self._store.count()
            # Others may have been taken meanwhile.
            self._taken += earlier
            self._is_counted = True
        within = self._taken - len(self._waiting) <= self._most
        if not within:
            self._taken -= 1
            self._skip(self._limit)
        return within

    def _skip(self, reason: str) -> None:
        self._stats.inc_value("extract_api/snapshots/skipped")
        self._log_once(reason, logging.INFO, f"Pages whose callbacks raise are counted, not kept: {reason}")

    def _fail(self, reason: str, count: int = 1) -> None:
        self._stats.inc_value("extract_api/snapshots/failed", count)
        text = f"A page whose callback raised could not be stored; further failures are only counted: {reason}"
        self._log_once("failed", logging.WARNING, text)

    def _log_once(self, key: str, level: int, text: str) -> None:
        if key not in self._logged:
            self._logged.add(key)
            logger.log(level, "%s", text)
