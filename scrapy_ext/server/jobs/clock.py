"""Monotonic clock that counts suspend."""

from __future__ import annotations

import time


def elapsing() -> float:
    """Return seconds since an arbitrary time."""
    boottime: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)
