"""The address of a service, as users give it, and whether two addresses of a page are the same."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from yarl import URL


def base_url(url: str, setting: str, example: str) -> str:
    """The address without blanks and slashes around it; raises :class:`ValueError` naming ``setting``.

    An address with credentials is refused, and not shown: keys have settings of their own.
    """
    stripped = url.strip()
    remedy = f"Write one such as {example}."
    try:
        parts = urlsplit(stripped)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{setting} is not a URL: {error}. {remedy}") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{setting} must not hold credentials. Put the key into the setting for it.")
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"{setting} must be an absolute http or https URL, got {stripped[:80]!r}. {remedy}")
    if parts.query or parts.fragment:
        raise ValueError(f"{setting} must not have a query or a fragment, got {stripped[:80]!r}. {remedy}")
    return stripped.rstrip("/")


def is_local(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). None for this
    machine's own, to which no proxy leads.

    Read here and not by aiohttp, which would look into a file of passwords for each request as well.
    """
    parts = urlsplit(url)
    if is_local(url) or proxy_bypass(parts.netloc):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and urlsplit(proxy).scheme in ("http", "https") else None


def is_same_page(url: str, other: str) -> bool:
    """Whether two URLs are the same but for what browsers and clients write in different ways, and the fragment."""
    if url == other:
        return True
    try:
        return _normal(url) == _normal(other)
    except ValueError:
        return False


def _normal(url: str) -> URL:
    parsed = URL(url).with_fragment(None)
    if parsed.raw_user is not None or parsed.raw_password is not None:
        parsed = parsed.with_user(None)
    return parsed.with_port(None) if parsed.is_default_port() else parsed
