"""Cookies of routed requests: sent to the extraction service, and returned to Scrapy's cookie jar.

**Sent.** ``requestCookies`` are the cookies that Scrapy would send with a request, as ``{name, value, domain}``
objects, with ``path`` where it is not ``/``. Some sites set cookies that break the rules of HTTP; browsers and Scrapy
send them nevertheless. A cookie that no service can send is left out with a warning: it never makes a request fail.
Cookies that the user gave as a field are checked by the rules of the API.

**Returned.** Scrapy's CookiesMiddleware reads the Set-Cookie headers of a response. A page of a browser has cookies
without such headers: of its redirects, of what it loads and of its scripts. So has a page whose redirects the service
followed, and one that is requested without headers. For such requests the service returns all cookies at the end
(``responseCookies``), and CookiesMiddleware gets them as Set-Cookie headers: ``cookiejar``, ``dont_merge_cookies``,
COOKIES_DEBUG, the rules of domains and a middleware of the user's apply as to a direct response.

* Where a cookie is for one host alone, its line names no domain, and belongs to a response of that host. Otherwise the
  jar would have the cookie twice, and send an old value beside the new one.
* A cookie of another host than those of the request, of its redirects and of the page is refused.
* A cookie is sent with its path, so that a page that deletes or changes it does so to that one.
* A cookie that comes back as it was sent is left alone: the jar knows more of it, such as its end.
* A cookie that was sent and does not come back was deleted by the site, and is deleted from the jar.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from email.utils import formatdate
from functools import cached_property
from http.cookiejar import Cookie
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction.fields import MAX_COOKIES
from scrapy_ext.api.extraction.forms import CONTROL, COOKIE_PREFIXES
from scrapy_ext.crawl.session.scrapy_engine import cookies_for_host

logger = logging.getLogger(__name__)

#: Field of the cookies that are sent.
REQUEST_COOKIES: Final = "requestCookies"
#: Field that asks for the cookies at the end.
RESPONSE_COOKIES: Final = "responseCookies"
_DOMAIN: Final = re.compile(r"\.?[0-9A-Za-z._\-]+")
#: Bytes of name and value that browsers accept (RFC 6265bis, 5.7).
_BROWSERS_SIZE: Final = 4096
#: The last second with a year of four digits, which a Set-Cookie header can have.
_LAST_SECOND: Final = 253_402_300_799
_NAMELESS: Final = "it has no name, and the service may not send such cookies"
#: Reasons with a logged warning.
_reported: Final[set[str]] = set()


class Place(NamedTuple):
    """The part of the web that a cookie is for. ``domain`` is None for the host of the request alone."""

    domain: str | None
    path: str


_UNKNOWN: Final = Place(None, "/")
#: Domains and paths of the cookies of a request, by name and value.
Places = Callable[[Request], Mapping[tuple[str, str], Sequence[Place]]]


def cookie_field(
    request: Request, *, own: bool, own_alone: bool, known: Places | None = None, by_browser: bool = False
) -> dict[str, Any]:
    """Return the field for the cookies of the Cookie header, which CookiesMiddleware made; empty without any.

    ``own``: read the cookies of the request itself for their domains, which a header lacks.
    ``own_alone``: return those of the request if there is no header.
    ``known``: returns the places of the cookies of a request that are known, by name and value, in the order of the
    header.
    ``by_browser``: leave out those that browsers refuse.
    """
    if not request.cookies and b"Cookie" not in request.headers:
        return {}
    given = [*_own_cookies(request)] if own and request.cookies and not request.meta.get("dont_merge_cookies") else []
    places = known(request) if known is not None else {}
    cookies = [*_header_cookies(request, given, places)] or (given if own_alone else [])
    sent = [cookie for cookie in cookies if _can_be_sent(cookie)]
    if len(sent) > MAX_COOKIES:
        _warn_left_out(sent[MAX_COOKIES]["name"], f"the request has more than {MAX_COOKIES}")
    sent = for_browser(sent[:MAX_COOKIES]) if by_browser else sent[:MAX_COOKIES]
    return {REQUEST_COOKIES: sent} if sent else {}


def for_service(cookies: Iterable[dict[str, Any]], accepted: Collection[str]) -> list[dict[str, Any]]:
    """Return the cookies of Scrapy as a service takes them that accepts these fields besides those of the contract.

    The contract has neither paths nor cookies without a name. Only the service of this package, which its own fields
    show, accepts them.
    """
    with_paths, nameless = RESPONSE_COOKIES in accepted, "followRedirect" in accepted
    return [
        cookie if with_paths else {name: value for name, value in cookie.items() if name != "path"}
        for cookie in cookies
        if cookie["name"] or nameless or _warn_left_out(cookie["value"], _NAMELESS)
    ]


def for_browser(cookies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out cookies that no browser accepts."""
    return [cookie for cookie in cookies if _is_of_browsers(cookie)]


def as_text(value: object) -> str:
    """Return a header or cookie as text; bytes that are not UTF-8 are decoded as Latin-1, which never fails."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _header_cookies(
    request: Request, own: Iterable[Mapping[str, Any]], places: Mapping[tuple[str, str], Sequence[Place]]
) -> Iterator[dict[str, Any]]:
    domains = {(cookie["name"], cookie["value"]): cookie["domain"] for cookie in own}
    left = {key: iter(of_key) for key, of_key in places.items()}
    host = urlparse_cached(request).hostname
    for pair in as_text(b";".join(request.headers.getlist("Cookie"))).split(";"):
        name, separator, value = (part.strip(" \t") for part in pair.partition("="))
        if not separator:
            name, value = "", name
        if name or value:
            domain, path = next(left.get((name, value), iter(())), _UNKNOWN)
            domain = domains.get((name, value)) or domain or host
            cookie = {"name": name, "value": value, "domain": domain}
            yield cookie if path == "/" else {**cookie, "path": path}


def _own_cookies(request: Request) -> Iterator[dict[str, Any]]:
    """Yield the cookies with a name and a value, as Scrapy does."""
    host = urlparse_cached(request).hostname
    cookies: Iterable[Mapping[str, Any]] = (
        ({"name": name, "value": value} for name, value in request.cookies.items())
        if isinstance(request.cookies, dict)
        else request.cookies
    )
    for cookie in cookies:
        name, value = cookie.get("name"), cookie.get("value")
        if name is not None and value is not None:
            domain = as_text(cookie.get("domain") or host)
            yield {
                "name": as_text(name),
                "value": as_text(value),
                "domain": domain if _DOMAIN.fullmatch(domain) else host,
            }


def _can_be_sent(cookie: Mapping[str, Any]) -> bool:
    name, value = cookie["name"], cookie["value"]
    if CONTROL.search(name + value) or ";" in name + value or "=" in name:
        return _warn_left_out(name, "it has a character that no Cookie header can have")
    return bool(name or value)


def _is_of_browsers(cookie: object) -> bool:
    if not isinstance(cookie, dict):
        return True
    name, value = cookie.get("name"), cookie.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        return True  # It was given as a field, and the rules refuse it.
    if len((name + value).encode(errors="replace")) > _BROWSERS_SIZE:
        return _warn_left_out(name, f"browsers take no cookie of more than {_BROWSERS_SIZE} bytes")
    if "\t" in name + value or (not name and value.lower().startswith(COOKIE_PREFIXES)):
        return _warn_left_out(name or value, "browsers refuse such a cookie")
    return True


def _warn_left_out(name: str, reason: str) -> bool:
    """Log a warning, once for each reason since there may be many names, and return false."""
    if reason not in _reported:
        _reported.add(reason)
        logger.warning(
            "The cookie %.60r is not sent to the extraction service: %s. Remove it, or change its value. Others with "
            "the same fault are not logged",
            name,
            reason,
        )
    return False


# ── returned ──


class CrawlCookies:
    """The cookies of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def places(self, request: Request) -> Mapping[tuple[str, str], Sequence[Place]]:
        """Return the domains and paths of the cookies, by name and value: those of long paths first, as in a Cookie
        header. A domain is for more hosts than one, else None."""
        found: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
        path = urlparse_cached(request).path or "/"
        for cookie in sorted(self._kept(request), key=lambda each: len(each.path), reverse=True):
            if path == cookie.path or path.startswith(f"{cookie.path.removesuffix('/')}/"):
                domain = cookie.domain if cookie.domain.startswith(".") else None
                found[cookie.name, cookie.value or ""].append(Place(domain, cookie.path))
        return found

    def are_kept(self, request: Request) -> bool:
        """Return true if Scrapy keeps the cookies of a response to a request."""
        return self._middleware(request) is not None

    def store(self, request: Request, response: Response, sent: Mapping[str, Any], accepted: Collection[str]) -> None:
        """Give the cookies of a result to CookiesMiddleware. ``sent``: the fields of the request; ``accepted``: those
        that the service accepts besides those of the contract."""
        middleware = self._middleware(request)
        returned = (getattr(response, "extract_result", None) or {}).get(RESPONSE_COOKIES)
        if middleware is None or not isinstance(returned, list):
            return
        cookies = [cookie for cookie in returned if _is_readable(cookie)]
        as_sent = {_identity(cookie) for cookie in sent.get(REQUEST_COOKIES, ()) if _is_readable(cookie)}
        if RESPONSE_COOKIES in accepted:
            self._delete(request, response, {(name, *place) for name, _, *place in as_sent}, cookies)
        url, hosts = urlparse_cached(response), _hosts(request, response)
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for cookie in cookies:
            if not (_is_plain(cookie) and _identity(cookie) in as_sent):
                host, line = _set_cookie(cookie, hosts)
                if host:
                    lines[host].append(line)
        meta = {"cookiejar": request.meta["cookiejar"]} if "cookiejar" in request.meta else {}
        for host, of_host in lines.items():
            place = response.url if host == url.hostname else f"{url.scheme}://{host}/"
            answer = Response(place, status=response.status, headers={"Set-Cookie": of_host})
            middleware.process_response(Request(place, meta=meta), answer)

    def _delete(
        self,
        request: Request,
        response: Response,
        sent: Collection[tuple[str, ...]],
        returned: Collection[Mapping[str, Any]],
    ) -> None:
        """Delete the cookies that were sent and are not returned. Only the included service returns all of them, those
        of the page's host."""
        if urlparse_cached(request).hostname != urlparse_cached(response).hostname:
            return
        left = {(name, *place) for name, _, *place in map(_identity, returned)}
        for cookie in list(self._kept(request)):
            key = cookie.name, _bare(cookie.domain), cookie.path
            if key in sent and key not in left:
                self._jar(request).clear(cookie.domain, cookie.path, cookie.name)

    def _kept(self, request: Request) -> Iterator[Cookie]:
        if self._middleware(request) is not None:
            yield from cookies_for_host(self._jar(request), urlparse_cached(request).hostname or "")

    def _jar(self, request: Request) -> Any:
        middleware = self._middleware(request)
        return middleware.jars[request.meta.get("cookiejar")] if middleware is not None else None

    def _middleware(self, request: Request) -> CookiesMiddleware | None:
        return None if request.meta.get("dont_merge_cookies") else self._of_scrapy

    @cached_property
    def _of_scrapy(self) -> CookiesMiddleware | None:
        return self._crawler.get_downloader_middleware(CookiesMiddleware)


def _is_readable(cookie: object) -> bool:
    """Return true for a cookie with texts that a header can have. One without a name cannot be in Scrapy's jar."""
    if not isinstance(cookie, Mapping):
        return False
    name, value, domain, path = (cookie.get(part, "") for part in ("name", "value", "domain", "path"))
    texts = [text for text in (name, value, domain, path) if isinstance(text, str)]
    return len(texts) == 4 and bool(name) and not any(CONTROL.search(text) or ";" in text for text in texts)


def _identity(cookie: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return cookie["name"], cookie.get("value", ""), _bare(cookie.get("domain")), cookie.get("path") or "/"


def _is_plain(cookie: Mapping[str, Any]) -> bool:
    """Return true for a cookie with nothing but a name, a value, a domain and a path, as they are sent."""
    return cookie.get("expires") is None and not cookie.get("httpOnly")


def _bare(domain: object) -> str:
    """Return a domain without the dot before it, and without the ending that Python gives to a host without a dot."""
    return str(domain or "").lower().lstrip(".").removesuffix(".local")


def _hosts(request: Request, response: Response) -> list[str]:
    """Return the hosts of a response, of its request and of the redirects between them."""
    followed = getattr(response, "extract_result", {}).get("redirects")
    urls: list[Any] = [response.url, request.url]
    urls += [hop.get("url") for hop in followed if isinstance(hop, Mapping)] if isinstance(followed, list) else []
    hosts = []
    for url in urls:
        try:
            hosts.append(urlsplit(url).hostname if isinstance(url, str) else None)
        except ValueError:
            continue
    return [host for host in dict.fromkeys(hosts) if host]


def _set_cookie(cookie: Mapping[str, Any], hosts: Sequence[str]) -> tuple[str, str]:
    """Return the host that a cookie belongs to and its Set-Cookie header; the host is empty if none of these fits."""
    domain = (cookie.get("domain") or hosts[0]).lower()
    bare = domain.lstrip(".")
    host = next((host for host in hosts if host == bare or host.endswith(f".{bare}")), "")
    parts = [f"{cookie['name']}={cookie.get('value', '')}", f"Path={cookie.get('path') or '/'}"]
    if domain != bare:
        parts.append(f"Domain={domain}")
    elif host:
        host = bare
    expires = cookie.get("expires")
    if isinstance(expires, int | float) and 0 <= expires <= _LAST_SECOND:
        parts.append(f"Expires={formatdate(expires, usegmt=True)}")
    parts += [word for name, word in (("secure", "Secure"), ("httpOnly", "HttpOnly")) if cookie.get(name)]
    return host, "; ".join(parts)
