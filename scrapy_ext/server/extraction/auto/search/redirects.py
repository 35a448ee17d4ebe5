"""Links that lead to another site by way of the page's own, as search engines have them: where they end."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import parse_qsl, unquote

from scrapy_ext.server.extraction.auto.page.urls import absolute, parts_of, site_of

MAX_QUERY_LENGTH: Final = 8_000
MAX_PARAMETERS: Final = 60

#: Parameters that hold the target, the usual ones first.
_TARGETS: Final = ("q", "url", "uddg", "u", "target", "to", "dest", "destination", "r", "redirect", "link", "ru")
#: What a path of a redirect looks like: ``/url``, ``/l/``, ``/ck/a``, ``/link``, ``/click``, ``/RU=``.
_REDIRECT = re.compile(
    r"/(?:url|l|links?|ck(?:/a)?|click\w*|out|go|goto|redir(?:ect)?\w*|r|clck(?:/\w+)*)(?:[/.;]|$)|/RU=", re.IGNORECASE
)
_IN_PATH = re.compile(r"/RU=(https?%3a[^/]+)/", re.IGNORECASE)
#: ``a1`` and the address in Base64.
_ENCODED = re.compile(r"a1(aHR0c[\w-]{8,4000})={0,2}")


def target_of(url: str, page_url: str) -> str | None:
    """The address that a link leads to; None for a link within the site, and for a redirect that hides its target."""
    if not is_same_site(url, page_url):
        return _wrapped(url) or url if is_redirect(url) else url
    return _wrapped(url)


def is_redirect(url: str) -> bool:
    """Whether an address looks like one that only passes visitors on."""
    return _REDIRECT.search(parts_of(url).path) is not None


def is_same_site(first: str, second: str) -> bool:
    """Whether two addresses are of one site, whatever comes before its name: ``www.``, ``r.search.``."""
    return site_of(first) == site_of(second)


def _wrapped(url: str) -> str | None:
    parts = parts_of(url)
    match = _IN_PATH.search(parts.path)
    if match:
        return _outside(unquote(match.group(1)), url)
    given = dict(parse_qsl(parts.query[:MAX_QUERY_LENGTH])[:MAX_PARAMETERS])
    for name in _TARGETS:
        value = given.get(name, "")
        encoded = _ENCODED.fullmatch(value)
        if encoded:
            value = _decoded(encoded.group(1))
        if value.startswith(("http://", "https://")) and (target := _outside(value, url)):
            return target
    return None


def _outside(target: str, url: str) -> str | None:
    found = absolute(url, target)
    return found if found and not is_same_site(found, url) else None


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
