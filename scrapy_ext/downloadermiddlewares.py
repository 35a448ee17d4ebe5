"""``ExtractMiddleware``: routes requests through ``POST /extract`` instead of to the site."""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from weakref import WeakSet

import scrapy
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import CloseSpider, IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.job import job_dir

from scrapy_ext import settings as names
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.client.extraction.errors import BrowserMissingError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.compatibility.python import Self
from scrapy_ext.compatibility.scrapy import CACHE_KEEPS_RESULTS
from scrapy_ext.crawl.commit.tracking import RETURNED_KEY, Entry, current
from scrapy_ext.crawl.extraction.closing import CrawlEnd
from scrapy_ext.crawl.extraction.content import (
    hand_on_without_callback,
    is_for_robots_txt,
    note_without_callback,
    warn_once,
)
from scrapy_ext.crawl.extraction.extraction import Extraction
from scrapy_ext.crawl.extraction.headers import BROWSER_AGENT, message, scrapy_default_headers
from scrapy_ext.crawl.extraction.without_effect import warnings_of
from scrapy_ext.crawl.frontier.marks import mark_added, note_headers
from scrapy_ext.crawl.session.scrapy_engine import on_apart, on_closing, on_fetched
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.logformatter import ErrorFilter

logger = logging.getLogger(__name__)

#: Close reason when every request needs a browser, and the service has none.
_NO_BROWSER: Final = "extract_api_no_browser"


class _NoBrowserError(Exception):
    def __init__(self, detail: str) -> None:
        super().__init__(
            f"No request had a response, because the extraction service has no browser: {detail} Install one there, "
            "or request httpResponseBody."
        )


class _DownloadErrorFilter(ErrorFilter):
    """Log filter that reports a request that failed through the service in one line, without Scrapy's traceback, which
    would precede the message."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ExtractError | ContractError) and str(record.msg).startswith("Error downloading"):
            record.msg, record.args = f"{record.getMessage()}: {error} ({type(error).__name__})", ()
            record.exc_info = record.exc_text = None
        return True


_download_error_filter = _DownloadErrorFilter()


class CrawlClosingError(ExtractError):
    """The request was not sent because the crawl is closing, and no scheduler can keep it."""

    remedy = "The request was not sent: run the crawl again."


class ExtractMiddleware:
    """Routes requests through the extraction service (extraction-api.md).

    With ``EXTRACT_API_TRANSPARENT_MODE``, which the add-on sets, every http and https request is routed except for
    robots.txt files; else only those whose meta ``extract_api`` is True or a dict of fields. ``extract_api: False``
    goes direct. The response has ``extract_result``, the whole decoded answer, and the flag ``"extract-api"``.

    A request that breaks a rule of the contract is not sent: its errback gets
    :class:`~scrapy_ext.api.violations.ContractError` with every violation. Failures of the service are
    :class:`~scrapy_ext.client.extraction.ExtractError`, after the attempts of ``EXTRACT_API_RETRY_POLICY``. When the
    crawl closes, waiting requests return to the scheduler.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(extraction=True)
        self._check_meta = self._session.unknown_names.check_meta
        self._extraction = Extraction(crawler, self._session)
        self._limiter = self._extraction.limiter
        #: Error of the first request that needed a browser, which the service lacks.
        self._no_browser: BrowserMissingError | None = None
        #: Requests that this process returned to the scheduler.
        self._returned: WeakSet[Request] = WeakSet()
        self._task: asyncio.Future[None] | None = None
        if not CACHE_KEEPS_RESULTS:
            self.process_response = self._restore_result
        logging.getLogger("scrapy.core.scraper").addFilter(_download_error_filter)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy; raises :class:`SettingError`."""
        if not names.EXTRACT_API_ENABLED.read(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    async def process_request(self, request: Request) -> Request | Response | None:
        """Return the service's response, or None to send the request direct."""
        self._check_meta(request.meta)
        if RETURNED_KEY in request.meta and request not in self._returned:
            # A former run returned it to the scheduler.
            request.dont_filter = bool(request.meta.pop(RETURNED_KEY))
        return await self._respond(request)

    async def _respond(self, request: Request) -> Request | Response | None:
        try:
            return await self._extraction.respond(request)
        except Closing:
            pass
        except Exception as error:
            if isinstance(error, BrowserMissingError):
                self._no_browser = self._no_browser or error
            end = self._extraction.end_of(error)
            if end is None or self._end(end, error):
                raise
        return self._back_to_queue(request)

    async def _restore_result(self, request: Request, response: Response) -> Request | Response:
        """Return a page of Scrapy's HTTP cache with the result of its extraction, which the cache has not kept: made of
        the page, or of a new request to the service."""
        is_cached = "cached" in response.flags and self._extraction.is_routed(request)
        if not is_cached or hasattr(response, "extract_result"):
            return response
        restored = self._extraction.restored(request, response)
        if restored is not None:
            return restored
        if self._crawler.settings.getbool("HTTPCACHE_IGNORE_MISSING"):
            raise IgnoreRequest(f"Ignored request whose result is not in the cache: {request}")
        warn_once(
            "The HTTP cache of Scrapy %s does not keep results of extractions, so that requests for more than the page "
            "are sent again in each crawl. Use Scrapy 2.19 or later",
            scrapy.__version__,
        )
        return await self._respond(request) or response

    def _back_to_queue(self, request: Request) -> Request:
        """Return a copy of the request for the scheduler, so that the next run sends it: the crawl is closing.

        Raises :class:`CrawlClosingError` for a request that the scheduler would not keep, as of
        ``engine.download_async``.
        """
        if request in self._returned:
            entry = current.get()
            if isinstance(entry, Entry):
                entry.is_interrupted = True
            request.meta.pop(RETURNED_KEY, None)
            raise CrawlClosingError("the crawl is closing", sent={"url": request.url})
        self._extraction.keep_answers(request)
        # The dupefilter has seen it already.
        meta = {**request.meta, RETURNED_KEY: request.dont_filter}
        returned = request.replace(dont_filter=True, meta=meta)
        self._returned.add(returned)
        return returned

    def _end(self, end: CrawlEnd, error: Exception) -> bool:
        """Close the spider. Returns true for the first request with such an error if no queue is kept: the caller of
        that request, such as scrapy shell, must get the error."""
        is_first = not self._limiter.is_closed
        self._limiter.close()
        if end.is_failure:
            self._session.fail(error, end.reason)
        elif is_first:
            logger.warning("%s", error)
            self._task = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=end.reason))
        return is_first and self._session.items is None and not job_dir(self._crawler.settings)

    def _spider_opened(self) -> None:
        on_closing(self._crawler, self._extraction.wind_up)
        on_apart(self._crawler, note_without_callback)
        on_fetched(self._crawler, _hand_on)
        if line := message(self._crawler.settings, self._crawler.spider):
            logger.info("%s", line)
        for warning in warnings_of(self._crawler.settings):
            logger.warning("%s", warning)
        retries = self._crawler.get_downloader_middleware(RetryMiddleware)
        if retries is not None:
            retries.exceptions_to_retry = (_but_ours(retries.exceptions_to_retry),)

    def _spider_idle(self) -> None:
        if self._no_browser is not None and not self._extraction.has_response:
            self._session.fail(_NoBrowserError(self._no_browser.detail), _NO_BROWSER)
            raise CloseSpider(_NO_BROWSER)


def _hand_on(request: Request, result: object) -> None:
    if isinstance(result, Request):
        hand_on_without_callback(request, result)


def _but_ours(kinds: tuple[type[Exception], ...]) -> type[Exception]:
    """Return a stand-in for these exceptions in RetryMiddleware that excludes ours, which the client has retried.

    Ours are subclasses of Scrapy's, for errbacks; those that RETRY_EXCEPTIONS names explicitly are retried.
    """
    named = tuple(kind for kind in kinds if issubclass(kind, ExtractError))

    class Checked(type):
        def __instancecheck__(cls, error: object) -> bool:
            return isinstance(error, named if isinstance(error, ExtractError) else kinds)

    class ExceptionsToRetry(Exception, metaclass=Checked):  # noqa: N818  (never raised)
        pass

    return ExceptionsToRetry


class OwnHeadersMiddleware:
    """Distinguishes headers set by the user from equal ones added by Scrapy.

    Only the former are sent to the extraction service. It precedes DefaultHeadersMiddleware, where the add-on puts it.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._defaults = scrapy_default_headers(crawler.settings)
        #: Files robots.txt go direct, with the User-Agent of the pages.
        self._is_browsers = message(crawler.settings, crawler.spidercls) is not None
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not names.EXTRACT_API_ENABLED.read(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Note the headers that the user has set."""
        if self._is_browsers and is_for_robots_txt(request):
            request.headers.setdefault("User-Agent", BROWSER_AGENT)
        note_headers(request, self._defaults)

    def _spider_opened(self) -> None:
        on_fetched(self._crawler, self._mark)

    def _mark(self, request: Request, result: object) -> None:
        """Mark Scrapy's headers in the request and in the one that a middleware or redirect replaced it with, which
        copies them."""
        mark_added(request, self._defaults, request)
        other = result if isinstance(result, Request) else getattr(result, "request", None)
        if other is not None and other is not request:
            mark_added(other, self._defaults, request)
