"""Membership of this process in a group of workers, which run one job together.

A worker sends a report every two seconds, and at once when something has changed for the others. The answer lists the
live workers, and has the decisions that are made once for all of them: who runs ``start()``, and whether the crawl
closes. The rules that hold here:

- Nothing is correct because of a clock. A worker is named to the platform by another one that knows that its process
  has ended, or that sees its report number unchanged for the lease time. The platform removes it, and then refuses
  everything that it sends. Only after that do others take over its journal.
- Silence alone is no proof of an end: a callback may block the event loop. So the lease time is long.
- A worker that cannot be sure that it is listed hands out no request (:meth:`Group.has_lapsed`): two thirds of the
  lease time after it sent the last report that was stored.
- Each report has the whole state of its worker, so a lost answer needs no repetition: the next report has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.job_data import attempt_of_journal
from scrapy_ext.api.platform.jobs import FINISHED, JOB_DELETED
from scrapy_ext.api.platform.stat_kinds import Stat
from scrapy_ext.api.platform.worker_bounds import GROUP_SETTING, bounds_of
from scrapy_ext.api.platform.workers import (
    INTERVAL,
    SILENCE,
    Closing,
    Counts,
    LiveWorker,
    Queue,
    Report,
    ReportAnswer,
    Silent,
    Totals,
)
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import JOB_ENDED, AttemptOver, PlatformError, Unreachable
from scrapy_ext.client.retry import Outage, Retry
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.commit.assignment import Sightings
from scrapy_ext.crawl.commit.leases import REPLACED
from scrapy_ext.crawl.session.grants import SharedBudget
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.permits import Permits
from scrapy_ext.crawl.session.stop_signals import calls_on_signal

logger = logging.getLogger(__name__)

#: Setting by which whoever starts the workers of a job makes each of them join: the number of workers, or its bounds as
#: ``4..32``. ``resume`` before it: no worker of an earlier start is alive. Not for users.
SETTING: Final = GROUP_SETTING
RESUME: Final = "resume "
#: Part of the lease time after which a worker considers itself dead.
_LAPSED: Final = 2 / 3
#: Seconds until a report without an answer has failed.
_ANSWER_SECONDS: Final = 4.0
#: Seconds between two reports, at least.
_LEAST: Final = 0.2
#: Every which report has the stats.
_STATS_EVERY: Final = 5
#: Seconds without a report after which a worker that has sent none counts as dead for one that waits for its end, at
#: least: a process may be starting.
_STARTING: Final = 60.0
#: Seconds until a message explains the wait for other workers.
_NOTED: Final = 5.0
#: Close reasons that are no reason for the others to close.
_OWN_REASONS: Final = frozenset({FINISHED, REPLACED, JOB_DELETED})


def _ignore(_error: Exception) -> None:
    pass


def group_of(settings: BaseSettings) -> str | None:
    """Return the group that the crawl is to join, None if it is the only worker of its job."""
    return settings.get(SETTING) or None


def workers_of(settings: BaseSettings) -> int:
    """Return the highest number of workers of the group that the crawl is to join."""
    return bounds_of(settings[SETTING].removeprefix(RESUME)).most


class Group:
    """This worker in its group. ``answer`` is that of its join, which was sent at ``joined`` (``clock``).

    Set before :meth:`start`: ``queue`` and ``stats`` (and :attr:`counts`), which a report has; ``on_lost``, called with
    the error when this worker must write nothing more. Set when the spider is open: ``on_closing``, called once when
    the crawl closes, and ``on_leave``, called once when this worker alone is to end. ``before_start`` is awaited before
    this worker runs ``start()``, and returns false if it cannot run it. ``permits``: of domains, set before
    :meth:`start`. ``budget``: of extraction. ``on_totals`` is called with the totals of each answer. ``is_gone``:
    returns true if the process of an attempt is known to have ended.

    ``lease_time``: seconds without a new report after which a worker is considered dead; at least ``SILENCE``.
    """

    def __init__(
        self,
        client: PlatformClient,
        key: JobKey,
        answer: ReportAnswer,
        joined: float,
        *,
        lease_time: float,
        outage: Outage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if answer.attempt is None or answer.worker is None or answer.token is None:
            raise ValueError("the answer to a join has an attempt, a worker and a token")
        self.attempt = answer.attempt
        self.worker = answer.worker
        self.token = answer.token
        self.queue: Callable[[], Queue] = lambda: Queue(more=True)
        self.counts: Callable[[], Counts] = Counts
        self.stats: Callable[[], dict[str, Stat]] = dict
        self.on_lost: Callable[[Exception], None] = _ignore
        self.on_closing: Callable[[Closing], None] | None = None
        self.on_leave: Callable[[], None] | None = None
        self.before_start: Callable[[], Awaitable[bool]] | None = None
        self.permits: Permits | None = None
        self.budget: SharedBudget | None = None
        self.on_totals: Callable[[Totals], None] | None = None
        self.is_gone: Callable[[int], bool] = lambda _attempt: False
        self._client = client
        self._key = key
        self._outage = outage or Outage(logger)
        self._clock = clock
        self._lease_time = max(lease_time, SILENCE)
        self._sightings = Sightings(self._lease_time)
        #: Number of the last report, and of the last one that was answered.
        self._number = self._answered = 1
        self._answer = answer
        self._stored = self._sent = joined
        self._silent: tuple[Silent, ...] = ()
        #: Attempts whose processes had ended before the last report was sent.
        self._gone: set[int] = set()
        self._start: str | None = None
        self._is_closing = False
        self._reason = FINISHED
        #: Whether its journal is closed, and whether a signal has ended its wait for the others.
        self._is_closed = self._is_stopped = False
        self._closing: str | None = None
        self._has_closed = False
        self._leaves = False
        #: Set when a report is due at once, and after each report.
        self._due = asyncio.Event()
        self._round = asyncio.Event()
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def join(
        cls, client: PlatformClient, key: JobKey, given: str, retry: Retry, outage: Outage, *, lease_time: float
    ) -> Group:
        """Join the group of a job, as the setting says. Raises :class:`PlatformError`."""
        report = Report(
            job=str(key),
            nonce=secrets.token_hex(16),
            number=1,
            workers=given.removeprefix(RESUME),
            resume=given.startswith(RESUME),
        )
        sent = 0.0

        async def send() -> ReportAnswer:
            nonlocal sent
            sent = time.monotonic()
            return await client.workers.report(key.project, report)

        answer = await retry.until_done(send, "join the workers of the job")
        return cls(client, key, answer, sent, lease_time=lease_time, outage=outage)

    def job(self, job: CrawlJob) -> CrawlJob:
        """Return the job as this worker runs it."""
        return msgspec.structs.replace(job, attempt=self.attempt, worker=self.worker)

    # ── liveness (scrapy_ext.crawl.commit.leases.Liveness) ──

    def has_lapsed(self) -> bool:
        """Return true if the others may consider this worker dead."""
        return self._clock() - self._stored > self._lease_time * _LAPSED

    async def pause(self) -> None:
        """Wait for the answer to the next report."""
        await self._round.wait()

    async def renew(self) -> None:
        """Nothing to do: the reports show that this worker is alive."""

    def begin(self) -> None:
        """Nothing to do: observations are those of the reports."""

    async def live(self, names: Collection[str]) -> list[str]:
        """Return the journals among these whose writers are alive. Raises :class:`PlatformError`.

        A worker joins before it writes anything, so one that is not listed after its name was read is over. One that
        waits for the others writes nothing more.
        """
        if any(attempt_of_journal(name) not in self._attempts for name in names):
            await self.refreshed()
        closed = {worker.attempt for worker in self._others if worker.closed}
        return [name for name in names if attempt_of_journal(name) in self._attempts - closed]

    @property
    def _attempts(self) -> set[int]:
        return {self.attempt, *(worker.attempt for worker in self._others)}

    @property
    def _others(self) -> list[LiveWorker]:
        return [worker for worker in self._answer.workers if worker.attempt != self.attempt and not worker.ended]

    # ── decisions ──

    async def may_start(self) -> bool:
        """Wait until this worker is to run ``start()``, or none is any more; return whether it is."""
        while not (self._answer.run_start or self._answer.started or self._answer.closing):
            await self._round.wait()
        if not self._answer.run_start or self._answer.closing:
            return False
        if self.before_start is not None and not await self.before_start():
            return False
        self._start = "running"
        return True

    def start_done(self) -> None:
        """Report that the requests and items of ``start()`` are stored, if this worker runs it and does not close."""
        if self._start == "running" and not self._is_closing:
            self._start = "done"
            self.hurry()

    def close(self, reason: str) -> None:
        """Close the crawl for all workers, when the spider of this one closes with ``reason``. A spider closes once:
        only its first reason counts."""
        if self._is_closing:
            return
        self._is_closing, self._reason = True, reason
        if reason not in _OWN_REASONS and not self._leaves:
            self._closing = reason
            self.hurry()

    async def leaves_alone(self) -> bool:
        """Return true if this worker closes and the crawl goes on, by the answer to another report."""
        if self._reason == FINISHED:
            return False
        with contextlib.suppress(PlatformError):
            await self.refreshed()
        return self._leaves_alone(self._reason)

    def journal_closed(self) -> None:
        """Report that this worker writes to no journal any more, so that the others take over its slots."""
        self._is_closed = True
        self.hurry()

    def end_shares(self) -> None:
        """Use no permits and grants any more: the crawl has failed."""
        if self.permits is not None:
            self.permits.end()
        if self.budget is not None:
            self.budget.end()

    def hurry(self) -> None:
        """Send a report at once."""
        self._due.set()

    # ── reports ──

    def start(self, client: PlatformClient) -> None:
        """Report from now on, in the running loop. ``client`` has the token of the attempt."""
        self._client = client
        self._task = asyncio.ensure_future(self._report_always())

    async def stop(self) -> None:
        """Send no more reports."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def refreshed(self) -> None:
        """Wait for the answer to a report that is sent from now on; raises :class:`PlatformError` if that fails."""
        wanted = self._number + 1
        while self._answered < wanted:
            if self._task is None or self._task.done():
                raise self._failure or PlatformError("This worker sends no more reports")
            self.hurry()
            await self._round.wait()
            if self._failure is not None:
                raise self._failure

    async def leave(self, reason: str, retry: Retry) -> bool:
        """End this worker with its close reason, after everything of it is stored. Return true if it was the last one,
        and the crawl is finished. Raises :class:`PlatformError`."""
        await self.is_last(reason)
        await self.stop()

        async def send() -> ReportAnswer:
            report = msgspec.structs.replace(self._next(), last=True, outcome=reason, stats=self.stats())
            return await self._client.workers.report(self._key.project, report)

        try:
            answer = await retry.until_done(send, "end this worker of the job")
        except AttemptOver:
            # A report before this one has ended it, and its answer was lost; or others consider it dead. Everything of
            # it is stored either way.
            logger.info("Worker %d of job %s has ended before", self.worker, self._key)
            return False
        return reason == FINISHED and answer.closing is None and all(worker.ended for worker in answer.workers)

    async def is_last(self, reason: str) -> bool:
        """Wait until this worker may leave; return true if the crawl closes, and no other worker of it is left."""
        # A spider that could not be opened was not closed before.
        self.close(reason)
        with calls_on_signal(self._stop_waiting):
            await self._wait_for_others(reason)
        return not (self._others or self._failure or self._leaves_alone(reason))

    async def _wait_for_others(self, reason: str) -> None:
        """Wait until this worker may leave the group.

        If a worker dies and nobody reports its silence, the job does not end. So the worker with the lowest attempt
        leaves last, and another one leaves only when it has seen that that one is alive. A worker that leaves alone
        does not wait: the others go on, and notice a dead one. One that gets a signal does not wait either.
        """
        seen: LiveWorker | None = None
        with contextlib.suppress(PlatformError):
            await self.refreshed()
        noted_at = self._clock() + _NOTED
        while self._task is not None and not self._task.done():
            first = min(self._others, key=lambda worker: worker.attempt, default=None)
            if first is None or self._is_stopped or self._leaves_alone(reason):
                return
            if self._clock() >= noted_at:
                noted_at = math.inf
                self._log_wait()
            if first.attempt < self.attempt:
                if seen is None or seen.attempt != first.attempt:
                    seen = first
                elif first.number > seen.number:
                    return
                self.hurry()
            await self._round.wait()

    def _stop_waiting(self) -> None:
        self._is_stopped = True
        self.hurry()

    def _log_wait(self) -> None:
        others = ", ".join(f"worker {worker.worker} (attempt {worker.attempt})" for worker in self._others)
        logger.info("This worker waits for the end of %s", others)

    def _leaves_alone(self, reason: str) -> bool:
        """Return true if the crawl goes on without this worker, by the answer to the last report."""
        return reason != FINISHED and self._failure is None and self._answer.closing is None

    async def _report_always(self) -> None:
        while True:
            await self._wait()
            self._due.clear()
            try:
                self._take(await self._report())
            except JOB_ENDED as error:
                self._failure = error
                self.on_lost(error)
                return
            except PlatformError as error:
                self._failure = error
                self._outage.failed(_REPORT, error)
            except Exception as error:
                logger.exception("Unexpected error in the report of a worker")
                self._failure = PlatformError(f"the report has failed ({error})")
            finally:
                self._round.set()
                self._round.clear()

    async def _wait(self) -> None:
        """Wait until the next report is due."""
        with contextlib.suppress(*TIMEOUT_ERRORS):
            async with timeout_after(max(self._sent + INTERVAL - self._clock(), 0.0)):
                await self._due.wait()
        await asyncio.sleep(max(self._sent + _LEAST - self._clock(), 0.0))

    async def _report(self) -> ReportAnswer:
        self._warn_if_blocked(self._clock() - self._sent)
        report = self._next()
        self._sightings.begin(self._sent)
        self._gone = {worker.attempt for worker in self._others if self.is_gone(worker.attempt)}
        try:
            async with timeout_after(_ANSWER_SECONDS):
                answer = await self._client.workers.report(self._key.project, report)
        except TIMEOUT_ERRORS:
            raise Unreachable("The platform has not answered the report of this worker") from None
        self._stored, self._answered, self._failure = self._sent, report.number, None
        self._outage.worked(_REPORT)
        return answer

    def _next(self) -> Report:
        now = self._clock()
        queue, since = self.queue(), now - self._sent
        self._number += 1
        self._sent = now
        return Report(
            job=str(self._key),
            attempt=self.attempt,
            number=self._number,
            queue=msgspec.structs.replace(queue, idle=since if queue.is_empty else 0.0),
            start=self._start,  # type: ignore[arg-type]
            counts=self.counts(),
            stats=self.stats() if self._number % _STATS_EVERY == 0 else None,
            domains=self.permits.reported() if self.permits is not None else None,
            budgets=self.budget.reported() if self.budget is not None else None,
            closing=self._closing,
            leaving=self._leaves,
            closed=self._is_closed,
            silent=self._silent,
        )

    def _take(self, answer: ReportAnswer) -> None:
        self._answer = answer
        if self.permits is not None:
            self.permits.answered(answer.permits)
        if self.budget is not None:
            self.budget.answered(answer.grants)
        if self.on_totals is not None:
            self.on_totals(answer.totals)
        self._name_silent(self._clock())
        if answer.closing is not None and self.on_closing is not None and not self._has_closed:
            self._has_closed = True
            self.on_closing(answer.closing)
        elif answer.leave and self.on_leave is not None and not (self._leaves or self._has_closed):
            self._leaves = True
            self.on_leave()

    def _name_silent(self, now: float) -> None:
        """Name the workers of the last answer that are dead in the next report.

        A worker that has ended as it should has sent its last report before. So it is not in the answer to a report
        that was sent after the end of its process.
        """
        silent = []
        for worker in self._others:
            # One that has sent no report holds nothing: it matters only to those that wait for its end.
            if not worker.number and not self._is_closed:
                continue
            least = 0.0 if worker.number else _STARTING
            lives = self._sightings.lives(str(worker.attempt), worker.number, is_closed=False, now=now, at_least=least)
            if worker.attempt in self._gone:
                logger.warning("The process of attempt %d has ended: others take over its requests", worker.attempt)
            elif not lives:
                logger.warning(_NO_REPORT, max(self._lease_time, least), worker.attempt)
            else:
                continue
            silent.append(Silent(worker.attempt, worker.number))
        self._sightings.end(now)
        self._silent = tuple(silent)
        if silent:
            self.hurry()

    def _warn_if_blocked(self, since: float) -> None:
        """Log that the event loop did not run, if the last report was sent so many seconds ago that this worker has
        lapsed."""
        if since > self._lease_time * _LAPSED:
            logger.warning(_BLOCKED, since, self._lease_time)


_REPORT: Final = "report to the other workers"
#: What to do when callbacks block the event loop.
REMEDY: Final = "Run slow calls in a thread (asyncio.to_thread), or increase FRONTIER_LEASE_TIME"
_NO_REPORT: Final = (
    "No report for %.0f s (FRONTIER_LEASE_TIME) of attempt %d: others take over its requests. Its machine was stopped "
    f"or disconnected, or a callback blocks its event loop. {REMEDY}"
)
_BLOCKED: Final = (
    "This worker could send no report for %.0f s: a callback has blocked the event loop, or the process was stopped. "
    f"After %.0f s (FRONTIER_LEASE_TIME) others take over its requests, and run them again. {REMEDY}"
)
