"""One crawl's extraction: the entry for requests, and the client with its ledger, its stats and its retry policies.

:meth:`Extraction.respond` takes a request to its response; :meth:`Extraction.end_of` decides whether an error ends the
crawl. The middleware closes the crawl, and returns unsent requests to the queue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import EXTENSIONS, PROBLEM_TYPES
from scrapy_ext.client.extraction import Bounds, ExtractClient, ExtractError, ExtractTransport, RequestAttempt
from scrapy_ext.client.extraction.budget import Budget, MissingPriceError, OverBudgetError, Spent, kind_of
from scrapy_ext.client.extraction.errors import (
    AccountSuspendedError,
    BrowserMissingError,
    KeyRefusedError,
    UnreachableServiceError,
    is_fatal,
)
from scrapy_ext.client.extraction.ledger import Ledger, LedgerError, key_of
from scrapy_ext.client.extraction.redact import redacted
from scrapy_ext.client.extraction.retry_policy import FIRST_ATTEMPTS, NO_CONNECTION
from scrapy_ext.client.extraction.tally import Tally
from scrapy_ext.client.extraction.transport import too_large
from scrapy_ext.crawl.commit.tracking import Entry, current
from scrapy_ext.crawl.extraction.download import DownloadSignals, StopGrace, as_scrapys
from scrapy_ext.crawl.extraction.escalation import BrowserDomains, Escalation
from scrapy_ext.crawl.extraction.from_settings import (
    RequestPolicies,
    ledger_path,
    limiter_of,
    memory_of,
    params_of,
    policy_of,
    prices_of,
)
from scrapy_ext.crawl.extraction.jar import FIELD, CrawlCookies
from scrapy_ext.crawl.extraction.redirects import Redirects, is_left_to_scrapy
from scrapy_ext.crawl.extraction.results import to_response
from scrapy_ext.crawl.extraction.translate import (
    BodyOptions,
    content_fields,
    goes_to_service,
    has_omitted,
    omitted_headers,
    scrapy_default_headers,
    to_body,
)
from scrapy_ext.crawl.frontier.identity import host_of
from scrapy_ext.crawl.session.scrapy_engine import LentPlaces, on_fetched, watch
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.telemetry.spans import request_span

logger = logging.getLogger(__name__)

#: Seconds for which an answer waits in memory for the commit that makes it unnecessary: those of a commit besides
#: PLATFORM_FLUSH_INTERVAL, and the most of both, since a kill loses these answers.
_COMMIT_SECONDS: Final = 1.0
_LONGEST_HOLD: Final = 5.0
#: Seconds between two updates of the stats while requests are sent.
_STATS_INTERVAL: Final = 1.0

#: Close reasons for errors that every further request would get as well.
_FATAL: Final[Mapping[type[ExtractError], str]] = {
    KeyRefusedError: "extract_api_bad_key",
    AccountSuspendedError: "extract_api_suspended_account",
}
#: Close reason for errors that show that there is no extraction service at the address.
_UNAVAILABLE: Final = "extract_api_unavailable"
#: Close reasons by the budget that is used up.
_BUDGETS: Final = {
    "EXTRACT_API_MAX_REQUESTS": "extract_api_max_requests",
    "EXTRACT_API_MAX_COST": "extract_api_max_cost",
}
#: Most requests that wait for the service and lend their places: they are in memory, some kilobytes each, and the queue
#: may hand out another one for each place that is lent.
_MOST_LENT: Final = 10_000
#: The same while every routed request must wait: direct requests continue.
_MOST_LENT_WHEN_PAUSED: Final = 100


class CrawlEnd(NamedTuple):
    """End of the crawl because no further request would be answered: close reason, and failure or not."""

    reason: str
    is_failure: bool = True


class Extraction:
    """Extraction of one crawl. Raises :class:`SettingError`."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._session = session
        self._extra_fields: list[str] = names.EXTRACT_API_EXTRA_FIELDS.read(settings)
        self._log_requests: bool = names.EXTRACT_API_LOG_REQUESTS.read(settings)
        self._max_requests: int = names.EXTRACT_API_MAX_REQUESTS.read(settings)
        self._max_cost: float = names.EXTRACT_API_MAX_COST.read(settings)
        self._prices = prices_of(settings)
        self._policies = RequestPolicies(policy_of(settings))
        self._bounds = Bounds(settings.getfloat("DOWNLOAD_TIMEOUT"), settings.getint("DOWNLOAD_MAXSIZE"))
        self._warn_size = settings.getint("DOWNLOAD_WARNSIZE")
        self.limiter = session.limiter = limiter_of(settings)
        self.limiter.on_held = self._lend
        self._transparent: bool = names.EXTRACT_API_TRANSPARENT_MODE.read(settings)
        self._lent: LentPlaces | None = None
        self._signals = DownloadSignals(crawler)
        self._grace = StopGrace(crawler, names.EXTRACT_API_STOP_GRACE.read(settings))
        #: Error of the first request that needed a missing browser, and whether any request had a response.
        self._no_browser: BrowserMissingError | None = None
        self._has_response = False
        self._answers = memory_of(settings)
        self._tally = Tally()
        self._stats_due = 0.0
        self._browser_domains = BrowserDomains()
        self._cookies = CrawlCookies(crawler)
        self._strict: bool = names.EXTRACT_API_STRICT.read(settings)
        self._keys: WeakKeyDictionary[Request, list[bytes]] = WeakKeyDictionary()
        self._options = BodyOptions(
            params=params_of(settings),
            default_headers=scrapy_default_headers(settings),
            cookies=settings.getbool("COOKIES_ENABLED"),
            # CookiesMiddleware has removed cookies that do not belong to the request.
            own_cookies=False,
            omitted_headers=omitted_headers(settings),
            extensions=frozenset(self._extra_fields),
            cookie_places=self._cookies.places,
        )
        self._redirects = Redirects(crawler)
        self._known: frozenset[str] | None = None
        self._asking = asyncio.Lock()
        self._redirects.extensions = self._cookies.extensions = self._options.extensions
        self._ledger: Ledger | None = None
        self._client: ExtractClient | None = None
        self._opening: asyncio.Future[ExtractClient] | None = None
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    async def respond(self, request: Request) -> Response | None:
        """Return the response of the service to a request, None for one that goes direct.

        Raises the errors of :meth:`ExtractClient.extract`, also as Scrapy's (:mod:`.download`), those of
        :meth:`Redirects.finish`, :class:`~scrapy_ext.client.extraction.limiter.Closing` if the request was not sent
        because the crawl closes, and :class:`~scrapy_ext.client.extraction.ledger.LedgerError` if the ledger of the
        crawl must not be used.
        """
        if not self.is_routed(request):
            return None
        self.limiter.check_open(host_of(request))
        async with self._grace.held():
            with (
                request_span(request.method, request.url, self._session.span_attributes) as span,
                self._signals.of(request),
            ):
                response = await self._answered(request)
                span.answered(response.status)
                self._has_response = True
                response = self._signals.received(request, response)
            return self._redirects.finish(request, response)

    def is_routed(self, request: Request) -> bool:
        """Return true for a request that goes to the service."""
        return goes_to_service(request, transparent=self._transparent)

    def end_of(self, error: Exception) -> CrawlEnd | None:
        """Return the end of the crawl that follows from an error, None if further requests may be answered."""
        match error:
            case OverBudgetError():
                return CrawlEnd(_BUDGETS[error.setting], is_failure=False)
            case MissingPriceError():
                return CrawlEnd("bad_setting")
            case LedgerError():
                return CrawlEnd("extract_api_bad_ledger")
            case ExtractError() if self._is_fatal(error):
                return CrawlEnd(_FATAL.get(type(error), _UNAVAILABLE))
        return None

    @property
    def missing_browser(self) -> BrowserMissingError | None:
        """Error of the first request that needed a browser, if the service has none and no request had a response."""
        return None if self._has_response else self._no_browser

    def wind_up(self) -> None:
        """Send nothing more: the spider closes."""
        self.limiter.wind_up()
        self._grace.begin()

    def keep_answers(self, request: Request) -> None:
        """Keep the answers of a request that returns to the queue: its next run needs them."""
        self._keys.pop(request, None)

    # ── one request ──

    async def _answered(self, request: Request) -> Response:
        try:
            return await self._respond(request)
        except ExtractError as error:
            if isinstance(error, BrowserMissingError):
                self._no_browser = self._no_browser or error
            marked = as_scrapys(error)
            if marked is error:
                raise
            raise marked from error.__cause__

    async def _respond(self, request: Request) -> Response:
        client = self._client or await self._open()
        if self._known is None:
            await self._learn_extensions(client, request)
        spider = self._crawler.spider
        fields = to_body(request, self._options)
        escalation = Escalation.of(request, spider)
        if escalation is None:
            return await self._extract(client, request, fields)
        by_browser = escalation.browser_fields(fields, extra_fields=self._extra_fields)
        domain = host_of(request)
        if by_browser is None:
            return await self._extract(client, request, fields)
        if self._browser_domains.prefers_browser(domain):
            return await self._extract(client, request, by_browser)
        response: Response | None = None
        try:
            response = await self._extract(client, request, fields)
            reason = escalation.reason(response, spider)
        except ExtractError as error:
            reason = escalation.reason_after(error)
            if reason is None:
                raise
        if reason is None and response is not None and is_left_to_scrapy(response):
            return response
        self._browser_domains.learn(domain, escalated=reason is not None)
        if reason is None and response is not None:
            return response
        self._tally.escalated(str(reason))
        logger.debug("%s goes to the browser (%s)", request, reason)
        return await self._extract(client, request, by_browser)

    def _spider_opened(self) -> None:
        self._lent = LentPlaces(self._crawler)
        on_fetched(self._crawler, self._redirects.keep_private)

    def _lend(self) -> None:
        if self._lent is not None:
            most = _MOST_LENT_WHEN_PAUSED if self.limiter.is_all_paused else _MOST_LENT
            self._lent.lend(min(self.limiter.held, most))

    async def _spider_closed(self, reason: str) -> None:
        self._write_stats(domains=True)
        if table := self._tally.table():
            logger.info("Extraction requests:\n%s", table)
        if self._client is not None:
            await self._client.close()
        if self._ledger is not None:
            await self._ledger.close(complete=reason == "finished" or not self._ledger.spent.requests)

    def _write_stats(self, *, domains: bool) -> None:
        stats = self._crawler.stats
        for name, value in self._tally.stats(domains=domains).items():
            stats.set_value(name, value)
        if self._client is not None and self._client.shared:
            stats.set_value("extract_api/shared", self._client.shared)
        if self._client is not None and self._client.reused:
            stats.set_value("extract_api/reused", self._client.reused)

    def _is_fatal(self, error: ExtractError) -> bool:
        is_there = self._client is not None and self._client.is_there
        attempts = self._policies.default.attempts(NO_CONNECTION) if is_there else FIRST_ATTEMPTS
        return is_fatal(error, has_answered=is_there, attempts=attempts)

    # ── one extraction ──

    async def _extract(self, client: ExtractClient, request: Request, fields: Mapping[str, Any]) -> Response:
        sent = self._cookies.to_send(request, self._redirects.to_send(request, fields))
        if self._log_requests:
            logger.debug("POST /extract %s", msgspec.json.encode(redacted(sent)).decode())
        bounds = self._bounds_of(request)
        key = key_of(sent) if self._ledger is not None else b""
        started = time.monotonic()
        try:
            result = await client.extract(
                sent,
                domain=host_of(request),
                policy=self._policies.of(request, first=not client.is_there),
                bounds=bounds,
                ledger_key=key,
            )
        finally:
            if key:
                self._keep_answer(request, key)
        self._know(client.transport.extensions)
        request.meta["download_latency"] = time.monotonic() - started
        response = to_response(request, result)
        if self._redirects.is_to_be_repeated(request, response, sent, fields):
            return await self._extract(client, request, fields)
        self._cookies.store(request, response, sent)
        size = len(response.body)
        if 0 < bounds.max_size < size:
            raise too_large(size, bounds.max_size, sent)
        warn_size = request.meta.get("download_warnsize", self._warn_size)
        if warn_size and size > warn_size:
            logger.warning("%d bytes are more than DOWNLOAD_WARNSIZE (%d) in %s", size, warn_size, request)
        return response

    def _bounds_of(self, request: Request) -> Bounds:
        timeout = request.meta.get("download_timeout", self._bounds.timeout)
        max_size = request.meta.get("download_maxsize", self._bounds.max_size)
        if (timeout, max_size) == (self._bounds.timeout, self._bounds.max_size):
            return self._bounds
        return Bounds(float(timeout or 0), int(max_size))

    def _keep_answer(self, request: Request, key: bytes) -> None:
        """Keep an answer until its results are safe: until the frontier has committed them, else until the engine has
        released the request."""
        entry = current.get()
        if self._session.items is not None and isinstance(entry, Entry):
            entry.answers.append(key)
        else:
            self._keys.setdefault(request, []).append(key)

    def _finished(self, request: Request) -> None:
        if self._ledger is not None:
            for key in self._keys.pop(request, ()):
                self._ledger.finished(key)

    def _observe(self, attempt: RequestAttempt) -> None:
        error = attempt.error
        if error is None:
            self._tally.answered(attempt.domain, attempt.kind, attempt.seconds, attempt.cost)
        else:
            self._tally.failed(
                attempt.domain,
                attempt.kind,
                attempt.seconds,
                error.type.strip("/") if error.type in PROBLEM_TYPES else type(error).__name__,
                retried=attempt.wait is not None,
                ambiguous=error.ambiguous,
                cost=attempt.cost,
            )
            if attempt.wait is not None:
                logger.debug("%s Trying again in %.1f s", error, attempt.wait)
        if attempt.paused:
            self._tally.throttled(attempt.domain, attempt.paused)
        now = time.monotonic()
        if now >= self._stats_due:
            self._stats_due = now + _STATS_INTERVAL
            self._write_stats(domains=False)

    # ── opening ──

    async def _open(self) -> ExtractClient:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._opened())
        return await asyncio.shield(self._opening)

    async def _learn_extensions(self, client: ExtractClient, request: Request) -> None:
        """Read which fields the service accepts besides those of the contract.

        The service is called for this only before a request that depends on it, so that a foreign service gets no other
        calls. A request that must not be sent twice depends on it, since the service may follow redirects, and so does
        one by browser, whose cookies may log in.
        """
        if self._strict:
            self._know(frozenset())
            return
        is_safe = request.method in ("GET", "HEAD")
        if (
            not is_safe
            or self._redirects.kept_by(request)
            or has_omitted(request, self._options)
            or self._needs_cookies(request)
        ):
            async with self._asking:
                try:
                    if client.transport.extensions is None:
                        await client.transport.ask_extensions()
                except UnreachableServiceError as error:
                    logger.debug("%s", error)  # The request itself reports an unreachable service.
        self._know(client.transport.extensions)

    def _needs_cookies(self, request: Request) -> bool:
        fields = content_fields(request, self._options.params)
        return kind_of(fields) == "browser" and FIELD not in fields and self._cookies.are_wanted(request, fields)

    def _know(self, extensions: frozenset[str] | None) -> None:
        if extensions is None or self._known is not None:
            return
        self._known = extensions
        known = (frozenset() if self._strict else extensions).union(self._extra_fields)
        self._redirects.extensions = self._cookies.extensions = known
        self._options = msgspec.structs.replace(self._options, extensions=known)

    async def _opened(self) -> ExtractClient:
        await self._session.open()
        services = self._session.services
        if services is None:
            raise RuntimeError("there is no extraction service: the crawl could not be opened")
        job = self._session.job_key
        self._options = msgspec.structs.replace(self._options, job_id=str(job) if job else None)
        path = ledger_path(self._crawler.settings, job if self._session.items is not None else None)
        if path is not None:
            interval: float = names.PLATFORM_FLUSH_INTERVAL.read(self._crawler.settings)
            hold_time = min(interval + _COMMIT_SECONDS, _LONGEST_HOLD) if self._session.items is not None else 0.0
            self._ledger = await Ledger.open(path, hold_time=hold_time)
            self._session.answers = self._ledger
            watch(self._crawler, self._finished)
            if self._ledger.unanswered:
                logger.warning(
                    "%d extraction requests of an earlier run may have been billed, and their answers are not known",
                    self._ledger.unanswered,
                )
        if not names.EXTRACT_API_URL.read(self._crawler.settings):
            self._know(frozenset(EXTENSIONS))  # The embedded service is of this version.
        spent = self._ledger.spent if self._ledger is not None else Spent()
        self._client = ExtractClient(
            ExtractTransport(services.extract_url, services.extract_key, self._bounds.timeout or 0),
            self.limiter,
            self._policies.default,
            extra_fields=self._extra_fields,
            strict=self._strict,
            budget=Budget(self._max_requests, self._max_cost, msgspec.structs.replace(spent)),
            prices=self._prices,
            ledger=self._ledger,
            memory=self._answers,
            observe=self._observe,
        )
        return self._client
