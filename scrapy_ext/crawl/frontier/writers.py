"""Writers of a frontier: requests to their slots, and dead letters."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from scrapy.crawler import Crawler

from scrapy_ext.api.platform.frontier import DEAD_LETTERS, dead_letter
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.commit.events import Stored
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Seconds that children wait for the request records of their parents.
_RECORDS_WAIT: Final = 10.0


class FrontierWriters:
    """Writers of a frontier. ``on_added(slot)`` is called after each successful write to a slot."""

    def __init__(self, crawler: Crawler, session: Session, frontier: str, on_added: Callable[[int], None]) -> None:
        self._crawler = crawler
        self._session = session
        self._frontier = frontier
        self._on_added = on_added
        self._dead_letters = session.writer(f"frontier {DEAD_LETTERS}", self._send_dead_letters, vital=True)
        #: Slots with a write that failed, but may have arrived.
        self._doubtful: set[int] = set()
        #: Whether the last wait for request records was too long.
        self._records_are_late = False

    def writer_of(self, slot: int) -> BatchWriter:

        async def send(body: bytes, _index: int) -> None:
            sent = body.count(b"\n")
            await self._records_stored()
            try:
                new = await self._add(str(slot), body)
            except PlatformError:
                # It may have arrived; the next attempt would count its requests as duplicates.
                self._doubtful.add(slot)
                raise
            self._sent(slot, sent, new)

        return self._session.writer(f"frontier {slot}", send, vital=True)

    def add_dead_letter(self, stored: Stored, error: str, level: int = logging.ERROR) -> None:
        """Move a request, with its error, to the dead letters, which no crawl reads."""
        url = stored.form.get("url") if isinstance(stored.form, dict) else None
        logger.log(
            level,
            "Request %s (%s) is kept in slot %s of frontier %s: %s",
            *(url or "without a URL", stored.fp, DEAD_LETTERS, self._frontier, error),
        )
        self._count("frontier/dead_letters", 1)
        letter = dead_letter(stored.batch.slot, stored.fp, stored.form, error)
        self._dead_letters.add(msgspec.json.encode(letter))

    async def flush_others(self) -> None:
        """Make durable the other things on which a commit rests: dead letters, and items if they are written as they
        come."""
        items = self._session.written("items")
        writers = [self._dead_letters, *([items] if items is not None else [])]
        await asyncio.gather(*(writer.flush() for writer in writers))

    async def _add(self, slot: str, body: bytes) -> int:
        session = self._session
        return await session.client.frontier.add(session.job.key.project, self._frontier, slot, body, attempts=1)

    async def _send_dead_letters(self, body: bytes, _index: int) -> None:
        await self._add(DEAD_LETTERS, body)

    async def _records_stored(self) -> None:
        """Wait for request records: a request in the frontier names the record of its parent, which must not be lost,
        and whose index must not go to another record."""
        records = self._session.written("requests")
        if records is None or records.failed is not None or (self._records_are_late and records.pending):
            return
        # If only the records fail, they are missing, and the crawl goes on without them.
        with contextlib.suppress(PlatformError, *TIMEOUT_ERRORS):
            self._records_are_late = True
            async with timeout_after(_RECORDS_WAIT):
                await records.flush()
            self._records_are_late = False

    def _sent(self, slot: int, sent: int, new: int) -> None:
        self._count("frontier/children/sent", sent)
        self._count("scheduler/enqueued", new)
        self._count("scheduler/enqueued/frontier", new)
        if slot in self._doubtful:
            self._doubtful.discard(slot)
        else:
            self._count("dupefilter/filtered", sent - new)
        # Also without new requests: a former process may have sent the same ones after the last read of this one.
        self._on_added(slot)

    def _count(self, name: str, by: int) -> None:
        if by:
            self._crawler.stats.inc_value(name, by)
