"""The address of a service, as users give it."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


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
