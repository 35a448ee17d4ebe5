"""Times and lengths of time, as people read them."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

#: Characters of a time.
TIME_WIDTH: Final = 19


def clock(milliseconds: Any) -> str:
    """A time of the API, milliseconds since the epoch, in UTC; nothing for what is not one."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    try:
        moment = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def clock_with_zone(milliseconds: Any) -> str:
    """The same where nothing beside it names the zone."""
    told = clock(milliseconds)
    return f"{told} UTC" if told else ""


def length(milliseconds: Any) -> str:
    """A length of time in at most six characters: ``340ms``, ``12.5s``, ``3m20s``, ``2h05m``."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m"
