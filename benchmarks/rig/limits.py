"""An extraction service that limits requests by the name of the page's host.

``python -m rig.limits SECONDS`` says its port and ends with its standard input. Every answer takes so many seconds.
``limited….test``: 429 for ever. ``once.test``: of each URL, the first request gets the limit that its path names
(``/over-user-limit/…``), with ``Retry-After: 1``; the page that comes then has the monotonic time of when that was
sent. Any other: a page. The line ``last`` on standard input is answered with the time of the last answer.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from rig.http1 import head, serve
from rig.processes import Running, python

#: Types of limits in paths, and their statuses.
LIMITS: Final = {
    "over-user-limit": 429,
    "over-domain-limit": 429,
    "over-org-domain-limit": 429,
    "over-global-limit": 503,
}
#: Hosts that are always limited.
_RETRY_AFTER: Final = 2
_HEADERS: Final = [{"name": "Content-Type", "value": "text/html; charset=utf-8"}]


@contextmanager
def limiting(delay: float) -> Generator[tuple[str, Running]]:
    """Run the service; return its URL and its process."""
    with python("-m", "rig.limits", str(delay)) as running:
        yield f"http://127.0.0.1:{running.said}/v1", running


class _Service:
    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._limited_at: dict[str, float] = {}
        self._last = 0.0

    def answer(self, path: str, body: bytes) -> tuple[float, list[bytes]]:
        self._last = max(self._last, time.monotonic() + self._delay)
        return self._delay, self._parts(json.loads(body)["url"])

    def last(self, line: str) -> str:
        return str(self._last)

    def _parts(self, url: str) -> list[bytes]:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if host.startswith("limited"):
            return _limit("over-domain-limit", _RETRY_AFTER)
        if host.startswith("once") and url not in self._limited_at:
            self._limited_at[url] = time.monotonic() + self._delay
            return _limit(parts.path.split("/")[1], 1)
        page = f"<!DOCTYPE html><html><head><title>{self._limited_at.get(url, 0)}</title></head><body></body></html>"
        result = {"url": url, "statusCode": 200, "httpResponseBody": base64.b64encode(page.encode()).decode()}
        encoded = json.dumps({**result, "httpResponseHeaders": _HEADERS}).encode()
        return [head("200 OK", "application/json", len(encoded)), encoded]


def _limit(kind: str, retry_after: int) -> list[bytes]:
    status = LIMITS[kind]
    problem = {"type": f"/limits/{kind}", "title": "Limit", "status": status, "detail": "Come back later."}
    encoded = json.dumps(problem).encode()
    headers = {"Retry-After": str(retry_after)}
    return [head(f"{status} Limit", "application/problem+json", len(encoded), headers), encoded]


if __name__ == "__main__":
    service = _Service(float(sys.argv[1]))
    asyncio.run(serve(service.answer, asked=service.last))
