"""Between the frontier's slots and the memory: sends what waits, reads what is wanted, in one task.

It works when the downloader is hungry, so that many requests go and come in one call. What one slot fails at does not
hold the others up, and is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from scrapy_ext.api.platform.frontier import MAX_BATCH, Batch
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.retry import Backoff
from scrapy_ext.crawl.frontier.reader import SlotReader

logger = logging.getLogger(__name__)

#: Requests of hosts that have no room may fill the memory up to so many times the prefetch, so that a slow host
#: does not keep the requests of others out.
_CROWD: Final = 10
#: Requests that must wait for a time may be so many times the prefetch.
_PARKED: Final = 50
#: Calls at once to as many slots: a crawl of many slots must not open a connection for each.
_AT_ONCE: Final = 16


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

    def give_up(self, error: Exception) -> None:
        """The frontier cannot be used."""


class Feeder:
    """Feeds ``consumer`` with ``prefetch`` requests of the slots that :meth:`own` names."""

    def __init__(
        self,
        consumer: Consumer,
        writer_of: Callable[[int], BatchWriter],
        reader_of: Callable[[int], SlotReader],
        *,
        prefetch: int,
        retry_time: float,
        wake: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._writer_of = writer_of
        self._reader_of = reader_of
        self._prefetch = prefetch
        self._retry_time = retry_time
        self._wake = wake
        self._backoff = Backoff()
        self._loop = asyncio.get_running_loop()
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

    def start(self) -> None:
        """Start the task, in the running loop."""
        self._task = asyncio.ensure_future(self._run())
        self._hungry.set()

    async def close(self) -> None:
        """End the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ── the task ──

    async def _run(self) -> None:
        failures, failing_since = 0, 0.0
        while True:
            await self._hungry.wait()
            self._hungry.clear()
            try:
                await self._feed()
                failures = 0
            except Exception as error:
                failures += 1
                failing_since = failing_since if failures > 1 else self._loop.time()
                if not self._may_try_again(error, failing_since):
                    self._consumer.give_up(error)
                    return
                if failures == 1:
                    logger.warning("The frontier cannot be reached, trying again: %s", error)
                await asyncio.sleep(self._backoff.seconds(failures))
                self._hungry.set()

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

    def _may_try_again(self, error: Exception, failing_since: float) -> bool:
        in_time = not self._retry_time or self._loop.time() - failing_since < self._retry_time
        return isinstance(error, PlatformError) and error.retryable and in_time

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
