"""Time that goes on while the machine sleeps, and that nobody sets."""

from __future__ import annotations

import time


def elapsing() -> float:
    """Seconds since some moment."""
    boottime: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)
