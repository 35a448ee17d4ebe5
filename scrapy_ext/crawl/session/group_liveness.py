"""Liveness of the workers of a group, by their reports.

- Nothing is correct because of a clock. A worker is named to the platform by another one that knows that its process
  has ended, or that sees its report number unchanged for the lease time. The platform removes it, and then refuses
  everything that it sends. Only after that do others take over its journal.
- Silence alone is no proof of an end: a callback may block the event loop. So the lease time is long.
- A worker that cannot be sure that it is listed hands out no request (:meth:`GroupLiveness.has_lapsed`): two thirds of
  the lease time after it sent the last report that was stored.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from scrapy_ext.api.platform.job_data import attempt_of_journal
from scrapy_ext.api.platform.workers import SILENCE, LiveWorker, Report, ReportAnswer, Silent
from scrapy_ext.crawl.commit.assignment import Sightings
from scrapy_ext.crawl.session.group_reports import Reports

logger = logging.getLogger(__name__)

#: Seconds until the assignment of slots is read again after a change: at least, and for each worker, so that many
#: workers do not read more than the platform can take.
_SOON: Final = 0.2
_SOON_EACH: Final = 0.02
#: Part of the lease time after which a worker considers itself dead.
_LAPSED: Final = 2 / 3
#: Seconds without a report after which a worker that has sent none counts as dead for one that waits for its end, at
#: least: a process may be starting.
_STARTING: Final = 60.0
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


class GroupLiveness:
    """The live workers, as the worker with ``attempt`` sees them (:class:`~scrapy_ext.crawl.commit.leases.Liveness`).

    ``lease_time``: seconds without a new report after which a worker is considered dead; at least ``SILENCE``.
    ``is_gone``: returns true if the process of an attempt is known to have ended.
    """

    def __init__(
        self,
        reports: Reports,
        attempt: int,
        lease_time: float,
        is_gone: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports = reports
        self._attempt = attempt
        self._lease_time = max(lease_time, SILENCE)
        self._is_gone = is_gone
        self._clock = clock
        self._sightings = Sightings(self._lease_time)
        self._silent: tuple[Silent, ...] = ()
        #: Attempts whose processes had ended before the last report was sent.
        self._gone: set[int] = set()
        self._is_closed = False
        reports.connect(self)

    def has_lapsed(self) -> bool:
        """Return true if the others may consider this worker dead."""
        return self._clock() - self._reports.stored_at > self._lease_time * _LAPSED

    def soon(self, workers: int) -> float:
        return max(_SOON, _SOON_EACH * workers)

    async def pause(self) -> None:
        """Wait for the answer to the next report."""
        await self._reports.next_answer()

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
            await self._reports.refreshed()
        closed = {worker.attempt for worker in self.others if worker.closed}
        return [name for name in names if attempt_of_journal(name) in self._attempts - closed]

    @property
    def _attempts(self) -> set[int]:
        return {self._attempt, *(worker.attempt for worker in self.others)}

    @property
    def others(self) -> list[LiveWorker]:
        """The other workers that have not ended, by the answer to the last report."""
        workers = self._reports.answer.workers
        return [worker for worker in workers if worker.attempt != self._attempt and not worker.ended]

    def close_journal(self) -> None:
        """Report that this worker writes to no journal any more, so that the others take over its slots."""
        self._is_closed = True
        self._reports.hurry()

    # ── reports (ReportPart) ──

    def added_to(self, report: Report, since: float) -> Report:
        if since > self._lease_time * _LAPSED:
            logger.warning(_BLOCKED, since, self._lease_time)
        self._sightings.begin(self._clock())
        self._gone = {worker.attempt for worker in self.others if self._is_gone(worker.attempt)}
        return msgspec.structs.replace(report, silent=self._silent, closed=self._is_closed)

    def answered(self, _answer: ReportAnswer) -> None:
        """Name the workers of the answer that are dead in the next report.

        A worker that has ended as it should has sent its last report before. So it is not in the answer to a report
        that was sent after the end of its process.
        """
        now = self._clock()
        # One that has sent no report holds nothing: it matters only to those that wait for its end.
        named = [worker for worker in self.others if (worker.number or self._is_closed) and self._is_dead(worker, now)]
        self._sightings.end(now)
        self._silent = tuple(Silent(worker.attempt, worker.number) for worker in named)
        if named:
            self._reports.hurry()

    def _is_dead(self, worker: LiveWorker, now: float) -> bool:
        least = 0.0 if worker.number else _STARTING
        lives = self._sightings.lives(str(worker.attempt), worker.number, is_closed=False, now=now, at_least=least)
        if worker.attempt in self._gone:
            logger.warning("The process of attempt %d has ended: others take over its requests", worker.attempt)
            return True
        if not lives:
            logger.warning(_NO_REPORT, max(self._lease_time, least), worker.attempt)
        return not lives
