"""Scrapy's signals about a download, sent for routed requests as its downloader sends them for direct ones.

In their order: ``request_reached_downloader`` before the request waits for its turn; when the result is there,
``headers_received``, ``bytes_received`` with the whole body at once, and ``response_downloaded``; at the end, whatever
came of it, ``request_left_downloader``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ext.crawl.frontier.slots import host_of
from scrapy_ext.crawl.session.scrapy_engine import keep_slot

logger = logging.getLogger(__name__)

#: Meta key by which AutoThrottle leaves a request alone.
_NO_THROTTLE: Final = "autothrottle_dont_adjust_delay"


class DownloadSignals:
    """Sends the signals of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @contextmanager
    def of(self, request: Request) -> Iterator[None]:
        """The time that a request spends where the downloader would have it."""
        request.meta["download_slot"] = host_of(request)
        keep_slot(self._crawler, request)
        self._send(signals.request_reached_downloader, request=request)
        try:
            yield
        finally:
            keep_slot(self._crawler, request)
            self._send(signals.request_left_downloader, request=request)

    def received(self, request: Request, response: Response) -> Response:
        """Send the signals of a response. A handler that raises ``StopDownload`` gets what Scrapy gives: the response
        without its body, or with what was received, for the callback or the errback."""
        stop = self._stop(
            signals.headers_received, request=request, headers=response.headers, body_length=len(response.body)
        )
        if stop is not None:
            response = response.replace(body=b"", request=request)
        elif response.body:
            stop = self._stop(signals.bytes_received, request=request, data=response.body)
        if stop is not None:
            response.flags.append("download_stopped")
            if stop.fail:
                stop.response = response
                raise stop
        self._downloaded(request, response)
        return response

    def _downloaded(self, request: Request, response: Response) -> None:
        # The delay that AutoThrottle would adjust is that of direct requests to the same host.
        had = request.meta.get(_NO_THROTTLE)
        request.meta[_NO_THROTTLE] = True
        try:
            self._send(signals.response_downloaded, request=request, response=response)
        finally:
            if had is None:
                del request.meta[_NO_THROTTLE]
            else:
                request.meta[_NO_THROTTLE] = had

    def _stop(self, signal: object, **arguments: Any) -> StopDownload | None:
        for handler, result in self._send(signal, **arguments):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                name = getattr(handler, "__qualname__", handler)
                # In Scrapy's words.
                logger.debug("Download stopped for %s from signal handler %s", arguments["request"], name)
                return result.value
        return None

    def _send(self, signal: object, **arguments: Any) -> list[tuple[Any, Any]]:
        return self._crawler.signals.send_catch_log(signal=signal, spider=self._crawler.spider, **arguments)
