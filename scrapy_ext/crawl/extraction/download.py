"""A routed request as a download of Scrapy: its signals, its span and its errors.

Signals are sent as the downloader sends them for direct requests: ``request_reached_downloader`` before the request
waits for its turn; with the result, ``headers_received``, ``bytes_received`` with the whole body at once, and
``response_downloaded``; at the end, after a failure as well, ``request_left_downloader``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ext.api.extraction.problems import PROBLEM_TYPES, Cause
from scrapy_ext.client.extraction.errors import ExtractError, TooLargeError
from scrapy_ext.compatibility.scrapy import (
    FAILED_ATTRIBUTES,
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy_ext.crawl.session.scrapy_engine import DownloaderSlots
from scrapy_ext.telemetry.spans import Span, request_span

logger = logging.getLogger(__name__)

#: Scrapy's error classes by the cause that the service names.
_BY_CAUSE: Final[Mapping[str, type[Exception]]] = {
    Cause.HOST_NOT_FOUND.value: CannotResolveHostError,
    Cause.HOST_NOT_ALLOWED.value: DownloadFailedError,
    Cause.CONNECTION_REFUSED.value: DownloadConnectionRefusedError,
    Cause.TIMEOUT.value: DownloadTimeoutError,
    Cause.CUT_SHORT.value: ResponseDataLossError,
    Cause.TOO_LARGE.value: DownloadCancelledError,
}
#: Scrapy's error classes by problem type, if the service names no cause.
_BY_TYPE: Final[Mapping[str, type[Exception]]] = {
    "/website/domain-unreachable": CannotResolveHostError,
    "/server/timed-out": DownloadTimeoutError,
    "/download/temporary-error": DownloadFailedError,
    "/download/internal-error": DownloadFailedError,
}


class Downloads:
    """Routed requests of one crawl as downloads of Scrapy."""

    def __init__(self, crawler: Crawler, span_attributes: Mapping[str, str]) -> None:
        self._crawler = crawler
        self._span_attributes = span_attributes
        self._slots = DownloaderSlots(crawler)

    @contextmanager
    def of(self, request: Request, host: str) -> Iterator[Span]:
        """Run a request with its span, and with its first and its last signal around the time that it spends in the
        service. Raises errors of the service also as Scrapy's."""
        request.meta["download_slot"] = host
        with request_span(request.method, request.url, self._span_attributes) as span:
            self._slots.enter(host, request)
            self._send(signals.request_reached_downloader, request=request)
            try:
                yield span
            except ExtractError as error:
                marked = as_scrapys(error)
                if marked is error:
                    raise
                raise marked from error.__cause__
            finally:
                self._slots.leave(host, request)
                self._send(signals.request_left_downloader, request=request)

    def received(self, request: Request, response: Response, span: Span) -> Response:
        """Send the signals of a response, and record it in the span. If a handler raises ``StopDownload``, return the
        response without its body, or with the received one, to the callback or the errback, as Scrapy does."""
        try:
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
            self._send(signals.response_downloaded, request=request, response=response)
            return response
        finally:
            span.answered(response.status)

    def _stop(self, signal: object, **arguments: object) -> StopDownload | None:
        for handler, result in self._send(signal, **arguments):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                name = getattr(handler, "__qualname__", handler)
                # The message of Scrapy.
                logger.debug("Download stopped for %s from signal handler %s", arguments["request"], name)
                return result.value
        return None

    def _send(self, signal: object, **arguments: object) -> list[tuple[Any, Any]]:
        return self._crawler.signals.send_catch_log(signal=signal, spider=self._crawler.spider, **arguments)


def as_scrapys(error: ExtractError) -> ExtractError:
    """Return an error as an instance of Scrapy's class for the same cause as well, if there is one: errbacks for direct
    requests expect that class. The error keeps the name of its own class, by which errors are counted."""
    scrapys = _class_of(error)
    if scrapys is None or isinstance(error, scrapys):
        return error
    # mypy confuses the hash of a class with that of its instances.
    both = _both(type(error), scrapys)  # type: ignore[arg-type]
    # A new object, because an error of the operating system (of Twisted, with Scrapy 2.14) cannot become the class of
    # an existing one.
    marked = both.__new__(both, *error.args)
    marked.__dict__.update(error.__dict__)
    marked.args = error.args
    marked.__cause__, marked.__context__ = error.__cause__, error.__context__
    marked.__suppress_context__ = error.__suppress_context__
    return marked.with_traceback(error.__traceback__)


def _class_of(error: ExtractError) -> type[Exception] | None:
    if isinstance(error, TooLargeError):
        return DownloadCancelledError
    if error.cause in _BY_CAUSE:
        return _BY_CAUSE[error.cause]
    row = PROBLEM_TYPES.get(error.type)
    if row is None and error.status is not None:
        row = next((row for row in PROBLEM_TYPES.values() if row.status == error.status), None)
    return _BY_TYPE.get(row.type) if row is not None else None


@cache
def _both(kind: type[ExtractError], scrapys: type[Exception]) -> type[ExtractError]:
    return type(
        kind.__name__, (kind, scrapys), {"__doc__": kind.__doc__, "__module__": kind.__module__, **FAILED_ATTRIBUTES}
    )
