"""Results of requests until they are committed: items, failures, and the requests themselves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.commit.events import Lot, OpenBatch, Report, Stored
from scrapy_ext.crawl.commit.execution import Committer
from scrapy_ext.crawl.commit.leases import Ownership
from scrapy_ext.crawl.commit.protocol import Commits, Verdict, verdict
from scrapy_ext.crawl.commit.tracking import START, Entry, current
from scrapy_ext.crawl.frontier.filtering import Skipping
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.serialize import request_from_json
from scrapy_ext.crawl.frontier.slots import Slots
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Bytes of items from which those of an unfinished request are staged.
_STAGED_EARLY: Final = 1024 * 1024
#: Requests without a place after which batches are read: this number, and this share of the requests in memory, since
#: each read returns all unacknowledged batches.
_ENOUGH: Final = 100
_PART: Final = 1 / 50
#: Bytes of their items after which batches are read.
_ENOUGH_BYTES: Final = 1024 * 1024


class FinishedRequests:
    """Finished requests that wait for their commit.

    They are committed in the order in which they finished, so that items are stored in the order of the crawl. A direct
    request (:mod:`scrapy_ext.crawl.frontier.sent`) can be committed only after its batch was read, which gives it its
    place. Batches are read when many requests wait for theirs, when nothing else is left to do, or after ``interval``
    seconds. A read and the commit after it take calls for each slot, so in a fast crawl the reads for many requests are
    at least half an ``interval`` apart.

    A request without a place does not block the others for ever. A platform may limit the size of a read, so that the
    batch of the request comes only after those of the others are acknowledged. After a read without a place, the others
    are committed first (:meth:`release`).

    ``commit`` is called for each request in turn; ``read`` reads batches now.
    """

    def __init__(self, commit: Callable[[Entry], None], read: Callable[[], None], interval: float) -> None:
        self._commit = commit
        self._read = read
        self._interval = interval
        self._entries: deque[Entry] = deque()
        self._timer: asyncio.TimerHandle | None = None
        #: Time before which no read begins for the number of requests.
        self._not_before = 0.0
        self._is_closed = False
        self._released = asyncio.Event()
        #: Bytes of their items.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry, unfinished: int) -> None:
        """Add a finished request; ``unfinished`` is the number of requests that are not."""
        if not self._entries and not _lacks_place(entry):
            self._commit(entry)
            return
        self._entries.append(entry)
        self.bytes += entry.size
        now = asyncio.get_running_loop().time()
        if not unfinished or self.bytes >= _ENOUGH_BYTES:
            self._read()
        elif len(self._entries) < max(_ENOUGH, _PART * unfinished):
            self._read_at(now + self._interval)
        elif now < self._not_before:
            self._read_at(self._not_before)
        else:
            self._not_before = now + self._interval / 2
            self._read()

    def release(self, *, in_vain: bool) -> None:
        """Commit the requests whose turn it is. ``in_vain``: a read returned no place, so requests with a place need
        not wait for those without."""
        waiting = deque[Entry]()
        while self._entries and (in_vain or not _lacks_place(self._entries[0])):
            entry = self._entries.popleft()
            if _lacks_place(entry):
                waiting.append(entry)
            else:
                self.bytes -= entry.size
                self._commit(entry)
        self._entries.extendleft(reversed(waiting))
        self._released.set()
        if self._entries:
            self._read_at(asyncio.get_running_loop().time() + self._interval)

    async def wait(self) -> None:
        """Wait until a read has returned places, or for ``interval`` seconds."""
        self._released.clear()
        self._read()
        with contextlib.suppress(*TIMEOUT_ERRORS):
            async with timeout_after(self._interval):
                await self._released.wait()

    def close(self) -> None:
        """Cancel the timer of the next read, and set no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _read_at(self, when: float) -> None:
        """Read batches at a time of the loop's clock, or at the earlier time that is set."""
        if self._is_closed:
            return
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._read_now)

    def _read_now(self) -> None:
        self._timer = None
        if self._entries:
            self._not_before = asyncio.get_running_loop().time() + self._interval / 2
            self._read()


def _lacks_place(entry: Entry) -> bool:
    return entry.stored is None and not entry.is_local


class Results:
    """Complete requests: each is committed in its turn, run again, or left to the next run. ``keeps_requests``: until
    their commit, for its report."""

    def __init__(
        self, crawler: Crawler, memory: Memory, slots: Slots, committer: Committer, *, keeps_requests: bool
    ) -> None:
        self._crawler = crawler
        self._keeps_requests = keeps_requests
        self._memory = memory
        self._slots = slots
        self._committer = committer
        self._max_attempts: int = names.FRONTIER_MAX_ATTEMPTS.read(crawler.settings)
        interval: float = names.PLATFORM_FLUSH_INTERVAL.read(crawler.settings)
        #: Items of requests that are left to the next run, which makes them again.
        self.left_items = 0
        #: Finished requests that wait for their place in a batch or their turn.
        self._finished = FinishedRequests(self._commit, slots.place, interval / 2)

    @property
    def unplaced(self) -> int:
        """Number of finished requests that wait for their batch to be read."""
        return len(self._finished)

    def take(self, entry: Entry) -> None:
        """Take a complete request, or one that has results of a local request."""
        if not entry.is_complete:
            self._stage_if_large(entry)
        elif entry.is_interrupted:
            self._settle(entry)
        else:
            if entry.error is None:
                self._release(entry)
            self._finished.add(entry, self._memory.tracker.unfinished)

    def add_item(self, entry: Entry, record: bytes) -> bool:
        """Add an item of a request; return false if the request is complete.

        Tasks that a callback has left behind may come too late. Their items are stored apart, though a later attempt
        may make them again: nobody knows whether it does.
        """
        if not self._memory.tracker.is_open(entry):
            return False
        entry.add_item(record)
        self._stage_if_large(entry)
        return True

    @property
    def finished_bytes(self) -> int:
        """Bytes of the items of finished requests."""
        return self._finished.bytes

    async def wait_for_places(self) -> None:
        """Wait until a read has given finished requests their places, or for a while."""
        await self._finished.wait()

    def _stage_if_large(self, entry: Entry) -> None:
        if entry.size >= _STAGED_EARLY:
            self._committer.spill(entry)

    def after_read(self, *, in_vain: bool) -> None:
        """Commit the requests that have their place now. ``in_vain``: places were wanted, and there are no more for
        now."""
        self._finished.release(in_vain=in_vain)

    def close(self) -> None:
        """Cancel the timer of the next read."""
        self._finished.close()

    def nothing_of(self, batch: OpenBatch, position: int = 0) -> None:
        """Commit a request of a batch that does not run."""
        self._committer.add(Lot([], Stored("", {}, batch, position)))

    def refuse(self, stored: Stored, error: Exception) -> None:
        """Move an unreadable request to the dead letters."""
        self._slots.add_dead_letter(stored, str(error))
        self.nothing_of(stored.batch, stored.position)

    def _commit(self, entry: Entry) -> None:
        self._settle(entry)
        sent = self._memory.sent
        nothing_comes = not sent.has_direct if sent.only_direct else not self._slots.has_work
        if nothing_comes and not self._memory.tracker.unfinished:
            self._committer.hurry()

    def _settle(self, entry: Entry) -> None:
        if entry.error is None and not entry.is_interrupted:
            self._add(entry)
            return
        has_failed = entry.error is not None and entry.stored is not None
        most = self._attempts_of(entry.request) if has_failed else 1
        decided = verdict(
            is_interrupted=entry.is_interrupted, has_failed=has_failed, attempts_left=most - entry.attempt
        )
        if decided is Verdict.LEAVE:
            self.left_items += len(entry.items)
            self._committer.discard(entry)
            return
        if decided is Verdict.RUN_AGAIN and entry.stored is not None:
            # The next attempt makes its items again; its children have the same fingerprints.
            self._committer.discard(entry)
            self._crawler.stats.inc_value("frontier/callback_retries")
            spider: Any = self._crawler.spider
            self._memory.run_again(entry, request_from_json(entry.stored.form, spider))
            return
        if decided is Verdict.DEAD_LETTER and entry.stored is not None:
            # Scrapy has logged the error of the callback, with its traceback.
            self._slots.add_dead_letter(
                entry.stored, f"{entry.error} (attempt {entry.attempt} of {most})", logging.INFO
            )
        self._add(entry)

    def _release(self, entry: Entry) -> None:
        if not self._keeps_requests:
            entry.release()

    def _add(self, entry: Entry) -> None:
        self._release(entry)
        self._committer.add(Lot(entry.take_items(), entry.stored, entry.payloads, origin=entry))

    def _attempts_of(self, request: Request) -> int:
        """Return how often a request may run, by its meta or FRONTIER_MAX_ATTEMPTS."""
        asked: object = request.meta.get("frontier_max_attempts", self._max_attempts)
        if isinstance(asked, int) and asked >= 1:
            return asked
        logger.error(
            'meta["frontier_max_attempts"] of %s must be a whole number from 1, got %.60r: FRONTIER_MAX_ATTEMPTS holds',
            *(request, asked),
        )
        return self._max_attempts


class PendingItems:
    """Items that wait for a commit: the :class:`~scrapy_ext.crawl.session.writers.ItemSink` of a crawl."""

    def __init__(self, crawler: Crawler, results: Results, committer: Committer, ownership: Ownership) -> None:
        self._stats = crawler.stats
        self._results = results
        self._committer = committer
        self._ownership = ownership
        self._high_water: int = names.PLATFORM_BUFFER_BYTES.read(crawler.settings)
        #: Items of ``start()`` that a former process of the job has stored.
        self._stored = ownership.log.checkpoint.start_items

    def add_item(self, record: bytes) -> None:
        """Add an item of the current request, as JSON: it is stored when the request is committed."""
        entry = current.get()
        if entry is START:
            self._add_of_start(record)
        elif not isinstance(entry, Entry) or not self._results.add_item(entry, record):
            self._committer.add(Lot([record]))

    @property
    def is_full(self) -> bool:
        return self._committer.commits.pending_bytes + self._results.finished_bytes > self._high_water

    async def wait_for_room(self) -> None:
        while self.is_full and self._committer.commits.failure is None:
            if self._results.finished_bytes:
                await self._results.wait_for_places()
            else:
                await self._committer.wait_for_progress()

    def skip_start_items(self, count: int) -> None:
        """Run ``start()`` in this worker of a group, whose other workers have stored this many of its items."""
        checkpoint = self._ownership.log.checkpoint
        checkpoint.start_items = self._stored = max(checkpoint.start_items, count)
        self._ownership.stores_start_items = True

    def _add_of_start(self, record: bytes) -> None:
        ownership = self._ownership
        if not ownership.stores_start_items:
            if not self._stats.get_value("frontier/start_items_of_others", 0):
                logger.info("The items of start() are stored by another worker of frontier %s", ownership.frontier)
            self._stats.inc_value("frontier/start_items_of_others")
        elif self._stored:
            self._stored -= 1
        else:
            self._committer.add(Lot([record], is_start=True))


class Committed:
    """Reports of commits: what was kept for a request is released, its batch counts as acknowledged."""

    def __init__(
        self, crawler: Crawler, session: Session, memory: Memory, slots: Slots, *, skipping: Skipping, commits: Commits
    ) -> None:
        self._crawler = crawler
        self._session = session
        self._memory = memory
        self._slots = slots
        self._skipping = skipping
        self._commits = commits

    def report(self, report: Report) -> None:
        entries = [lot.origin for lot in report.lots if isinstance(lot.origin, Entry)]
        if self._session.answers is not None:
            for entry in entries:
                for key in entry.answers:
                    self._session.answers.finished(key)
        count = self._crawler.stats.inc_value
        if requests := sum(lot.stored is not None or lot.origin is not None for lot in report.lots):
            count("frontier/committed", requests)
        for batch in report.batches:
            count("frontier/acknowledged/batches")
            count("frontier/acknowledged/requests", batch.size)
            self._slots.acknowledged(batch.slot, batch.id)
        self._skipping.committed(entries)
        for entry in entries:
            entry.release()
        if self._commits.is_idle and not self._memory.tracker.unfinished:
            # The crawl may be over: the engine looks only after some event.
            self._memory.wake()
