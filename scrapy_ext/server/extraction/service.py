"""The extraction service: from a request that holds to the contract to its result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pybase64
from starlette.routing import Route
from w3lib.encoding import html_to_unicode

from scrapy_ext.api.extraction import ExtractRequest, ExtractResult
from scrapy_ext.server.auth import Caller
from scrapy_ext.server.config import ServerConfig
from scrapy_ext.server.extraction.blocking import BlockList
from scrapy_ext.server.extraction.browser import Browser
from scrapy_ext.server.extraction.extractors import Extractors
from scrapy_ext.server.extraction.fetch import Check, Fetcher, HttpResult
from scrapy_ext.server.extraction.guard import Guard, Resolve, system_resolve
from scrapy_ext.server.extraction.limits import Limits
from scrapy_ext.server.extraction.measures import Measures
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan, plan
from scrapy_ext.server.extraction.politeness import Politeness
from scrapy_ext.server.extraction.rates import ExtractionRates
from scrapy_ext.server.extraction.robots import Robots, agent_of
from scrapy_ext.server.extraction.routes import CallerOf, Paths
from scrapy_ext.server.extraction.turnstile import Turnstile
from scrapy_ext.server.extraction.upstream import Upstreams


class ExtractionService:
    """``POST /v1/extract``.

    ``caller_of`` says who asks with an API key, None for one that nobody has. ``resolve`` stands in for the system's
    resolver in tests. Raises :class:`ConfigError` for a configuration whose hosts, proxies or block list are not read.
    """

    def __init__(
        self,
        config: ServerConfig,
        caller_of: CallerOf,
        *,
        limits: Limits | None = None,
        resolve: Resolve = system_resolve,
    ) -> None:
        limits = limits or Limits()
        guard = Guard(
            config.allow_hosts,
            config.connect_to,
            resolve=resolve,
            timeout=limits.resolve,
            connect_timeout=limits.connect,
            cache_time=limits.resolve_cache,
            block_list=BlockList(config.block_list, look=limits.block_list),
        )
        self.fetcher = Fetcher(guard, limits, verify_tls=config.verify_tls)
        self.browser = Browser(
            guard, limits, path=config.browser_path, pages=config.max_browser_pages, verify_tls=config.verify_tls
        )
        self.extractors = Extractors(limits)
        self._upstreams = Upstreams(config.proxies)
        self._rates = ExtractionRates(config)
        self.measures = Measures()
        self._robots = Robots(self.fetcher.fetch) if config.obey_robots else None
        self._politeness = Politeness(limits, config.domain_requests, config.domain_delay)
        self._requests = Turnstile("requests", limits.requests, 0, 0)
        #: What answers below ``/v1``; with ``routes`` where it is part of a Starlette application.
        self.app = Paths(self.extract, caller_of, limits, self.measures)
        self.routes: list[Route] = self.app.routes

    async def start(self) -> None:
        """Get ready; the browser and the extractors start with the first request that needs them."""
        await self.fetcher.start()

    async def stop(self) -> None:
        """End whatever was started."""
        await asyncio.gather(self.fetcher.stop(), self.browser.stop(), self.extractors.stop())

    def metrics(self) -> Iterator[str]:
        """What it counts, in the text format of ``/metrics``."""
        return self.measures.lines(self._requests, self._politeness, self.browser)

    async def extract(self, request: ExtractRequest, caller: Caller) -> ExtractResult:
        """The result of a request, which counts for the rates of ``caller``.

        Raises :class:`ContractError` or :class:`ExtractionError`.
        """
        todo = plan(request, self._upstreams)
        host = (urlsplit(todo.url).hostname or "").rstrip(".")
        self._rates.take(caller, host)
        async with self._requests.place(), self._politeness.place(host):
            if isinstance(todo, PagePlan):
                result = await self._by_browser(request, todo)
            else:
                result = await self._by_http(request, todo)
        result.echo_data = request.echo_data
        result.job_id = request.job_id
        return result

    async def _by_http(self, request: ExtractRequest, todo: HttpPlan) -> ExtractResult:
        fetched = await self.fetcher.fetch(todo, self._check_of(todo))
        result = ExtractResult(url=fetched.url, status_code=fetched.status)
        if request.http_response_body:
            result.http_response_body = pybase64.b64encode_as_string(fetched.body)
        if request.http_response_headers:
            result.http_response_headers = fetched.headers
        if request.extract_type is not None:
            html = await asyncio.to_thread(_decode, fetched)
            await self._add_item(result, request.extract_type, html)
        return result

    async def _by_browser(self, request: ExtractRequest, todo: PagePlan) -> ExtractResult:
        check = self._check_of(todo)
        if check is not None:
            await check(todo.url)
        page = await self.browser.load(todo)
        if check is not None and page.url != todo.url:
            await check(page.url)
        result = ExtractResult(
            url=page.url, status_code=page.status, http_response_headers=page.headers, actions=page.actions
        )
        if request.browser_html:
            result.browser_html = page.html
        if page.screenshot is not None:
            result.screenshot = pybase64.b64encode_as_string(page.screenshot)
        if request.extract_type is not None:
            await self._add_item(result, request.extract_type, page.html or "")
        return result

    def _check_of(self, todo: HttpPlan | PagePlan) -> Check | None:
        """What is asked about each URL of a request."""
        robots = self._robots
        if robots is None:
            return None
        agent = agent_of(todo.headers)
        return lambda url: robots.check(url, agent, todo.upstream)

    async def _add_item(self, result: ExtractResult, kind: str, html: str) -> None:
        item = await self.extractors.extract(kind, html, result.url or "")
        setattr(result, _ATTRIBUTES[kind], item)


def _decode(fetched: HttpResult) -> str:
    """The text of a page, in the encoding that its headers, byte order mark or markup name."""
    content_type = next((header.value for header in fetched.headers if header.name.lower() == "content-type"), None)
    return html_to_unicode(content_type, fetched.body)[1]


_ATTRIBUTES: dict[str, Any] = {field.encode_name: field.name for field in msgspec.structs.fields(ExtractResult)}
