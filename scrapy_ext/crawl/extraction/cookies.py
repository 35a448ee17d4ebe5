"""``requestCookies``: the cookies that Scrapy would send with a request, as ``{name, value, domain}`` objects, with
``path`` where it is not ``/``.

Some sites set cookies that break the rules of HTTP; browsers and Scrapy send them nevertheless. A cookie that no
service can send is left out with a warning: it never makes a request fail. Cookies that the user gave as a field are
checked by the rules of the API.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ext.api.extraction.fields import MAX_COOKIES
from scrapy_ext.api.extraction.forms import CONTROL, COOKIE_PREFIXES

logger = logging.getLogger(__name__)

_DOMAIN: Final = re.compile(r"\.?[0-9A-Za-z._\-]+")
#: Bytes of name and value that browsers accept (RFC 6265bis, 5.7).
_BROWSERS_SIZE: Final = 4096
#: Reasons with a logged warning.
_reported: Final[set[str]] = set()


class Place(NamedTuple):
    """The part of the web that a cookie is for. ``domain`` is None for the host of the request alone."""

    domain: str | None
    path: str


_UNKNOWN: Final = Place(None, "/")


def cookies_of(
    request: Request,
    *,
    own: bool,
    own_alone: bool,
    nameless: bool,
    places: Mapping[tuple[str, str], Sequence[Place]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return the cookies of the Cookie header, which CookiesMiddleware made.

    ``own``: read the cookies of the request itself for their domains, which a header lacks.
    ``own_alone``: return those of the request if there is no header.
    ``nameless``: the service accepts cookies without a name.
    ``places``: those of cookies that are known, by name and value, in the order of the header.
    """
    given = [*_own_cookies(request)] if own and request.cookies and not request.meta.get("dont_merge_cookies") else []
    cookies = [*_header_cookies(request, given, places)] or (given if own_alone else [])
    sent = [cookie for cookie in cookies if _can_be_sent(cookie, nameless=nameless)]
    if len(sent) > MAX_COOKIES:
        _warn_left_out(sent[MAX_COOKIES]["name"], f"the request has more than {MAX_COOKIES}")
    return sent[:MAX_COOKIES]


def for_browser(cookies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out cookies that no browser accepts."""
    return [cookie for cookie in cookies if _is_of_browsers(cookie)]


def as_text(value: Any) -> str:
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


def _can_be_sent(cookie: Mapping[str, Any], *, nameless: bool) -> bool:
    name, value = cookie["name"], cookie["value"]
    if not name and not nameless:
        return _warn_left_out(value, "it has no name, and the service may not send such cookies")
    if CONTROL.search(name + value) or ";" in name + value or "=" in name:
        return _warn_left_out(name, "it has a character that no Cookie header can have")
    return bool(name or value)


def _is_of_browsers(cookie: Any) -> bool:
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
            "The cookie %.60r is not sent to the extraction service: %s. Others with the same fault are not logged",
            name,
            reason,
        )
    return False
