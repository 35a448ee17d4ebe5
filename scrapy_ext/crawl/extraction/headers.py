"""Headers of routed requests: those of the user in fields of the service, instead of those of Scrapy, so that sites see
the browser that the service has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from scrapy import Request, Spider
from scrapy.http import Headers
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.crawl.extraction.content import warn_once
from scrapy_ext.crawl.extraction.cookies import as_text
from scrapy_ext.crawl.frontier.marks import DefaultHeaders, lines_of, own_names

#: ``User-Agent`` of the service, for the requests that sites get directly, and for the rules of robots.txt.
BROWSER_AGENT: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
)
#: Headers that only browsers send.
OF_BROWSERS: Final = (
    *("Upgrade-Insecure-Requests", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User"),
    *("Sec-CH-UA", "Sec-CH-UA-Mobile", "Sec-CH-UA-Platform", "Priority"),
)
_MESSAGE: Final = (
    "Sites see a browser instead of Scrapy, in the headers of routed requests. To send those of Scrapy, set "
    "EXTRACT_API_SCRAPY_HEADERS = True; for a name of your own, USER_AGENT"
)
#: Headers that describe one connection or one encoding of the body; the service sends its own. ``Cookie`` cannot
#: be set (rule 11).
NOT_SENT: Final = frozenset(
    {b"Cookie", b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Keep-Alive", b"Te"}
    | {b"Upgrade", b"Trailer", b"Expect", b"Proxy-Authorization"}
)
#: Prefixes of headers that a proxy service reads and removes, so that sites never see them. Without the proxy of the
#: request, they would name the tool to its site.
_FOR_PROXIES: Final = (b"X-Crawlera-", b"Zyte-")
_NOT_FOR_SITES: Final = (
    "The header %s is for the proxy in the meta of its request. That proxy has no effect, so the header is not sent. "
    "Remove the middleware that adds both, and ask for a geolocation or a device in EXTRACT_API_PARAMS"
)
#: Names of ``requestHeaders``. The document does not define them; these are the headers that make sense for a
#: browser, in the style of its other names.
BROWSER_HEADERS: Final[Mapping[bytes, str]] = {
    b"Referer": "referer",
    b"User-Agent": "userAgent",
    b"Accept-Language": "acceptLanguage",
}
#: Names that browsers do not write as Scrapy does: with a capital after each hyphen.
_AS_BROWSERS: Final = {b"Dnt": b"DNT", b"Sec-Gpc": b"Sec-GPC"} | {
    name.title(): name
    for name in (
        *(b"sec-ch-ua", b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"sec-ch-ua-platform-version", b"sec-ch-ua-model"),
        *(b"sec-ch-ua-arch", b"sec-ch-ua-bitness", b"sec-ch-ua-full-version", b"sec-ch-ua-full-version-list"),
        *(b"sec-ch-ua-wow64", b"sec-ch-ua-form-factors"),
    )
}
#: Field with the names of headers that the service must not send.
OMITTED_HEADERS: Final = "omitHttpRequestHeaders"
_NOT_OMITTED: Final = (
    "The header %s is None, but browsers and services without the field omitHttpRequestHeaders send their own"
)


def is_browsers(settings: BaseSettings) -> bool:
    """Return true if sites see the User-Agent of a browser: without one of the user's, and unless Scrapy's is sent."""
    return _is_default(settings, "USER_AGENT") and not names.EXTRACT_API_SCRAPY_HEADERS.read(settings)


def message(settings: BaseSettings, spider: Spider | type[Spider] | None) -> str | None:
    """Return the line for the log of a crawl whose requests are routed by default, None if sites see no browser."""
    is_routed = names.EXTRACT_API_TRANSPARENT_MODE.read(settings)
    has_own = getattr(spider, "user_agent", None) is not None
    return _MESSAGE if is_routed and not has_own and is_browsers(settings) else None


def omitted_headers(settings: BaseSettings) -> list[str]:
    """Return the names of headers that the user's settings suppress by the value None."""
    listed = [name for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items() if value is None]
    if not _is_default(settings, "USER_AGENT") and settings["USER_AGENT"] is None:
        listed.append("User-Agent")
    if names.EXTRACT_API_SCRAPY_HEADERS.read(settings):
        listed += OF_BROWSERS
    return listed


def scrapy_default_headers(settings: BaseSettings) -> DefaultHeaders:
    """Return the headers that Scrapy adds to every request and the service need not have: without those that the user's
    settings changed, or that EXTRACT_API_SCRAPY_HEADERS sends."""
    headers, is_sent = Headers(), names.EXTRACT_API_SCRAPY_HEADERS.read(settings)
    if not is_sent and _is_default(settings, "DEFAULT_REQUEST_HEADERS"):
        headers.update(settings.getdict("DEFAULT_REQUEST_HEADERS"))
    if not is_sent and _is_default(settings, "USER_AGENT"):
        headers["User-Agent"] = settings["USER_AGENT"]
    from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS  # heavy, and only for this

    headers["Accept-Encoding"] = b", ".join(ACCEPTED_ENCODINGS)
    return frozenset((name, value) for name, values in headers.items() for value in values)


def header_field(request: Request, defaults: DefaultHeaders, *, by_http: bool) -> dict[str, Any]:
    """Return the field for the headers of a request, empty without any.

    ``defaults``: headers that are left out if the request has them with exactly these values, unless they are marked as
    the user's own (:mod:`scrapy_ext.crawl.frontier.marks`).
    ``by_http``: whether the body of the site is requested, with which any header can be sent.
    """
    headers = _headers(request, defaults)
    return _custom_headers(headers) if by_http else _browser_headers(headers)


def left_out(request: Request, omitted: Collection[str]) -> tuple[str, ...]:
    """Return the names of headers that a site must not get: those of the request that are None, and of ``omitted``
    those that it does not set."""
    own = [as_text(name) for name, values in lines_of(request.headers) if not values]
    return (*own, *(name for name in omitted if name not in request.headers))


def omitted_field(omitted: Collection[str], accepted: Collection[str], *, by_http: bool) -> dict[str, Any]:
    """Return the field for headers that a site must not get: Scrapy does not send them, and the service should not add
    its own. ``accepted``: fields that the service accepts besides those of the contract."""
    if omitted and by_http and OMITTED_HEADERS in accepted:
        return {OMITTED_HEADERS: list(omitted)}
    for name in omitted:
        if name not in OF_BROWSERS:
            warn_once(_NOT_OMITTED, name)
    return {}


def _headers(request: Request, defaults: DefaultHeaders) -> Iterable[tuple[bytes, list[bytes]]]:
    own = own_names(request)
    for name, values in lines_of(request.headers):
        if not values or name in NOT_SENT:
            continue
        if name not in own and all((name, value) in defaults for value in values):
            continue
        if name.startswith(_FOR_PROXIES) and request.meta.get("proxy"):
            warn_once(_NOT_FOR_SITES, as_text(name))
            continue
        yield name, values


def _line(value: bytes) -> str:
    """Return a header's value, with spaces for line breaks, as Scrapy sends it."""
    return as_text(b" ".join(value.splitlines()))


def _custom_headers(headers: Iterable[tuple[bytes, list[bytes]]]) -> dict[str, Any]:
    """Join several values of a header, since only the last of a name is sent (rule 11)."""
    listed = [
        {"name": as_text(_AS_BROWSERS.get(name, name)), "value": ",".join(map(_line, values))}
        for name, values in headers
    ]
    return {"customHttpRequestHeaders": listed} if listed else {}


def _browser_headers(headers: Iterable[tuple[bytes, list[bytes]]]) -> dict[str, Any]:
    named: dict[str, str] = {}
    for name, values in headers:
        if name in BROWSER_HEADERS:
            named[BROWSER_HEADERS[name]] = ",".join(map(_line, values))
        else:
            known = ", ".join(map(as_text, BROWSER_HEADERS))
            left_out = "The header %s is not sent with requests for anything but httpResponseBody; %s can be"
            warn_once(left_out, as_text(name), known)
    return {"requestHeaders": named} if named else {}


def _is_default(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) == 0
