"""Retries: the waits of both clients, and of the client of the platform the loop and the report of an outage.

A wait is the one that the server requests, else exponential backoff, always with jitter. Jitter is only added to a wait
that a server requests: an early request would be refused again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

#: Seconds of jitter on top of a ``Retry-After``, so that clients that were refused together do not return together.
RETRY_AFTER_JITTER: Final = 0.25
#: Seconds from one warning of an outage to the next.
_WARN_EVERY: Final = 60.0


async def repeat(call: Callable[[], Awaitable[T]], failed: Callable[[Exception], Awaitable[None]]) -> T:
    """Repeat a call until it succeeds, and return its result. ``failed`` waits for the next attempt, or raises the
    error if there is none."""
    while True:
        try:
            return await call()
        except Exception as error:
            await failed(error)


async def resumed(stream: Callable[[], AsyncGenerator[T]], attempts: Attempts) -> AsyncGenerator[T]:
    """Read a stream to its end, past failures. ``stream`` opens it again, after what it yielded before."""
    while True:
        try:
            async with aclosing(stream()) as parts:
                async for part in parts:
                    attempts.progressed()
                    yield part
            return
        except Exception as error:
            await attempts.failed(error)


class Backoff(msgspec.Struct, frozen=True):
    """Exponential backoff: ``first`` seconds, doubled with each failure, at most ``most``; then a random time in the
    upper half of that."""

    first: float = 0.5
    most: float = 30.0

    def seconds(self, failures: int) -> float:
        """Return the wait after a number of failures in a row, from 1."""
        longest = min(self.most, self.first * 2.0 ** min(failures - 1, 32))
        return random.uniform(longest / 2, longest)

    def wait(self, failures: int, retry_after: float | None) -> float:
        """Return the wait after a failure whose answer has ``retry_after`` (None: it has not)."""
        return self.seconds(failures) if retry_after is None else jittered(retry_after)


def jittered(retry_after: float) -> float:
    return retry_after + random.uniform(0, RETRY_AFTER_JITTER)


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header in either of its forms (RFC 9110); None: absent or malformed."""
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
        when = when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())


class Limits(msgspec.Struct, frozen=True):
    """Limits of the attempts at one operation of the platform."""

    #: Failures in a row, the last of which is raised; 0: any number.
    attempts: int = 5
    #: Seconds from the first of these failures, in place of ``attempts``; 0: no limit.
    retry_time: float = 0.0
    backoff: Backoff = Backoff()
    #: Seconds. When a server requests a longer wait: with ``attempts`` the error is raised at once, without the wait is
    #: this one.
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
        """Wait for the next attempt; raises the error if there is none."""
        if self._failures == 0:
            self._failing_since = time.monotonic()
        self._failures += 1
        wait = self._wait(error)
        if self._outage is not None:
            self._outage.failed(self._what, error)
        await asyncio.sleep(wait)

    def _wait(self, error: Exception) -> float:
        limits = self._limits
        # The errors of both services have these attributes; of all others, errors of the network are temporary.
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


_OF_CRAWLS: Final = Backoff(0.25, 10.0)


class Retry:
    """Repeats calls to the platform that a crawl needs, and logs the outage.

    ``retry_time``: seconds for which a call may fail; 0: no limit.
    """

    def __init__(
        self,
        retry_time: float,
        backoff: Backoff = _OF_CRAWLS,
        outage: Outage | None = None,
        longest_wait: float = 300.0,
    ) -> None:
        self._limits = Limits(0, retry_time, backoff, longest_wait)
        self._outage = outage or Outage()

    async def until_done(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        """Return the result of ``call``, which must be repeatable; raises an error that is not temporary.

        ``what`` names the operation in the log: a verb and its object, as "store items".
        """
        try:
            result = await repeat(call, Attempts(self._limits, self._outage, what).failed)
            self._outage.worked(what)
            return result
        finally:
            self._outage.given_up(what)


class Outage:
    """Report of an outage of the platform, for all writers of a crawl together.

    One warning when the first write fails, one a minute with the number of failures while any write fails, and one line
    when all of them succeed again: a full disk or an unreachable platform fails hundreds of writes. ``remedy`` is a
    sentence for the reader of the log.
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
        """Report that ``what`` succeeded."""
        if what in self._failing and len(self._failing) == 1:
            failures = "1 failure" if self._failures == 1 else f"{self._failures} failures"
            self._logger.info("The platform stores everything again, after %s", failures)
        self._failing.pop(what, None)

    def given_up(self, what: str) -> None:
        """Report that ``what`` is not tried again."""
        self._failing.pop(what, None)

    def _warn(self, now: float, text: str, *arguments: object) -> None:
        self._reported = now
        self._logger.warning(f"{text}%s", *arguments, f" {self.remedy}" if self.remedy else "")
