"""The extraction service: from a request that holds to the contract to its result.

The HTTP client and the browser's driver are imported by :meth:`ExtractionService.start`, or with the first page that
needs them: together they take a third of a server's start and of its memory, and the server of a short crawl may need
neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
import pybase64

from scrapy_ext.api.extraction import ExtractRequest, ExtractResult, Problem
from scrapy_ext.api.extraction.fields import MARKDOWN
from scrapy_ext.api.extraction.min_probability import without_doubtful
from scrapy_ext.api.extraction.problems import ExtractionError, timed_out
from scrapy_ext.api.extraction.rules import problem_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.auto_pool import Extractors
from scrapy_ext.server.extraction.auto_worker import ExtractionTask
from scrapy_ext.server.extraction.bans.avoidance import BanAvoidance
from scrapy_ext.server.extraction.bans.tries import Sender
from scrapy_ext.server.extraction.custom_attributes import attribute_extractor
from scrapy_ext.server.extraction.documents import (
    UnshownFileError,
    binary_problem,
    is_of_pdf,
    is_pdf,
    kind_of_text,
    not_of_pdf,
    plan_by_http,
    refuse_viewed,
    shown_text,
)
from scrapy_ext.server.extraction.measures import BrowserFigures, ExtractionMetrics
from scrapy_ext.server.extraction.outgoing import agent_of
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan, first_page, plan
from scrapy_ext.server.extraction.request_limits import DomainLimits, ExtractionRates, Hold, domain_of, no_count
from scrapy_ext.server.extraction.routes import CallerOf, ExtractEndpoint, counted, hold_in
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.extraction.sessions import ExtractionSession, ExtractionSessions
from scrapy_ext.server.http.request_context import RequestContext
from scrapy_ext.server.net.blocked_domains import BlockList
from scrapy_ext.server.net.guard import Guard, Resolve, address_of, system_resolve
from scrapy_ext.server.net.pool import ProxyPool
from scrapy_ext.telemetry.families import Family
from scrapy_ext.telemetry.spans import inner_span, redacted

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.browser.browser import Browser
    from scrapy_ext.server.extraction.browser.page_result import PageResult
    from scrapy_ext.server.extraction.http.fetch import Check, Fetcher, HttpResult
    from scrapy_ext.server.extraction.http.robots import Robots


class ExtractionService:
    """``POST /v1/extract``.

    ``caller_of`` returns the caller of an API key, None for an unknown key, or raises :class:`CallerLookupError`.
    ``resolve`` replaces the system's resolver in tests. Raises :class:`ConfigError` for a configuration with unreadable
    hosts, proxies or block list.
    """

    def __init__(
        self,
        config: ServerConfig,
        caller_of: CallerOf,
        *,
        limits: ServiceLimits | None = None,
        resolve: Resolve = system_resolve,
    ) -> None:
        self._limits = limits = limits or ServiceLimits()
        #: The guard of all connections to targets, which other parts share.
        self.guard = Guard(
            config.allow_hosts,
            config.connect_to,
            resolve=resolve,
            timeout=limits.resolve,
            connect_timeout=limits.connect,
            cache_time=limits.resolve_cache,
            block_list=BlockList(config.block_list, poll_interval=limits.block_list),
        )
        self._config = config
        self._opening: asyncio.Task[Fetcher] | None = None
        self._fetcher: Fetcher | None = None
        self.extractors = Extractors(limits, config.extraction_processes)
        self._attributes = attribute_extractor(config, limits)
        self.pool = ProxyPool(config.proxies)
        self._bans = BanAvoidance(self.pool, detects=config.ban_detection)
        self._sessions = ExtractionSessions(limits)
        self._rates = ExtractionRates(config)
        self.measures = ExtractionMetrics()
        self._robots = self._robots_of_sites() if config.obey_robots else None
        self._domains = DomainLimits(limits, config.domain_requests, config.domain_delay)
        self._requests = FairSemaphore("requests", limits.requests, 0, 0)
        #: The ASGI application of ``/v1``.
        self.app = ExtractEndpoint(self.extract, caller_of, limits, self.measures)

    async def start(self) -> None:
        """Import what pages need; the browser and the extractors start with the first request that needs them."""
        await self._opened_fetcher()
        await asyncio.to_thread(import_module, "scrapy_ext.server.extraction.browser.browser")

    async def stop(self) -> None:
        fetcher = await self._opened_fetcher() if self._opening is not None else None
        parts = (fetcher, self._loaded_browser, self.extractors, self._attributes)
        await asyncio.gather(*(part.stop() for part in parts if part is not None))

    @property
    def fetcher(self) -> Fetcher:
        """The HTTP client, once it is opened."""
        if self._fetcher is None:
            raise RuntimeError("no page was fetched yet")
        return self._fetcher

    @cached_property
    def browser(self) -> Browser:
        from scrapy_ext.server.extraction.browser.browser import Browser

        config = self._config
        return Browser(
            self.guard, self._limits, path=config.browser, pages=config.browser_pages, verify_tls=config.verify_tls
        )

    @property
    def _loaded_browser(self) -> Browser | None:
        browser: Browser | None = vars(self).get("browser")
        return browser

    def _browser_figures(self) -> BrowserFigures:
        browser = self._loaded_browser
        return browser.figures() if browser is not None else BrowserFigures()

    async def _opened_fetcher(self) -> Fetcher:
        if self._fetcher is None:
            if self._opening is None:
                self._opening = asyncio.ensure_future(self._open_fetcher())
            # A cancelled request does not cancel it for the others.
            self._fetcher = await asyncio.shield(self._opening)
        return self._fetcher

    async def _open_fetcher(self) -> Fetcher:
        fetcher = await asyncio.to_thread(_new_fetcher, self.guard, self._limits, self._config.verify_tls)
        await fetcher.start()
        return fetcher

    async def _fetch(self, todo: HttpPlan, check: Check | None = None, hold: Hold = no_count) -> HttpResult:
        return await (await self._opened_fetcher()).fetch(todo, check, hold)

    def _robots_of_sites(self) -> Robots:
        from scrapy_ext.server.extraction.http.robots import Robots

        return Robots(self._fetch)

    def metrics(self) -> Iterator[Family]:
        """Yield the metrics of the service."""
        yield from self.measures.families(self._requests, self._domains, self._browser_figures())
        yield from self._bans.metrics()
        yield from self._sessions.metrics()
        yield from self._attributes.metrics()

    async def extract(self, request: ExtractRequest, caller: Caller, hold: Hold) -> ExtractResult:
        """Return the result of a request; it counts for the rates of ``caller``, ``hold`` counts its bytes.

        Raises :class:`ContractError` or :class:`ExtractionError`.
        """
        todo = plan(request, self.pool)
        host = domain_of(todo.url)
        self._rates.take(caller, host)
        first = first_page(request, todo) if request.session_context_parameters else None
        with self._sessions.of(request, caller) as session:
            # Before the permits, so that those that wait for the beginning hold none.
            if session is not None and first is not None:
                await session.begin(partial(self._begin, session, first, host, hold, caller))
            async with self._requests.permit(), self._domains.permit(host):
                if session is not None:
                    todo = session.apply(todo)
                if isinstance(todo, PagePlan):
                    result, state = await self._by_browser(request, todo, hold, caller)
                else:
                    result, state = await self._by_http(request, todo, hold, caller)
                if session is not None and todo.state is not None:
                    self._sessions.update(session, todo.state, state)
        if request.experimental.get("responseCookies"):
            result.experimental = {"responseCookies": result.response_cookies or []}
            if not request.response_cookies:
                result.response_cookies = None
        result.echo_data = request.echo_data
        result.job_id = request.job_id
        return result

    async def _begin(self, session: ExtractionSession, first: PagePlan, host: str, hold: Hold, caller: Caller) -> None:
        """Load the page that begins a session of the service, with its actions."""
        try:
            todo = session.apply(first)
            self._rates.take(caller, host)
            async with self._requests.permit(), self._domains.permit(host):
                page = await self._load_without_ban(todo, hold, caller)
            failed = next((acted for acted in page.actions or () if acted["status"] == "returned"), None)
            if failed is not None:
                raise ExtractionError(
                    "/problem/session-creation-error",
                    f"sessionContextParameters.actions: {failed['action']} failed: {failed['error']}. "
                    "Correct the actions, or send the request again.",
                )
        except ExtractionError:
            self.pool.end_session(session.name)
            raise
        self._sessions.update(session, todo.state or SessionState(), page.state)

    async def tried(
        self, request: ExtractRequest, caller: Caller, exchange: RequestContext | None
    ) -> ExtractResult | Problem:
        """Return the answer to a request from the pages: as ``POST /v1/extract`` answers it, counted and limited as
        there.
        """
        try:
            async with timeout_after(self._limits.request):
                work = self.extract(request, caller, hold_in(exchange))
                return await counted(self.measures, request, caller, work)
        except TIMEOUT_ERRORS:
            return timed_out(f"The request took longer than {self._limits.request:g} seconds.").problem
        except ContractError as error:
            return problem_of(error)
        except ExtractionError as error:
            return error.problem

    async def _with_checked_targets(self, todo: PagePlan, count: Callable[[str], None]) -> PagePlan:
        """Return a plan whose actions lead only to permitted targets; the others are marked as refused."""
        if not any(action.url for action in todo.actions):
            return todo
        actions = []
        for action in todo.actions:
            try:
                if action.url:
                    await self._check_target(todo, action.url)
                    count(domain_of(action.url))
                actions.append(action)
            except ExtractionError as refusal:
                actions.append(msgspec.structs.replace(action, refused=str(refusal)))
        return msgspec.structs.replace(todo, actions=actions)

    async def _check_target(self, todo: PagePlan, url: str) -> None:
        from w3lib.url import safe_url_string  # with the first page, as the HTTP client

        where = address_of(safe_url_string(url))
        await self.guard.endpoints(where.raw_host or "", where.port or 0)
        check = self._check_of(todo)
        if check is not None:
            await check(str(where))

    async def _by_http(
        self, request: ExtractRequest, todo: HttpPlan, hold: Hold, caller: Caller
    ) -> tuple[ExtractResult, SessionState | None]:
        fetched = await self._fetch_without_ban(todo, hold, caller)
        return await self._result_of_answer(request, fetched, caller), fetched.state

    async def _fetch_without_ban(self, todo: HttpPlan, hold: Hold, caller: Caller) -> HttpResult:
        return await self._bans.fetch(
            todo,
            lambda one: self._fetch(one, self._check_of(one), hold),
            lambda page: self._load(page, hold, caller),
            self._sender(todo, caller),
        )

    async def _load_without_ban(self, todo: PagePlan, hold: Hold, caller: Caller) -> PageResult:
        return await self._bans.load(todo, lambda one: self._load(one, hold, caller), self._sender(todo, caller))

    def _sender(self, todo: HttpPlan | PagePlan, caller: Caller) -> Sender:
        """Return the sender of further tries, which count and wait like requests of their own."""
        host = domain_of(todo.url)
        return Sender(
            caller.organisation,
            todo.session,
            take=lambda: self._rates.take(caller, host),
            start=lambda: self._domains.next_start(host),
        )

    async def _result_of_answer(self, request: ExtractRequest, fetched: HttpResult, caller: Caller) -> ExtractResult:
        result = ExtractResult(
            url=fetched.url,
            status_code=fetched.status,
            redirects=fetched.redirects or None,
            response_cookies=fetched.cookies,
        )
        if request.http_response_body:
            result.http_response_body = pybase64.b64encode_as_string(fetched.body)
        if request.http_response_headers:
            result.http_response_headers = fetched.headers
        if request.makes_something:
            kind = request.extract_type
            if not is_pdf(fetched.content_type, fetched.body):
                if problem := binary_problem(fetched.url, fetched.content_type, fetched.body):
                    raise problem
                viewed, html = await in_data_thread(_page_of, fetched)
                refuse_viewed(fetched.url, viewed, kind or MARKDOWN)
                await self._add_made(result, request, html, caller)
            elif kind is None or is_of_pdf(kind):
                await self._add_made(result, request, "", caller, pdf=fetched.body)
            else:
                raise not_of_pdf(fetched.url, kind)
        return result

    async def _by_browser(
        self, request: ExtractRequest, todo: PagePlan, hold: Hold, caller: Caller
    ) -> tuple[ExtractResult, SessionState | None]:
        try:
            page = await self._load_without_ban(todo, hold, caller)
        except UnshownFileError as download:
            by_http = plan_by_http(request, todo) if download.may_be_pdf else None
            if by_http is None:
                raise
            # A further request, which counts and waits like those after bans.
            sender = self._sender(by_http, caller)
            sender.take()
            await sender.start()
            fetched = await self._fetch_without_ban(by_http, hold, caller)
            if not is_pdf(fetched.content_type, fetched.body):
                raise
            return await self._result_of_answer(request, fetched, caller), fetched.state
        result = ExtractResult(
            url=page.url,
            status_code=page.status,
            redirects=page.redirects,
            http_response_headers=page.headers,
            actions=page.actions,
            response_cookies=page.cookies,
            network_capture=page.captured,
        )
        if request.browser_html:
            result.browser_html = page.html
        if page.screenshot is not None:
            result.screenshot = pybase64.b64encode_as_string(page.screenshot)
        if request.makes_something:
            refuse_viewed(page.url, page.viewed, request.extract_type or MARKDOWN)
            styles = page.styles is not None
            html = page.styles or page.html or ""
            boxes = styles and todo.boxes
            await self._add_made(result, request, html, caller, styles=styles, boxes=boxes)
        return result, page.state

    async def _load(self, todo: PagePlan, hold: Hold, caller: Caller) -> PageResult:
        """Load a page once, by the proxy of its plan."""
        todo = await self._with_checked_targets(todo, lambda other: self._rates.take(caller, other))
        check = self._check_of(todo)
        if check is not None:
            await check(todo.url)
        if self._loaded_browser is None:
            await asyncio.to_thread(import_module, "scrapy_ext.server.extraction.browser.browser")
        with inner_span("browser", {"url.full": redacted(todo.url)}):
            page = await self.browser.load(todo)
        taken = (page.html, page.styles, page.screenshot, page.document)
        hold(sum(len(each) for each in taken if each is not None))
        hold(sum(len(entry.get("httpResponseBody", "")) for entry in page.captured or ()))
        if check is not None and page.url != todo.url:
            await check(page.url)
        return page

    def _check_of(self, todo: HttpPlan | PagePlan) -> Check | None:
        robots = self._robots
        if robots is None:
            return None
        agent = agent_of(todo.headers)
        return lambda url: robots.check(url, agent, todo.upstream)

    async def _add_made(
        self,
        result: ExtractResult,
        request: ExtractRequest,
        html: str,
        caller: Caller,
        *,
        styles: bool = False,
        boxes: bool = False,
        pdf: bytes | None = None,
    ) -> None:
        """Add what is made of a page, or of a PDF: an item, Markdown."""
        kind, asked = request.extract_type, request.custom_attributes
        by_text = self._attributes.reads_text
        task = ExtractionTask(
            kind,
            result.url or "",
            html,
            styles=styles,
            pdf=pdf,
            sources=request.field_sources,
            boxes=boxes,
            attributes=asked if asked and not by_text else None,
            text=bool(asked) and by_text,
            markdown=_markdown_options(request),
            rules=request.extract_rules or None,
        )
        domain = domain_of(request.url)
        with inner_span("extract", {"scrapy_ext.kind": kind or MARKDOWN}):
            found = await self.extractors.work(task, domain=domain, key=caller.name)
        item, result.field_sources = found.item, found.sources
        if kind is not None and request.min_probability is not None:
            item, result.left_out = without_doubtful(kind, item, request.min_probability)
            if item is None:
                result.field_sources = None
        if kind is not None:
            setattr(result, _ATTRIBUTES[kind], item)
        result.markdown = found.markdown
        result.extract_rules = found.rules
        if asked:
            result.custom_attributes = await self._attributes.answer(asked, found)


def _new_fetcher(guard: Guard, limits: ServiceLimits, verify_tls: bool) -> Fetcher:
    from scrapy_ext.server.extraction.http.fetch import Fetcher

    return Fetcher(guard, limits, verify_tls=verify_tls)


def _markdown_options(request: ExtractRequest) -> dict[str, Any] | None:
    if not request.markdown:
        return None
    return {name: value for name, value in request.markdown_options.items() if name != "extractFrom"}


def _page_of(fetched: HttpResult) -> tuple[str, str]:
    """Return the kind of a file of text, or "", and the page that shows it."""
    from scrapy_ext.server.extraction.encodings import text_of

    text = text_of(fetched.content_type, fetched.body, fetched.url)
    viewed = kind_of_text(fetched.content_type, text)
    return viewed, shown_text(text) if viewed else text


_ATTRIBUTES: dict[str, Any] = {field.encode_name: field.name for field in msgspec.structs.fields(ExtractResult)}
