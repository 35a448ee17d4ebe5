"""End of a worker of a group: it waits for the others, and its last report has its outcome.

A worker that has found the end of the crawl writes nothing more, and waits. Another one may get requests meanwhile, and
end without them: it is killed, or its node stops it. The answers have the number of workers that have ended
``unfinished``. If another one has since the end was found, this worker looks again, and does not end as ``finished`` if
there is work left. The platform accepts an end that was found only with the number that it has itself.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from scrapy_ext.api.platform.jobs import FINISHED, SHUTDOWN
from scrapy_ext.api.platform.workers import LiveWorker, ReportAnswer
from scrapy_ext.client.platform.errors import AttemptOver, PlatformError
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.session.group_closing import GroupClosing
from scrapy_ext.crawl.session.group_liveness import GroupLiveness
from scrapy_ext.crawl.session.group_numbers import GroupNumbers
from scrapy_ext.crawl.session.group_reports import Reports, Send
from scrapy_ext.crawl.session.stop_signals import calls_on_signal

logger = logging.getLogger(__name__)

#: Seconds until a message explains the wait for other workers.
_NOTED: Final = 5.0


class GroupEnd:
    """The end of the worker with ``attempt``."""

    def __init__(
        self,
        reports: Reports,
        liveness: GroupLiveness,
        closing: GroupClosing,
        numbers: GroupNumbers,
        *,
        attempt: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports = reports
        self._liveness = liveness
        self._closing = closing
        self._numbers = numbers
        self._attempt = attempt
        self._clock = clock
        #: The workers that had ended unfinished before the end was found.
        self._found: int | None = None
        self._look: Callable[[], Awaitable[bool]] | None = None
        #: Whether a signal has ended the wait for the others.
        self._is_stopped = False

    def look_with(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Set the function that returns whether the crawl is over, by reads alone."""
        self._look = look

    async def found_by(self, look: Callable[[], Awaitable[bool]]) -> bool:
        """Return whether the crawl is over by this look, which counts until another worker ends unfinished. Raises what
        ``look`` raises."""
        known = self._reports.answer.unfinished
        is_over = await look()
        if is_over:
            self._found = known
        return is_over

    async def is_last(self, reason: str) -> bool:
        """Wait until this worker may leave; return true if the crawl closes, and no other worker of it is left."""
        with calls_on_signal(self._stop_waiting):
            await self._wait_for_others(reason)
        return not (self._liveness.others or self._reports.has_failed or self._closing.is_alone)

    async def leave(self, reason: str, send: Send, retry: Retry) -> str | None:
        """End this worker with its close reason, after everything of it is stored. Return the close reason of the crawl
        if it was the last one, None if others are left. Raises :class:`PlatformError`."""
        with calls_on_signal(self._stop_waiting):
            await self._wait_for_others(reason)
            if reason == FINISHED:
                reason = await self._checked()
        await self._reports.stop()

        async def send_last() -> ReportAnswer:
            report = msgspec.structs.replace(
                self._reports.next(),
                last=True,
                outcome=reason,
                unfinished=self._found if reason == FINISHED else None,
                stats=self._numbers.stats(),
            )
            return await send(report)

        try:
            answer = await retry.until_done(send_last, "end this worker of the job")
        except AttemptOver:
            # A report before this one has ended it, and its answer was lost; or others consider it dead. Everything of
            # it is stored either way.
            logger.info("Attempt %d has ended before", self._attempt)
            return None
        return self._reason_of_all(reason, answer)

    def _reason_of_all(self, reason: str, answer: ReportAnswer) -> str | None:
        if not all(worker.ended for worker in answer.workers):
            return None
        if answer.closing is not None:
            return answer.closing.reason
        return SHUTDOWN if reason == FINISHED and answer.unfinished != self._found else reason

    async def _checked(self) -> str:
        """Return the close reason of a worker that has found the end: shutdown if another one has left work since."""
        if self._found is None:
            # A callback has closed the spider with this reason, whatever work is left.
            self._found = self._reports.answer.unfinished
        while self._found != self._reports.answer.unfinished:
            if self._look is not None and not await self._is_over_still(self._look):
                logger.warning(
                    "Another worker has ended, and its requests are left: the crawl is not finished. Resume it with "
                    "PLATFORM_JOB"
                )
                return SHUTDOWN
        return FINISHED

    async def _is_over_still(self, look: Callable[[], Awaitable[bool]]) -> bool:
        try:
            return await self.found_by(look)
        except PlatformError as error:
            logger.warning("The slots of the frontier cannot be read, so the crawl counts as unfinished: %s", error)
            return False

    async def _wait_for_others(self, reason: str) -> None:
        """Wait until this worker, which closes with this reason, may leave the group.

        If a worker dies and nobody reports its silence, the job does not end. So the worker with the lowest attempt
        leaves last, and another one leaves only when it has seen that that one is alive. A worker that leaves alone
        does not wait: the others go on, and notice a dead one. One that gets a signal does not wait either.
        """
        # A spider that could not be opened was not closed before.
        self._closing.close(reason)
        seen: LiveWorker | None = None
        with contextlib.suppress(PlatformError):
            await self._reports.refreshed()
        noted_at = self._clock() + _NOTED
        while self._reports.is_running:
            first = min(self._liveness.others, key=lambda worker: worker.attempt, default=None)
            if first is None or self._is_stopped or self._closing.is_alone:
                return
            if self._clock() >= noted_at:
                noted_at = math.inf
                self._log_wait()
            if first.attempt < self._attempt:
                if seen is None or seen.attempt != first.attempt:
                    seen = first
                elif first.number > seen.number:
                    return
                self._reports.hurry()
            self._reports.settle()
            await self._reports.next_answer()

    def _stop_waiting(self) -> None:
        self._is_stopped = True
        self._reports.hurry()

    def _log_wait(self) -> None:
        others = ", ".join(f"worker {worker.worker} (attempt {worker.attempt})" for worker in self._liveness.others)
        logger.info("This worker waits for the end of %s", others)
