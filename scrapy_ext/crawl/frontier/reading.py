"""Requests on their way from the slots into memory. One task sends requests and reads batches.

It works when the downloader needs requests, so that many requests go and come in one call. An error of one slot does
not delay the others, and is retried.

More requests are read ahead of a platform that is far away. While a read is under way, the downloader takes requests
from memory. A crawl that takes ``rate`` requests a second, of a platform whose answer takes ``seconds``, needs
``rate * seconds`` of them to go on without a pause. Reads begin when half of what should be in memory is left, and
either figure may double meanwhile, so four times as many are kept. A crawl that waits for requests takes them as fast
as they come, so its number grows until it no longer waits, or up to a limit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from scrapy.crawler import Crawler

from scrapy_ext.api.platform.frontier import MAX_BATCH, Batch
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.commit.events import OpenBatch, Progress, Stored
from scrapy_ext.crawl.frontier.end_of_crawl import EndOfCrawl
from scrapy_ext.crawl.frontier.filtering import Skipping
from scrapy_ext.crawl.frontier.identity import host_of
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.results import Results
from scrapy_ext.crawl.frontier.serialize import UnreadableRequestError, request_from_json
from scrapy_ext.crawl.frontier.slots import SlotReader, Slots

logger = logging.getLogger(__name__)

#: Multiple of the prefetch up to which requests of hosts without room may fill the memory, so that a slow host does not
#: keep the requests of other hosts out.
_MOST_WAITING: Final = 10
#: Multiple of the prefetch up to which requests that must wait for a time may fill the memory.
_MOST_PARKED: Final = 50
#: Requests of a slot that are read at once for their places alone: they are in memory, and one call for a thousand of
#: them costs little more than one for a hundred.
_MOST_PLACES: Final = 10 * MAX_BATCH
#: Multiple of the requests that are taken during a read.
_ROUND_TRIPS: Final = 4
#: Limit of the read-ahead, as a multiple of the setting.
_MOST_AHEAD: Final = 10
#: Weight of the newest read.
_NEWEST: Final = 0.3
#: Seconds from the start of a round of sending and reading to the next one: a round takes several calls, however few
#: requests it has. The first two while no request waits in memory, in a crawl by one worker and by several; the others
#: while some do: the next round is due when half of them will have been taken.
_FASTEST_PACE: Final = 0.01
_FAST_PACE: Final = 0.05
_PACE: Final = 0.1
_SLOW_PACE: Final = 0.3


class ReadAhead:
    """Number of requests that are read ahead of the downloader. ``least`` is that for a platform that is near;
    ``clock`` returns seconds."""

    def __init__(self, least: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._least = least
        self._clock = clock
        self._taken = 0
        self._since: float | None = None
        self._rate = self._seconds = 0.0
        #: Number of requests that should be in memory.
        self.requests = least

    def now(self) -> float:
        return self._clock()

    def taken(self) -> None:
        """Record that the downloader has taken a request."""
        self._taken += 1

    def has_read(self, began: float) -> None:
        """Record that a read has ended, which began at a time of :meth:`now`."""
        now = self._clock()
        self._seconds = _smoothed(self._seconds, now - began)
        if self._since is not None and now > self._since:
            self._rate = _smoothed(self._rate, self._taken / (now - self._since))
        self._since, self._taken = now, 0
        needed = int(_ROUND_TRIPS * self._rate * self._seconds)
        self.requests = min(max(self._least, needed), _MOST_AHEAD * self._least)

    def pace(self, waiting: int, *, starved: bool, shared: bool) -> float:
        """Return the seconds from one round to the next while so many requests wait in memory. ``starved``: the
        downloader can take none of them. ``shared``: several workers crawl."""
        if not waiting:
            return _FAST_PACE if shared else _FASTEST_PACE
        if starved:
            return _PACE
        return min(max(_PACE, waiting / self._rate / 2), _SLOW_PACE) if self._rate else _PACE

    def most_of(self, usual: int) -> int:
        """Return the limit of one call that is ``usual`` for a platform that is near."""
        return usual * self.requests // self._least


def _smoothed(old: float, new: float) -> float:
    return new if not old else old + _NEWEST * (new - old)


class Arrivals:
    """Requests of batches that were read: they go to memory, except those that are not to run. ``progress`` has the
    requests that a former process has finished."""

    def __init__(
        self, crawler: Crawler, memory: Memory, results: Results, skipping: Skipping, progress: Progress
    ) -> None:
        self._crawler = crawler
        self._memory = memory
        self._results = results
        self._skipping = skipping
        self._progress = progress

    async def look_up(self, batches: Sequence[Batch]) -> None:
        """Look up the pages of these batches before :meth:`take`."""
        await self._skipping.look_up(batches)

    def take(self, slot: int, batch: Batch) -> None:
        """Take a batch that was read."""
        done = self._progress.finished(slot, batch.id)
        opened = OpenBatch(slot, batch.id, len(batch.requests), done)
        count = self._crawler.stats.inc_value
        count("frontier/read/batches")
        if fresh := opened.size - done.bit_count():
            count("frontier/read/requests", fresh)
        for position, (fp, form) in enumerate(batch.requests):
            if not done >> position & 1:
                self._take(Stored(fp, form, opened, position))
        if opened.is_done:
            # Several processes finished parts of it, each without knowing of the others at its end.
            self._results.nothing_of(opened)

    def _take(self, stored: Stored) -> None:
        memory, key = self._memory, (stored.batch.slot, stored.fp)
        direct = memory.sent.take_direct(key)
        if direct is not None:
            direct.stored = stored
            return
        kept = memory.sent.take_kept(key, stored.form)
        try:
            spider: Any = self._crawler.spider
            request = request_from_json(stored.form, spider) if kept is None else memory.own(kept)
            host = host_of(request)
        except (UnreadableRequestError, ValueError) as error:
            self._results.refuse(stored, error)
            return
        if self._skipping.skips(stored, request):
            self._results.nothing_of(stored.batch, stored.position)
        else:
            memory.push(memory.tracker.read(stored, request, host))


class Feeder:
    """Task that sends the requests of ``slots``, and reads ``prefetch`` requests ahead into memory, by ``arrivals``.

    ``results`` get the places of finished requests. ``end`` is notified before requests are sent or taken, and when
    nothing is left. ``on_failure`` is called with the error that makes the frontier unusable.
    """

    def __init__(
        self,
        slots: Slots,
        memory: Memory,
        arrivals: Arrivals,
        results: Results,
        end: EndOfCrawl,
        *,
        prefetch: int,
        retry: Retry,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._slots = slots
        self._memory = memory
        self._arrivals = arrivals
        self._results = results
        self._end = end
        self._prefetch = prefetch
        self._ahead = ReadAhead(prefetch)
        self._retry = retry
        self._on_failure = on_failure
        self._task: asyncio.Task[None] | None = None
        #: Time at which the last round began.
        self._began = float("-inf")

    def hunger(self, *, starved: bool) -> None:
        """Feed the downloader, which has taken a request, or (``starved``) got none."""
        if not starved:
            self._ahead.taken()
        slots = self._slots
        if (slots.is_unread or slots.is_unsent) and self._memory.expects_requests and (starved or self._is_low):
            slots.demand.add(starved=starved)

    async def place_all(self) -> None:
        """Read the batches of finished requests after the end of the task, as far as the platform returns them."""
        left = 0
        while self._results.unplaced != left:
            left = self._results.unplaced
            try:
                await self._slots.flush()
                readers = self._slots.unread
                found = bool(readers) and await self._read(readers, MAX_BATCH * len(readers))
            except PlatformError as error:
                logger.warning("%d finished requests will run again: their batches cannot be read: %s", left, error)
                return
            self._results.after_read(in_vain=not found)

    def start(self) -> None:
        """Start the task, in the running loop."""
        self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ── the task ──

    async def _run(self) -> None:
        try:
            while True:
                await self._slots.demand.wait()
                await self._pause()
                await self._retry.until_done(self._feed, "send and read the requests of the frontier")
        except Exception as error:
            self._on_failure(error)

    async def _pause(self) -> None:
        """Wait until the next round is due: at once for finished requests that need their places."""
        demand = self._slots.demand
        while not demand.is_placing:
            pace = self._ahead.pace(self._memory.waiting, starved=demand.is_starved, shared=self._slots.are_joint)
            left = self._began + pace - self._ahead.now()
            if left <= 0 or not await demand.more(left):
                break
        self._began = self._ahead.now()

    async def _feed(self) -> None:
        with self._slots.in_use():
            found = await self._refill()
        if found:
            self._memory.wake()
        elif not self._slots.has_work:
            await self._end.when_empty()

    async def _refill(self) -> bool:
        """Send requests if the downloader waits for them, and read the slots; return true if requests came."""
        slots, memory, results = self._slots, self._memory, self._results
        starved, placing = slots.demand.take()
        # If there is nothing else to read, send early: the requests come back a round trip later.
        is_low = memory.expects_requests and self._is_low
        if slots.is_awaited or (slots.is_unsent and (starved or placing or (not slots.is_unread and is_low))):
            await self._end.before_work()
            await slots.flush()
        room = self._room(starved=starved, placing=placing)
        if room <= 0 or not slots.is_unread:
            results.after_read(in_vain=placing)
            return False
        if not placing and not memory.expects_requests:
            # Reads only give requests in memory their places, for which they are called.
            return False
        found = await self._read(slots.unread, room)
        results.after_read(in_vain=placing and not found)
        if found and results.unplaced and not all(reader.has_read_all for reader in slots.unread):
            slots.place()
        if slots.is_unread and memory.expects_requests and self._is_low:
            slots.demand.add()
        return found

    def _room(self, *, starved: bool, placing: bool) -> int:
        """Return the number of requests to read."""
        if placing:
            return self._most_of_slot * max(1, len(self._slots.unread))
        memory = self._memory
        if memory.parked > _MOST_PARKED * self._prefetch:
            return 0
        room = self._ahead.requests - memory.waiting
        return max(room, MAX_BATCH) if starved and memory.waiting < _MOST_WAITING * self._prefetch else room

    async def _read(self, readers: list[SlotReader], room: int) -> bool:
        want = min(self._most_of_slot, max(1, room // len(readers)))
        began = self._ahead.now()
        read = await self._slots.read(readers, want)
        failed = next((batches for batches in read if isinstance(batches, BaseException)), None)
        found = [batch for batches in read if not isinstance(batches, BaseException) for batch in batches]
        if found:
            self._ahead.has_read(began)
            try:
                await self._end.before_work()
                await self._arrivals.look_up(found)
            except BaseException:
                for reader, batches in zip(readers, read, strict=True):
                    reader.forget([] if isinstance(batches, BaseException) else batches)
                raise
        for reader, batches in zip(readers, read, strict=True):
            if isinstance(batches, BaseException) or not self._slots.is_read(reader):
                continue
            for batch in batches:
                self._arrivals.take(reader.slot, batch)
            self._slots.has_read(reader)
        if failed is not None:
            raise failed
        return bool(found)

    @property
    def _is_low(self) -> bool:
        """Return true if half of the requests that should be in memory are left."""
        return self._memory.waiting <= self._ahead.requests // 2

    @property
    def _most_of_slot(self) -> int:
        """Number of requests that one call reads of a slot, or a few more."""
        return self._ahead.most_of(MAX_BATCH) if self._memory.expects_requests else _MOST_PLACES
