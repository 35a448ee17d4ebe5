"""``ExtractMiddleware``: requests go through ``POST /extract`` instead of to the site."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Any, Final, Self

import msgspec
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext import settings as names
from scrapy_ext.api.extraction import check
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction import Attempt, ExtractClient, ExtractError, ExtractTransport, Limiter, RetryPolicy
from scrapy_ext.client.extraction.errors import (
    AccountSuspendedError,
    KeyRefusedError,
    UnexpectedAnswerError,
    UnreachableServiceError,
)
from scrapy_ext.client.extraction.redact import redacted
from scrapy_ext.client.extraction.results import to_response
from scrapy_ext.client.extraction.retry import NO_CONNECTION
from scrapy_ext.client.extraction.translate import BodyOptions, is_routed, scrapy_default_headers, to_body
from scrapy_ext.crawl.session import Session
from scrapy_ext.crawl.slots import host_of
from scrapy_ext.crawl.tracking import RETURNED_KEY
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Close reasons for errors that every further request would get too: the first two always, and a service that
#: takes no connection; the others while nothing has succeeded yet, for then no such service is at the address.
_FATAL: Final[dict[type[ExtractError], str]] = {
    KeyRefusedError: "extract_api_bad_key",
    AccountSuspendedError: "extract_api_suspended_account",
    UnreachableServiceError: "extract_api_unavailable",
    UnexpectedAnswerError: "extract_api_unavailable",
}
_ALWAYS_FATAL: Final = (KeyRefusedError, AccountSuspendedError)
_NO_SUCH_PATH: Final = (404, 405)


class ExtractMiddleware:
    """Routes requests through the extraction service (extraction-api.md).

    With ``EXTRACT_API_TRANSPARENT_MODE``, which the add-on sets, every http and https request is routed but for
    robots.txt files; else those whose meta ``extract_api`` is True or a dict of fields. ``extract_api: False``
    goes direct. The response has ``extract_result``, the whole decoded answer, and the flag ``"extract-api"``.

    A request that breaks a rule of the contract is not sent: its errback gets
    :class:`~scrapy_ext.api.violations.ContractError` with every broken rule. Failures of the service come as
    :class:`~scrapy_ext.client.extraction.ExtractError` after the attempts of ``EXTRACT_API_RETRY_POLICY``.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._session = Session.of(crawler).require(extraction=True)
        self._transparent: bool = names.EXTRACT_API_TRANSPARENT_MODE.read(settings)
        self._params: dict[str, Any] = names.EXTRACT_API_PARAMS.read(settings)
        self._max_requests: int = names.EXTRACT_API_MAX_REQUESTS.read(settings)
        self._log_requests: bool = names.EXTRACT_API_LOG_REQUESTS.read(settings)
        try:
            self._policy = RetryPolicy.merged(names.EXTRACT_API_RETRY_POLICY.read(settings))
        except ContractError as error:
            raise SettingError("EXTRACT_API_RETRY_POLICY", "cannot be read", str(error)) from None
        # A wrong address is to be told at once, not after the patience that a service in use deserves.
        self._first_policy = self._policy.with_overrides({NO_CONNECTION: 2}, "")
        _check_params(self._params)
        self._default_headers = scrapy_default_headers(settings)
        self._options: BodyOptions | None = None
        self._client: ExtractClient | None = None
        self._sent = 0
        self._closing = False
        self._has_succeeded = False
        self._task: asyncio.Future[None] | None = None
        crawler.signals.connect(self._engine_stopped, signal=signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy; raises :class:`SettingError`."""
        if not names.EXTRACT_API_ENABLED.read(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    async def process_request(self, request: Request) -> Request | Response | None:
        """The response that the service gave, or None to let the request go direct."""
        if not self._routes(request):
            return None
        if self._closing:
            return _back_to_queue(request)
        if self._max_requests and self._sent >= self._max_requests:
            logger.info("EXTRACT_API_MAX_REQUESTS reached: %d extraction requests", self._max_requests)
            self._closing = True
            self._task = asyncio.ensure_future(
                self._crawler.engine.close_spider_async(reason="extract_api_max_requests")
            )
            return _back_to_queue(request)
        client = await self._opened()
        fields = to_body(request, self._options)
        if self._log_requests:
            logger.debug("POST /extract %s", msgspec.json.encode(redacted(fields)).decode())
        self._sent += 1
        started = time.monotonic()
        try:
            policy = None if self._has_succeeded else self._first_policy
            result = await client.extract(fields, domain=host_of(request), policy=policy)
        except ExtractError as error:
            reason = self._fatal(error)
            if reason is None:
                raise
            self._closing = True
            self._session.fail(error, reason)
            return _back_to_queue(request)
        self._has_succeeded = True
        request.meta["download_latency"] = time.monotonic() - started
        return to_response(request, result)

    def _routes(self, request: Request) -> bool:
        if not is_routed(request, transparent=self._transparent):
            return False
        if request.meta.get("extract_api"):
            return True
        parts = urlparse_cached(request)
        is_robots_txt = request.callback is NO_CALLBACK and parts.path == "/robots.txt"
        return parts.scheme in ("http", "https") and not is_robots_txt

    async def _opened(self) -> ExtractClient:
        if self._client is None:
            await self._session.open()
            services = self._session.services
            if services is None:
                raise RuntimeError("the extraction service is not there: the crawl could not be opened")
            settings = self._crawler.settings
            job = self._session.job_key
            self._options = BodyOptions(
                params=self._params, default_headers=self._default_headers, job_id=str(job) if job else None
            )
            self._client = ExtractClient(
                ExtractTransport(services.extract_url, services.extract_key, settings.getfloat("DOWNLOAD_TIMEOUT")),
                _limiter(settings),
                self._policy,
                observe=self._observe,
            )
        return self._client

    def _observe(self, attempt: Attempt) -> None:
        stats = self._crawler.stats
        stats.inc_value("extract_api/attempts")
        if attempt.error is None:
            stats.inc_value("extract_api/success")
            return
        name = attempt.error.type.strip("/") or type(attempt.error).__name__
        stats.inc_value(f"extract_api/errors/{name}")
        if attempt.wait is not None:
            stats.inc_value("extract_api/retries")
            logger.debug("%s Trying again in %.1f s", attempt.error, attempt.wait)

    def _fatal(self, error: ExtractError) -> str | None:
        if isinstance(error, _ALWAYS_FATAL):
            return _FATAL[type(error)]
        if isinstance(error, UnreachableServiceError) and not error.ambiguous:
            return _FATAL[UnreachableServiceError]
        if self._has_succeeded:
            return None
        if error.status in _NO_SUCH_PATH:
            return _FATAL[UnreachableServiceError]
        return _FATAL.get(type(error))

    async def _engine_stopped(self) -> None:
        if self._client is not None:
            await self._client.close()


def _check_params(params: dict[str, Any]) -> None:
    """Fields that are wrong by themselves are told before the crawl begins; how they go together depends on the
    request."""
    fields = {name: value for name, value in params.items() if value is not None}
    faults = [fault for fault in check({"url": "https://example.com/", **fields}) if fault.status == 400]
    if faults:
        raise SettingError("EXTRACT_API_PARAMS", "has a field that cannot be sent", str(ContractError(faults)))


def _limiter(settings: BaseSettings) -> Limiter:
    """What holds for a site in Scrapy's downloader holds for its routed requests: caps and delays by domain."""
    slots = settings.getdict("DOWNLOAD_SLOTS")
    delay, default_jitter = settings.getfloat("DOWNLOAD_DELAY"), settings.getfloat("DOWNLOAD_DELAY_JITTER")

    def delay_of(domain: str) -> float:
        slot = slots.get(domain, {})
        jitter = float(slot.get("jitter", default_jitter))
        return float(slot.get("delay", delay)) * (1 + random.uniform(-jitter, jitter))

    return Limiter(
        settings.getint("CONCURRENT_REQUESTS"),
        settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"),
        caps={domain: int(slot["concurrency"]) for domain, slot in slots.items() if "concurrency" in slot},
        delay_of=delay_of,
    )


def _back_to_queue(request: Request) -> Request:
    """The request again, for the scheduler to keep: the crawl is closing, and the next run can do it.

    Raises :class:`IgnoreRequest` for one that comes back, as those of ``engine.download_async`` do, which no
    scheduler keeps.
    """
    if RETURNED_KEY in request.meta:
        raise IgnoreRequest("the crawl is closing")
    return request.replace(dont_filter=True, meta={**request.meta, RETURNED_KEY: True})
