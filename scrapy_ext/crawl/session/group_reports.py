"""Reports of a worker to the others of its group, every two seconds, and at once when something has changed for them.

For a few seconds after a worker has come or gone, while one waits for a permit, and while this one waits for the end of
others, reports come sooner: permits go from one worker to another by a report of each, and a worker leaves when it has
seen a report.

Parts of the worker add what they have to each report, and take what concerns them from its answer
(:class:`ReportPart`). Each report has the whole state of its worker, so a lost answer needs no repetition: the next
report has it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

import msgspec

from scrapy_ext.api.platform.workers import INTERVAL, Report, ReportAnswer
from scrapy_ext.client.platform.errors import JOB_ENDED, PlatformError, Unreachable
from scrapy_ext.client.retry import Outage
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

logger = logging.getLogger(__name__)

#: Sends a report, and returns its answer.
Send = Callable[[Report], Awaitable[ReportAnswer]]

#: Seconds until a report without an answer has failed.
_ANSWER_SECONDS: Final = 4.0
#: Seconds between two reports, at least.
_LEAST: Final = 0.2
#: Seconds for which reports come sooner, and seconds between them: at least, and for each worker, so that many workers
#: do not send more than the platform can take.
_SETTLING: Final = 4.0
_SOON: Final = 0.5
_SOON_EACH: Final = 0.05
_REPORT: Final = "report to the other workers"


def soon(workers: int) -> float:
    """Return the seconds between reports that come sooner, of each of so many workers."""
    return min(max(_SOON, _SOON_EACH * workers), INTERVAL)


class ReportPart(Protocol):
    """Part of a worker that is in its reports."""

    def added_to(self, report: Report, since: float) -> Report:
        """Return a report that is sent now with the fields of this part. ``since``: seconds since the one before."""

    def answered(self, answer: ReportAnswer) -> None:
        """Take the answer to a report."""


class _Sent(NamedTuple):
    """Number of a report, and the time at which it was sent."""

    number: int
    at: float


class Reports:
    """Reports of one worker. ``empty``: a report with its job and its attempt alone. ``answer`` is that of its join,
    which was sent at ``joined`` (``clock``)."""

    def __init__(
        self,
        empty: Report,
        answer: ReportAnswer,
        joined: float,
        *,
        outage: Outage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.answer = answer
        self._empty = empty
        self._clock = clock
        self._outage = outage or Outage(logger)
        self._parts: list[ReportPart] = []
        #: The last report, and the last one that was answered.
        self._sent = self._stored = _Sent(empty.number, joined)
        #: Whether a report is due at once.
        self._is_due = False
        #: Set when the time of the next report has changed, and after each report.
        self._changed = asyncio.Event()
        self._round = asyncio.Event()
        self._failure: Exception | None = None
        self._is_stopped = False
        #: Workers of the last answer, and the time until which reports come sooner.
        self._workers = frozenset[int]()
        self._settles_until = joined
        self._task: asyncio.Task[None] | None = None

    def connect(self, part: ReportPart) -> None:
        """Let a part be in all reports from now on."""
        self._parts.append(part)

    @property
    def stored_at(self) -> float:
        """Time at which the last report was sent that the platform has stored."""
        return self._stored.at

    @property
    def is_running(self) -> bool:
        """True while reports are sent."""
        return self._task is not None and not self._task.done()

    @property
    def has_failed(self) -> bool:
        """True if the last report had no answer, or another error."""
        return self._failure is not None

    def start(self, send: Send, on_lost: Callable[[Exception], None]) -> None:
        """Report from now on, in the running loop. ``on_lost``: called with the error when this worker must write
        nothing more."""
        self._task = asyncio.ensure_future(self._report_always(send, on_lost))

    async def stop(self) -> None:
        """Send no more reports."""
        self._is_stopped = True  # Python 3.10 may lose a cancellation in a timeout
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def hurry(self) -> None:
        """Send a report at once."""
        self._is_due = True
        self._changed.set()

    def settle(self) -> None:
        """Let the reports of the next seconds come sooner."""
        self._settles_until = self._clock() + _SETTLING
        self._changed.set()

    async def next_answer(self) -> None:
        """Wait for the answer to the next report, or its failure."""
        await self._round.wait()

    async def refreshed(self) -> None:
        """Wait for the answer to a report that is sent from now on; raises :class:`PlatformError` if that fails."""
        wanted = self._sent.number + 1
        while self._stored.number < wanted:
            if not self.is_running:
                raise self._failure or PlatformError(
                    "this worker sends no more reports, since it is ending; resume the job"
                )
            self.hurry()
            await self._round.wait()
            if self._failure is not None:
                raise self._failure

    def next(self) -> Report:
        """Return a report that is sent now."""
        now = self._clock()
        since, self._sent = now - self._sent.at, _Sent(self._sent.number + 1, now)
        report = msgspec.structs.replace(self._empty, number=self._sent.number)
        for part in self._parts:
            report = part.added_to(report, since)
        return report

    async def _report_always(self, send: Send, on_lost: Callable[[Exception], None]) -> None:
        while not self._is_stopped:
            await self._wait()
            self._is_due = False
            try:
                self._take(await self._report(send))
            except JOB_ENDED as error:
                self._failure = error
                on_lost(error)
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
        while not self._is_due and (left := self._sent.at + self._interval - self._clock()) > 0:
            try:
                async with timeout_after(left):
                    await self._changed.wait()
            except TIMEOUT_ERRORS:
                break
            self._changed.clear()
        await asyncio.sleep(max(self._sent.at + _LEAST - self._clock(), 0.0))

    @property
    def _interval(self) -> float:
        """Seconds from one report to the next."""
        return INTERVAL if self._clock() > self._settles_until else soon(len(self._workers))

    async def _report(self, send: Send) -> ReportAnswer:
        report = self.next()
        try:
            async with timeout_after(_ANSWER_SECONDS):
                answer = await send(report)
        except TIMEOUT_ERRORS:
            raise Unreachable(f"no answer to the report of this worker within {_ANSWER_SECONDS:g} s") from None
        self._stored, self._failure = self._sent, None
        self._outage.worked(_REPORT)
        return answer

    def _take(self, answer: ReportAnswer) -> None:
        self.answer = answer
        workers = frozenset(worker.attempt for worker in answer.workers if not worker.ended)
        if workers != self._workers:
            self._workers = workers
            self.settle()
        for part in self._parts:
            part.answered(answer)
