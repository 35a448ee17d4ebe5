"""Requests and hosts that must wait for a time."""

from __future__ import annotations

from typing import Any, Final

from scrapy import Request
from scrapy.http import Response

from scrapy_ext.client.retry import parse_retry_after

#: Answers that ask for patience when they have a ``Retry-After``.
_STATUSES: Final = (429, 503)
#: No host is left alone for longer, whatever it asks for.
_LONGEST: Final = 3600.0


def not_before(request: Request) -> float:
    """When a request may be sent (meta ``frontier_not_before``), in seconds since the epoch; 0: at any time."""
    when: Any = request.meta.get("frontier_not_before")
    return float(when) if isinstance(when, int | float) else 0.0


def retry_after(response: Response) -> float | None:
    """For how many seconds a site wants no more requests; None if it does not say so."""
    if response.status not in _STATUSES:
        return None
    value = response.headers.get("Retry-After")
    seconds = parse_retry_after(value.decode("latin-1")) if value else None
    return None if not seconds else min(seconds, _LONGEST)
