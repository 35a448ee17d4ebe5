"""The frontier of one crawl: requests go out to the platform's queue, come back in batches, are acknowledged.

The way of a request: :meth:`Frontier.add` serialises it and hands it to the writer of its slot. When the
downloader is hungry, the feeder sends what waits and reads the slots (:mod:`~scrapy_ext.crawl.reader`); what
it reads goes to the tracker and the hosts' queue, from which :meth:`Frontier.next` takes. When the engine has
let go of every request of a batch, the committer makes its children and items durable and deletes it.

Invariants:

- ``add`` and ``next`` never wait, and never raise for what storage does: an exception there ends the engine's
  workers.
- A request that was handed out belongs to an open batch, until that batch is committed.
- The crawl is over when nothing is in memory, nothing is unsent, nothing is unacknowledged, and a read of
  each slot after the last write to it brought nothing (:attr:`Frontier.is_drained`).
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import uuid
from collections.abc import Callable
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext.api.platform.frontier import MAX_BATCH, MAX_REQUEST_BYTES, Batch, FrontierRequest
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.waits import Backoff
from scrapy_ext.crawl.commit import Committer, Durable
from scrapy_ext.crawl.engine import is_between_stages
from scrapy_ext.crawl.hosts import HostQueue
from scrapy_ext.crawl.parents import is_start_request, parent_of
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

#: Seconds between two attempts to read when the platform cannot be reached.
_READ_RETRY: Final = 5.0
#: Separates a fingerprint from the number of times that its request was put back.
_PUT_BACK: Final = "~"


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
        self._fingerprinter = crawler.request_fingerprinter
        self._encode = msgspec.json.Encoder().encode
        self._backoff = Backoff()
        self._loop = asyncio.get_running_loop()
        settings = crawler.settings
        self._default_capacity = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._capacities = {
            host: int(slot["concurrency"])
            for host, slot in settings.getdict("DOWNLOAD_SLOTS").items()
            if "concurrency" in slot
        }
        self._ready: HostQueue[Entry] = HostQueue(self._capacity)
        self._tracker = Tracker(self._batch_finished)
        self._readers = {
            slot: SlotReader(slot, self._slot_read(str(slot))) for slot in range(slots) if worker.owns(slot)
        }
        self._writers = {slot: self._slot_writer(slot) for slot in range(slots)}
        #: Slots with unsent requests, and slots that a read could bring something from.
        self._unsent: set[int] = set()
        self._unread: set[int] = set(self._readers)
        self._dead_letters = session.writer(f"frontier {DEAD_LETTERS}", self._send_dead_letters)
        self._committer = Committer(self._stages, self._acknowledge, self._committed, self._commit_failed)
        self._seeds: dict[str, int] = {}
        #: Requests that are out, and the host that each was popped for.
        self._out: dict[Request, str] = {}
        self._hungry = asyncio.Event()
        self._feeding = False
        self._feeder: asyncio.Task[None] | None = None
        self._drained_told = False
        self.wake: Callable[[], None] = lambda: None

    # ── from the engine ──

    def add(self, request: Request) -> None:
        """Enqueue a request."""
        self._drained_told = False
        origin = self._tracker.entry_of(request)
        if origin is not None and request.dont_filter and self._carries_on(origin, request):
            # A retry. It has its origin's fingerprint, which the slot knows, so it goes on in this process.
            self._tracker.carry_on(origin, request)
            self._ready.push(request.priority, origin.host, origin)
            return
        fp = self._fingerprint(request, origin)
        try:
            record = self._record(request, fp)
        except NotSerializableError as error:
            self._keep_local(fp, request, error)
            return
        slot = slot_of(request, self._slots)
        self._writers[slot].add(record)
        self._unsent.add(slot)
        if not len(self._ready):
            self._hungry.set()

    def next(self) -> Request | None:
        """The next request to download, or None when there is none for now."""
        popped = self._ready.pop()
        if len(self._ready) < self._prefetch // 2 and (self._unread or self._unsent):
            self._hungry.set()
        if popped is None:
            return None
        host, entry = popped
        request = self._tracker.handed_out(entry)
        self._out[request] = host
        return request

    def finished(self, request: Request) -> None:
        """The engine let go of a request."""
        host = self._out.pop(request, None)
        if host is not None:
            self._ready.release(host)
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

    @property
    def unfinished(self) -> int:
        """How many requests are in this process, waiting or out."""
        return self._tracker.unfinished

    # ── life ──

    def start(self) -> None:
        """Start the tasks, in the running loop."""
        self._committer.start()
        self._feeder = asyncio.ensure_future(self._feed())
        self._hungry.set()

    async def close(self) -> None:
        """Commit what is finished, put back what is not, and end."""
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.gather(self._feeder, return_exceptions=True)
        self._put_back()
        await self._committer.close()
        if self._committer.failure is not None:
            raise self._committer.failure

    async def delete(self) -> None:
        """Remove the whole frontier from the platform."""
        frontier = self._session.client.frontier
        for slot in await frontier.slots(self._project, self.name):
            await frontier.delete_slot(self._project, self.name, slot)

    # ── reading ──

    async def _feed(self) -> None:
        while True:
            await self._hungry.wait()
            self._hungry.clear()
            self._feeding = True
            found = False
            try:
                found = await self._refill()
            except PlatformError as error:
                logger.warning("The frontier cannot be read, trying again in %g s: %s", _READ_RETRY, error)
                await asyncio.sleep(_READ_RETRY)
                self._hungry.set()
            finally:
                self._feeding = False
            if found:
                self.wake()
            self._tell_if_drained()

    async def _refill(self) -> bool:
        """Send what waits if nothing else is there to do, read the slots; tells whether requests came."""
        if self._unsent and not len(self._ready):
            await self._send_all()
        room = self._prefetch - len(self._ready)
        if room <= 0 or not self._unread:
            return False
        slots = list(self._unread)
        want = min(MAX_BATCH, max(1, room // len(slots)))
        read = await asyncio.gather(*(self._readers[slot].more(want) for slot in slots))
        for slot, batches in zip(slots, read, strict=True):
            for batch in batches:
                self._open(slot, batch)
            if not self._readers[slot].may_have_more:
                self._unread.discard(slot)
        if self._unread and len(self._ready) < self._prefetch // 2:
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
        logger.error("Request %s cannot be run and is kept in slot %r: %s", fp, DEAD_LETTERS, reason)
        self._count("frontier/dead_letters")
        self._dead_letters.add(self._encode(FrontierRequest(fp, {"request": qdata, "error": reason})))

    def _slot_read(self, slot: str) -> Callable[[int], Any]:
        async def read(mincount: int) -> list[Batch]:
            return await self._session.client.frontier.read(self._project, self.name, slot, mincount)

        return read

    # ── writing ──

    def _slot_writer(self, slot: int) -> BatchWriter:
        async def send(body: bytes, _index: int) -> None:
            sent = body.count(b"\n") + (not body.endswith(b"\n"))
            new = await self._session.client.frontier.add(self._project, self.name, str(slot), body, attempts=1)
            self._count("frontier/children/sent", sent)
            self._count("scheduler/enqueued", new)
            self._count("scheduler/enqueued/frontier", new)
            if new < sent:
                self._count("dupefilter/filtered", sent - new)
            reader = self._readers.get(slot)
            if new and reader is not None:
                reader.written()
                self._unread.add(slot)
                self._hungry.set()

        return self._session.writer(f"frontier {slot}", send)

    async def _send_dead_letters(self, body: bytes, _index: int) -> None:
        await self._session.client.frontier.add(self._project, self.name, DEAD_LETTERS, body, attempts=1)

    def _carries_on(self, origin: Entry, request: Request) -> bool:
        return origin.request is not request and is_between_stages(self._crawler, origin.request)

    def _record(self, request: Request, fp: str) -> bytes:
        qdata = request_to_json(request, self._spider)
        record = self._encode(FrontierRequest(fp, qdata, p=-request.priority))
        if len(record) > MAX_REQUEST_BYTES:
            raise NotSerializableError(f"it is {len(record)} bytes of JSON, over {MAX_REQUEST_BYTES}")
        return record

    def _fingerprint(self, request: Request, origin: Entry | None) -> str:
        """The fingerprint in the slot.

        Without ``dont_filter`` it is the request's own. With it, it is made of the parent's and of the place
        among the parent's children, so that it is the same when the parent runs again, and a repeated request
        is no duplicate. Start requests have no parent: theirs is plain, so that a resumed crawl does not start
        again, with a number where several start requests are the same.
        """
        fp = self._fingerprinter.fingerprint(request).hex()
        if not request.dont_filter:
            return fp
        parent = parent_of(request)
        if origin is not None and (parent is None or parent.fp != origin.fp):
            origin.orphans += 1
            return _derived(fp, origin.fp, f"orphan {origin.orphans}")
        if parent is not None:
            return _derived(fp, parent.fp, str(parent.ordinal))
        if not is_start_request(request):
            return _derived(fp, "", uuid.uuid4().hex)
        number = self._seeds[fp] = self._seeds.get(fp, 0) + 1
        return fp if number == 1 else f"{fp}#{number}"

    def _keep_local(self, fp: str, request: Request, error: NotSerializableError) -> None:
        if not self._stat("scheduler/unserializable"):
            logger.warning(
                "Request %s stays in this process, and would be repeated from its parent after a crash: %s. "
                "No more such requests will be shown.",
                request,
                error,
            )
        self._count("scheduler/unserializable")
        self._count("scheduler/enqueued")
        self._count("scheduler/enqueued/memory")
        entry = self._tracker.local(fp, request, host_of(request))
        self._ready.push(request.priority, entry.host, entry)
        self.wake()

    def _put_back(self) -> None:
        """What was read and not begun stays in the queue. A batch that is partly done is acknowledged, and the
        rest of it enqueued under new fingerprints, so that the next run repeats nothing."""
        waiting = set(self._ready.drain())
        for batch in list(self._tracker.open_batches):
            rest = list(batch.unfinished)
            if len(rest) == batch.size or not waiting.issuperset(rest) or any(entry.is_local for entry in rest):
                continue
            try:
                records = [self._record(entry.request, _next_life(entry.fp)) for entry in rest]
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
        for attempt in itertools.count(1):
            try:
                await self._session.client.frontier.delete_batches(self._project, self.name, str(slot), ids, attempts=1)
            except PlatformError as error:
                if not error.retryable:
                    raise
                logger.warning(
                    "%d batches of slot %d cannot be acknowledged, trying until it works: %s", len(ids), slot, error
                )
                await asyncio.sleep(self._backoff.wait(attempt, error.retry_after))
            else:
                return

    def _committed(self, batch: OpenBatch) -> None:
        self._count("frontier/acknowledged/batches")
        self._count("frontier/acknowledged/requests", batch.size)
        self._readers[batch.slot].deleted(batch.id)
        self._loop.call_soon(self._tell_if_drained)

    def _commit_failed(self, error: Exception) -> None:
        self._session.fail(error, "frontier_unavailable")

    # ── small things ──

    @property
    def _spider(self) -> Any:
        return self._crawler.spider

    def _capacity(self, host: str) -> int:
        return self._capacities.get(host, self._default_capacity)

    def _count(self, name: str, by: int = 1) -> None:
        if by:
            self._crawler.stats.inc_value(name, by)

    def _stat(self, name: str) -> int:
        return int(self._crawler.stats.get_value(name, 0))


def _next_life(fp: str) -> str:
    """The fingerprint under which a request is put back: the slot knows the one it had."""
    original, _, times = fp.partition(_PUT_BACK)
    return f"{original}{_PUT_BACK}{int(times or 0) + 1}"


def _derived(fp: str, parent: str, place: str) -> str:
    return hashlib.sha1(f"{fp} {parent} {place}".encode(), usedforsecurity=False).hexdigest()
