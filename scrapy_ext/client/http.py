"""HTTP of both clients: addresses, keys, proxies, compressed bodies."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from scrapy_ext.api import compression
from scrapy_ext.api.masking import shown_address
from scrapy_ext.client.http1 import AnswerError

#: Bodies above this many bytes are compressed in a thread, since compressing a megabyte takes milliseconds.
_THREAD_ABOVE: Final = 64 * 1024


def authorization(key: str, setting: str) -> str:
    """Return the ``Authorization`` header of a key, which both services take as a user name with an empty password.

    Raises :class:`ValueError` naming ``setting``, and never the key.
    """
    if not key:
        raise ValueError(f"{setting} is not set. Set it to the key of the service.")
    if ":" in key or not key.isprintable() or key != key.strip():
        raise ValueError(
            f"{setting} must be a key of printable characters without ':' or blanks around it. Copy the key again."
        )
    return f"Basic {base64.b64encode(f'{key}:'.encode()).decode()}"


def base_url(url: str, setting: str, example: str) -> str:
    """Return an address without blanks around it and slashes at its end; raise :class:`ValueError` naming ``setting``.

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
        raise ValueError(f"{setting} must be an absolute http or https URL{shown_address(stripped)}. {remedy}")
    if parts.query or parts.fragment:
        raise ValueError(f"{setting} must not have a query or a fragment{shown_address(stripped)}. {remedy}")
    return stripped.rstrip("/")


def is_local(url: str) -> bool:
    """Return whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for an address (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). None for an
    address of this machine, which a proxy would not reach.
    """
    parts = urlsplit(url)
    if is_local(url) or proxy_bypass(parts.netloc):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and urlsplit(proxy).scheme in ("http", "https") else None


async def gzipped(body: bytes) -> bytes:
    """Compress a request body to a gzip stream, in a thread if it is large."""
    return await asyncio.to_thread(compression.gzip, body) if len(body) > _THREAD_ABOVE else compression.gzip(body)


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Return whether an answer is a gzip stream.

    Raises :class:`~scrapy_ext.client.http1.AnswerError` for any other coding.
    """
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise AnswerError(f"the answer has the encoding {encoding[:40]!r}, which was not requested")
    return encoding != "identity"


async def decompressed(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Decompress a gzip stream into pieces of bounded size, whatever the ratio.

    Raises :class:`~scrapy_ext.client.http1.AnswerError` for damaged data, and for a stream that was cut off. An empty
    body is valid: an answer without a body may have the header of a coding.
    """
    inflater, has_begun = compression.Inflater(sys.maxsize), False
    async for chunk in chunks:
        has_begun = True
        try:
            for piece in inflater.feed(chunk):
                if piece:
                    yield piece
                # One small chunk may hold many pieces.
                await asyncio.sleep(0)
        except compression.DamagedError as error:
            raise AnswerError(f"the compressed answer is damaged ({error})") from None
    if has_begun:
        try:
            inflater.end()
        except compression.DamagedError:
            raise AnswerError("the compressed answer broke off") from None
