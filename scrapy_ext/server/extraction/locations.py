"""Addresses: where a ``Location`` header leads, read as browsers read it, and what of one may be told."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit, urlunsplit

from w3lib.url import safe_url_string
from yarl import URL

from scrapy_ext.server.extraction.errors import permanent, unreachable


def address_of(url: str) -> URL:
    """The URL of a request as an address; raises :class:`ExtractionError` (421) where no host can have that name.

    Names such as ``。１%`` stand for other characters once they are normalized, which yarl refuses.
    """
    try:
        return URL(url, encoded=True)
    except ValueError:
        host = urlsplit(url).hostname or ""
        raise unreachable(f"{host[:255]} is not an address that can be requested.") from None


def target_of(before: URL, location: str) -> URL:
    """The URL that a redirect leads to; raises :class:`ExtractionError` (521) where that is no web page."""
    try:
        after = URL(safe_url_string(urljoin(str(before), _slashes(location))), encoded=True)
        port = after.port
    except ValueError:
        raise permanent(f"{before.host} redirected to something that is not a URL.") from None
    if after.scheme not in ("http", "https") or not after.raw_host or port is None:
        raise permanent(f"{before.host} redirected to something that is not an http or https URL.")
    return after


def without_credentials(url: str) -> str:
    """A URL as it may stand in results, errors and logs: without ``user:password@``."""
    parts = urlsplit(url)
    return url if "@" not in parts.netloc else urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _slashes(location: str) -> str:
    """With slashes where it has backslashes, up to its query."""
    end = min((at for mark in "?#" if (at := location.find(mark)) >= 0), default=len(location))
    return location[:end].replace("\\", "/") + location[end:]
