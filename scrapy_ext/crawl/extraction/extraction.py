"""Extraction of one crawl: the way of a routed request.

::

    Request ── plan ──> Exchange ── service ──> result ── read ──> Response
               (pure)              (POST, retries)        (pure)

A page that may need the browser has a second exchange, which is planned before the first is sent. Signals, the span and
the grace time of a stopped crawl surround these steps (:mod:`.download`). The response then has its cookies stored, and
its redirect left to Scrapy or refused (:mod:`.redirects`). The middleware closes the crawl, and returns unsent requests
to the queue.
"""

from __future__ import annotations

import asyncio

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.job import job_dir

from scrapy_ext import settings as names
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.client.extraction.errors import BanError
from scrapy_ext.crawl.extraction.closing import CrawlEnd, StopGrace, end_of
from scrapy_ext.crawl.extraction.content import is_routed
from scrapy_ext.crawl.extraction.cookies import CrawlCookies
from scrapy_ext.crawl.extraction.doubtful import Doubts, without_doubts
from scrapy_ext.crawl.extraction.download import Downloads
from scrapy_ext.crawl.extraction.escalation import BrowserHosts
from scrapy_ext.crawl.extraction.plan import Exchange, Plan
from scrapy_ext.crawl.extraction.redirects import Redirects, is_left_to_scrapy
from scrapy_ext.crawl.extraction.response import read, restored
from scrapy_ext.crawl.extraction.service import Service
from scrapy_ext.crawl.extraction.site_rules import NotAppliedError, RuleReports, are_applied, corrected
from scrapy_ext.crawl.frontier.identity import host_of
from scrapy_ext.crawl.session.scrapy_engine import LentPlaces, on_fetched
from scrapy_ext.crawl.session.session import Session


class Extraction:
    """Extraction of one crawl. Raises :class:`SettingError`."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._cookies = CrawlCookies(crawler)
        self._redirects = Redirects(crawler)
        self._transparent: bool = names.EXTRACT_API_TRANSPARENT_MODE.read(crawler.settings)
        self._plan = Plan(crawler, self._cookies)
        self._service = Service(crawler, session)
        self._downloads = Downloads(crawler, session.span_attributes)
        self._grace = StopGrace(crawler)
        self._browser_hosts = BrowserHosts()
        self._rules = RuleReports()
        self._doubts = Doubts()
        #: Whether any request had a response.
        self.has_response = False
        self.limiter = self._service.limiter
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._service.close, signal=signals.spider_closed)
        crawler.signals.connect(self._count_reports, signal=signals.spider_closed)

    async def respond(self, request: Request) -> Response | None:
        """Return the response of the service to a request, None for one that goes direct.

        Raises the errors of :meth:`ExtractClient.extract`, also as Scrapy's (:mod:`.download`), those of
        :meth:`Redirects.finish`, :class:`~scrapy_ext.client.extraction.limiter.Closing` if the request was not sent
        because the crawl closes, and :class:`~scrapy_ext.client.extraction.ledger.LedgerError` if the ledger of the
        crawl must not be used.
        """
        if not self.is_routed(request):
            return None
        host = host_of(request)
        self.limiter.check_open(host)
        exchange, response = await self._grace.run(self._downloaded(request, host))
        return self._redirects.finish(exchange, response, self._service.accepted)

    async def _downloaded(self, request: Request, host: str) -> tuple[Exchange, Response]:
        with self._downloads.of(request, host) as span:
            exchange = self._plan.exchange(request, host, await self._service.opened())
            response = await self._page(exchange)
            self.has_response = True
            return exchange, self._downloads.received(request, response, span)

    async def _page(self, exchange: Exchange) -> Response:
        """Return the page of an exchange; if it needs the browser, the page of its exchange by browser."""
        if exchange.by_browser is not None and self._browser_hosts.prefers_browser(exchange.host):
            exchange = exchange.by_browser
        while True:
            by_browser = exchange.by_browser
            try:
                answer = await self._service.send(exchange)
            except BanError:
                if by_browser is None:
                    raise
                reason = "ban"
            else:
                response = await self._corrected(exchange, read(exchange, answer.result))
                self._leave_out(exchange, response)
                self._cookies.store(exchange.request, response, answer.sent, self._service.accepted)
                if by_browser is None:
                    return response
                found = exchange.escalation.reason(response, self._crawler.spider)
                if found is None:
                    # A redirect shows nothing of the page.
                    if not is_left_to_scrapy(response):
                        self._browser_hosts.learn(exchange.host, escalated=False)
                    return response
                reason = found
            self._browser_hosts.learn(exchange.host, escalated=True)
            self._service.counts.escalated(exchange, reason)
            exchange = by_browser

    async def _corrected(self, exchange: Exchange, response: Response) -> Response:
        """Return the response with the item after the rules of its site, applied by the service or here."""
        used, result = exchange.rules, response.extract_result  # type: ignore[attr-defined]
        if used is None or result.get(used.kind) is None:
            return response
        if not are_applied(result):
            try:
                found = await asyncio.to_thread(corrected, used, response)
            except NotAppliedError as error:
                self._rules.not_applied(used, response.url, error)
                return response
            # The result is that of this response alone.
            result[used.kind], result[EXTRACT_RULES] = found
        self._rules.add(used, result[EXTRACT_RULES], response.url)
        return response

    def _leave_out(self, exchange: Exchange, response: Response) -> None:
        """Leave out of the result of a response what is below ``minProbability``, if the service did not."""
        result = without_doubts(exchange.fields, response.extract_result)  # type: ignore[attr-defined]
        response.extract_result = result  # type: ignore[attr-defined]
        self._doubts.add(exchange.fields, result, response.url)

    def _count_reports(self) -> None:
        for name, value in (self._rules.counts | self._doubts.counts).items():
            self._crawler.stats.set_value(name, value)

    def is_routed(self, request: Request) -> bool:
        """Return true for a request that goes to the service."""
        return is_routed(request, transparent=self._transparent)

    def restored(self, request: Request, response: Response) -> Response | None:
        """Return a page of Scrapy's HTTP cache with its result, None where the page is not all of it."""
        return restored(response, self._plan.content_fields_of(request))

    def end_of(self, error: Exception) -> CrawlEnd | None:
        """Return the end of the crawl that follows from an error, None if further requests may be answered."""
        return end_of(error, self._service.is_lost)

    def wind_up(self) -> None:
        """Send nothing more: the spider closes.

        When it is stopped from outside, requests that wait for their turn return to a queue that keeps them: with a
        delay they would take minutes. So they do in a worker of a group that has failed, which has no permits.
        """
        session = self._session
        has_queue = session.items is not None or bool(job_dir(self._crawler.settings))
        is_stopped = not self._crawler.crawling or (session.group is not None and session.ending.has_failed)
        self.limiter.wind_up(at_once=has_queue and is_stopped)
        self._grace.begin()

    def keep_answers(self, request: Request) -> None:
        """Keep the answers of a request that returns to the queue: its next run needs them."""
        self._service.keep_answers(request)

    def _spider_opened(self) -> None:
        LentPlaces(self._crawler, self.limiter)
        on_fetched(self._crawler, self._redirects.keep_private)
