"""Slots of a frontier, as one process uses them: it sends requests to any slot, and reads batches of its own ones.

When that happens is decided by :class:`~scrapy_ext.crawl.frontier.reading.Feeder`. The reasons are in :class:`Demand`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import ChainMap
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec
from scrapy.crawler import Crawler

from scrapy_ext.api.platform.frontier import DEAD_LETTERS, Batch, dead_letter
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.slots import SlotCalls
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.commit.events import Stored
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.crawl.session.writers import ITEMS

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Simultaneous calls: a crawl with many slots must not open a connection for each.
_AT_ONCE: Final = 16
#: Deleted batches that a late read may still return.
_REMEMBERED: Final = 1000


class SlotReader:
    """Batches of one slot that this worker holds, read ahead of the downloader.

    Behaviour of the API (platform-api.md, Frontier) and its consequences:

    - A read returns the head of the queue, including every batch that was read before and not deleted. To get more, a
      read requests the number that is held and more, and skips the known batches.
    - A batch can come back once more if its deletion was under way during the read: IDs are remembered for a while
      after the deletion.
    - The API does not notify of new requests. After a read without new batches, a slot is read again only after a write
      of this process that added something (:attr:`SlotReader.may_have_more`).
    - A server may limit the size of a read, so that held batches fill it. A read without new batches proves the slot
      empty only if nothing was held; otherwise the slot is read once more after a held batch is deleted.

    ``read(mincount, known)`` is the API's read of a queue, without the known batches.
    """

    def __init__(self, slot: int, read: Callable[[int, Mapping[str, int]], Awaitable[list[Batch]]]) -> None:
        self.slot = slot
        self._read = read
        #: Requests in each batch that is held.
        self._held: dict[str, int] = {}
        self._deleted: dict[str, int] = {}
        self._writes = 1
        self._writes_seen = 0
        self._read_in_vain = False
        #: Whether the last read returned fewer requests than it requested: the slot had no more, unless the server
        #: limits the size of a read.
        self.has_read_all = False

    @property
    def may_have_more(self) -> bool:
        """Return true if a read could return batches that are not held."""
        return self._writes != self._writes_seen

    def written(self) -> None:
        self._writes += 1

    def deleted(self, batch_id: str) -> None:
        """Record that a batch was acknowledged."""
        self._held.pop(batch_id, None)
        self._deleted[batch_id] = 0
        if self._read_in_vain:
            self._read_in_vain = False
            self._writes += 1
        if len(self._deleted) > _REMEMBERED:
            del self._deleted[next(iter(self._deleted))]

    def poll(self) -> None:
        """Allow another read: other workers write to the slot as well."""
        self._writes += 1

    async def more(self, want: int) -> list[Batch]:
        """Read batches that are not held yet, with about ``want`` requests or more, and hold them."""
        writes = self._writes
        fresh = await self._read(sum(self._held.values()) + want, ChainMap(self._held, self._deleted))
        self.has_read_all = sum(len(batch.requests) for batch in fresh) < want
        if not fresh:
            self._writes_seen = writes
            self._read_in_vain = bool(self._held)
        for batch in fresh:
            self._held[batch.id] = len(batch.requests)
        return fresh

    def forget(self, batches: Iterable[Batch]) -> None:
        """Release batches that could not be processed: they are to be read again."""
        for batch in batches:
            self._held.pop(batch.id, None)
        self._writes += 1


async def read_together(
    readers: Sequence[SlotReader], reads: Sequence[Awaitable[list[Batch]]]
) -> list[list[Batch] | BaseException]:
    """Return the batches, or the error, of a read of each reader.

    A crawl that ends cancels its reads. Batches that have arrived by then are released, so that its last read returns
    them once more: requests that are finished and in none of the batches would run again in the next crawl.
    """
    tasks = [asyncio.ensure_future(read) for read in reads]
    try:
        return await asyncio.gather(*tasks, return_exceptions=True)
    except asyncio.CancelledError:
        for reader, task in zip(readers, tasks, strict=True):
            if task.done() and not task.cancelled() and task.exception() is None:
                reader.forget(task.result())
        raise


class Demand:
    """Reasons to send requests and read slots: the downloader got no request (``starved``), or finished requests need
    the places of their batches (``placing``)."""

    def __init__(self) -> None:
        self._starved = self._placing = False
        self._event = asyncio.Event()

    def add(self, *, starved: bool = False, placing: bool = False) -> None:
        self._starved |= starved
        self._placing |= placing
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next reason."""
        await self._event.wait()
        self._event.clear()

    async def more(self, seconds: float) -> bool:
        """Wait for another reason; return false if there was none for so long."""
        try:
            async with timeout_after(seconds):
                await self.wait()
        except TIMEOUT_ERRORS:
            return False
        return True

    @property
    def is_placing(self) -> bool:
        return self._placing

    @property
    def is_starved(self) -> bool:
        return self._starved

    def take(self) -> tuple[bool, bool]:
        """Return ``starved`` and ``placing``, which count once."""
        taken = self._starved, self._placing
        self._starved = self._placing = False
        return taken


class Slots:
    """Slots of the frontier of this name, with these ``calls``."""

    def __init__(self, crawler: Crawler, session: Session, frontier: str, calls: SlotCalls) -> None:
        self._crawler = crawler
        self._session = session
        self._frontier = frontier
        self._calls = calls
        self.demand = Demand()
        #: Number of batches that were read.
        self.batches = 0
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._readers: dict[int, SlotReader] = {}
        self._writers: dict[int, BatchWriter] = {}
        self._dead_letters = session.writers.add(f"frontier {DEAD_LETTERS}", self._send_dead_letters, vital=True)
        #: Slots with unsent requests, and slots of which a read could return requests.
        self._unsent: set[int] = set()
        self._unread: set[int] = set()
        self._is_in_use = False
        #: Slots with a write that failed, but may have arrived.
        self._doubtful: set[int] = set()

    @property
    def are_joint(self) -> bool:
        """Return true if one call reads and sends those of several slots, which the workers of a job share."""
        return self._calls.are_joint

    @property
    def has_work(self) -> bool:
        """Return true if requests wait to be sent or may be read."""
        return self._is_in_use or bool(self._unread) or any(self._writers[slot].pending for slot in self._unsent)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Record that the slots have work while something is sent or read."""
        self._is_in_use = True
        try:
            yield
        finally:
            self._is_in_use = False

    # ── sending ──

    @property
    def is_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def is_awaited(self) -> bool:
        """Return true if other workers may wait for unsent requests, and one call sends those of all slots."""
        return self._calls.are_joint and not self._unsent <= self._readers.keys()

    def send(self, slot: int, record: bytes, *, soon: bool = False) -> None:
        """Send a request to a slot, with others; ``soon``: the downloader waits for it."""
        writer = self._writers.get(slot)
        if writer is None:
            writer = self._writers[slot] = self._session.writers.add(f"frontier {slot}", self._sender(slot), vital=True)
        writer.add(record)
        self._unsent.add(slot)
        if soon:
            self.demand.add(starved=True)
        elif self._calls.are_joint and slot not in self._readers:
            self.demand.add()

    def add_dead_letter(self, stored: Stored, error: str, level: int = logging.ERROR) -> None:
        """Move a request, with its error, to the dead letters, which no crawl reads."""
        url = stored.form.get("url") if isinstance(stored.form, dict) else None
        logger.log(
            level,
            "Request %s (%s) is kept in slot %s of frontier %s: %s",
            *(url or "without a URL", stored.fp, DEAD_LETTERS, self._frontier, error),
        )
        self._count("frontier/dead_letters", 1)
        letter = dead_letter(stored.batch.slot, stored.fp, stored.form, self._session.secrets.masked(error))
        self._dead_letters.add(msgspec.json.encode(letter))

    async def flush(self) -> None:
        """Make all requests of :meth:`send` durable."""
        sending = [self._writers[slot] for slot in self._unsent]
        await asyncio.gather(*(self._in_turn(writer.flush()) for writer in sending))
        self._unsent = {slot for slot in self._unsent if self._writers[slot].pending}

    async def stored(self) -> None:
        """Wait until the requests of :meth:`send` of this moment are durable, and items that are written as they come.
        Their writers send them in time. Raises the error of a writer that gave up."""
        items = self._session.writers.named(ITEMS)
        writers = [*(self._writers[slot] for slot in self._unsent), *([items] if items is not None else [])]
        await asyncio.gather(*(writer.wait_durable(writer.next_index) for writer in writers))

    async def flush_all(self) -> None:
        """Make durable everything on which a commit rests: request records (a committed request does not run again, so
        nothing else would record its response), requests, dead letters, and items if they are written as they come."""
        writers = self._session.writers
        items = writers.named(ITEMS)
        others = [self._dead_letters, *([items] if items is not None else [])]
        await asyncio.gather(writers.requests_stored(), self.flush(), *(writer.flush() for writer in others))

    def _sender(self, slot: int) -> Callable[[bytes, int], Awaitable[None]]:
        async def send(body: bytes, _index: int) -> None:
            # A request in the frontier names the record of its parent, which must not be lost, and whose index must not
            # go to another record.
            await self._session.writers.requests_stored()
            try:
                new = await self._calls.add(str(slot), body)
            except PlatformError:
                # It may have arrived; the next attempt would count its requests as duplicates.
                self._doubtful.add(slot)
                raise
            self._added(slot, body.count(b"\n"), new)

        return send

    async def _send_dead_letters(self, body: bytes, _index: int) -> None:
        session = self._session
        project, frontier = session.job.key.project, session.client.frontier
        await frontier.add(project, self._frontier, DEAD_LETTERS, body, attempts=1)

    def _added(self, slot: int, sent: int, new: int) -> None:
        self._count("frontier/children/sent", sent)
        self._count("scheduler/enqueued", new)
        self._count("scheduler/enqueued/frontier", new)
        if slot in self._doubtful:
            self._doubtful.discard(slot)
        else:
            self._count("dupefilter/filtered", sent - new)
        # Also without new requests: a former process may have sent the same ones after the last read of this one.
        if (reader := self._readers.get(slot)) is not None:
            reader.written()
            self._may_have_more(reader)

    def _count(self, name: str, by: int) -> None:
        if by:
            self._crawler.stats.inc_value(name, by)

    # ── reading ──

    @property
    def owned(self) -> set[int]:
        """Return the slots that are read."""
        return set(self._readers)

    def owns(self, slot: int) -> bool:
        return slot in self._readers

    @property
    def unread(self) -> list[SlotReader]:
        """Return the readers of slots of which a read could return requests."""
        return [self._readers[slot] for slot in self._unread]

    @property
    def is_unread(self) -> bool:
        return bool(self._unread)

    def own(self, slots: set[int], *, are_empty: bool = False) -> None:
        """Read exactly these slots from now on. ``are_empty``: nothing is in them until this process sends it."""
        for slot in slots - set(self._readers):
            self._readers[slot] = self._reader(slot)
            if not are_empty:
                self._unread.add(slot)
        for slot in set(self._readers) - slots:
            del self._readers[slot]
            self._unread.discard(slot)
        self.demand.add()

    def poll(self, slots: Container[int] | None = None) -> None:
        """Read these slots again, by default all: others may have added requests. A worker that owns none looks whether
        the crawl is over."""
        polled = [slot for slot in self._readers if slots is None or slot in slots]
        for slot in polled:
            self._readers[slot].poll()
            self._unread.add(slot)
        if polled or not self._readers:
            self.demand.add()

    def place(self) -> None:
        """Read the slots, whatever the number of requests in memory: finished ones need their places."""
        self.demand.add(placing=True)

    def acknowledged(self, slot: int, batch_id: str) -> None:
        if (reader := self._readers.get(slot)) is not None:
            reader.deleted(batch_id)
            self._may_have_more(reader)

    async def read(self, readers: Sequence[SlotReader], want: int) -> list[list[Batch] | BaseException]:
        """Read ``want`` requests or more of each slot; the error of one does not stop the others."""
        found = await read_together(readers, [self._in_turn(reader.more(want)) for reader in readers])
        self.batches += sum(len(batches) for batches in found if not isinstance(batches, BaseException))
        return found

    def is_read(self, reader: SlotReader) -> bool:
        """Return true if the slot is still this worker's."""
        return self._readers.get(reader.slot) is reader

    def has_read(self, reader: SlotReader) -> None:
        """Record that the batches of a read were taken."""
        if not reader.may_have_more:
            self._unread.discard(reader.slot)

    def _reader(self, slot: int) -> SlotReader:
        return SlotReader(slot, partial(self._calls.read, str(slot)))

    def _may_have_more(self, reader: SlotReader) -> None:
        if reader.may_have_more:
            self._unread.add(reader.slot)
            self.demand.add()

    async def _in_turn(self, call: Awaitable[T]) -> T:
        async with self._at_once:
            return await call
