"""The frontier of one crawl: requests go out to the platform's queue, come back in batches, are acknowledged.

The way of a request: :meth:`Frontier.add` serialises it and hands it to the writer of its slot. When the
downloader is hungry, the feeder sends what waits and reads the slots (:mod:`~scrapy_ext.crawl.reader`); what
it reads goes to the tracker and the hosts' queue, from which :meth:`Frontier.next` takes. When the engine has
let go of every request of a batch, the committer makes its children and items durable and deletes it.

Invariants:

- ``add`` and ``next`` never wait, and never raise for what a request holds or storage does: an exception there
  ends the engine's workers.
- A request that was handed out belongs to an open batch, until that batch is committed.
- The crawl is over when nothing is in memory, nothing is unsent, nothing is unacknowledged, and a read of
  each slot after the last write to it brought nothing (:attr:`Frontier.is_drained`).
- What storage refuses for good closes the spider; it never leaves it waiting.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.frontier import MAX_BATCH, MAX_REQUEST_BYTES, Batch, FrontierRequest
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.waits import Backoff
from scrapy_ext.crawl.commit import Committer, Durable
from scrapy_ext.crawl.engine import is_between_stages
from scrapy_ext.crawl.hosts import HostQueue
from scrapy_ext.crawl.identity import SlotFingerprints, next_life
from scrapy_ext.crawl.reader import SlotReader
from scrapy_ext.crawl.serialize import (
    NotSerializableError,
    UnreadableRequestError,
    request_from_json,
    request_to_json,
)
from scrapy_ext.crawl.session import Session
from scrapy_ext.crawl.slots import DEAD_LETTERS, Worker, host_of, slot_of
from scrapy_ext.crawl.tracking import Entry, OpenBatch, Tracker

logger = logging.getLogger(__name__)

#: Requests of hosts that have no room may fill the memory up to so many times the prefetch, so that a slow host
#: does not keep the requests of others out.
_CROWD: Final = 10
#: The priorities that the contract takes. A request beyond keeps its own; only its place in the queue is cut.
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class Frontier:
    """See the module. ``wake`` asks the engine to look for the next request."""

    def __init__(
        self, crawler: Crawler, session: Session, name: str, *, slots: int, worker: Worker, prefetch: int
    ) -> None:
        self.name = name
        self._crawler = crawler
        self._session = session
        self._project = session.job.key.project
        self._slots = slots
        self._prefetch = prefetch
        self._retry_time: float = names.PLATFORM_RETRY_TIME.read(crawler.settings)
        self._fingerprints = SlotFingerprints(crawler.request_fingerprinter)
        self._encode = msgspec.json.Encoder().encode
        self._backoff = Backoff()
        self._loop = asyncio.get_running_loop()
        self._ready: HostQueue[Entry] = HostQueue(_capacity(crawler))
        self._tracker = Tracker(self._batch_finished)
        self._readers = {
            slot: SlotReader(slot, self._slot_read(str(slot))) for slot in range(slots) if worker.owns(slot)
        }
        self._writers = {slot: self._slot_writer(slot) for slot in range(slots)}
        #: Slots with unsent requests, and slots that a read could bring something from.
        self._unsent: set[int] = set()
        self._unread: set[int] = set(self._readers)
        #: Slots with a write of which it is not known whether it arrived.
        self._doubtful: set[int] = set()
        self._dead_letters = session.writer(f"frontier {DEAD_LETTERS}", self._send_dead_letters, vital=True)
        self._committer = Committer(self._stages, self._acknowledge, self._committed, self._give_up)
        #: Fingerprints of requests that stay in this process.
        self._local: set[str] = set()
        #: Requests that take one of their host's places, and that host.
        self._out: dict[Request, str] = {}
        self._hungry = asyncio.Event()
        self._starved = False
        self._feeding = False
        self._feeder: asyncio.Task[None] | None = None
        self._drained_told = False
        self.wake: Callable[[], None] = lambda: None

    # ── from the engine ──

    def add(self, request: Request) -> bool:
        """Enqueue a request; False for a duplicate that is known here already."""
        self._drained_told = False
        origin = self._tracker.entry_of(request)
        if origin is not None and request.dont_filter and self._carries_on(origin, request):
            # A retry. It has its origin's fingerprint, which the slot knows, so it goes on in this process.
            self._tracker.carry_on(origin, request)
            self._ready.push(request.priority, origin.host, origin)
            self._count("scheduler/enqueued")
            self._count("scheduler/enqueued/memory")
            return True
        fp = self._fingerprints.of(request, origin)
        try:
            record = self._record(request, fp)
        except Exception as error:  # Whatever a spider put into a request must not end the engine's worker.
            return self._keep_local(fp, request, error)
        slot = slot_of(request, self._slots)
        self._writers[slot].add(record)
        self._unsent.add(slot)
        if not len(self._ready):
            self._hungry.set()
        return True

    def next(self) -> Request | None:
        """The next request to download, or None when there is none for now."""
        popped = self._ready.pop()
        if self._unread or self._unsent:
            self._starved = self._starved or popped is None
            if popped is None or len(self._ready) <= self._prefetch // 2:
                self._hungry.set()
        if popped is None:
            return None
        host, entry = popped
        request = self._tracker.handed_out(entry)
        self._out[request] = host
        return request

    def downloaded(self, request: Request) -> None:
        """A request no longer takes a place of its host."""
        host = self._out.pop(request, None)
        if host is not None:
            self._ready.release(host)

    def finished(self, request: Request) -> None:
        """The engine let go of a request."""
        self.downloaded(request)
        self._tracker.finished(request)

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left to do, here or in the slots of this worker."""
        return not (
            self._feeding
            or self._tracker.unfinished
            or not self._committer.is_idle
            or any(self._writers[slot].pending for slot in self._unsent)
            or self._unread
        )

    # ── life ──

    def start(self) -> None:
        """Start the tasks, in the running loop."""
        self._committer.start()
        self._feeder = asyncio.ensure_future(self._feed())
        self._hungry.set()

    async def close(self) -> None:
        """Commit what is finished, put back what is not, and end. Failure has closed the spider before."""
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.gather(self._feeder, return_exceptions=True)
        try:
            self._put_back()
        finally:
            await self._committer.close()

    async def delete(self) -> None:
        """Remove the frontier from the platform, but for requests that were set aside."""
        frontier = self._session.client.frontier
        left = set(await frontier.slots(self._project, self.name))
        for slot in map(str, range(self._slots)):
            if slot in left:
                await frontier.delete_slot(self._project, self.name, slot)

    async def foreign_slots(self) -> list[str]:
        """Slots of this frontier that another ``FRONTIER_SLOTS`` has made: their requests would not be read."""
        slots = await self._session.client.frontier.slots(self._project, self.name)
        return [slot for slot in slots if slot.isdigit() and int(slot) >= self._slots]

    # ── reading ──

    async def _feed(self) -> None:
        failures, failing_since = 0, 0.0
        while True:
            await self._hungry.wait()
            self._hungry.clear()
            self._feeding = True
            found = False
            try:
                found = await self._refill()
                failures = 0
            except Exception as error:
                failures += 1
                failing_since = failing_since if failures > 1 else self._loop.time()
                if not self._may_try_again(error, failing_since):
                    self._give_up(error)
                    return
                if failures == 1:
                    logger.warning("The frontier cannot be reached, trying again: %s", error)
                await asyncio.sleep(self._backoff.seconds(failures))
                self._hungry.set()
            finally:
                self._feeding = False
            if found:
                self.wake()
            self._tell_if_drained()

    async def _refill(self) -> bool:
        """Send what waits if the downloader does too, and read the slots; tells whether requests came."""
        starved, self._starved = self._starved, False
        if self._unsent and (starved or not len(self._ready)):
            await self._send_all()
        room = self._prefetch - len(self._ready)
        if starved and len(self._ready) < _CROWD * self._prefetch:
            room = max(room, MAX_BATCH)
        if room <= 0 or not self._unread:
            return False
        slots = list(self._unread)
        want = min(MAX_BATCH, max(1, room // len(slots)))
        read = await asyncio.gather(*(self._readers[slot].more(want) for slot in slots), return_exceptions=True)
        failed: BaseException | None = None
        for slot, batches in zip(slots, read, strict=True):
            if isinstance(batches, BaseException):
                failed = failed or batches
                continue
            for batch in batches:
                self._open(slot, batch)
            if not self._readers[slot].may_have_more:
                self._unread.discard(slot)
        if failed is not None:
            raise failed
        if self._unread and len(self._ready) <= self._prefetch // 2:
            self._hungry.set()
        return any(read)

    async def _send_all(self) -> None:
        await asyncio.gather(*(self._writers[slot].flush() for slot in self._unsent))
        self._unsent = {slot for slot in self._unsent if self._writers[slot].pending}

    def _tell_if_drained(self) -> None:
        # Once: the engine asks has_pending_requests, and asks again only when something happened.
        if not self._drained_told and self.is_drained:
            self._drained_told = True
            self.wake()

    def _open(self, slot: int, batch: Batch) -> None:
        self._count("frontier/read/batches")
        self._count("frontier/read/requests", len(batch.requests))
        runnable: list[tuple[str, Request, str]] = []
        for fp, qdata in batch.requests:
            try:
                request = request_from_json(qdata, self._spider)
            except UnreadableRequestError as error:
                self._set_aside(fp, qdata, str(error))
                continue
            runnable.append((fp, request, host_of(request)))
        for entry in self._tracker.open_batch(slot, batch.id, runnable):
            self._ready.push(entry.request.priority, entry.host, entry)

    def _set_aside(self, fp: str, qdata: Any, reason: str) -> None:
        where = f"slot {DEAD_LETTERS} of frontier {self.name}"
        logger.error("Request %s cannot be run and is kept in %s: %s", fp, where, reason)
        self._count("frontier/dead_letters")
        self._dead_letters.add(self._encode(FrontierRequest(fp, {"request": qdata, "error": reason})))

    def _slot_read(self, slot: str) -> Callable[[int], Any]:
        async def read(mincount: int) -> list[Batch]:
            return await self._session.client.frontier.read(self._project, self.name, slot, mincount)

        return read

    # ── writing ──

    def _slot_writer(self, slot: int) -> BatchWriter:
        async def send(body: bytes, _index: int) -> None:
            sent = body.count(b"\n")
            try:
                new = await self._session.client.frontier.add(self._project, self.name, str(slot), body, attempts=1)
            except PlatformError:
                # It may have arrived all the same; the next attempt would count its requests as known ones.
                self._doubtful.add(slot)
                raise
            self._count("frontier/children/sent", sent)
            self._count("scheduler/enqueued", new)
            self._count("scheduler/enqueued/frontier", new)
            if new < sent and slot not in self._doubtful:
                self._count("dupefilter/filtered", sent - new)
            if new or slot in self._doubtful:
                self._doubtful.discard(slot)
                self._may_have_more(slot, written=True)

        return self._session.writer(f"frontier {slot}", send, vital=True)

    def _may_have_more(self, slot: int, *, written: bool = False) -> None:
        reader = self._readers.get(slot)
        if reader is None:
            return
        if written:
            reader.written()
        if reader.may_have_more:
            self._unread.add(slot)
            self._hungry.set()

    async def _send_dead_letters(self, body: bytes, _index: int) -> None:
        await self._session.client.frontier.add(self._project, self.name, DEAD_LETTERS, body, attempts=1)

    def _carries_on(self, origin: Entry, request: Request) -> bool:
        return origin.request is not request and is_between_stages(self._crawler, origin.request)

    def _record(self, request: Request, fp: str) -> bytes:
        qdata = request_to_json(request, self._spider)
        place = min(max(-request.priority, _LOWEST), _HIGHEST)
        record = self._encode(FrontierRequest(fp, qdata, p=place))
        if len(record) > MAX_REQUEST_BYTES:
            raise NotSerializableError(f"it is {len(record)} bytes of JSON, over {MAX_REQUEST_BYTES}")
        return record

    def _keep_local(self, fp: str, request: Request, error: Exception) -> bool:
        if not request.dont_filter:
            if fp in self._local:
                self._count("dupefilter/filtered")
                return False
            self._local.add(fp)
        if not self._stat("scheduler/unserializable"):
            reason = error if isinstance(error, NotSerializableError) else repr(error)
            logger.warning(
                "Request %s stays in this process, and would be repeated from its parent after a crash: %s. "
                "No more such requests will be shown.",
                request,
                reason,
            )
        self._count("scheduler/unserializable")
        self._count("scheduler/enqueued")
        self._count("scheduler/enqueued/memory")
        entry = self._tracker.local(fp, request, host_of(request))
        self._ready.push(request.priority, entry.host, entry)
        self.wake()
        return True

    def _put_back(self) -> None:
        """What was read and not begun stays in the queue. A batch that is partly done is acknowledged, and the
        rest of it enqueued under new fingerprints, so that the next run repeats nothing."""
        waiting = set(self._ready.drain())
        for batch in list(self._tracker.open_batches):
            rest = list(batch.unfinished)
            if len(rest) == batch.size or not waiting.issuperset(rest) or any(entry.is_local for entry in rest):
                continue
            try:
                records = [self._record(entry.request, next_life(entry.fp)) for entry in rest]
            except NotSerializableError:
                continue  # The batch is not acknowledged, and the next run repeats it.
            for entry, record in zip(rest, records, strict=True):
                self._writers[batch.slot].add(record)
                self._unsent.add(batch.slot)
                self._count("frontier/released")
                self._tracker.drop(entry)

    # ── committing ──

    def _stages(self) -> list[list[Durable]]:
        items = self._session.written("items")
        return [[*self._writers.values(), self._dead_letters], [items] if items is not None else []]

    def _batch_finished(self, batch: OpenBatch) -> None:
        self._committer.add(batch)

    async def _acknowledge(self, slot: int, ids: list[str]) -> None:
        started = self._loop.time()
        for attempt in itertools.count(1):
            try:
                await self._session.client.frontier.delete_batches(self._project, self.name, str(slot), ids, attempts=1)
            except PlatformError as error:
                if not self._may_try_again(error, started):
                    raise
                if attempt == 1:
                    logger.warning("Batches cannot be acknowledged, trying again: %s", error)
                await asyncio.sleep(self._backoff.wait(attempt, error.retry_after))
            else:
                return

    def _committed(self, batch: OpenBatch) -> None:
        self._count("frontier/acknowledged/batches")
        self._count("frontier/acknowledged/requests", batch.size)
        self._readers[batch.slot].deleted(batch.id)
        self._may_have_more(batch.slot)
        self._loop.call_soon(self._tell_if_drained)

    # ── small things ──

    def _may_try_again(self, error: Exception, failing_since: float) -> bool:
        in_time = not self._retry_time or self._loop.time() - failing_since < self._retry_time
        return isinstance(error, PlatformError) and error.retryable and in_time

    def _give_up(self, error: Exception) -> None:
        self._session.fail(error, "frontier_unavailable")

    @property
    def _spider(self) -> Any:
        return self._crawler.spider

    def _count(self, name: str, by: int = 1) -> None:
        if by:
            self._crawler.stats.inc_value(name, by)

    def _stat(self, name: str) -> int:
        return int(self._crawler.stats.get_value(name, 0))


def _capacity(crawler: Crawler) -> Callable[[str], int]:
    """How many requests of a host may be in the downloader at once."""
    settings = crawler.settings
    default = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
    slots = settings.getdict("DOWNLOAD_SLOTS").items()
    capacities = {host: int(slot["concurrency"]) for host, slot in slots if "concurrency" in slot}
    return lambda host: capacities.get(host, default)
