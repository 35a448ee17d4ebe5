"""Between the frontier's slots and the memory: sends what waits, reads what is wanted, in one task.

It works when the downloader is hungry, so that many requests go and come in one call. What one slot fails at does not
hold the others up, and is tried again.
"""

from __future__ import annotations

import asyncio
from collections import ChainMap
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import Final, Protocol

from scrapy_ext.api.platform.frontier import MAX_BATCH, Batch
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.retry import Retry

#: Requests of hosts that have no room may fill the memory up to so many times the prefetch, so that a slow host
#: does not keep the requests of others out.
_CROWD: Final = 10
#: Requests that must wait for a time may be so many times the prefetch.
_PARKED: Final = 50
#: Calls at once to as many slots: a crawl of many slots must not open a connection for each.
_AT_ONCE: Final = 16
#: Deleted batches that a late read may still bring.
_REMEMBERED: Final = 1000


class SlotReader:
    """The batches of one slot that this worker holds, read ahead of the downloader.

    What the API gives (platform-api.md, Frontier) and what follows:

    - A read returns the head of the queue, with every batch that was read before and not deleted. So to get
      more, ask for what is held and more, and skip what is known.
    - A batch whose deletion was on its way while the read was can come back once more: IDs are remembered for a
      while after they were deleted.
    - Nothing reports that requests arrived. Our own writes do: a slot is read again only after one that added
      something, until a read brings nothing new (:attr:`SlotReader.may_have_more`).
    - A server may bound what one read returns, so that what is held fills it. Nothing new means that the slot is
      empty only of a read that nothing was held during; after another, the slot is read once more when something
      that was held has been deleted.

    ``read(mincount, known)`` is the API's queue read, without the batches that are known.
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

    @property
    def may_have_more(self) -> bool:
        """Whether a read could bring something that is not held."""
        return self._writes != self._writes_seen

    def written(self) -> None:
        """Requests were added to the slot."""
        self._writes += 1

    def deleted(self, batch_id: str) -> None:
        """A batch was acknowledged."""
        self._held.pop(batch_id, None)
        self._deleted[batch_id] = 0
        if self._read_in_vain:
            self._read_in_vain = False
            self._writes += 1
        if len(self._deleted) > _REMEMBERED:
            del self._deleted[next(iter(self._deleted))]

    def poll(self) -> None:
        """Others write to the slot too: a read may bring something."""
        self._writes += 1

    async def more(self, want: int) -> list[Batch]:
        """Batches that were not held yet, with about ``want`` requests or more; now they are held."""
        writes = self._writes
        fresh = await self._read(sum(self._held.values()) + want, ChainMap(self._held, self._deleted))
        if not fresh:
            self._writes_seen = writes
            self._read_in_vain = bool(self._held)
        for batch in fresh:
            self._held[batch.id] = len(batch.requests)
        return fresh

    def forget(self, batches: Iterable[Batch]) -> None:
        """What :meth:`more` has just returned could not be taken: it is to come again."""
        for batch in batches:
            self._held.pop(batch.id, None)
        self._writes += 1


class Consumer(Protocol):
    """Who is fed."""

    @property
    def waiting(self) -> int:
        """How many requests are in memory and could go out, now or when their host has room."""

    @property
    def parked(self) -> int:
        """How many requests are in memory and must wait for a time."""

    @property
    def expects_requests(self) -> bool:
        """Whether a read may bring requests that are not in memory, or show that nothing is left."""

    @property
    def unplaced(self) -> int:
        """How many finished requests wait for their batch to be read."""

    async def before_work(self) -> None:
        """Something will be sent, or was read."""

    async def look_at(self, batches: Sequence[Batch]) -> None:
        """These were read, and :meth:`take` follows."""

    def take(self, slot: int, batch: Batch) -> None:
        """A batch was read."""

    def after_read(self, *, in_vain: bool) -> None:
        """What was read was taken. ``in_vain``: batches were wanted, and there are no more for now."""

    async def when_empty(self) -> None:
        """Nothing came, and nothing is left to send or to read."""


class Feeder:
    """Feeds a consumer with ``prefetch`` requests of the slots that it owns. ``wake`` is called when some came,
    ``on_failure`` with the error after which the frontier cannot be used."""

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
        self._retry = retry
        self._wake = wake
        self._on_failure = on_failure
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._readers: dict[int, SlotReader] = {}
        self._writers: dict[int, BatchWriter] = {}
        #: Slots with unsent requests, and slots that a read could bring something from.
        self._unsent: set[int] = set()
        self._unread: set[int] = set()
        self._hungry = asyncio.Event()
        self._starved = False
        self._placing = False
        self._busy = False
        self._task: asyncio.Task[None] | None = None

    @property
    def owned(self) -> set[int]:
        """The slots that are read."""
        return set(self._readers)

    @property
    def has_work(self) -> bool:
        """Whether something is to be sent or may be read."""
        return self._busy or bool(self._unread) or any(self._writers[slot].pending for slot in self._unsent)

    def own(self, slots: set[int]) -> None:
        """Read these slots from now on."""
        for slot in slots - set(self._readers):
            self._readers[slot] = self._reader_of(slot)
            self._unread.add(slot)
        for slot in set(self._readers) - slots:
            del self._readers[slot]
            self._unread.discard(slot)
        self._hungry.set()

    def send(self, slot: int, record: bytes) -> None:
        """Take a request for a slot."""
        writer = self._writers.get(slot)
        if writer is None:
            writer = self._writers[slot] = self._writer_of(slot)
        writer.add(record)
        self._unsent.add(slot)
        if not self._consumer.waiting:
            self._starved = True
            self._hungry.set()

    def hunger(self, *, starved: bool) -> None:
        """The downloader has taken a request, or (``starved``) asked in vain."""
        if (not self._unread and not self._unsent) or not self._consumer.expects_requests:
            return
        self._starved = self._starved or starved
        if starved or self._consumer.waiting <= self._prefetch // 2:
            self._hungry.set()

    def place(self) -> None:
        """Send what waits and read the slots, however many requests are in memory."""
        self._placing = True
        self._hungry.set()

    async def place_once(self) -> None:
        """Do what :meth:`place` asks for when the task has ended. Raises :class:`PlatformError`."""
        await self.flush()
        found = bool(self._unread) and await self._read(list(self._unread), MAX_BATCH * len(self._unread))
        self._consumer.after_read(in_vain=not found)

    def added(self, slot: int) -> None:
        """Requests were added to a slot."""
        reader = self._readers.get(slot)
        if reader is not None:
            reader.written()
            self._may_have_more(slot, reader)

    def acknowledged(self, slot: int, batch_id: str) -> None:
        """A batch was deleted."""
        reader = self._readers.get(slot)
        if reader is not None:
            reader.deleted(batch_id)
            self._may_have_more(slot, reader)

    def poll(self) -> None:
        """Read all slots again: others may have added to them."""
        for slot, reader in self._readers.items():
            reader.poll()
            self._unread.add(slot)
        self._hungry.set()

    async def flush(self) -> None:
        """Make everything durable that was given to :meth:`send`."""
        sending = [self._writers[slot] for slot in self._unsent]
        await asyncio.gather(*(self._flush(writer) for writer in sending))
        self._unsent = {slot for slot in self._unsent if self._writers[slot].pending}

    def start(self, consumer: Consumer, slots: set[int]) -> None:
        """Feed a consumer from these slots, in a task in the running loop."""
        self._consumer = consumer
        self.own(slots)
        self._task = asyncio.ensure_future(self._run())
        self._hungry.set()

    async def close(self) -> None:
        """End the task."""
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
        """Send what waits if the downloader does too, and read the slots; tells whether requests came."""
        starved, self._starved = self._starved, False
        placing, self._placing = self._placing, False
        # Early, when there is nothing else to read: the requests come back a round trip later.
        is_low = self._consumer.expects_requests and self._consumer.waiting <= self._prefetch // 2
        if self._unsent and (starved or placing or (not self._unread and is_low)):
            await self._consumer.before_work()
            await self.flush()
        room = self._prefetch - self._consumer.waiting
        if starved and self._consumer.waiting < _CROWD * self._prefetch:
            room = max(room, MAX_BATCH)
        if self._consumer.parked > _PARKED * self._prefetch:
            room = 0
        if placing:
            room = MAX_BATCH * max(1, len(self._unread))
        if room <= 0 or not self._unread:
            self._consumer.after_read(in_vain=placing)
            return False
        found = await self._read(list(self._unread), room)
        self._consumer.after_read(in_vain=placing and not found)
        if found and self._unread and self._consumer.unplaced:
            self.place()
        if self._unread and self._consumer.expects_requests and self._consumer.waiting <= self._prefetch // 2:
            self._hungry.set()
        return found

    async def _read(self, slots: list[int], room: int) -> bool:
        want = min(MAX_BATCH, max(1, room // len(slots)))
        readers = [self._readers[slot] for slot in slots]
        read = await asyncio.gather(*(self._more(reader, want) for reader in readers), return_exceptions=True)
        failed = next((batches for batches in read if isinstance(batches, BaseException)), None)
        found = [batch for batches in read if not isinstance(batches, BaseException) for batch in batches]
        if found:
            try:
                await self._consumer.before_work()
                await self._consumer.look_at(found)
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

    async def _more(self, reader: SlotReader, want: int) -> list[Batch]:
        async with self._at_once:
            return await reader.more(want)

    async def _flush(self, writer: BatchWriter) -> None:
        async with self._at_once:
            await writer.flush()

    def _may_have_more(self, slot: int, reader: SlotReader) -> None:
        if reader.may_have_more:
            self._unread.add(slot)
            self._hungry.set()
