"""The cookies of one fetch: those of the caller, of its session, and those that its hops set.

aiohttp's jar chooses the cookies of a hop. It does not report when a cookie expires, and whether it is for one host
alone; both are noted here beside it, since a browser and Scrapy need them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from http.cookiejar import http2time  # type: ignore[attr-defined]  # typeshed lacks it
from http.cookies import BaseCookie, Morsel
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from scrapy_ext.server.extraction.outgoing import Cookie, cookie_pair, cookie_received, is_of_host


class _Note(NamedTuple):
    """``wide``: the cookie is also for hosts below its domain. ``expires`` in seconds since 1970."""

    wide: bool
    expires: float | None


_PLAIN = _Note(False, None)


class FetchCookies:
    """``cookies`` of the caller are for ``url``; ``stored`` ones, of a session, have the form of :meth:`stored`."""

    def __init__(self, cookies: Sequence[Cookie], stored: Iterable[dict[str, Any]], url: URL) -> None:
        # `unsafe` allows cookies of hosts that are addresses, which sites may redirect to; cookies for other hosts
        # stay forbidden.
        self._jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)
        self._notes: dict[tuple[str, str, str], _Note] = {}
        #: Repeated names among the caller's cookies, which the jar does not keep: Scrapy sends all cookies that a site
        #: set for several paths, the most specific one first.
        self._repeated: list[Cookie] = []
        for members in stored:
            self._restore(members)
        keys = set()
        for cookie in cookies:
            if cookie.key in keys:
                self._repeated.append(cookie)
                continue
            keys.add(cookie.key)
            self.keep([(cookie.name, _morsel(cookie))], url)

    def keep(self, cookies: Iterable[tuple[str, Morsel[str]]], url: URL) -> None:
        """Keep cookies that a response of ``url`` has set."""
        cookies = list(cookies)
        self._jar.update_cookies(cookies, url)
        for name, morsel in cookies:
            domain = morsel["domain"].lstrip(".")
            path = morsel["path"] if morsel["path"].startswith("/") else url.path.rpartition("/")[0]
            key = domain or url.raw_host or "", path.rstrip("/"), name
            self._notes[key] = _Note(bool(domain), _expires(morsel))

    def header(self, url: URL, *, first: bool) -> str:
        """Return the value of the Cookie header for a hop, of the ``first`` one with repeated names."""
        kept = self._jar.filter_cookies(url)
        others = self._others(kept, url) if len(kept) < len(self._jar) else []
        pairs = [cookie_pair(morsel.key, morsel.value) for morsel in (*kept.values(), *others)]
        if first:
            pairs += [cookie_pair(cookie.name, cookie.value) for cookie in self._repeated if cookie.name in kept]
        return "; ".join(pairs)

    def _others(self, kept: BaseCookie[str], url: URL) -> list[Morsel[str]]:
        """Return further cookies of the same names for a URL, those of long paths first: aiohttp's jar returns one of a
        name, while browsers and Scrapy send all."""
        others = sorted(
            (morsel for morsel in self._jar if morsel.key in kept and self._is_for(morsel, url)),
            key=lambda morsel: (-len(morsel["path"]), morsel["path"], morsel["domain"], morsel.key),
        )
        left = {(name, morsel.value) for name, morsel in kept.items()}
        for morsel in list(others):
            if (morsel.key, morsel.value) in left:
                left.remove((morsel.key, morsel.value))
                others.remove(morsel)
        return others

    def _is_for(self, morsel: Morsel[str], url: URL) -> bool:
        domain, path = morsel["domain"], (morsel["path"] or "/").rstrip("/")
        wide = self._notes.get((domain, path, morsel.key), _PLAIN).wide
        host = url.raw_host or ""
        return (
            (is_of_host(domain, host) if wide else domain == host)
            and (url.raw_path == path or url.raw_path.startswith(f"{path}/"))
            and (url.scheme == "https" or not morsel["secure"])
        )

    def of_hosts(self, hosts: Collection[str]) -> list[dict[str, Any]]:
        """Return the cookies that belong to any of these hosts, for results."""
        return [cookie for cookie in self.stored() if any(is_of_host(cookie["domain"], host) for host in hosts)]

    def stored(self) -> list[dict[str, Any]]:
        """Return all cookies. A domain that begins with a dot is also for hosts below it."""
        return list(self._received())

    def _received(self) -> Iterator[dict[str, Any]]:
        for morsel in self._jar:
            domain, path = morsel["domain"], morsel["path"] or "/"
            note = self._notes.get((domain, path.rstrip("/"), morsel.key), _PLAIN)
            yield cookie_received(
                morsel.key,
                morsel.value,
                f".{domain}" if note.wide else domain,
                path,
                note.expires,
                http_only=bool(morsel["httponly"]),
                secure=bool(morsel["secure"]),
                same_site=morsel["samesite"].capitalize(),
            )

    def _restore(self, members: dict[str, Any]) -> None:
        domain, expires = members["domain"], members.get("expires")
        if expires is not None and expires <= time.time():
            return
        morsel = _morsel(
            Cookie(
                name=members["name"],
                value=members["value"],
                domain=domain if domain.startswith(".") else None,
                path=members["path"],
                secure=members["secure"],
            )
        )
        morsel["httponly"] = members["httpOnly"]
        morsel["samesite"] = members.get("sameSite", "")
        bare = domain.lstrip(".")
        try:
            self._jar.update_cookies([(members["name"], morsel)], URL.build(scheme="https", host=bare, path="/"))
        except ValueError:
            return  # A host that browsers accept and this client cannot request.
        self._notes[bare, members["path"].rstrip("/"), members["name"]] = _Note(domain != bare, expires)


def _expires(morsel: Morsel[str]) -> float | None:
    age, expires, now = morsel["max-age"], morsel["expires"], time.time()
    try:
        if age:
            return now + int(age)
        at = http2time(expires) if isinstance(expires, str) and expires else None
    except (ValueError, OverflowError):
        return None
    # A cookie that the jar keeps although its date is over has a date that browsers do not read, such as one with a
    # sixtieth second: it has no end.
    return at if at is None or at > now else None


def _morsel(cookie: Cookie) -> Morsel[str]:
    morsel: Morsel[str] = Morsel()
    # As aiohttp does for received cookies: `Morsel.set` refuses names such as "path", which sites do use.
    morsel.__setstate__({"key": cookie.name, "value": cookie.value, "coded_value": cookie.value})  # type: ignore[attr-defined]
    morsel["path"] = cookie.path
    if cookie.domain is not None:
        morsel["domain"] = cookie.domain
    if cookie.secure:
        morsel["secure"] = True
    return morsel
