"""Targets of redirects, parsed as browsers do, and URLs without credentials."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit, urlunsplit

from w3lib.url import safe_url_string
from yarl import URL

from scrapy_ext.api.extraction.errors import permanent, unreachable


def address_of(url: str) -> URL:
    """Return the URL of a request; raises :class:`ExtractionError` (421) where no host can have that name.

    Names such as ``。１%`` stand for other characters once they are normalized, which yarl refuses.
    """
    try:
        return URL(url, encoded=True)
    except ValueError:
        host = urlsplit(url).hostname or ""
        raise unreachable(f"{host[:255]} is not an address that can be requested.") from None


def target_of(before: URL, location: str) -> URL:
    """Return the URL that a redirect leads to; raises :class:`ExtractionError` (521) for anything but a web page."""
    try:
        after = URL(safe_url_string(urljoin(str(before), _slashes(location))), encoded=True)
        port = after.port
    except ValueError:
        raise permanent(f"{before.host} redirected to something that is not a URL.") from None
    if after.scheme not in ("http", "https") or not after.raw_host or port is None:
        raise permanent(f"{before.host} redirected to something that is not an http or https URL.")
    return after


def without_credentials(url: str) -> str:
    """Return a URL without ``user:password@``, for results, errors and logs."""
    parts = urlsplit(url)
    return url if "@" not in parts.netloc else urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _slashes(location: str) -> str:
    """Replace backslashes by slashes up to the query, as browsers do."""
    end = min((at for mark in "?#" if (at := location.find(mark)) >= 0), default=len(location))
    return location[:end].replace("\\", "/") + location[end:]
