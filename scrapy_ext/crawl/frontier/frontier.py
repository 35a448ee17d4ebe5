"""The frontier of one crawl: requests go out to the platform's queue, come back in batches, are committed.

The way of a request: :meth:`Frontier.add` serialises it and hands it to the feeder, which sends it to its slot. The
feeder reads the slots; what it reads goes to the tracker and the hosts' queue, from which :meth:`Frontier.next` takes.
While all that is in the frontier is in memory too, a new request goes to the hosts' queue at once, and its batch is
read later (:mod:`scrapy_ext.crawl.frontier.sent`). When the engine has let go of a request whose batch is known, what
it led to goes to the committer.

Invariants:

- ``add``, ``add_item`` and ``next`` never wait, and never raise for what a request holds or storage does: an exception
  there ends the engine's workers.
- The crawl is over when nothing is in memory, nothing is unsent, nothing is uncommitted, a read of each slot after
  the last write to it brought nothing, and no other worker has anything to do (:attr:`Frontier.is_drained`).
- What storage refuses for good closes the spider; it never leaves it waiting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.dead_letters import DEAD_LETTERS
from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES, Batch, FrontierRequest
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.commit import Committed, Committer, Lot
from scrapy_ext.crawl.commit.finished import FinishedRequests
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.ownership import Ownership
from scrapy_ext.crawl.commit.redo import Finisher
from scrapy_ext.crawl.commit.tracking import START, Entry, OpenBatch, Stored, Tracker, current
from scrapy_ext.crawl.frontier.delays import not_before
from scrapy_ext.crawl.frontier.ending import Ending
from scrapy_ext.crawl.frontier.feeder import Feeder
from scrapy_ext.crawl.frontier.filtering import Filtering
from scrapy_ext.crawl.frontier.hosts import HostQueue
from scrapy_ext.crawl.frontier.identity import SlotFingerprints
from scrapy_ext.crawl.frontier.order import Order
from scrapy_ext.crawl.frontier.outgoing import Outgoing
from scrapy_ext.crawl.frontier.parents import hand_on
from scrapy_ext.crawl.frontier.reader import SlotReader
from scrapy_ext.crawl.frontier.seen import SeenPages, Skipping
from scrapy_ext.crawl.frontier.sent import MARK, MAX_DIRECT, SentRequests
from scrapy_ext.crawl.frontier.serialize import (
    NotSerializableError,
    UnreadableRequestError,
    request_from_json,
    request_to_json,
)
from scrapy_ext.crawl.frontier.sharing import SharingWarning
from scrapy_ext.crawl.frontier.slots import host_of, slot_of
from scrapy_ext.crawl.session.scrapy_engine import is_between_stages, start_is_exhausted
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Items of one request are laid down when they have so many bytes.
_SPILL: Final = 1024 * 1024
#: The priorities that the contract takes. A request beyond keeps its own; only its place in the queue is cut.
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1

_encode = msgspec.json.Encoder().encode


class Frontier:
    """See the module.

    ``wake`` asks the engine to look for the next request. ``alone``: no other worker works on the frontier.
    ``exclusive``: the frontier is empty, and nobody else will send to it. ``order`` is how requests of one priority
    follow each other. ``filtering`` finds duplicates.
    """

    def __init__(
        self,
        crawler: Crawler,
        session: Session,
        ownership: Ownership,
        finisher: Finisher,
        name: str,
        *,
        slots: int,
        alone: bool,
        exclusive: bool,
        order: Order,
        filtering: Filtering,
        first_item: int,
        seen: SeenPages | None,
    ) -> None:
        settings = crawler.settings
        self.name = name
        self._crawler = crawler
        self._session = session
        self._ownership = ownership
        self._log = ownership.log
        self._finisher = finisher
        #: Bound once: looking it up takes as long as counting.
        self._increment = crawler.stats.inc_value
        self._project = session.job.key.project
        self._slots = slots
        self._alone = alone
        self._poll_interval: float = names.FRONTIER_POLL_INTERVAL.read(settings)
        self._interval: float = names.PLATFORM_FLUSH_INTERVAL.read(settings)
        self._max_attempts: int = names.FRONTIER_MAX_ATTEMPTS.read(settings)
        self._fingerprints = SlotFingerprints(crawler.request_fingerprinter)
        self._loop = asyncio.get_running_loop()
        self._order = order
        self._filtering = filtering
        self._ready: HostQueue[Entry] = HostQueue(
            self._has_room,
            time.time,
            newest_first=order.newest_first,
            last_newest_first=order.start_newest_first,
        )
        self._tracker = Tracker(self._complete, self._spill_if_large)
        self._outgoing = Outgoing(crawler, session, name, self._sent_to)
        self._feeder = Feeder(
            self,
            self._outgoing.writer_of,
            lambda slot: SlotReader(slot, self._slot_read(str(slot))),
            prefetch=names.FRONTIER_PREFETCH.read(settings),
            retry_time=names.PLATFORM_RETRY_TIME.read(settings),
            wake=self._wake_engine,
        )
        self._committer = Committer(
            self._log,
            finisher,
            session.job.key,
            owner=f"{name}/{self._log.name}/{ownership.writer}",
            start=first_item,
            interval=self._interval,
            flush_children=self._flush,
            on_committed=self._committed,
            on_failure=self.give_up,
        )
        self._high_water: int = names.PLATFORM_BUFFER_BYTES.read(settings)
        self._start_items_stored = self._log.checkpoint.start_items
        self._skipping = Skipping(crawler, seen)
        self._ending = Ending(ownership, session.client, self._project, name, slots)
        # A page that is skipped because some crawl has stored it is looked up when its batch is read.
        self._sent = SentRequests(exclusive=exclusive and seen is None, on_copied=self._copied)
        self._sharing = SharingWarning()
        self._finished = FinishedRequests(self._commit, self._feeder.place, self._interval / 2)
        #: Fingerprints of requests that stay in this process.
        self._local: set[str] = set()
        #: Requests that take one of their host's places, and that host.
        self._out: dict[Request, str] = {}
        #: Set at the next request that the engine lets go of.
        self._let_go: asyncio.Event | None = None
        self._poller: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._over = False
        #: Whether this worker may hand out requests.
        self.may_work: Callable[[], bool] = lambda: True
        self.wake: Callable[[], None] = lambda: None

    # ── from the engine ──

    def add(self, request: Request) -> bool:
        """Enqueue a request; False for a duplicate that is known here already, and for what cannot be a request.

        Raises what a fingerprinter raises for a request of ``start()``, which ends the crawl as in Scrapy. In a
        callback it would end the engine's worker, so there it is logged.
        """
        try:
            return self._add(request)
        except Exception as error:  # Whatever a spider put into it must not end the engine's worker.
            if current.get() is START:
                raise
            logger.error("Request %s is refused: %s: %s", request, type(error).__name__, error)
            self._count("frontier/refused")
            return False

    def _add(self, request: Request) -> bool:
        self._over = False
        origin = self._origin()
        if origin is not None and request.dont_filter and self._carries_on(origin, request):
            # A retry. It has its origin's fingerprint, which the slot knows, so it goes on in this process.
            origin.request = request
            self._push(origin)
            self._count("scheduler/enqueued")
            self._count("scheduler/enqueued/memory")
            return True
        if self._filtering.rejects(request):
            return False
        plain = self._fingerprints.plain(request)
        is_known = self._sent.knows(plain)
        is_filtered = self._filtering.is_by_frontier(request, is_known=is_known)
        is_anywhere = is_filtered and "frontier_slot" not in request.meta
        # What this process has sent, its slot knows, or will before the parent of this request is committed.
        if is_anywhere and is_known:
            self._filtering.log(request)
            return False
        fp = self._fingerprints.of(request, plain, origin, is_filtered=is_filtered)
        slot = slot_of(request, self._slots)
        is_new = is_anywhere or not is_filtered
        is_direct = is_new and self._sent.takes_direct and len(self._ready) < MAX_DIRECT
        mark = None if is_direct else self._sent.mark()
        try:
            record = self._record(request, fp, mark)
        except Exception as error:  # Of any kind: it may come from an object that a spider put into meta.
            return self._keep_local(fp, request, origin, error)
        if mark is None:
            self._add_direct(slot, fp, request)
        else:
            self._keep_sent(slot, fp, mark, request, origin)
        self._feeder.send(slot, record)
        if is_anywhere:
            self._sent.remember(plain)
        return True

    def _add_direct(self, slot: int, fp: str, request: Request) -> None:
        entry = self._tracker.sent(slot, fp, self._own(request), host_of(request))
        self._sent.add_direct((slot, fp), entry)
        self._push(entry)

    def _keep_sent(self, slot: int, fp: str, mark: str, request: Request, origin: Entry | None) -> None:
        made_by = origin.request.callback if origin is not None else None
        self._sent.keep((slot, fp), mark, request, made_by)
        if slot not in self._feeder.owned:
            self._sharing.elsewhere(request, made_by, self._pending)

    def _own(self, request: Request) -> Request:
        """A request that stands for no other entry: a spider may yield the same object twice."""
        if request not in self._tracker:
            return request
        copy = request.copy()
        hand_on(request, copy)
        return copy

    def _pending(self) -> Iterable[Request]:
        return chain(self._sent.kept(), self._tracker.stored_requests())

    def _copied(self, request: Request, made_by: Callable[..., Any] | None) -> None:
        self._sharing.forgotten(request, made_by, self._pending)

    def next(self) -> Request | None:
        """The next request to download, or None when there is none for now."""
        popped = self._ready.pop() if self.may_work() else None
        self._feeder.hunger(starved=popped is None)
        if popped is None:
            current.set(None)
            self._set_alarm()
            return None
        self._count("scheduler/dequeued")
        self._count("scheduler/dequeued/frontier")
        host, entry = popped
        request = self._tracker.handed_out(entry)
        self._out[request] = host
        # The engine starts the tasks for this request now, and they inherit it.
        current.set(entry)
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
        if self._let_go is not None:
            self._let_go.set()

    def has_room_again(self, host: str) -> None:
        """A limit of the service for a host has changed."""
        if self._ready.look_again(host):
            self.wake()

    def _has_room(self, host: str, out: int) -> bool:
        """Return whether one more request of a host may go to the downloader. As many go as there are places, as in
        Scrapy, whatever the delay and the concurrency of the host; one that the service limits has to wait."""
        limiter = self._session.limiter
        return limiter is None or not limiter.is_limited(host) or limiter.has_room(host, out)

    def asleep(self) -> None:
        """What is being done waits for its next attempt: others of its host may go meanwhile."""
        entry = current.get()
        if isinstance(entry, Entry):
            self.downloaded(entry.request)

    def failed(self, error: str) -> None:
        """The callback or errback of what is being done raised."""
        entry = current.get()
        if isinstance(entry, Entry):
            entry.error = error

    def park(self, request: Request, seconds: float) -> None:
        """Send nothing more to the host of a request for so long."""
        self._count("frontier/parked_hosts")
        self.park_host(host_of(request), seconds)

    def park_host(self, host: str, seconds: float) -> None:
        """Send nothing more to a host for so long."""
        self._ready.park(host, time.time() + seconds)

    def add_item(self, record: bytes) -> None:
        """An item of what is being done, as JSON: stored when that is committed."""
        entry = current.get()
        if entry is START:
            self._add_start_item(record)
            return
        if not isinstance(entry, Entry) or not self._tracker.is_open(entry):
            self._committer.add(Lot(None, [record]))
            return
        entry.add_item(record)
        self._spill_if_large(entry)

    def _add_start_item(self, record: bytes) -> None:
        if not (self._alone or self._ownership.stores_start_items):
            if not self._stat("frontier/start_items_of_others"):
                logger.info("The items of start() are stored by another worker of frontier %s", self.name)
            self._count("frontier/start_items_of_others")
        elif self._start_items_stored:
            self._start_items_stored -= 1
        else:
            self._committer.add(Lot(None, [record], is_start=True))

    def note_item(self) -> None:
        """What is being done has led to an item that somebody else stores."""
        entry = current.get()
        if isinstance(entry, Entry):
            entry.has_items = True

    @property
    def is_full(self) -> bool:
        """Whether more items wait to be stored than should."""
        return self._committer.pending_bytes + self._finished.bytes > self._high_water

    async def wait_for_room(self) -> None:
        """Wait until fewer items wait."""
        while self.is_full and self._committer.failure is None:
            if self._finished.bytes:
                await self._finished.wait()
            else:
                await self._committer.wait_for_progress()

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left to do, here or in the slots of this worker, or for others."""
        return not self._has_work() and (self._alone or self._over)

    # ── life ──

    def start(self, slots: set[int]) -> None:
        """Start the tasks, in the running loop."""
        self._feeder.own(slots)
        self._committer.start()
        self._feeder.start()
        if not self._alone:
            self._poller = asyncio.ensure_future(self._poll())

    async def own(self, slots: set[int]) -> None:
        """Work on these slots, and no others: returns when nothing of the others is under way."""
        given_up = self._feeder.owned - slots
        self._feeder.own(slots)
        for entry in self._ready.remove(lambda entry: _slot_of(entry) in given_up):
            self._tracker.drop(entry)
        while given_up and self._tracker.entries_of(given_up):
            self._let_go = asyncio.Event()
            await self._let_go.wait()
        await self._committer.flush()
        self._over = False

    async def close(self) -> None:
        """Commit what is finished and end; what is not stays in the frontier. Failure has closed the spider before."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._poller is not None:
            self._poller.cancel()
        self._finished.close()
        await self._feeder.close()
        if not self._log.is_fenced and self._committer.failure is None:
            await self._place_all()
            self._sharing.left(self._pending())
        await self._committer.close()
        try:
            if self._committer.failure is None and not self._log.is_fenced:
                await self._ownership.close()
            if self._log.is_fenced:
                self._session.is_replaced = await self._ownership.has_successor()
        except (PlatformError, Fenced) as error:
            logger.warning("The end of this worker could not be written down: %s", error)

    async def delete(self) -> None:
        """Remove the frontier from the platform, unless it has dead letters: it takes the frontier to run them."""
        frontier = self._session.client.frontier
        if await frontier.read(self._project, self.name, DEAD_LETTERS, 1):
            logger.warning(
                "Frontier %s is kept for the requests whose callbacks failed. To see them: scrapy platform frontier "
                "show %s dead-letters. To run them again: scrapy platform frontier requeue %s, and a crawl with "
                "FRONTIER_NAME=%s",
                *(self.name,) * 4,
            )
            return
        slots = await frontier.slots(self._project, self.name)
        for slot in slots:
            await frontier.delete_slot(self._project, self.name, slot)

    async def forget_payloads(self) -> None:
        """Remove what was laid down by the processes of this job."""
        await self._finisher.payloads.delete_all(f"{self.name}/{self._log.name}/")

    # ── for the feeder ──

    @property
    def waiting(self) -> int:
        """How many requests are in memory and could go out, now or when their host has room."""
        return len(self._ready) - self._ready.parked

    @property
    def parked(self) -> int:
        """How many requests are in memory and must wait for a time."""
        return self._ready.parked

    @property
    def expects_requests(self) -> bool:
        """Whether a read may bring requests that are not in memory, or show that nothing is left."""
        return not self._sent.in_memory or not self._tracker.unfinished

    @property
    def unplaced(self) -> int:
        """How many finished requests wait for their batch to be read."""
        return len(self._finished)

    async def before_work(self) -> None:
        """Something will be sent, or was read: this worker is no longer idle."""
        self._over = False
        await self._ending.be(idle=False)

    async def look_at(self, batches: Sequence[Batch]) -> None:
        """Find out which pages of these batches some crawl has stored."""
        await self._skipping.look_up(batches)

    def take(self, slot: int, batch: Batch) -> None:
        """A batch was read; what of it a former process has done is not done again."""
        done = int(self._log.checkpoint.progress.done.get(slot, {}).get(batch.id, "0"), 16)
        opened = OpenBatch(slot, batch.id, len(batch.requests), done)
        self._count("frontier/read/batches")
        self._count("frontier/read/requests", opened.size - done.bit_count())
        for position, (fp, form) in enumerate(batch.requests):
            if not done >> position & 1:
                stored = Stored(fp, form, opened, position)
                direct = self._sent.take_direct((slot, fp))
                if direct is not None:
                    direct.stored = stored
                else:
                    self._take(stored, self._sent.take_kept((slot, fp), form))
        if opened.is_done:
            # Several processes had a part in it, and none knew of the others' when it ended.
            self._committer.add(Lot(_nothing_of(opened), []))

    def after_read(self, *, in_vain: bool) -> None:
        """What was read was taken. ``in_vain``: batches were wanted, and there are no more for now."""
        self._finished.release(in_vain=in_vain)

    async def when_empty(self) -> None:
        """Nothing came, and nothing is left to send or to read."""
        self._sent.nothing_is_behind()
        if self._tracker.unfinished:
            return
        self._committer.hurry()
        if not self._alone and self._committer.is_idle and start_is_exhausted(self._crawler):
            self._over = await self._ending.is_over() and not self._has_work()
        self._tell_if_drained()

    def give_up(self, error: Exception) -> None:
        """The frontier cannot be used any more."""
        if isinstance(error, Fenced):
            self._session.fail(error, "frontier_lease_lost")
        elif isinstance(error, PlatformError) and not error.path.startswith("/hcf"):
            self._session.fail(error, "platform_unavailable")
        else:
            self._session.fail(error, "frontier_unavailable")

    # ── requests that come in ──

    def _take(self, stored: Stored, kept: Request | None) -> None:
        try:
            request = request_from_json(stored.form, self._spider) if kept is None else self._own(kept)
            host = host_of(request)
        except (UnreadableRequestError, ValueError) as error:
            self._outgoing.set_aside(stored, str(error))
        else:
            if not self._skipping.skips(stored, request):
                self._push(self._tracker.read(stored, request, host))
                return
        self._committer.add(Lot(_nothing_of(stored.batch, stored.position), []))

    def _push(self, entry: Entry) -> None:
        when = not_before(entry.request)
        self._ready.push(entry.request.priority, entry.host, entry, when, last=self._order.is_last(entry.request))
        if when:
            self._set_alarm()

    def _set_alarm(self) -> None:
        """Wake the engine when the first of what must wait may go."""
        due = self._ready.next_due
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if due is not None:
            self._alarm = self._loop.call_later(max(0.0, due - time.time()) + 0.001, self._wake_engine)

    def _slot_read(self, slot: str) -> Callable[..., Any]:
        async def read(mincount: int, known: Any) -> list[Batch]:
            return await self._session.client.frontier.read(self._project, self.name, slot, mincount, known=known)

        return read

    # ── requests that go out ──

    def _origin(self) -> Entry | None:
        """The entry that runs now, if it may still lead to something."""
        entry = current.get()
        return entry if isinstance(entry, Entry) and self._tracker.is_open(entry) else None

    def _carries_on(self, origin: Entry, request: Request) -> bool:
        return origin.request is not request and is_between_stages(self._crawler, origin.request)

    def _record(self, request: Request, fp: str, mark: str | None) -> bytes:
        form = request_to_json(request, self._spider)
        if mark is not None:
            form[MARK] = mark
        record = _encode(FrontierRequest(fp, form, p=_place(request.priority)))
        if len(record) > MAX_REQUEST_BYTES:
            raise NotSerializableError(f"it is {len(record)} bytes of JSON, over {MAX_REQUEST_BYTES}")
        return record

    def _sent_to(self, slot: int) -> None:
        self._feeder.added(slot)

    async def _flush(self) -> None:
        """Make durable what the next commit rests on."""
        await asyncio.gather(self._feeder.flush(), self._outgoing.flush_others())

    def _keep_local(self, fp: str, request: Request, parent: Entry | None, error: Exception) -> bool:
        if not request.dont_filter:
            if fp in self._local:
                self._filtering.log(request)
                return False
            self._local.add(fp)
        if not self._stat("scheduler/unserializable"):
            reason = error if isinstance(error, NotSerializableError) else repr(error)
            # Begins as Scrapy's scheduler has it, for those who look for it in logs.
            logger.warning(
                "Unable to serialize request: %s - reason: %s - it stays in this process, and would be repeated from "
                "its parent after a crash. No more unserializable requests will be logged.",
                request,
                reason,
            )
        self._count("scheduler/unserializable")
        self._count("scheduler/enqueued")
        self._count("scheduler/enqueued/memory")
        self._push(self._tracker.local(fp, self._own(request), host_of(request), parent))
        self.wake()
        return True

    # ── requests that are done ──

    def _complete(self, entry: Entry) -> None:
        if entry.is_interrupted:
            # The next run does it, whole.
            self._committer.discard(entry)
            return
        self._finished.add(entry, self._tracker.unfinished)

    def _commit(self, entry: Entry) -> None:
        if entry.error is not None and entry.stored is not None:
            most = self._attempts_of(entry.request)
            if entry.attempt < most:
                self._try_again(entry, entry.stored)
                return
            # Scrapy has logged the error of the callback, with its traceback.
            told = f"{entry.error} (attempt {entry.attempt} of {most})"
            self._outgoing.set_aside(entry.stored, told, logging.INFO)
        self._committer.add(Lot(entry, entry.take_items()))
        if not self._tracker.unfinished and not self._feeder.has_work:
            self._committer.hurry()

    async def _place_all(self) -> None:
        """Read the batches of what is finished, as far as the platform has them."""
        left = 0
        while len(self._finished) != left:
            left = len(self._finished)
            try:
                await self._feeder.place_once()
            except PlatformError as error:
                logger.warning("%d finished requests will run again: their batches cannot be read: %s", left, error)
                return

    def _attempts_of(self, request: Request) -> int:
        """How often a request may run, by its meta or FRONTIER_MAX_ATTEMPTS."""
        asked: Any = request.meta.get("frontier_max_attempts", self._max_attempts)
        if isinstance(asked, int) and asked >= 1:
            return asked
        logger.error(
            'meta["frontier_max_attempts"] of %s must be a whole number from 1, got %.60r: FRONTIER_MAX_ATTEMPTS holds',
            *(request, asked),
        )
        return self._max_attempts

    def _try_again(self, entry: Entry, stored: Stored) -> None:
        """What it led to is made again by the next attempt: its children have the same fingerprints."""
        self._committer.discard(entry)
        self._local.difference_update(entry.local_fps)
        entry.local_fps.clear()
        self._count("frontier/callback_retries")
        self._tracker.again(entry, request_from_json(stored.form, self._spider))
        self._push(entry)
        self.wake()

    def _spill_if_large(self, entry: Entry) -> None:
        if entry.bytes >= _SPILL:
            self._committer.spill(entry)

    def _committed(self, committed: Committed) -> None:
        entries = [lot.entry for lot in committed.lots if lot.entry is not None]
        self._skipping.committed(entries)
        if self._session.answers is not None:
            for entry in entries:
                for key in entry.answers:
                    self._session.answers.finished(key)
        self._count("frontier/committed", len(entries))
        for batch in committed.batches:
            self._count("frontier/acknowledged/batches")
            self._count("frontier/acknowledged/requests", batch.size)
            self._feeder.acknowledged(batch.slot, batch.id)
        self._loop.call_soon(self._tell_if_drained)

    # ── the end ──

    def _has_work(self) -> bool:
        return (
            bool(self._tracker.unfinished)
            or self._sent.has_direct
            or not self._committer.is_idle
            or self._feeder.has_work
        )

    def _tell_if_drained(self) -> None:
        # The engine asks has_pending_requests, and asks again only when something happened.
        if self.is_drained:
            self.wake()

    async def _poll(self) -> None:
        """Others send requests to the slots of this worker, and nothing tells it so."""
        while True:
            await asyncio.sleep(self._poll_interval)
            if not self._over:
                self._feeder.poll()

    # ── small things ──

    def _wake_engine(self) -> None:
        self.wake()

    @property
    def _spider(self) -> Any:
        return self._crawler.spider

    def _count(self, name: str, by: int = 1) -> None:
        if by:
            self._increment(name, by)

    def _stat(self, name: str) -> int:
        return int(self._crawler.stats.get_value(name, 0))


def _nothing_of(batch: OpenBatch, position: int = 0) -> Entry:
    """What stands for a request of a batch that is not run."""
    return Entry("", Request("data:,"), "", Stored("", {}, batch, position), None)


def _place(priority: int) -> int:
    return min(max(-priority, _LOWEST), _HIGHEST)


def _slot_of(entry: Entry) -> int:
    return -1 if entry.slot is None else entry.slot
