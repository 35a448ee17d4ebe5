"""A routed request as a download of Scrapy: its signals, its errors, and its end when the crawl is stopped.

Signals are sent as the downloader sends them for direct requests: ``request_reached_downloader`` before the request
waits for its turn; with the result, ``headers_received``, ``bytes_received`` with the whole body at once, and
``response_downloaded``; at the end, after a failure as well, ``request_left_downloader``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ext.api.extraction.problems import PROBLEM_TYPES, Cause
from scrapy_ext.client.extraction.errors import ExtractError, TooLargeError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, Timeout, timeout_at
from scrapy_ext.compatibility.scrapy import (
    FAILED_ATTRIBUTES,
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy_ext.crawl.frontier.identity import host_of
from scrapy_ext.crawl.session.scrapy_engine import keep_slot

logger = logging.getLogger(__name__)

#: Meta key by which AutoThrottle ignores a request.
_NO_THROTTLE: Final = "autothrottle_dont_adjust_delay"
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


class DownloadSignals:
    """Signals of one crawl's routed requests."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @contextmanager
    def of(self, request: Request) -> Iterator[None]:
        """Send the first and the last signal of a request around the time that it spends in the service."""
        request.meta["download_slot"] = host_of(request)
        keep_slot(self._crawler, request)
        self._send(signals.request_reached_downloader, request=request)
        try:
            yield
        finally:
            keep_slot(self._crawler, request)
            self._send(signals.request_left_downloader, request=request)

    def received(self, request: Request, response: Response) -> Response:
        """Send the signals of a response. If a handler raises ``StopDownload``, return the response without its body,
        or with the received one, to the callback or the errback, as Scrapy does."""
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
                # The message of Scrapy.
                logger.debug("Download stopped for %s from signal handler %s", arguments["request"], name)
                return result.value
        return None

    def _send(self, signal: object, **arguments: Any) -> list[tuple[Any, Any]]:
        return self._crawler.signals.send_catch_log(signal=signal, spider=self._crawler.spider, **arguments)


class StopGrace:
    """Grace time, in seconds, of running requests when a crawl is stopped from outside (Ctrl-C, SIGTERM,
    ``crawler.stop()``).

    When the spider closes by itself, they have the timeout of any request, since their results belong to the crawl.
    After Ctrl-C, or under a runner with a grace time of its own, the crawl must not wait for a service that does not
    answer.
    """

    def __init__(self, crawler: Crawler, seconds: float) -> None:
        self._crawler = crawler
        self._seconds = seconds
        self._under_way: set[Timeout] = set()
        self._ends_at: float | None = None
        self._is_reported = False

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Run a request; raises :class:`Closing` if it does not end within the grace time."""
        deadline = timeout_at(self._ends_at)
        self._under_way.add(deadline)
        try:
            async with deadline:
                yield
        except TIMEOUT_ERRORS:
            if not deadline.expired():
                raise
            self._report()
            raise Closing("the grace time is over") from None
        finally:
            self._under_way.discard(deadline)

    def begin(self) -> None:
        """Begin the grace time, if the spider was stopped from outside."""
        if self._crawler.crawling or self._ends_at is not None:
            return
        loop = asyncio.get_running_loop()
        self._ends_at = loop.time() + self._seconds
        for deadline in self._under_way:
            deadline.reschedule(self._ends_at)

    def _report(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            logger.warning(
                "%d requests have no answer of the extraction service %g s after the stop (EXTRACT_API_STOP_GRACE): "
                "they return to the queue",
                len(self._under_way),
                self._seconds,
            )


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
