"""``networkCapture``: responses to the requests of a page, as they came, with bodies where a filter asks for them.

A body is read as soon as it is complete, because Chromium drops the bodies of a document that the page leaves. What is
kept is bounded: by the number of responses, and by the bytes of headers and bodies together. A response whose headers
have no room is left out, one whose body has none is listed without it, as is a redirect.

The page comes first: one body is read at a time, none of unknown size, and the result waits for a bounded time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pybase64
from playwright.async_api import CDPSession, Error, Page, Request, Response

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.browser.body_sizes import BodySizes
from scrapy_ext.server.extraction.plan import CaptureFilter
from scrapy_ext.server.net.guard import without_credentials

#: Responses of a page that are returned, the first ones.
MAX_CAPTURED: Final = 200
#: Seconds for one body, and for all that are still to be read at the end of the page.
_LONGEST_READ: Final = 5.0


class NetworkCapture:
    """Create it before the page is navigated, so that it sees all responses, and :meth:`start` it."""

    def __init__(self, page: Page, filters: Sequence[CaptureFilter], limits: ServiceLimits) -> None:
        self._filters = filters
        self._room = limits.capture_bytes
        self._captured: list[dict[str, Any]] = []
        self._wanted: dict[Request, dict[str, Any]] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._sizes = BodySizes(page) if any(each.http_response_body for each in filters) else None
        page.on("response", self._answered)
        page.on("requestfinished", self._finished)

    async def start(self, devtools: CDPSession) -> None:
        if self._sizes is not None:
            await self._sizes.start(devtools)

    async def results(self) -> list[dict[str, Any]]:
        """Return the captured responses, with the bodies that were complete, and are read in time."""
        if self._reading:
            await asyncio.wait(self._reading, timeout=_LONGEST_READ)
        for task in self._reading:
            task.cancel()
        return list(self._captured)

    def _answered(self, response: Response) -> None:
        request = response.request
        matching = [each for each in self._filters if each.matches(response.url, request.resource_type)]
        if not matching or len(self._captured) >= MAX_CAPTURED:
            return
        url = without_credentials(response.url)
        headers = {name: value for name, value in response.headers.items() if name != "connection"}
        size = len(url) + sum(len(name) + len(value) for name, value in headers.items())
        if size > self._room:
            return
        self._room -= size
        entry: dict[str, Any] = {"url": url, "statusCode": response.status, "headers": headers}
        self._captured.append(entry)
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
        async with self._one_at_a_time:
            try:
                async with timeout_after(_LONGEST_READ):
                    size = await self._size(request, entry)
                    if size is None or size > self._room:
                        return
                    response = await request.response()
                    body = await response.body() if response is not None else b""
            except (Error, *TIMEOUT_ERRORS):
                return  # A redirect, or one that Chromium has dropped.
            if len(body) <= self._room:
                self._room -= len(body)
                entry["httpResponseBody"] = pybase64.b64encode_as_string(body)

    async def _size(self, request: Request, entry: dict[str, Any]) -> int | None:
        """Return the bytes of a body, which is in the browser; None if they are unknown."""
        size = self._sizes.of(request.url) if self._sizes is not None else None
        if size is None and "content-encoding" not in entry["headers"]:
            return int((await request.sizes())["responseBodySize"])
        return size
