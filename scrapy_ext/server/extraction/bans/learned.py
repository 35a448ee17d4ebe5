"""Memory of what sites did lately, so that tries that will not help are left out. All of it is bounded, and per
organisation.

* URLs whose answer was a refusal by every way: they get one try, until one of them passes.
* Sites with challenges that HTTP does not pass and the browser does: their GET requests go to the browser at once. The
  cookies of a passed challenge are reused through the same proxy, so that HTTP gets the next pages.
* Sites whose challenges the browser does not pass: pages wait for them for a shorter time.
* Probes: one request at a time of those for a site whose proxies all cool down.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec

from scrapy_ext.api.masking import is_private_header
from scrapy_ext.server.extraction.outgoing import Cookie, is_of_host
from scrapy_ext.server.extraction.plan import HttpPlan
from scrapy_ext.server.net.health import SINGLE, Rests
from scrapy_ext.server.net.pool import MOST_SITES, Scope
from scrapy_ext.server.net.upstream import Upstream

_MOST_URLS: Final = 20_000
_MOST_CLEARANCES: Final = 500
#: Cookies of a clearance at most, and bytes of their values.
_MOST_COOKIES: Final = 30
_MOST_BYTES: Final = 16 * 1024
#: Cookies of a passed challenge are used for so many seconds.
_CLEARED: Final = 1800.0


class _Clearance(NamedTuple):
    until: float
    cookies: list[dict[str, Any]]


class Learned:
    """The memory of a server process."""

    def __init__(self) -> None:
        self._urls: Rests[int] = Rests(_MOST_URLS)
        self._challenged: Rests[Scope] = Rests(MOST_SITES)
        self._in_vain: Rests[Scope] = Rests(MOST_SITES)
        #: By site, the one with the newest last; then by proxy and device.
        self._cleared: OrderedDict[Scope, dict[tuple[Upstream | None, str], _Clearance]] = OrderedDict()
        self._probes: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    def probing(self, scope: Scope) -> asyncio.Lock:
        """Return the lock of the one probe of a site."""
        lock = self._probes.get(scope)
        if lock is None:
            lock = self._probes[scope] = asyncio.Lock()
        return lock

    # ── URLs ──

    def is_refused(self, request: Hashable) -> bool:
        """Return whether a request got a refusal by every way lately."""
        return self._urls.is_cooling(hash(request))

    def is_banned(self, request: Hashable) -> bool:
        """Return whether the refusal was a ban, and not only the suspicion of one."""
        return self._urls.is_cooling(hash(("ban", request)))

    def refused(self, request: Hashable, *, certain: bool = False) -> None:
        self._urls.banned(hash(request))
        if certain:
            self._urls.banned(hash(("ban", request)))

    def answered(self, request: Hashable) -> None:
        self._urls.forget(hash(request))
        self._urls.forget(hash(("ban", request)))

    # ── challenges ──

    def is_challenged(self, scope: Scope) -> bool:
        """Return whether the site needs the browser; :meth:`passed_by_http` ends it."""
        return self._challenged.is_cooling(scope)

    def passed_by_browser(self, scope: Scope, request: Hashable) -> None:
        """Note that the browser got what HTTP did not: for a page that is requested again and again, once."""
        marked = ("browser", request)
        if not self.is_refused(marked):
            self.refused(marked)
            self._challenged.banned(scope, SINGLE)

    def passed_by_http(self, scope: Scope) -> None:
        self._challenged.forget(scope)

    def is_in_vain(self, scope: Scope) -> bool:
        """Return whether the browser did not pass the challenges of the site."""
        return self._in_vain.is_cooling(scope)

    def failed_challenge(self, scope: Scope) -> None:
        self._in_vain.banned(scope, SINGLE)

    def passed_challenge(self, scope: Scope) -> None:
        self._in_vain.forget(scope)

    # ── cookies of passed challenges ──

    def keep_clearance(
        self, scope: Scope, todo: HttpPlan, upstream: Upstream | None, page: list[dict[str, Any]]
    ) -> None:
        """Keep the cookies of the page of a passed challenge, if its request had nothing of the caller's own."""
        host = urlsplit(todo.url).hostname or ""
        cookies = [each for each in page if is_of_host(each["domain"], host)][: _MOST_COOKIES + 1]
        size = sum(len(each["name"]) + len(each["value"]) for each in cookies)
        if not _is_plain(todo) or not cookies or len(cookies) > _MOST_COOKIES or size > _MOST_BYTES:
            return
        of_site = self._cleared.setdefault(scope, {})
        of_site[upstream, todo.device] = _Clearance(time.monotonic() + _CLEARED, cookies)
        self._cleared.move_to_end(scope)
        while len(self._cleared) > 1 and sum(map(len, self._cleared.values())) > _MOST_CLEARANCES:
            self._cleared.popitem(last=False)

    def with_clearance(self, scope: Scope, todo: HttpPlan, upstream: Upstream | None) -> HttpPlan:
        """Return a request with the cookies of a challenge that was passed through the same proxy, if any."""
        found = self._cleared.get(scope, {}).get((upstream, todo.device))
        if found is None or not _is_plain(todo):
            return todo
        now = time.time()
        if found.until < time.monotonic():
            return todo
        cookies = [_sent(each) for each in found.cookies if each.get("expires", now) >= now]
        return msgspec.structs.replace(todo, cookies=cookies)

    def has_clearance(self, scope: Scope) -> bool:
        """Return whether a challenge of the site was passed lately, through any proxy."""
        now = time.monotonic()
        return any(found.until >= now for found in self._cleared.get(scope, {}).values())

    def drop_clearance(self, scope: Scope, todo: HttpPlan, upstream: Upstream | None) -> None:
        of_site = self._cleared.get(scope, {})
        of_site.pop((upstream, todo.device), None)
        if not of_site:
            self._cleared.pop(scope, None)


def _sent(cookie: dict[str, Any]) -> Cookie:
    """Return a received cookie as one to send: for the host alone unless it has a dot before its domain."""
    read = msgspec.convert(cookie, Cookie)
    return read if (read.domain or "").startswith(".") else msgspec.structs.replace(read, domain=None)


def _is_plain(todo: HttpPlan) -> bool:
    """Return whether a request has no cookies, session, credentials or User-Agent of its own."""
    own = any(header.name.lower() == "user-agent" or is_private_header(header.name) for header in todo.headers)
    return not (own or todo.cookies or todo.state is not None)
