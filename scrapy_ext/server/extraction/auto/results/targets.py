"""Targets of the links of results: direct, or in a redirect of the engine that can be read."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import parse_qsl, unquote

from scrapy_ext.server.extraction.auto.page.urls import absolute, host_of, parts_of, site_of

MAX_QUERY_LENGTH: Final = 8_000
MAX_PARAMETERS: Final = 60
#: Shorter paths are of the home page of a service of the engine.
SHORTEST_PATH: Final = 5

#: Parameters with the target, the usual ones first.
_TARGETS: Final = ("q", "url", "uddg", "u", "target", "to", "dest", "destination", "r", "redirect", "link", "ru")
#: Paths of redirects: ``/url``, ``/l/``, ``/ck/a``, ``/link``, ``/click``, ``/RU=``.
_REDIRECT = re.compile(
    r"/(?:url|l|links?|ck(?:/a)?|click\w*|out|go|goto|redir(?:ect)?\w*|r|clck(?:/\w+)*)(?:[/.;]|$)|/RU=", re.IGNORECASE
)
_IN_PATH = re.compile(r"/RU=(https?%3a[^/]+)/", re.IGNORECASE)
#: Services of engines that search something else.
_SERVICE: Final = re.compile(
    r"\b(?:search|images?|videos?|maps?|market|shopping|news|translate|webcache|cache|ads?)\b", re.I
)
#: ``a1`` and the URL in Base64.
_ENCODED = re.compile(r"a1(aHR0c[\w-]{8,4000})={0,2}")


def target_of(url: str, page_url: str) -> str | None:
    """Return the target of a link; None for a link within the site, and for a redirect with a hidden target."""
    if not is_same_site(url, page_url):
        return _wrapped(url) or url if is_redirect(url) else url
    return _wrapped(url)


def own_target_of(url: str, page_url: str) -> str | None:
    """Return a link to another host of the same site, as to a blog or a book that the engine has.

    None for the start of a service of the engine, and for one that takes the words of the search.
    """
    if host_of(url) == host_of(page_url) or not is_same_site(url, page_url) or is_redirect(url):
        return None
    parts = parts_of(url)
    if _SERVICE.search(f"{parts.netloc}{parts.path}") or (len(parts.path) <= SHORTEST_PATH and not parts.query):
        return None
    return url


def is_redirect(url: str) -> bool:
    """Return whether a URL looks like a redirect."""
    return _REDIRECT.search(parts_of(url).path) is not None


def is_same_site(first: str, second: str) -> bool:
    """Return whether two URLs are of one site, whatever precedes its name: ``www.``, ``r.search.``."""
    return site_of(first) == site_of(second)


def _wrapped(url: str) -> str | None:
    parts = parts_of(url)
    match = _IN_PATH.search(parts.path)
    if match:
        return _other_site(unquote(match.group(1)), url)
    given = dict(parse_qsl(parts.query[:MAX_QUERY_LENGTH])[:MAX_PARAMETERS])
    for name in _TARGETS:
        value = given.get(name, "")
        encoded = _ENCODED.fullmatch(value)
        if encoded:
            value = _decoded(encoded.group(1))
        if value.startswith(("http://", "https://")) and (target := _other_site(value, url)):
            return target
    return None


def _other_site(target: str, url: str) -> str | None:
    found = absolute(url, target)
    return found if found and host_of(found) != host_of(url) else None


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
