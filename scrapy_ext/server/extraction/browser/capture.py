"""``networkCapture``: responses to the requests of a page, as they came, with bodies where a filter asks for them.

A body is read as soon as it is complete, because Chromium drops the bodies of a document that the page leaves. What is
kept is bounded: by the number of responses, and by the bytes of headers and bodies together. A response whose headers
have no room is left out, one whose body has none is listed without it, as is a redirect.

The page comes first: one body is read at a time, none of unknown size, and the result waits for a bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pybase64
from playwright.async_api import CDPSession, Error, Frame, Page, Request, Response

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.plan import CaptureFilter
from scrapy_ext.server.net.guard import without_credentials

# ── sizes of the bodies that a page receives, as they are after decompression ──
#
# Playwright reports the bytes on the wire: of a compressed body, as little as a thousandth. DevTools reports the
# decompressed ones while they arrive, so that the size of a body is known before it is brought out of the browser.
# Frames of other sites are processes of their own, with DevTools of their own.


#: URLs whose sizes are kept, the last ones.
_MOST: Final = 5000


class BodySizes:
    """Create it before the page is navigated, and :meth:`start` it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        #: Bytes of the largest body so far, by URL.
        self._sizes: dict[str, int] = {}
        #: Number of bodies that are still arriving, by URL.
        self._arriving = Counter[str]()
        self._ended = asyncio.Event()
        self._starting: set[asyncio.Task[None]] = set()
        page.on("framenavigated", self._navigated)

    async def of(self, url: str) -> int | None:
        """Return the bytes of the largest body that a URL had; None if they are unknown.

        Playwright, which has a session of its own, may report that a body is complete before this one has its size.
        """
        plain = _without_fragment(url)
        while self._arriving[plain] > 0:
            self._ended.clear()
            await self._ended.wait()
        return self._sizes.get(plain)

    async def start(self, devtools: CDPSession) -> None:
        """Note the sizes that a session of DevTools reports."""
        urls: dict[str, str] = {}
        received: dict[str, int] = {}

        def begun(event: dict[str, Any]) -> None:
            url = urls[event["requestId"]] = _without_fragment(event["response"]["url"])
            self._arriving[url] += 1
            self._note(url, 0)

        def arrived(event: dict[str, Any]) -> None:
            number = event["requestId"]
            received[number] = received.get(number, 0) + event["dataLength"]
            if number in urls:
                self._note(urls[number], received[number])

        def ended(event: dict[str, Any]) -> None:
            url = urls.pop(event["requestId"], None)
            received.pop(event["requestId"], None)
            if url is not None:
                self._arriving[url] -= 1
                if not self._arriving[url]:
                    del self._arriving[url]
                self._ended.set()

        devtools.on("Network.responseReceived", begun)
        devtools.on("Network.dataReceived", arrived)
        devtools.on("Network.loadingFinished", ended)
        devtools.on("Network.loadingFailed", ended)
        # This session keeps no bodies; that of Playwright does.
        await devtools.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})

    def _note(self, url: str, size: int) -> None:
        largest = max(self._sizes.pop(url, 0), size)
        if len(self._sizes) >= _MOST:
            del self._sizes[next(iter(self._sizes))]
        self._sizes[url] = largest

    def _navigated(self, frame: Frame) -> None:
        if frame.parent_frame is not None:
            task = asyncio.ensure_future(self._start_in(frame))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_in(self, frame: Frame) -> None:
        # It fails for a frame in the process of the page, which the session of the page reports, and one that is gone.
        with contextlib.suppress(Error):
            await self.start(await self._page.context.new_cdp_session(frame))


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]


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
        size = await self._sizes.of(request.url) if self._sizes is not None else None
        if size is None and "content-encoding" not in entry["headers"]:
            return int((await request.sizes())["responseBodySize"])
        return size
