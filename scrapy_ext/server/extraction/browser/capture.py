"""``networkCapture``: responses to the requests of a page, as they came, with bodies where a filter asks for them.

A body is read as soon as it is complete, because Chromium drops the bodies of a document that the page leaves. What is
kept is bounded: by the number of responses, and by the bytes of all bodies together. A response beyond that is listed
without its body; a redirect has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pybase64
from playwright.async_api import Error, Page, Request, Response

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.plan import CaptureFilter
from scrapy_ext.server.net.guard import without_credentials

#: Responses of a page that are returned, the first ones.
MAX_CAPTURED: Final = 200


class NetworkCapture:
    """Create it before the page is navigated, so that it sees all responses."""

    def __init__(self, page: Page, filters: Sequence[CaptureFilter], limits: ServiceLimits) -> None:
        self._filters = filters
        self._room = limits.capture_bytes
        self._captured: list[tuple[Request, dict[str, Any]]] = []
        self._wanted: dict[Request, dict[str, Any]] = {}
        self._reading: set[asyncio.Task[None]] = set()
        page.on("response", self._answered)
        page.on("requestfinished", self._finished)

    async def results(self, time_limit: float) -> list[dict[str, Any]]:
        """Return the captured responses, with the bodies that are complete within the time limit, in seconds."""
        if self._reading:
            await asyncio.wait(self._reading, timeout=time_limit)
        for task in self._reading:
            task.cancel()
        return [entry for _, entry in self._captured]

    @property
    def size(self) -> int:
        """Characters of all bodies."""
        return sum(len(entry.get("httpResponseBody", "")) for _, entry in self._captured)

    def _answered(self, response: Response) -> None:
        request = response.request
        matching = [each for each in self._filters if each.matches(response.url, request.resource_type)]
        if not matching or len(self._captured) >= MAX_CAPTURED:
            return
        entry: dict[str, Any] = {
            "url": without_credentials(response.url),
            "statusCode": response.status,
            "headers": {name: value for name, value in response.headers.items() if name != "connection"},
        }
        self._captured.append((request, entry))
        if any(each.http_response_body for each in matching):
            self._wanted[request] = entry

    def _finished(self, request: Request) -> None:
        entry = self._wanted.pop(request, None)
        if entry is None:
            return
        task = asyncio.ensure_future(self._read(request, entry))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, request: Request, entry: dict[str, Any]) -> None:
        try:
            async with timeout_after(_LONGEST_READ):
                # Its length is known before its body is brought here.
                if (await request.sizes())["responseBodySize"] > self._room:
                    return
                response = await request.response()
                body = await response.body() if response is not None else b""
        except (Error, *TIMEOUT_ERRORS):
            return  # A redirect, or one that Chromium has dropped.
        if len(body) <= self._room:
            self._room -= len(body)
            entry["httpResponseBody"] = pybase64.b64encode_as_string(body)


#: Seconds for one body.
_LONGEST_READ: Final = 10.0
