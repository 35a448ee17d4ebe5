"""End of a crawl: its own work, that of other workers, and requests that others push.

A crawl is over when nothing is in memory, unsent or uncommitted, the slots are empty, and no other worker has work. The
slots are empty if a read of each after the last write to it returned nothing, or if each request that was sent was a
direct one (:mod:`scrapy_ext.crawl.frontier.sent`), and all are committed.

A worker without work records that in its commit journal, and revokes it there before it does anything more. So a worker
can end when, in this order, the newest records of all others report no work, every slot of the frontier is empty, and
no worker has had work since, nor has a slot moved: then no worker did anything meanwhile, and no work was left.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.job_data import attempt_of_journal, job_of_journal
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.events import Checkpoint
from scrapy_ext.crawl.commit.execution import Committer
from scrapy_ext.crawl.commit.journal import CommitLog, Fenced
from scrapy_ext.crawl.commit.leases import Ownership
from scrapy_ext.crawl.frontier.keep_alive import KeepAlive
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.slots import Slots
from scrapy_ext.crawl.session.group import Membership
from scrapy_ext.crawl.session.scrapy_engine import start_is_exhausted

logger = logging.getLogger(__name__)

#: A crawl that waits polls every five seconds, and looks for a process that has replaced it at each third poll.
_POLLS_PER_CHECK: Final = 3
#: Seconds until the next poll of a worker with few requests, when the last one found some.
_FAST_POLL: Final = 0.1
#: Simultaneous reads of slots.
_AT_ONCE: Final = 16
#: Seconds between two messages that a worker waits for others.
_LOG_EVERY: Final = 60.0
#: Seconds without a record after which a worker with work may be dead.
_SILENT: Final = 30.0


class EndOfCrawl:
    """Detection of the end of this crawl, in ``memory``, ``slots`` and ``committer``.

    ``log``: commit journal of this process.
    ``others``: work of other workers; None: there are none.
    ``group``: the group of this worker; None: its job has no other one.
    ``keep_alive``: wait for requests that others push; None: the crawl does not wait.
    ``poll_interval``: seconds between two reads of slots to which others send.
    ``on_failure``: called with an error that ends the crawl.
    """

    def __init__(
        self,
        crawler: Crawler,
        memory: Memory,
        slots: Slots,
        committer: Committer,
        log: CommitLog,
        *,
        others: OtherWorkers | None,
        group: Membership | None,
        keep_alive: KeepAlive | None,
        poll_interval: float,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._crawler = crawler
        self._memory = memory
        self._slots = slots
        self._committer = committer
        self._log = log
        self._others = others
        self._group = group
        self._keep_alive = keep_alive
        self._poll_interval = poll_interval
        self._on_failure = on_failure
        #: Number of requests in memory above which no more are needed soon.
        self._enough: int = names.FRONTIER_PREFETCH.read(crawler.settings) // 2
        self._poller: asyncio.Task[None] | None = None
        #: Whether no other worker has work, and nothing is waited for.
        self._is_over = False

    @property
    def is_drained(self) -> bool:
        return not self._has_work() and (self._is_over or (self._others is None and self._keep_alive is None))

    @property
    def may_have_work(self) -> bool:
        """Return true unless the slots are known to be empty, and everything is committed."""
        return not self._committer.commits.is_idle or self._slots.has_work

    def slots_changed(self) -> None:
        """Record that this worker owns other slots now."""
        self._is_over = False

    async def before_work(self) -> None:
        """Record that this worker has work, before requests are sent or taken."""
        self._is_over = False
        if self._keep_alive is not None:
            await self._keep_alive.begin_work()
        if self._others is not None:
            await self._others.be(idle=False)

    async def when_empty(self) -> None:
        """Find out whether the crawl is over, after a read without requests."""
        self._memory.sent.nothing_is_behind()
        if self._memory.tracker.unfinished:
            return
        self._committer.hurry()
        if self._committer.commits.is_idle and start_is_exhausted(self._crawler):
            self._is_over = await self._finds_end() and not self._has_work()
        if self.is_drained:
            # The engine calls has_pending_requests only after some event.
            self._memory.wake()

    def start(self) -> None:
        """Read the slots regularly if others send to them, in the running loop."""
        if self._keep_alive is not None:
            self._poller = asyncio.ensure_future(self._wait(self._keep_alive))
        elif self._others is not None:
            self._poller = asyncio.ensure_future(self._poll())

    async def close(self) -> None:
        """Cancel the task, and end the wait for pushes, unless other workers of the group go on."""
        if self._poller is not None:
            self._poller.cancel()
        if self._keep_alive is None or self._log.is_fenced:
            return
        if self._group is not None and await self._group.closing.leaves_alone():
            return
        await self._keep_alive.close()

    async def is_over_for_others(self) -> bool:
        """Return true if neither another worker nor any slot has work, by reads alone: this worker has ended."""
        return self._others is None or (await self._others.look()).is_over

    async def _finds_end(self) -> bool:
        return await (self._may_end() if self._group is None else self._group.end.found_by(self._may_end))

    async def _may_end(self) -> bool:
        """Return true if nothing is waited for, neither pushes nor the work of others."""
        if self._keep_alive is not None and not await self._is_kept_long_enough(self._keep_alive):
            return False
        return self._others is None or await self._others.are_done()

    async def _is_kept_long_enough(self, keep_alive: KeepAlive) -> bool:
        """Return true if the wait for pushes is over. A group ends it only when no worker of it has work."""
        keep_alive.waits()
        others = self._others if self._group is not None and keep_alive.is_due else None
        if others is not None and not await others.are_done():
            await keep_alive.reopen()
            return False
        if await keep_alive.is_over():
            return True
        if keep_alive.is_closed:
            self._slots.poll()
        return False

    async def _poll(self) -> None:
        """Read the slots every so many seconds: the platform does not notify of requests by other workers."""
        # With a group, one call reads all slots, and what this worker lacks may come from the others at any time.
        step = min(_FAST_POLL, self._poll_interval) if self._group is not None else self._poll_interval
        waited, pause, seen = 0.0, step, self._slots.batches
        while True:
            await asyncio.sleep(step)
            waited += step
            if waited < (pause if len(self._memory) <= self._enough else self._poll_interval):
                continue
            if not self._is_over:
                self._slots.poll()
            found, seen = self._slots.batches > seen, self._slots.batches
            waited, pause = 0.0, step if found else min(2 * pause, self._poll_interval)

    async def _wait(self, keep_alive: KeepAlive) -> None:
        """Read the slots to which others have pushed requests, and end the wait in time. A crawl that waits commits
        nothing, so it looks here whether another has taken over its slots."""
        for number in itertools.count(1):
            await asyncio.sleep(keep_alive.pause)
            if number % _POLLS_PER_CHECK == 0:
                await self._check_owner()
            if self._is_over:
                continue
            if self._memory.tracker.unfinished or not self._committer.commits.is_idle:
                keep_alive.works()
            elif start_is_exhausted(self._crawler):
                keep_alive.waits()
            changed = await keep_alive.poll()
            self._slots.poll(None if keep_alive.is_due else changed)
            await keep_alive.report()

    async def _check_owner(self) -> None:
        try:
            await self._log.check()
        except Fenced as fenced:
            self._on_failure(fenced)
        except PlatformError as error:
            logger.debug("The journal of this worker cannot be read, trying again: %s", error)

    def _has_work(self) -> bool:
        sent = self._memory.sent
        return (
            bool(self._memory.tracker.unfinished)
            or sent.has_direct
            or not self._committer.commits.is_idle
            or (not sent.only_direct and self._slots.has_work)
        )


class Rest(NamedTuple):
    """Remaining work of a crawl: other workers that have work, or a slot with requests that nobody runs."""

    busy: list[str]
    waiting: int | None = None

    @property
    def is_over(self) -> bool:
        return not self.busy and self.waiting is None

    def __str__(self) -> str:
        if self.busy:
            return ", ".join(self.busy)
        return f"a worker of slot {self.waiting}, which has requests"


class OtherWorkers:
    """Work of the other workers of a crawl.

    ``leaves_rest``: whether requests may stay in the slots of other workers when all of these have ended. Whoever feeds
    the crawl may push them at any time. ``on_turn``: called when this worker has become idle or busy.
    """

    def __init__(
        self,
        ownership: Ownership,
        slots: int,
        *,
        leaves_rest: bool = False,
        on_turn: Callable[[], None] | None = None,
    ) -> None:
        self._ownership = ownership
        self._slots = slots
        self._leaves_rest = leaves_rest
        self._on_turn = on_turn
        self._logged = -_LOG_EVERY
        #: Number of other workers' newest records, and when each was first read.
        self._seen: dict[str, tuple[int, float]] = {}

    async def be(self, *, idle: bool) -> None:
        """Record whether this worker is idle."""
        checkpoint = self._ownership.log.checkpoint
        if checkpoint.idle != idle:
            checkpoint.idle = idle
            checkpoint.turns += 1
            await self._ownership.log.write()
            if self._on_turn is not None:
                self._on_turn()

    async def are_done(self) -> bool:
        """Return true if neither this worker, which is idle, nor any other has work. If not, log the reason each
        minute."""
        await self.be(idle=True)
        state = await self.look()
        if not state.is_over and time.monotonic() - self._logged > _LOG_EVERY:
            self._logged = time.monotonic()
            logger.info("This worker has no work, and waits for %s", state)
        return state.is_over

    async def look(self) -> Rest:
        """Return the work that remains for other workers."""
        before = await _others(self._ownership)
        busy = [name for name, checkpoint in before.by_name.items() if _works(checkpoint)]
        if busy:
            return Rest([self._described(name, before) for name in busy])
        have_ended = before.by_name and all(each.closed for each in before.by_name.values())
        slots = self._ownership.log.checkpoint.slots if self._leaves_rest and have_ended else range(self._slots)
        waiting = await _first_with_requests(self._ownership, slots)
        if waiting is not None:
            return Rest([], waiting)
        after = await _others(self._ownership)
        return Rest([] if _turns(after) == _turns(before) else ["workers that have just had work"])

    def _described(self, name: str, others: _Others) -> str:
        """Describe a worker to the person who may have to restart it."""
        now = time.monotonic()
        number, since = self._seen.get(name, (0, now))
        if number != others.numbers[name]:
            since = now
        self._seen[name] = (others.numbers[name], since)
        job = job_of_journal(self._ownership.project, name) or name
        # Workers of a group report elsewhere, and another one takes over when one is dead.
        is_silent = now - since > _SILENT and attempt_of_journal(name) is None
        silent = f", no record for {now - since:.0f} s: if it is dead, start it again" if is_silent else ""
        return f"worker {others.by_name[name].worker} (PLATFORM_JOB={job}{silent})"


class _Others(NamedTuple):
    assignment: int
    by_name: dict[str, Checkpoint]
    numbers: dict[str, int]


async def _others(ownership: Ownership) -> _Others:
    number, assignment = await ownership.assignment()
    others = _Others(number, {}, {})
    for name in assignment.owners:
        if name != ownership.name:
            head = await ownership.journal(name).head()
            if head is not None:
                others.by_name[name] = head.read(Checkpoint)
                others.numbers[name] = head.number
    return others


def _turns(others: _Others) -> tuple[int, dict[str, int]]:
    """Return values that stay the same only if no worker had work meanwhile and no slot has moved."""
    return others.assignment, {name: checkpoint.turns for name, checkpoint in others.by_name.items()}


def _works(checkpoint: Checkpoint) -> bool:
    return not (checkpoint.idle or checkpoint.closed)


async def _first_with_requests(ownership: Ownership, slots: Iterable[int]) -> int | None:
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def has_requests(slot: int) -> bool:
        async with at_once:
            return bool(await ownership.calls.read(str(slot), 1))

    slots = [*slots]
    found = await asyncio.gather(*map(has_requests, slots))
    return next((slot for slot, has in zip(slots, found, strict=True) if has), None)
