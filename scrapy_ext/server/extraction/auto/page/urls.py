"""URLs of pages: relative, padded, sometimes not meant for a web server at all."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

#: Longer ones are not addresses; the request contract has the same bound.
MAX_URL_LENGTH: Final = 8192

_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f]")
#: Names under which countries have their sites: ``co.uk``, ``com.br``.
_SECOND_LEVELS: Final = frozenset({
    "ac", "co", "com", "edu", "go", "gob", "gov", "gouv", "ltd", "me", "ne", "net", "nom", "or", "org", "plc",
})  # fmt: skip
#: References that joining leaves as they are, but for the origin of those from the root: most of the links of a page,
#: and joining takes ten times as long. Without segments of dots, parameters, and an empty query.
_PLAIN = re.compile(
    r"(?:(?P<site>https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*)(?=/)|(?=/))(?:/[\w%~+=,-][\w%~+=,.-]*)*/?(?:\?[\w%~+=,.&/-]+)?",
    re.ASCII,
)
_SLUG_WORD = re.compile(r"[^\W\d_]{2,}")


def absolute(base: str, reference: str | None) -> str | None:
    """Return the absolute http or https URL of ``reference`` on a page at ``base``.

    None for no reference, ``data:``, ``javascript:``, ``mailto:``, a fault in the syntax, or more than
    :data:`MAX_URL_LENGTH` characters.
    """
    if not reference or len(reference) > MAX_URL_LENGTH:
        return None
    if plain := joined_plain(base, reference):
        return plain
    # Browsers drop control characters inside of a URL and encode the spaces.
    cleaned = _UNWRITABLE.sub("", reference.strip()).replace(" ", "%20")
    if not cleaned:
        return None
    try:
        url = urljoin(base, cleaned)
    except ValueError:
        return None
    return url if is_address(url) else None


def joined_plain(base: str, reference: str) -> str | None:
    """Return the absolute URL of a reference that joining leaves as it is, but for the origin; None for others."""
    if (plain := _PLAIN.fullmatch(reference)) is None:
        return None
    if plain["site"]:
        return reference
    origin = _origin_of(base)
    return origin + reference if origin and len(origin) + len(reference) <= MAX_URL_LENGTH else None


@lru_cache(maxsize=64)
def _origin_of(base: str) -> str | None:
    """Return the scheme and host of a base, by which its references from the root are completed."""
    if not is_address(base):
        return None
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc}"


def is_address(url: str) -> bool:
    """Return whether a URL is one of http or https with a host, and not too long."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= MAX_URL_LENGTH
    except ValueError:
        return False


def parts_of(url: str) -> SplitResult:
    """Return the parts of a URL, all empty where its syntax is broken."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def host_of(url: str) -> str:
    """Return the host of a URL in lower case; empty for none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def site_of(url: str) -> str:
    """Return the name of a site: the last two labels of a host, three under ``co.uk`` and the like."""
    labels = host_of(url).split(".")
    below_country = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVELS
    return ".".join(labels[-3 if below_country else -2 :])


def same_page(first: str, second: str) -> bool:
    """Return whether two URLs differ at most in scheme, ``www.``, fragment and a last slash."""
    return bare(first) == bare(second)


def bare(url: str) -> str:
    """Return a URL without scheme, ``www.``, fragment and last slash: equal for addresses of one page."""
    parts = parts_of(url)
    return f"{parts.netloc.lower().removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}"


def slug_of(url: str) -> str | None:
    """Return the words of the last path segment with at least two: ``/shop/oak-table-p1234.html``."""
    for part in reversed(parts_of(url).path.split("/")):
        words = _SLUG_WORD.findall(unquote(part[:1000]).rpartition(".html")[0] or unquote(part[:1000]))
        if len(words) > 1:
            return " ".join(words)
    return None
