"""Tries of one request, each by another proxy of those that fit it.

* A proxy that fails is replaced like one that is banned. A request that changes something is sent again only where the
  refusal was the first answer, or where a proxy failed before anything was sent.
* Each further try counts for the rates, and waits for the next start of its domain. Where a limit refuses it, the
  request ends with what it has.
* After a 429 there is one further try at most, and the proxy is avoided for the time that the site demands.
* A ban counts for the cool-down of a proxy: fully where another one got the page, else a little, once for each URL. A
  URL that was refused by every way lately gets one try.
* Where all proxies cool down, one request at a time is a probe, by one proxy: its pass ends the cool-down. A URL that
  was banned lately is none.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.extraction.bans.detection import REFUSALS, Ban
from scrapy_ext.server.extraction.bans.learned import Learned
from scrapy_ext.server.extraction.browser.page_result import BusyPageError
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan
from scrapy_ext.server.net.health import COMPARED, NONE, SINGLE
from scrapy_ext.server.net.pool import ProxyPool, Scope, site_of
from scrapy_ext.server.net.upstream import ProxyFailedError, Upstream

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.browser.page_result import PageResult
    from scrapy_ext.server.extraction.http.fetch import HttpResult

MOST_TRIES: Final = 3
#: Seconds in ``Retry-After`` of a ban without a cool-down, and at most.
RETRY_AFTER: Final = 30
_LONGEST_RETRY_AFTER: Final = 600
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
#: Causes of failures that may be those of the proxy.
_OF_CONNECTIONS: Final = frozenset({Cause.TIMEOUT, Cause.CUT_SHORT})
TOO_MANY: Final = 429

P = TypeVar("P", HttpPlan, PagePlan)
R = TypeVar("R", "HttpResult", "PageResult")


async def _at_once() -> None:
    """Wait for nothing."""


class Sender(NamedTuple):
    """The caller of a request. ``session``: key of a session, which keeps its proxy while that one is available.

    ``take`` counts a further try for the rates, ``start`` waits for the next start; both raise
    :class:`ExtractionError` where a limit refuses it.
    """

    organisation: str = ""
    session: str | None = None
    take: Callable[[], None] = lambda: None
    start: Callable[[], Awaitable[None]] = _at_once


class Shared(NamedTuple):
    """Parts that all requests have in common. ``bans`` counts by who asked and by sign, ``retries`` by reason."""

    pool: ProxyPool
    learned: Learned
    bans: Counter[tuple[str, str]]
    retries: Counter[str]


class Tries(Generic[P, R]):
    """The tries of one request, ``by`` HTTP or the browser."""

    def __init__(self, shared: Shared, todo: P, sender: Sender, by: str, most: int = MOST_TRIES) -> None:
        self._pool = shared.pool
        self._learned = shared.learned
        self._shared = shared
        self._todo: P = todo
        self._sender = sender
        self.scope = Scope(site_of(todo.url), by, sender.organisation)
        #: Identity of the request in the memory of refusals.
        self.request = (self.scope, todo.method if isinstance(todo, HttpPlan) else "", todo.url)
        #: It was refused by every way lately.
        self.is_known = self._learned.is_refused(self.request)
        self._most = 1 if self.is_known else most
        self.tried: list[Upstream | None] = []
        #: The browser was asked for the page of an HTTP request, and it has loaded one.
        self.asked_browser = self.used_browser = False
        #: A site's limit (429, which is no challenge) leaves one further try.
        self._is_limited = False
        #: Proxies that failed, at this site alone as it seems.
        self._failed: list[Upstream] = []
        #: Bans and suspicions, with their proxies, and the first answer that is a suspicion.
        self.bans: list[tuple[Upstream | None, Ban]] = []
        self._answer: R | None = None
        self._failure: ExtractionError | None = None

    @property
    def certain(self) -> Ban | None:
        """The last ban that is no suspicion."""
        return next((ban for _, ban in reversed(self.bans) if ban.certain), None)

    @property
    def is_scripted(self) -> bool:
        return any(ban.scripted for _, ban in self.bans)

    @property
    def is_spent(self) -> bool:
        """A site has a limit, and its one further try was made."""
        return self._is_limited and len(self.tried) >= self._most

    def note_limit(self, *, is_challenge: bool) -> None:
        """Note the answer 429. Another address may have more requests left; more than one would try to get around the
        limit."""
        self._most = min(self._most, len(self.tried) + 1)
        self._is_limited = self._is_limited or not is_challenge

    async def run(
        self,
        send: Callable[[P], Awaitable[R]],
        check: Callable[[P, R], Ban | None],
        is_enough: Callable[[P, Ban], bool] = lambda *_: False,
    ) -> R | None:
        """Return the first answer that is no ban; ``is_enough``: no other proxy is tried after a ban."""
        chosen = self._choose()
        if chosen is None:
            if self._learned.is_banned(self.request):
                return None
            probing = self._learned.probing(self.scope)
            waits = probing.locked()
            async with probing:
                if waits and not await self._starts():
                    return None
                chosen = self._choose()
                if chosen is None:
                    self._most = 1
                    nearest = self._pool.nearest(self.scope, self._todo.proxies)
                    return await self._go_through(nearest, send, check, is_enough, is_probe=True)
        return await self._go_through(chosen, send, check, is_enough)

    async def _go_through(
        self,
        chosen: tuple[Upstream | None] | None,
        send: Callable[[P], Awaitable[R]],
        check: Callable[[P, R], Ban | None],
        is_enough: Callable[[P, Ban], bool],
        *,
        is_probe: bool = False,
    ) -> R | None:
        reason = ""
        while chosen is not None and len(self.tried) < self._most:
            if reason and not await self.may_go_on(reason):
                break
            (upstream,) = chosen
            self.tried.append(upstream)
            todo = replace(self._todo, upstream=upstream)
            try:
                answer = await send(todo)
            except ExtractionError as error:
                self._note_failure(error, upstream)
                if not (self._is_safe or (isinstance(error, ProxyFailedError) and error.is_unsent)):
                    raise
                reason = "proxy"
            else:
                ban = check(todo, answer)
                if ban is None:
                    self._note_pass(upstream, is_probe=is_probe)
                    return answer
                self._note_ban(upstream, ban, answer)
                if not self._may_send_again(answer) or is_enough(todo, ban):
                    break
                reason = "ban" if ban.certain else "suspicion"
            chosen = self._choose()
        return None

    def _choose(self) -> tuple[Upstream | None] | None:
        return self._pool.choose(self.scope, self._todo.proxies, tried=self.tried, session=self._sender.session)

    async def may_go_on(self, reason: str) -> bool:
        """Count a further try, and wait for its start; return whether the limits permit it."""
        try:
            self._sender.take()
        except ExtractionError:
            return False
        if not await self._starts():
            return False
        self._shared.retries[reason] += 1
        return True

    async def _starts(self) -> bool:
        try:
            await self._sender.start()
        except ExtractionError:
            return False
        return True

    # ── notes ──

    def _note_failure(self, error: ExtractionError, upstream: Upstream | None) -> None:
        """Note that a proxy failed; raise any other error."""
        of_proxy = isinstance(error, ProxyFailedError)
        of_connection = error.cause in _OF_CONNECTIONS and not isinstance(error, BusyPageError)
        if upstream is None or not (of_proxy or of_connection):
            raise error
        self._failure = error
        everywhere = isinstance(error, ProxyFailedError) and error.everywhere
        self._pool.failed(self.scope, upstream, everywhere=everywhere)
        if not everywhere:
            self._failed.append(upstream)

    def _note_answer(self) -> None:
        """Note that the site answered, so that proxies which failed before did so by themselves."""
        for upstream in self._failed:
            self._pool.outdone(upstream)
        self._failed.clear()

    def _note_pass(self, upstream: Upstream | None, *, is_probe: bool) -> None:
        self._note_answer()
        self._pool.keep_session(self._sender.session, upstream)
        for other, ban in self.bans:
            # Which proxies are challenged depends on their cookies, too, and the browser passes.
            self._pool.banned(self.scope, other, NONE if ban.scripted else COMPARED)
        self._pool.passed(self.scope, upstream, recovered=is_probe)
        self._learned.answered(self.request)

    def note_pass_by_browser(self, upstream: Upstream | None) -> None:
        """Note the bans of the tries by HTTP of a page that the browser got."""
        self._pool.keep_session(self._sender.session, upstream)
        for other, _ in self.bans:
            self._pool.banned(self.scope, other, NONE)
        self._learned.answered(self.request)

    def _note_ban(self, upstream: Upstream | None, ban: Ban, answer: R) -> None:
        self._note_answer()
        self._shared.bans[self.scope.by, ban.sign] += 1
        self.bans.append((upstream, ban))
        if not ban.certain:
            self.keep(answer)
        if answer.status == TOO_MANY:
            self.note_limit(is_challenge=ban.scripted)
            if pause := _seconds(answer.retry_after):
                self._pool.pause(self.scope, upstream, pause)

    def keep(self, answer: R) -> None:
        """Keep the first answer that is a suspicion, for the end."""
        if self._answer is None:
            self._answer = answer

    @property
    def _is_safe(self) -> bool:
        return not isinstance(self._todo, HttpPlan) or self._todo.method in _SAFE_METHODS

    def _may_send_again(self, answer: R) -> bool:
        return self._is_safe or (answer.status in REFUSALS and not answer.redirects)

    # ── the end ──

    def end(self, *, counts: bool = True) -> R:
        """Return the answer that is a suspicion, or raise the error of the request.

        ``counts``: bans count for the cool-down of their proxies.
        """
        if self.certain is None:
            if self._answer is not None:
                for upstream, _ in self.bans:
                    self._pool.passed(self.scope, upstream)
                if len(self.bans) > 1:
                    self._learned.refused(self.request)
                return self._answer
            if self._failure is not None:
                raise self._failure
        weight = SINGLE if counts and not self.is_known and self._pool.has_choice(self._todo.proxies) else NONE
        for upstream, ban in self.bans:
            if ban.certain:
                self._pool.banned(self.scope, upstream, weight)
        if self.bans:
            self._learned.refused(self.request, certain=True)
        raise self._problem()

    def _problem(self) -> ExtractionError:
        site = self.scope.site
        wait = math.ceil(self._pool.next_free(self.scope, self._todo.proxies)) or RETRY_AFTER
        if not self.tried and not self.used_browser:
            detail = (
                f"{site} has banned all proxies for this request; they are not used for it now. Send it again later."
            )
        else:
            sign = self.certain.sign if self.certain else "unknown"
            ways = [self._pool.label(upstream) for upstream in self.tried]
            ways += ["the browser"] if self.used_browser and self.scope.by == "http" else []
            tried = ", ".join(ways)
            detail = f"{site} answered with a ban page (sign: {sign}). Tried: {tried}. Send the request again later."
        return ExtractionError(
            "/download/temporary-error", detail, Cause.BAN, retry_after=min(wait, _LONGEST_RETRY_AFTER)
        )


def _seconds(value: str) -> float:
    """Return the seconds of a ``Retry-After``, which may also be a date; 0 for none."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
