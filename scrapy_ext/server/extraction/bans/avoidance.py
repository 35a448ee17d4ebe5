"""Answers that are no bans: tries by proxies, then by the browser, then 520.

* A request has up to :data:`~scrapy_ext.server.extraction.bans.tries.MOST_TRIES` tries by proxies
  (:mod:`~scrapy_ext.server.extraction.bans.tries`). A page with actions is loaded once.
* An HTTP request (GET) that is banned for certain is tried once more by the browser, which passes challenges that need
  scripts. The result is then the body of the page's own document, as the browser received it. Where that helped the
  requests before it, it is the first try (:mod:`~scrapy_ext.server.extraction.bans.learned`).
* When all tries are banned, the answer is 520, with the time until a proxy is free again in ``Retry-After``.
* A suspicion alone never ends in 520: if no other proxy gets another answer, the first one is the result. It counts as
  a ban of the proxies that got it only when another one got the page.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.extraction.bans.detection import Ban, Received, ban_of
from scrapy_ext.server.extraction.bans.learned import Learned
from scrapy_ext.server.extraction.bans.tries import MOST_TRIES, TOO_MANY, Sender, Shared, Tries
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan
from scrapy_ext.server.metrics import counter, gauge
from scrapy_ext.server.net.health import NONE, SINGLE
from scrapy_ext.server.net.pool import ProxyPool, Scope
from scrapy_ext.server.net.upstream import Upstream
from scrapy_ext.telemetry.families import Family

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.browser.page_result import PageResult
    from scrapy_ext.server.extraction.http.fetch import HttpResult

# ── an HTTP request as a page of the browser, and the page's document as an answer by HTTP ──


#: Headers of the caller's HTTP request that a browser sets by itself.
_OF_BROWSERS: Final = ("accept", "accept-encoding", "accept-language", "upgrade-insecure-requests")


def is_for_browser(todo: HttpPlan) -> bool:
    """Return whether a browser would send the same request."""
    return todo.method == "GET" and not todo.body and todo.follows_redirects


def page_plan(todo: HttpPlan, upstream: Upstream | None, challenge: float) -> PagePlan:
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
        response_cookies=True,
        session=todo.session,
        state=todo.state,
        device=todo.device,
        language=todo.language,
        upstream=upstream,
        challenge=challenge,
    )


def http_result(todo: HttpPlan, page: PageResult, document: bytes) -> HttpResult:
    from scrapy_ext.server.extraction.http.fetch import HttpResult  # it imports the HTTP client

    return HttpResult(
        url=page.url,
        status=page.status or 200,
        headers=page.headers or [],
        body=document,
        cookies=page.cookies if todo.response_cookies else None,
        redirects=page.redirects or [],
        state=page.state,
    )


_log = logging.getLogger(__name__)

#: Share of ``limits.challenge`` that a page waits for its challenge where others were in vain.
_SHORT_WAIT: Final = 0.25
#: Statuses of problems that are those of this server's own limits.
_OF_LIMITS: Final = frozenset({429, 503})

Load = Callable[[PagePlan], Awaitable["PageResult"]]


class BanAvoidance:
    """The tries of all requests. With ``detects`` false no answer is a ban, but proxies that fail are replaced."""

    def __init__(self, pool: ProxyPool, *, detects: bool = True) -> None:
        self._shared = Shared(pool, Learned(), Counter(), Counter())
        self._pool, self.learned = pool, self._shared.learned
        self._detects = detects

    async def fetch(
        self, todo: HttpPlan, send: Callable[[HttpPlan], Awaitable[HttpResult]], load: Load, sender: Sender
    ) -> HttpResult:
        """Return the answer to an HTTP request that is no ban; raises :class:`ExtractionError`."""
        tries = Tries[HttpPlan, "HttpResult"](self._shared, todo, sender, "http")
        learned, scope = self.learned, tries.scope
        may_load = is_for_browser(todo)

        cleared = set()

        async def send_cleared(one: HttpPlan) -> HttpResult:
            with_cookies = learned.with_clearance(scope, one, one.upstream)
            if with_cookies is not one:
                cleared.add(one.upstream)
            return await send(with_cookies)

        def is_enough(one: HttpPlan, ban: Ban) -> bool:
            # The browser passed such a challenge: it gets cookies for this proxy, too.
            is_passable = may_load and ban.scripted and learned.has_clearance(scope)
            if ban.scripted and one.upstream in cleared:
                learned.drop_clearance(scope, todo, one.upstream)
            return is_passable

        passed, is_first = None, True
        if may_load and learned.is_challenged(scope) and not learned.has_clearance(scope):
            passed = await self._by_browser(tries, todo, load)
            is_first = not tries.asked_browser
        if passed is None and (is_first or await tries.may_go_on("ban")):
            passed = await tries.run(send_cleared, self._ban_of_answer, is_enough)
            if passed is not None and not tries.bans and not learned.has_clearance(scope):
                learned.passed_by_http(scope)
        if passed is None and may_load and not tries.used_browser and _needs_browser(tries):
            passed = await self._by_browser(tries, todo, load)
        # A challenge says nothing about the proxies, where the browser was not asked for it.
        counts = tries.used_browser or not tries.is_scripted
        return tries.end(counts=counts) if passed is None else passed

    async def load(self, todo: PagePlan, load: Load, sender: Sender) -> PageResult:
        """Return a page that is no ban, as :meth:`fetch`."""
        if self._detects:
            is_wanted = todo.html or todo.styles
            todo = replace(todo, html=todo.html or not todo.styles, html_is_optional=not is_wanted)
        tries = Tries[PagePlan, "PageResult"](self._shared, todo, sender, "browser", 1 if todo.actions else MOST_TRIES)
        passed = await tries.run(
            lambda one: load(replace(one, challenge=self._challenge(one, tries))), self._ban_of_page
        )
        if passed is not None:
            if passed.passed_challenge:
                self.learned.passed_challenge(tries.scope)
            return passed
        if tries.is_scripted and todo.javascript and not tries.is_known:
            self.learned.failed_challenge(tries.scope)
        return tries.end(counts=todo.javascript or not tries.is_scripted)

    def metrics(self) -> Iterator[Family]:
        yield from counter(
            "extraction_bans_total",
            "Answers of sites that were bans, or suspicions of one.",
            (({"by": by, "sign": sign}, number) for (by, sign), number in sorted(self._shared.bans.items())),
        )
        yield from counter(
            "extraction_retries_total",
            "Further tries of a request, by their reason.",
            (({"reason": reason}, number) for reason, number in sorted(self._shared.retries.items())),
        )
        results = ("passed", "banned", "failed")
        yield from counter(
            "proxy_requests_total",
            "Requests by proxy and result.",
            (
                ({"proxy": each.proxy, "result": result}, getattr(each, result))
                for each in self._pool.totals()
                for result in results
            ),
        )
        yield from gauge("proxies_cooling_down", "Cool-downs of a proxy, or of one at a site.", self._pool.cooling())

    def _challenge(self, todo: PagePlan, tries: Tries[PagePlan, PageResult]) -> float:
        """Return the share of ``limits.challenge`` that a page waits for its challenge."""
        if not self._detects or not todo.javascript:
            return 0.0
        in_vain = tries.is_known or tries.is_scripted or self.learned.is_in_vain(tries.scope)
        return _SHORT_WAIT if in_vain else 1.0

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
        # None: it was too large to be read, and no page asks for it.
        html = page.styles or page.html
        return ban_of(Received(todo.url, page.url, page.status or 200, headers, html, rendered=True))

    async def _by_browser(self, tries: Tries[HttpPlan, HttpResult], todo: HttpPlan, load: Load) -> HttpResult | None:
        """Return the answer that the browser gets, None for another ban, or where the browser cannot load it."""
        scope = tries.scope._replace(by="browser")
        in_vain = self.learned.is_in_vain(scope)
        if in_vain and tries.bans and not tries.is_scripted:
            return None
        chosen = self._proxy_of_browser(tries, todo, scope)
        if chosen is None or (tries.tried and not await tries.may_go_on("browser")):
            return None
        (upstream,) = chosen
        plan = page_plan(todo, upstream, _SHORT_WAIT if in_vain or tries.is_known else 1.0)
        tries.asked_browser = True
        try:
            page = await load(plan)
        except ExtractionError as error:
            if error.problem.status in _OF_LIMITS:
                raise
            _log.info("After a ban the browser could not load the page either: %s", error)
            return None
        tries.used_browser = True
        ban = self._ban_of_page(plan, page)
        # A plain refusal behind a challenge that was passed is the site's own answer. One that passes at once is gone
        # before it is read.
        is_behind = page.passed_challenge or (
            page.has_moved and (tries.is_scripted or self.learned.is_challenged(tries.scope))
        )
        if ban is not None and (ban.certain or not is_behind):
            self._note_ban_by_browser(tries, todo, upstream, page, ban)
            return None
        if page.document is None:
            return None
        self._note_pass_by_browser(tries, todo, upstream, page)
        return http_result(todo, page, page.document)

    def _proxy_of_browser(
        self, tries: Tries[HttpPlan, HttpResult], todo: HttpPlan, scope: Scope
    ) -> tuple[Upstream | None] | None:
        """Return the proxy that got a challenge last, or the first ban, in a tuple; another one where it cools down. A
        session keeps its own."""
        if todo.session is not None:
            return self._pool.choose(scope, todo.proxies, session=todo.session)
        banned = [each for each, ban in reversed(tries.bans) if ban.scripted] or [each for each, _ in tries.bans]
        of_banned = self._pool.choose(scope, tuple((each,) for each in banned[:1]))
        return of_banned or self._pool.choose(scope, todo.proxies)

    def _note_ban_by_browser(
        self,
        tries: Tries[HttpPlan, HttpResult],
        todo: HttpPlan,
        upstream: Upstream | None,
        page: PageResult,
        ban: Ban,
    ) -> None:
        self._shared.bans["browser", ban.sign] += 1
        if page.status == TOO_MANY:
            tries.note_limit(is_challenge=ban.scripted)
        scope, counts = tries.scope._replace(by="browser"), ban.certain and not tries.is_known
        self._pool.banned(scope, upstream, SINGLE if counts and self._pool.has_choice(todo.proxies) else NONE)
        if counts:
            self.learned.failed_challenge(scope)
        if not ban.certain and page.document is not None:
            tries.keep(http_result(todo, page, page.document))

    def _note_pass_by_browser(
        self, tries: Tries[HttpPlan, HttpResult], todo: HttpPlan, upstream: Upstream | None, page: PageResult
    ) -> None:
        self.learned.passed_challenge(tries.scope._replace(by="browser"))
        self.learned.passed_by_browser(tries.scope, tries.request)
        self.learned.keep_clearance(tries.scope, todo, upstream, page.cookies or [])
        self._pool.passed(tries.scope._replace(by="browser"), upstream)
        tries.note_pass_by_browser(upstream)


def _needs_browser(tries: Tries[HttpPlan, HttpResult]) -> bool:
    return not tries.is_spent and (tries.is_scripted or (tries.certain is not None and not tries.is_known))
