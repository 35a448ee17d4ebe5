"""Traffic between the frontier's slots and memory: one task sends requests and reads batches.

It works when the downloader needs requests, so that many requests go and come in one call. An error of one slot does
not delay the others, and is retried.
"""

from __future__ import annotations

import asyncio
from collections import ChainMap
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from scrapy_ext.api.platform.frontier import MAX_BATCH, Batch
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.frontier.read_ahead import ReadAhead

T = TypeVar("T")

#: Multiple of the prefetch up to which requests of hosts without room may fill the memory, so that a slow host does not
#: keep the requests of other hosts out.
_MOST_WAITING: Final = 10
#: Multiple of the prefetch up to which requests that must wait for a time may fill the memory.
_MOST_PARKED: Final = 50
#: Simultaneous calls: a crawl with many slots must not open a connection for each.
_AT_ONCE: Final = 16
#: Requests of a slot that are read at once for their places alone: they are in memory, and one call for a thousand of
#: them costs little more than one for a hundred.
_MOST_PLACES: Final = 10 * MAX_BATCH
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

    def __init__(self, slot: int, read: Callable[[int, Container[str]], Awaitable[list[Batch]]]) -> None:
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


class Consumer(Protocol):
    """Receiver of the requests that the feeder reads."""

    @property
    def waiting(self) -> int:
        """Number of requests in memory that could run, now or when their host has room."""

    @property
    def parked(self) -> int:
        """Number of requests in memory that must wait for a time."""

    @property
    def expects_requests(self) -> bool:
        """True if a read may return requests that are not in memory, or show that the slots are empty."""

    @property
    def unplaced(self) -> int:
        """Number of finished requests that wait for their batch to be read."""

    async def before_work(self) -> None:
        """Prepare for requests that are about to be sent, or were read."""

    async def look_up(self, batches: Sequence[Batch]) -> None:
        """Prepare for batches before :meth:`take`."""

    def take(self, slot: int, batch: Batch) -> None:
        """Take a batch that was read."""

    def after_read(self, *, in_vain: bool) -> None:
        """End a read. ``in_vain``: batches were wanted, and there are no more for now."""

    async def when_empty(self) -> None:
        """Handle a read without requests, with nothing left to send or to read."""


class Feeder:
    """Sends requests to slots, and reads ``prefetch`` requests from its own slots for a consumer, more of a platform
    that is far away (:class:`~scrapy_ext.crawl.frontier.read_ahead.ReadAhead`). ``wake`` is called when requests came,
    ``on_failure`` with the error that makes the frontier unusable."""

    _consumer: Consumer

    def __init__(
        self,
        writer_of: Callable[[int], BatchWriter],
        reader_of: Callable[[int], SlotReader],
        *,
        prefetch: int,
        retry: Retry,
        wake: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._writer_of = writer_of
        self._reader_of = reader_of
        self._prefetch = prefetch
        self._ahead = ReadAhead(prefetch)
        self._retry = retry
        self._wake = wake
        self._on_failure = on_failure
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._readers: dict[int, SlotReader] = {}
        self._writers: dict[int, BatchWriter] = {}
        #: Slots with unsent requests, and slots of which a read could return requests.
        self._unsent: set[int] = set()
        self._unread: set[int] = set()
        self._hungry = asyncio.Event()
        self._starved = False
        self._placing = False
        self._busy = False
        self._task: asyncio.Task[None] | None = None

    @property
    def owned(self) -> set[int]:
        """Return the slots that are read."""
        return set(self._readers)

    @property
    def has_work(self) -> bool:
        """Return true if requests wait to be sent or may be read."""
        return self._busy or bool(self._unread) or any(self._writers[slot].pending for slot in self._unsent)

    def own(self, slots: set[int]) -> None:
        """Read exactly these slots from now on."""
        for slot in slots - set(self._readers):
            self._readers[slot] = self._reader_of(slot)
            self._unread.add(slot)
        for slot in set(self._readers) - slots:
            del self._readers[slot]
            self._unread.discard(slot)
        self._hungry.set()

    def send(self, slot: int, record: bytes) -> None:
        """Send a request to a slot, soon."""
        writer = self._writers.get(slot)
        if writer is None:
            writer = self._writers[slot] = self._writer_of(slot)
        writer.add(record)
        self._unsent.add(slot)
        if not self._consumer.waiting:
            self._starved = True
            self._hungry.set()

    def hunger(self, *, starved: bool) -> None:
        """Feed the downloader, which has taken a request, or (``starved``) got none."""
        if not starved:
            self._ahead.taken()
        if (not self._unread and not self._unsent) or not self._consumer.expects_requests:
            return
        self._starved = self._starved or starved
        if starved or self._is_low:
            self._hungry.set()

    def place(self) -> None:
        """Send requests and read the slots, whatever the number of requests in memory."""
        self._placing = True
        self._hungry.set()

    async def place_once(self) -> None:
        """As :meth:`place`, after the end of the task. Raises :class:`PlatformError`."""
        await self.flush()
        found = bool(self._unread) and await self._read(list(self._unread), MAX_BATCH * len(self._unread))
        self._consumer.after_read(in_vain=not found)

    def added(self, slot: int) -> None:
        reader = self._readers.get(slot)
        if reader is not None:
            reader.written()
            self._may_have_more(slot, reader)

    def acknowledged(self, slot: int, batch_id: str) -> None:
        reader = self._readers.get(slot)
        if reader is not None:
            reader.deleted(batch_id)
            self._may_have_more(slot, reader)

    def poll(self, slots: Container[int] | None = None) -> None:
        """Read these slots again, by default all: others may have added requests."""
        polled = [slot for slot in self._readers if slots is None or slot in slots]
        for slot in polled:
            self._readers[slot].poll()
            self._unread.add(slot)
        if polled:
            self._hungry.set()

    async def flush(self) -> None:
        """Make all requests of :meth:`send` durable."""
        sending = [self._writers[slot] for slot in self._unsent]
        await asyncio.gather(*(self._in_turn(writer.flush()) for writer in sending))
        self._unsent = {slot for slot in self._unsent if self._writers[slot].pending}

    def start(self, consumer: Consumer, slots: set[int], *, are_empty: bool = False) -> None:
        """Start the task, in the running loop. ``are_empty``: nothing is in the slots until this process sends it."""
        self._consumer = consumer
        self.own(slots)
        if are_empty:
            self._unread.clear()
        self._task = asyncio.ensure_future(self._run())
        self._hungry.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ── the task ──

    async def _run(self) -> None:
        try:
            while True:
                await self._hungry.wait()
                self._hungry.clear()
                await self._retry.until_done(self._feed, "send and read the requests of the frontier")
        except Exception as error:
            self._on_failure(error)

    async def _feed(self) -> None:
        self._busy = True
        try:
            found = await self._refill()
        finally:
            self._busy = False
        if found:
            self._wake()
        elif not self.has_work:
            await self._consumer.when_empty()

    async def _refill(self) -> bool:
        """Send requests if the downloader waits for them, and read the slots; return true if requests came."""
        starved, self._starved = self._starved, False
        placing, self._placing = self._placing, False
        # If there is nothing else to read, send early: the requests come back a round trip later.
        is_low = self._consumer.expects_requests and self._is_low
        if self._unsent and (starved or placing or (not self._unread and is_low)):
            await self._consumer.before_work()
            await self.flush()
        room = self._ahead.requests - self._consumer.waiting
        if starved and self._consumer.waiting < _MOST_WAITING * self._prefetch:
            room = max(room, MAX_BATCH)
        if self._consumer.parked > _MOST_PARKED * self._prefetch:
            room = 0
        if placing:
            room = self._most_of_slot * max(1, len(self._unread))
        if room <= 0 or not self._unread:
            self._consumer.after_read(in_vain=placing)
            return False
        if not placing and not self._consumer.expects_requests:
            # Reads only give requests in memory their places, for which they are called.
            return False
        found = await self._read(list(self._unread), room)
        self._consumer.after_read(in_vain=placing and not found)
        if found and self._consumer.unplaced and not all(self._readers[slot].has_read_all for slot in self._unread):
            self.place()
        if self._unread and self._consumer.expects_requests and self._is_low:
            self._hungry.set()
        return found

    async def _read(self, slots: list[int], room: int) -> bool:
        want = min(self._most_of_slot, max(1, room // len(slots)))
        readers = [self._readers[slot] for slot in slots]
        began = self._ahead.now()
        read = await asyncio.gather(*(self._in_turn(reader.more(want)) for reader in readers), return_exceptions=True)
        failed = next((batches for batches in read if isinstance(batches, BaseException)), None)
        found = [batch for batches in read if not isinstance(batches, BaseException) for batch in batches]
        if found:
            self._ahead.has_read(began)
            try:
                await self._consumer.before_work()
                await self._consumer.look_up(found)
            except BaseException:
                for reader, batches in zip(readers, read, strict=True):
                    reader.forget([] if isinstance(batches, BaseException) else batches)
                raise
        for reader, batches in zip(readers, read, strict=True):
            if isinstance(batches, BaseException) or self._readers.get(reader.slot) is not reader:
                continue
            for batch in batches:
                self._consumer.take(reader.slot, batch)
            if not reader.may_have_more:
                self._unread.discard(reader.slot)
        if failed is not None:
            raise failed
        return bool(found)

    @property
    def _is_low(self) -> bool:
        """Return true if half of the requests that should be in memory are left."""
        return self._consumer.waiting <= self._ahead.requests // 2

    @property
    def _most_of_slot(self) -> int:
        """Number of requests that one call reads of a slot, or a few more."""
        return self._ahead.most_of(MAX_BATCH) if self._consumer.expects_requests else _MOST_PLACES

    async def _in_turn(self, call: Awaitable[T]) -> T:
        async with self._at_once:
            return await call

    def _may_have_more(self, slot: int, reader: SlotReader) -> None:
        if reader.may_have_more:
            self._unread.add(slot)
            self._hungry.set()
