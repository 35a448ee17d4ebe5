"""How long to wait before trying again: what the server said, else exponential backoff, always with jitter.

Jitter is only ever added to what a server said, never taken away: coming back early earns another refusal.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

#: Seconds of jitter on top of a ``Retry-After``, so that clients that were refused together do not return together.
RETRY_AFTER_JITTER: Final = 0.25


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
