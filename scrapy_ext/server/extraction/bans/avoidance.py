"""Tries of a request after a ban: by other proxies, then by the browser, then 520.

* A request gets at most :data:`MOST_TRIES` tries, each by another proxy of those that fit it; the
  :class:`~scrapy_ext.server.net.pool.ProxyPool` chooses. A proxy that fails is replaced in the same way.
* A request that changes something is sent again only where the refusal was the first answer: a site that redirects to
  its challenge may have done the work before. A page with actions is loaded once.
* An HTTP request (GET) that is banned for certain is tried once more by the browser, which passes challenges that need
  scripts. The result is then the body of the page's own document, as the browser received it. A site that bans the
  browser too gets no such tries for a minute, then for longer, so that they do not use up the pages of the browser.
* When all tries are banned, the answer is 520, with the time until a proxy is free again in ``Retry-After``. Meanwhile
  the proxies are left alone: further requests get 520 at once.
* A suspicion alone never ends in 520: if no other proxy gets another answer, the first one is the result. It counts as
  a ban of the proxies that got it only when another one got the page.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.extraction.bans.detection import Ban, Received, ban_of
from scrapy_ext.server.extraction.bans.signs import REFUSALS
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan
from scrapy_ext.server.net.pool import (
    DIRECT,
    FIRST_COOL_DOWN,
    LONGEST_COOL_DOWN,
    MOST_SITES,
    Health,
    ProxyPool,
)
from scrapy_ext.server.net.upstream import ProxyFailedError, Upstream
from scrapy_ext.server.observability.metrics import counter, gauge
from scrapy_ext.telemetry.families import Family

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.browser.page import PageResult
    from scrapy_ext.server.extraction.http.fetch import HttpResult

_log = logging.getLogger(__name__)

MOST_TRIES: Final = 3
#: Seconds in ``Retry-After`` of a ban without proxies, and at most.
RETRY_AFTER: Final = 30
_LONGEST_RETRY_AFTER: Final = 600
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
#: Causes of failures that may be those of the proxy.
_OF_CONNECTIONS: Final = frozenset({Cause.TIMEOUT, Cause.CUT_SHORT})
#: Headers of the caller's HTTP request that a browser sets by itself.
_OF_BROWSERS: Final = ("accept", "accept-encoding", "accept-language", "upgrade-insecure-requests")

P = TypeVar("P", HttpPlan, PagePlan)
R = TypeVar("R", "HttpResult", "PageResult")
Load = Callable[[PagePlan], Awaitable["PageResult"]]


class BanAvoidance:
    """The tries of all requests. With ``detects`` false no answer is a ban, but proxies that fail are replaced."""

    def __init__(self, pool: ProxyPool, *, detects: bool = True) -> None:
        self.pool = pool
        self._detects = detects
        self._bans: Counter[tuple[str, str]] = Counter()
        self._retries: Counter[str] = Counter()
        #: Of the sites that ban the browser too, in the order of the last ban.
        self._in_vain: OrderedDict[str, Health] = OrderedDict()

    async def fetch(
        self,
        todo: HttpPlan,
        send: Callable[[HttpPlan], Awaitable[HttpResult]],
        load: Load,
        *,
        session: str | None = None,
    ) -> HttpResult:
        """Return the answer to an HTTP request that is no ban; raises :class:`ExtractionError`.

        ``session``: key of a session, which keeps its proxy while that one is available.
        """
        tries = _Tries[HttpPlan, "HttpResult"](self, todo, session, "http")
        passed = await tries.run(send, self._ban_of_answer)
        if passed is None and tries.needs_browser and _is_for_browser(todo):
            passed = await self._by_browser(tries, todo, load)
        return tries.end() if passed is None else passed

    async def load(self, todo: PagePlan, load: Load, *, session: str | None = None) -> PageResult:
        """Return a page that is no ban, as :meth:`fetch`."""
        if self._detects:
            todo = replace(todo, passes_challenges=True, html=todo.html or not todo.styles)
        tries = _Tries[PagePlan, "PageResult"](self, todo, session, "browser", 1 if todo.actions else MOST_TRIES)
        passed = await tries.run(load, self._ban_of_page)
        return tries.end() if passed is None else passed

    def metrics(self) -> Iterator[Family]:
        yield from counter(
            "extraction_bans_total",
            "Answers of sites that were bans, or suspicions of one.",
            (({"by": by, "sign": sign}, number) for (by, sign), number in sorted(self._bans.items())),
        )
        yield from counter(
            "extraction_retries_total",
            "Further tries of a request, by their reason.",
            (({"reason": reason}, number) for reason, number in sorted(self._retries.items())),
        )
        results = ("passed", "banned", "failed")
        yield from counter(
            "proxy_requests_total",
            "Requests by proxy and result.",
            (
                ({"proxy": each.proxy, "result": result}, getattr(each, result))
                for each in self.pool.totals()
                for result in results
            ),
        )
        yield from gauge("proxies_cooling_down", "Cool-downs of a proxy, or of one at a site.", self.pool.cooling())

    # ── for the tries ──

    def count_ban(self, by: str, ban: Ban) -> None:
        self._bans[by, ban.sign] += 1

    def count_retry(self, reason: str) -> None:
        self._retries[reason] += 1

    def _ban_of_answer(self, todo: HttpPlan, answer: HttpResult) -> Ban | None:
        if not self._detects:
            return None
        headers = {header.name.lower(): header.value for header in answer.headers}
        body = answer.body if todo.wants_body and todo.method != "HEAD" else None
        return ban_of(Received(todo.url, answer.url, answer.status, headers, body))

    def _ban_of_page(self, todo: PagePlan, page: PageResult) -> Ban | None:
        if not self._detects:
            return None
        headers = {header.name.lower(): header.value for header in page.headers or ()}
        html = page.styles or page.html or ""
        return ban_of(Received(todo.url, page.url, page.status or 200, headers, html, rendered=True))

    async def _by_browser(self, tries: _Tries[HttpPlan, HttpResult], todo: HttpPlan, load: Load) -> HttpResult | None:
        """Return the answer that the browser gets, None for another ban, or where the browser cannot load it."""
        if tries.site in self._in_vain and time.monotonic() < self._in_vain[tries.site].until:
            return None
        upstream = tries.banned[0]
        self.count_retry("browser")
        page_plan = _page_plan(todo, upstream)
        try:
            page = await load(page_plan)
        except ExtractionError as error:
            _log.info("After a ban the browser could not load the page either: %s", error)
            return None
        tries.used_browser = True
        ban = self._ban_of_page(page_plan, page)
        if ban is not None:
            self.count_ban("browser", ban)
            self._note_ban_of_browser(tries.site)
        if ban is not None or page.document is None:
            return None
        self._in_vain.pop(tries.site, None)
        self.pool.passed(tries.site, upstream, recovered=True)
        return _http_result(page, page.document)

    def _note_ban_of_browser(self, site: str) -> None:
        health = self._in_vain.setdefault(site, Health())
        health.cool_down(time.monotonic(), FIRST_COOL_DOWN, LONGEST_COOL_DOWN)
        self._in_vain.move_to_end(site)
        if len(self._in_vain) > MOST_SITES:
            self._in_vain.popitem(last=False)


class _Tries(Generic[P, R]):
    """The tries of one request."""

    def __init__(self, avoidance: BanAvoidance, todo: P, session: str | None, by: str, most: int = MOST_TRIES) -> None:
        self._avoidance = avoidance
        self._pool = avoidance.pool
        self._todo: P = todo
        self._session = session
        self._by = by
        self._most = most
        self._tried: list[Upstream | None] = []
        #: Proxies with an answer that was a ban, or a suspicion.
        self.banned: list[Upstream | None] = []
        self.used_browser = False
        self.site = (urlsplit(todo.url).hostname or "").rstrip(".")
        self._ban: Ban | None = None
        #: Of suspicions alone: the proxies, whether a script may pass one, and the first answer.
        self._suspected: list[Upstream | None] = []
        self._is_scripted = False
        self._answer: R | None = None
        self._failure: ExtractionError | None = None

    @property
    def needs_browser(self) -> bool:
        return self._ban is not None or self._is_scripted

    async def run(self, send: Callable[[P], Awaitable[R]], check: Callable[[P, R], Ban | None]) -> R | None:
        """Return the first answer that is no ban."""
        reason = ""
        while len(self._tried) < self._most:
            chosen = self._pool.choose(self.site, self._todo.proxies, tried=self._tried, session=self._session)
            if chosen is None:
                break
            if reason:
                self._avoidance.count_retry(reason)
            (upstream,) = chosen
            self._tried.append(upstream)
            todo = replace(self._todo, upstream=upstream)
            try:
                answer = await send(todo)
            except ExtractionError as error:
                self._note_failure(error, upstream)
                if not self._is_safe:
                    raise
                reason = "proxy"
                continue
            ban = check(todo, answer)
            if ban is None:
                self._note_pass(upstream)
                return answer
            self._note_ban(upstream, ban, answer)
            if not self._may_send_again(answer):
                break
            reason = "ban" if ban.certain else "suspicion"
        return None

    def end(self) -> R:
        """Return the answer that is a suspicion, or raise the error of the request."""
        if self._ban is None:
            if self._answer is not None:
                for upstream in self._suspected:
                    self._pool.passed(self.site, upstream)
                return self._answer
            if self._failure is not None:
                raise self._failure
        raise self._problem()

    def _note_failure(self, error: ExtractionError, upstream: Upstream | None) -> None:
        """Note that a proxy failed; raise any other error."""
        of_proxy = isinstance(error, ProxyFailedError)
        if upstream is None or not (of_proxy or error.cause in _OF_CONNECTIONS):
            raise error
        self._failure = error
        self._pool.failed(self.site, upstream, everywhere=isinstance(error, ProxyFailedError) and error.everywhere)

    def _note_pass(self, upstream: Upstream | None) -> None:
        for suspected in self._suspected:
            self._pool.banned(self.site, suspected)
        self._pool.passed(self.site, upstream)

    def _note_ban(self, upstream: Upstream | None, ban: Ban, answer: R) -> None:
        self._avoidance.count_ban(self._by, ban)
        self.banned.append(upstream)
        if ban.certain:
            self._ban = ban
            self._pool.banned(self.site, upstream)
        else:
            self._suspected.append(upstream)
            self._is_scripted |= ban.scripted
            self._answer = self._answer or answer

    @property
    def _is_safe(self) -> bool:
        return not isinstance(self._todo, HttpPlan) or self._todo.method in _SAFE_METHODS

    def _may_send_again(self, answer: R) -> bool:
        return self._is_safe or (answer.status in REFUSALS and not answer.redirects)

    def _problem(self) -> ExtractionError:
        wait = math.ceil(self._pool.next_free(self.site, self._todo.proxies)) or RETRY_AFTER
        if not self._tried:
            detail = f"{self.site} has banned all proxies for this request; they are not used for it now."
        else:
            sign = self._ban.sign if self._ban else "unknown"
            ways = [f"{len(self._tried)} of the proxies" if self._tried != [None] else DIRECT]
            ways += ["the browser"] if self.used_browser and self._by == "http" else []
            detail = f"{self.site} answered with a ban page (sign: {sign}). Tried: {', '.join(ways)}."
        return ExtractionError(
            "/download/temporary-error", detail, Cause.BAN, retry_after=min(wait, _LONGEST_RETRY_AFTER)
        )


def _is_for_browser(todo: HttpPlan) -> bool:
    """Return whether a browser would send the same request."""
    return todo.method == "GET" and not todo.body and todo.follows_redirects


def _page_plan(todo: HttpPlan, upstream: Upstream | None) -> PagePlan:
    return PagePlan(
        url=todo.url,
        headers=[
            header
            for header in todo.headers
            if header.name.lower() not in _OF_BROWSERS and not header.name.lower().startswith("sec-")
        ],
        cookies=todo.cookies,
        document=True,
        response_headers=True,
        response_cookies=todo.response_cookies,
        session=todo.session,
        state=todo.state,
        device=todo.device,
        language=todo.language,
        upstream=upstream,
        passes_challenges=True,
    )


def _http_result(page: PageResult, document: bytes) -> HttpResult:
    from scrapy_ext.server.extraction.http.fetch import HttpResult  # it imports the HTTP client

    return HttpResult(
        url=page.url,
        status=page.status or 200,
        headers=page.headers or [],
        body=document,
        cookies=page.cookies,
        redirects=page.redirects or [],
        state=page.state,
    )
