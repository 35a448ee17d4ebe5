"""Cookies that come back from the extraction service, in Scrapy's cookie jar.

Scrapy's CookiesMiddleware reads the Set-Cookie headers of a response. A page of a browser has cookies without such
headers: of its redirects, of what it loads and of its scripts. So has a page whose redirects the service followed, and
one that is requested without headers. For such requests the service returns all cookies at the end
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

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from email.utils import formatdate
from http.cookiejar import Cookie
from typing import Any, Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction.forms import CONTROL
from scrapy_ext.client.extraction.budget import kind_of
from scrapy_ext.crawl.extraction.cookies import Place
from scrapy_ext.crawl.extraction.redirects import FIELD as FOLLOW_REDIRECT
from scrapy_ext.crawl.session.scrapy_engine import cookies_for_host

FIELD: Final = "responseCookies"
#: The last second with a year of four digits, which a Set-Cookie header can have.
_LAST_SECOND: Final = 253_402_300_799


class CrawlCookies:
    """The cookies of one crawl. ``extensions``: fields that the service accepts besides those of the contract."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.extensions: Collection[str] = ()

    def places(self, request: Request) -> Mapping[tuple[str, str], Sequence[Place]]:
        """Return the domains and paths of the cookies, by name and value: those of long paths first, as in a Cookie
        header. A domain is for more hosts than one, else None. The contract has no paths of cookies: of a service that
        may not accept them, they are ``/``."""
        found: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
        path = urlparse_cached(request).path or "/"
        for cookie in sorted(self._kept(request), key=lambda each: len(each.path), reverse=True):
            if path == cookie.path or path.startswith(f"{cookie.path.removesuffix('/')}/"):
                domain = cookie.domain if cookie.domain.startswith(".") else None
                place = Place(domain, cookie.path if FIELD in self.extensions else "/")
                found[cookie.name, cookie.value or ""].append(place)
        return found

    def are_wanted(self, request: Request, fields: Mapping[str, Any]) -> bool:
        """Return true for a request whose cookies do not come by response headers that Scrapy reads."""
        if self._middleware(request) is None or fields.get("serp") or request.meta.get("extract_api_automap") is False:
            return False
        by_headers = fields.get("httpResponseHeaders") and fields.get(FOLLOW_REDIRECT) is False
        return kind_of(fields) == "browser" or not by_headers

    def to_send(self, request: Request, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a request, with ``responseCookies`` where they are wanted. A value of the user's
        stays."""
        if FIELD not in self.extensions or FIELD in fields or not self.are_wanted(request, fields):
            return fields
        return {**fields, FIELD: True}

    def store(self, request: Request, response: Response, sent: Mapping[str, Any]) -> None:
        """Give the cookies of a result to CookiesMiddleware."""
        middleware = self._middleware(request)
        returned = (getattr(response, "extract_result", None) or {}).get(FIELD)
        if middleware is None or not isinstance(returned, list):
            return
        cookies = [cookie for cookie in returned if _is_readable(cookie)]
        as_sent = {_identity(cookie) for cookie in sent.get("requestCookies", ()) if _is_readable(cookie)}
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
        if FIELD not in self.extensions or urlparse_cached(request).hostname != urlparse_cached(response).hostname:
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
        if request.meta.get("dont_merge_cookies"):
            return None
        found: CookiesMiddleware | None = self._crawler.get_downloader_middleware(CookiesMiddleware)
        return found


def _is_readable(cookie: Any) -> bool:
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


def _bare(domain: Any) -> str:
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
    """Return the host that a cookie belongs to and its Set-Cookie header; no host for one of none of these hosts."""
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
