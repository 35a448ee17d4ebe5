"""``ExtractMiddleware``: routes requests through ``POST /extract`` instead of to the site."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Self
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.job import job_dir

from scrapy_ext import settings as names
from scrapy_ext.api.platform.jobs import FINISHED
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.client.extraction.budget import MissingPriceError, OverBudgetError
from scrapy_ext.client.extraction.errors import (
    AccountSuspendedError,
    BrowserMissingError,
    KeyRefusedError,
)
from scrapy_ext.client.extraction.ledger import LedgerError
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.crawl.commit.tracking import RETURNED_KEY, Entry, current
from scrapy_ext.crawl.extraction.download_signals import DownloadSignals
from scrapy_ext.crawl.extraction.extraction import Extraction
from scrapy_ext.crawl.extraction.stopping import StopGrace
from scrapy_ext.crawl.extraction.translate import is_routed, scrapy_default_headers
from scrapy_ext.crawl.frontier.own_headers import mark_added, note
from scrapy_ext.crawl.frontier.slots import host_of
from scrapy_ext.crawl.session.scrapy_engine import LentPlaces, on_closing, on_fetched
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Close reasons for errors that every further request would get, too.
_FATAL: Final[dict[type[ExtractError], str]] = {
    KeyRefusedError: "extract_api_bad_key",
    AccountSuspendedError: "extract_api_suspended_account",
}
#: Close reasons for a URL without an extraction service.
_UNAVAILABLE: Final = "extract_api_unavailable"
#: Close reason when every request needs a browser and the service has none.
_NO_BROWSER: Final = "extract_api_no_browser"
#: Close reasons by exhausted budget.
_BUDGETS: Final = {
    "EXTRACT_API_MAX_REQUESTS": "extract_api_max_requests",
    "EXTRACT_API_MAX_COST": "extract_api_max_cost",
}
#: Maximum requests that wait for the service without occupying a downloader slot: each takes some kilobytes of memory,
#: and the queue may hand out another one instead.
_MOST_LENT: Final = 10_000
#: The same maximum while no routed request may be sent: direct requests continue.
_MOST_LENT_WHEN_PAUSED: Final = 100


class _NoBrowserError(Exception):
    def __init__(self, detail: str) -> None:
        super().__init__(f"No request had a response, because the extraction service has no browser: {detail}")


class _OneLine(logging.Filter):
    """Log filter that reports a request that failed through the service in one line, without Scrapy's traceback, which
    would precede the message."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ExtractError | ContractError) and str(record.msg).startswith("Error downloading"):
            record.msg, record.args = f"{record.getMessage()}: {error} ({type(error).__name__})", ()
            record.exc_info = record.exc_text = None
        return True


_one_line = _OneLine()


class CrawlClosingError(ExtractError):
    """The request was not sent because the crawl is closing, and no scheduler can keep it."""


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
        self._transparent: bool = names.EXTRACT_API_TRANSPARENT_MODE.read(crawler.settings)
        self._session = Session.of(crawler).require(extraction=True)
        self._check_meta = self._session.unknown_names.check_meta
        self._extraction = Extraction(crawler, self._session)
        self._limiter = self._session.limiter = self._extraction.limiter
        self._limiter.on_held = self._lend
        self._lent: LentPlaces | None = None
        #: Requests that this process returned to the scheduler.
        self._returned: WeakSet[Request] = WeakSet()
        self._signals = DownloadSignals(crawler)
        self._grace = StopGrace(crawler, names.EXTRACT_API_STOP_GRACE.read(crawler.settings))
        #: The first request that failed for lack of a browser, and whether any request had a response.
        self._no_browser: BrowserMissingError | None = None
        self._has_response = False
        self._task: asyncio.Future[None] | None = None
        logging.getLogger("scrapy.core.scraper").addFilter(_one_line)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

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
        if not self._routes(request):
            return None
        try:
            self._limiter.check_open(host_of(request))
            async with self._grace.held():
                return await self._respond(request)
        except Closing:
            pass
        except OverBudgetError as error:
            if self._close(_BUDGETS[error.setting], error):
                raise
        except MissingPriceError as error:
            if self._fail(error, "bad_setting"):
                raise
        except LedgerError as error:
            if self._fail(error, "extract_api_bad_ledger"):
                raise
        except ExtractError as error:
            if not self._extraction.is_fatal(error):
                raise
            if self._fail(error, _FATAL.get(type(error), _UNAVAILABLE)):
                raise
        return self._back_to_queue(request)

    async def _respond(self, request: Request) -> Response:
        with self._signals.of(request):
            try:
                response = await self._extraction.respond(request)
            except BrowserMissingError as error:
                self._no_browser = self._no_browser or error
                raise
            self._has_response = True
            response = self._signals.received(request, response)
        return self._extraction.redirects.finish(request, response)

    def _routes(self, request: Request) -> bool:
        if not is_routed(request, transparent=self._transparent):
            return False
        if request.meta.get("extract_api"):
            return True
        parts = urlparse_cached(request)
        is_robots_txt = request.callback is NO_CALLBACK and parts.path == "/robots.txt"
        return parts.scheme in ("http", "https") and not is_robots_txt

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

    def _fail(self, error: Exception, reason: str) -> bool:
        """Close the spider and make its command fail. Returns as :meth:`_stop`."""
        is_lost = self._stop()
        self._session.fail(error, reason)
        return is_lost

    def _close(self, reason: str, why: Exception) -> bool:
        """Close the spider. Returns as :meth:`_stop`."""
        if self._limiter.is_closed:
            return False
        is_lost = self._stop()
        logger.warning("%s", why)
        self._task = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))
        return is_lost

    def _stop(self) -> bool:
        """Stop sending. Return true for the first such call without a persistent queue: then the caller that waits for
        the request, such as scrapy shell, must receive the error."""
        is_first = not self._limiter.is_closed
        self._limiter.close()
        return is_first and self._session.items is None and not job_dir(self._crawler.settings)

    def _lend(self) -> None:
        if self._lent is not None:
            most = _MOST_LENT_WHEN_PAUSED if self._limiter.is_all_paused else _MOST_LENT
            self._lent.lend(min(self._limiter.held, most))

    def _spider_opened(self) -> None:
        self._lent = LentPlaces(self._crawler)
        on_closing(self._crawler, self._wind_up)
        on_fetched(self._crawler, self._extraction.redirects.keep_private)
        retries = self._crawler.get_downloader_middleware(RetryMiddleware)
        if retries is not None:
            retries.exceptions_to_retry = (_but_ours(retries.exceptions_to_retry),)

    def _wind_up(self) -> None:
        self._limiter.wind_up()
        self._grace.begin()

    def _spider_idle(self) -> None:
        if self._no_browser is not None and not self._has_response:
            self._session.fail(_NoBrowserError(self._no_browser.detail), _NO_BROWSER)
            raise CloseSpider(_NO_BROWSER)

    async def _spider_closed(self, reason: str) -> None:
        await self._extraction.close(complete=reason == FINISHED)


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
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        if not names.EXTRACT_API_ENABLED.read(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Record the headers set by the user."""
        note(request, self._defaults)

    def _spider_opened(self) -> None:
        on_fetched(self._crawler, self._mark)

    def _mark(self, request: Request, result: object) -> None:
        """Mark Scrapy's headers in the request and in the one that a middleware or redirect replaced it with, which
        copies them."""
        mark_added(request, self._defaults, request)
        other = result if isinstance(result, Request) else getattr(result, "request", None)
        if other is not None and other is not request:
            mark_added(other, self._defaults, request)
