"""The retry loop of both clients: how long to wait, how often to try, and the report of an outage.

A wait is what the server asked for, else exponential backoff, always with jitter. Jitter is only ever added to what a
server asked for, never taken away: coming back early earns another refusal.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

#: Seconds of jitter on top of a ``Retry-After``, so that clients that were refused together do not return together.
RETRY_AFTER_JITTER: Final = 0.25
#: Seconds from one warning of an outage to the next.
_WARN_EVERY: Final = 60.0


async def repeat(call: Callable[[], Awaitable[T]], failed: Callable[[Exception], Awaitable[None]]) -> T:
    """Repeat a call until it works, and return its result. ``failed`` waits for the next attempt, or raises the error
    when there is to be none."""
    while True:
        try:
            return await call()
        except Exception as error:
            await failed(error)


class Backoff(msgspec.Struct, frozen=True):
    """Exponential backoff: ``first`` seconds, doubled with each failure, at most ``most``; then spread over its
    upper half."""

    first: float = 0.5
    most: float = 30.0

    def seconds(self, failures: int) -> float:
        """The wait after so many failures in a row (1 = the first)."""
        longest = min(self.most, self.first * 2.0 ** min(failures - 1, 32))
        return random.uniform(longest / 2, longest)

    def wait(self, failures: int, retry_after: float | None) -> float:
        """The wait after a failure whose answer carried ``retry_after``, if it did."""
        return self.seconds(failures) if retry_after is None else jittered(retry_after)


def jittered(retry_after: float) -> float:
    """A ``Retry-After`` with its jitter."""
    return retry_after + random.uniform(0, RETRY_AFTER_JITTER)


def parse_retry_after(value: str | None) -> float | None:
    """Seconds from a ``Retry-After`` header in either of its forms (RFC 9110); None when absent or malformed."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= 9 else None
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


class Limits(msgspec.Struct, frozen=True):
    """Limits of the attempts at one operation of the platform.

    ``attempts``: failures in a row, the last of which is raised; 0: any number.
    ``retry_time``: seconds from the first of them; 0: any. It replaces ``attempts``.
    ``longest_wait``: seconds. A server that asks for more is waited for so long, where ``attempts`` is 0; else its
    error is raised at once.
    """

    attempts: int = 5
    retry_time: float = 0.0
    backoff: Backoff = Backoff()
    longest_wait: float = 300.0


class Attempts:
    """The attempts at one operation. ``what`` is a verb and its object, for the report of an outage."""

    def __init__(self, limits: Limits, outage: Outage | None = None, what: str = "") -> None:
        self._limits = limits
        self._outage = outage
        self._what = what
        self._failures = 0
        self._failing_since = 0.0

    def progressed(self) -> None:
        """Count failures from the start again."""
        self._failures = 0

    async def failed(self, error: Exception) -> None:
        """Wait for the next attempt; raises the error when there is to be none."""
        if self._failures == 0:
            self._failing_since = time.monotonic()
        self._failures += 1
        wait = self._wait(error)
        if self._outage is not None:
            self._outage.failed(self._what, error)
        await asyncio.sleep(wait)

    def _wait(self, error: Exception) -> float:
        limits = self._limits
        # The errors of both services have these; what else may pass is an error of the network.
        if not getattr(error, "retryable", isinstance(error, OSError)):
            raise error
        wait = limits.backoff.wait(self._failures, getattr(error, "retry_after", None))
        if wait > limits.longest_wait:
            if limits.attempts:
                raise error
            wait = limits.longest_wait
        if limits.retry_time > 0:
            if time.monotonic() + wait - self._failing_since > limits.retry_time:
                raise error
        elif limits.attempts and self._failures >= limits.attempts:
            raise error
        return wait


class Retry:
    """Repeats calls to the platform that a crawl cannot go on without: it waits for the platform, and logs that.

    ``retry_time`` is how many seconds a call may keep failing; 0: any number.
    """

    def __init__(
        self,
        retry_time: float,
        backoff: Backoff = Backoff(0.25, 10.0),  # noqa: B008 - it is immutable
        outage: Outage | None = None,
        longest_wait: float = 300.0,
    ) -> None:
        self._limits = Limits(0, retry_time, backoff, longest_wait)
        self._outage = outage or Outage()

    async def until_done(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        """The result of ``call``, which must be safe to repeat; raises its error when repeating is of no use.

        ``what`` is what could not be done, for the log: a verb and its object, as "store items".
        """
        try:
            result = await repeat(call, Attempts(self._limits, self._outage, what).failed)
            self._outage.worked(what)
            return result
        finally:
            self._outage.given_up(what)


class Outage:
    """Report of an outage of the platform, for all writers of a crawl together.

    One warning when the first write fails, one a minute with the number of failures while any write still does, and one
    line when all of them work again: a full disk or a platform that is away fails hundreds of writes. ``remedy`` is a
    sentence for whoever reads the log.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self.remedy = ""
        self._logger = logger or logging.getLogger(__name__)
        self._failing: dict[str, None] = {}
        self._failures = 0
        self._began = 0.0
        self._reported = 0.0

    def failed(self, what: str, error: Exception) -> None:
        """Report that ``what`` (a verb and its object, as "store items") failed and will be tried again."""
        now = time.monotonic()
        if not self._failing:
            self._failures, self._began = 0, now
        self._failing[what] = None
        self._failures += 1
        if self._failures == 1:
            self._warn(now, "Cannot %s now, trying until it works: %s", what, error)
        elif now - self._reported >= _WARN_EVERY:
            text = "Cannot %s for %d s now (%d failures), trying until it works: %s"
            self._warn(now, text, ", ".join(self._failing), now - self._began, self._failures, error)

    def worked(self, what: str) -> None:
        """Report that ``what`` was done."""
        if what in self._failing and self._ended(what):
            failures = "1 failure" if self._failures == 1 else f"{self._failures} failures"
            self._logger.info("The platform stores everything again, after %s", failures)

    def given_up(self, what: str) -> None:
        """Report that ``what`` is not tried any more."""
        self._ended(what)

    def _ended(self, what: str) -> bool:
        self._failing.pop(what, None)
        return not self._failing

    def _warn(self, now: float, text: str, *arguments: object) -> None:
        self._reported = now
        self._logger.warning(f"{text}%s", *arguments, f" {self.remedy}" if self.remedy else "")
