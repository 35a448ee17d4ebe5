"""Results of requests until they are committed: items, failures, and the requests themselves."""

from __future__ import annotations

import logging
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.crawl.commit.committer import Committer
from scrapy_ext.crawl.commit.events import Lot, OpenBatch, Stored
from scrapy_ext.crawl.commit.ownership import Ownership
from scrapy_ext.crawl.commit.protocol import Verdict, verdict
from scrapy_ext.crawl.commit.tracking import START, Entry, FinishedRequests, current
from scrapy_ext.crawl.frontier.feeder import Feeder
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.serialize import request_from_json
from scrapy_ext.crawl.frontier.writers import FrontierWriters

logger = logging.getLogger(__name__)

#: Bytes of items from which those of an unfinished request are staged.
_STAGED_EARLY: Final = 1024 * 1024


class Results:
    """Complete requests: each is committed in its turn, run again, or left to the next run."""

    def __init__(
        self, crawler: Crawler, memory: Memory, feeder: Feeder, writers: FrontierWriters, committer: Committer
    ) -> None:
        self._crawler = crawler
        self.memory = memory
        self._feeder = feeder
        self._writers = writers
        self.committer = committer
        self._max_attempts: int = names.FRONTIER_MAX_ATTEMPTS.read(crawler.settings)
        interval: float = names.PLATFORM_FLUSH_INTERVAL.read(crawler.settings)
        #: Finished requests that wait for their place in a batch or their turn.
        self.finished = FinishedRequests(self._commit, feeder.place, interval / 2)

    def complete(self, entry: Entry) -> None:
        if entry.is_interrupted:
            self._settle(entry)
        else:
            self.finished.add(entry, self.memory.tracker.unfinished)

    def stage_if_large(self, entry: Entry) -> None:
        if entry.size >= _STAGED_EARLY:
            self.committer.spill(entry)

    def nothing_of(self, batch: OpenBatch, position: int = 0) -> None:
        """Commit a request of a batch that does not run."""
        self.committer.add(Lot([], Stored("", {}, batch, position)))

    def refuse(self, stored: Stored, error: Exception) -> None:
        """Move an unreadable request to the dead letters."""
        self._writers.add_dead_letter(stored, str(error))
        self.nothing_of(stored.batch, stored.position)

    def _commit(self, entry: Entry) -> None:
        self._settle(entry)
        sent = self.memory.sent
        nothing_comes = not sent.has_direct if sent.only_direct else not self._feeder.has_work
        if nothing_comes and not self.memory.tracker.unfinished:
            self.committer.hurry()

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
            self.committer.discard(entry)
            return
        if decided is Verdict.RUN_AGAIN and entry.stored is not None:
            # The next attempt makes its items again; its children have the same fingerprints.
            self.committer.discard(entry)
            self._crawler.stats.inc_value("frontier/callback_retries")
            spider: Any = self._crawler.spider
            self.memory.run_again(entry, request_from_json(entry.stored.form, spider))
            return
        if decided is Verdict.DEAD_LETTER and entry.stored is not None:
            # Scrapy has logged the error of the callback, with its traceback.
            self._writers.add_dead_letter(
                entry.stored, f"{entry.error} (attempt {entry.attempt} of {most})", logging.INFO
            )
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        self.committer.add(Lot(entry.take_items(), entry.stored, entry.payloads, origin=entry))

    def _attempts_of(self, request: Request) -> int:
        """Return how often a request may run, by its meta or FRONTIER_MAX_ATTEMPTS."""
        asked: Any = request.meta.get("frontier_max_attempts", self._max_attempts)
        if isinstance(asked, int) and asked >= 1:
            return asked
        logger.error(
            'meta["frontier_max_attempts"] of %s must be a whole number from 1, got %.60r: FRONTIER_MAX_ATTEMPTS holds',
            *(request, asked),
        )
        return self._max_attempts


class PendingItems:
    """Items that wait for a commit: the :class:`~scrapy_ext.crawl.session.session.ItemSink` of a crawl."""

    def __init__(self, crawler: Crawler, results: Results, ownership: Ownership) -> None:
        self._stats = crawler.stats
        self._results = results
        self._committer = results.committer
        self._finished = results.finished
        self._ownership = ownership
        self._high_water: int = names.PLATFORM_BUFFER_BYTES.read(crawler.settings)
        #: Items of ``start()`` that a former process of the job has stored.
        self._stored = ownership.log.checkpoint.start_items

    def add_item(self, record: bytes) -> None:
        """Add an item of the current request, as JSON: it is stored when the request is committed."""
        entry = current.get()
        if entry is START:
            self._add_of_start(record)
        elif not isinstance(entry, Entry) or not self._results.memory.tracker.is_open(entry):
            self._committer.add(Lot([record]))
        else:
            entry.add_item(record)
            self._results.stage_if_large(entry)

    @property
    def is_full(self) -> bool:
        return self._committer.commits.pending_bytes + self._finished.bytes > self._high_water

    async def wait_for_room(self) -> None:
        while self.is_full and self._committer.commits.failure is None:
            if self._finished.bytes:
                await self._finished.wait()
            else:
                await self._committer.wait_for_progress()

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
