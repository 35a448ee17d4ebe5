"""Images of items, fetched by the server for the pages that show them.

The browser of a person who looks at items connects to this server alone: no site of a crawl learns their address, what
they look at or when, and the content security policy needs no exception. The server fetches only the URLs that stored
items have, never one of a request, through the guard of all outgoing connections; without cookies, a referrer or the
header of a session. Only the kinds of images that cannot carry scripts are sent on, by their first bytes.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.net.guard import Guard, address_of, target_of

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

#: Maximum bytes of an image, seconds of a fetch with the wait before it, fetches at once, and redirects.
MOST_BYTES: Final = 2 * 1024 * 1024
SECONDS: Final = 10.0
AT_ONCE: Final = 8
REDIRECTS: Final = 3
_PIECE: Final = 64 * 1024

_KINDS: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "image/avif"),
)


class Image(NamedTuple):
    data: bytes
    type: str


class ItemImages:
    """Fetcher of images, with one HTTP session from the first image to :meth:`close`."""

    def __init__(self, guard: Guard, *, verify_tls: bool = True) -> None:
        self._guard = guard
        self._verify_tls = verify_tls
        self._session: aiohttp.ClientSession | None = None
        self._free = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, url: str) -> Image | None:
        """Return the image at an http(s) URL; None if it cannot be had, is too large, or is no image."""
        from aiohttp import ClientError  # with the first image: it takes a tenth of a second

        try:
            async with timeout_after(SECONDS), self._free:
                return await self._fetch(address_of(url))
        except (*TIMEOUT_ERRORS, ExtractionError, ClientError, OSError, ValueError):
            return None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _fetch(self, url: URL) -> Image | None:
        session = self._session or self._opened()
        for _ in range(REDIRECTS + 1):
            # aiohttp calls its resolver for names only, not for addresses.
            await self._guard.endpoints(url.raw_host or "", url.port or 0)
            async with session.get(url, allow_redirects=False) as answer:
                if 300 <= answer.status < 400 and "Location" in answer.headers:
                    url = target_of(url, answer.headers["Location"])
                    continue
                return await _image_of(answer) if answer.status == 200 else None
        return None

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp  # as above

        from scrapy_ext.server.net.resolver import GuardedResolver

        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard),
            use_dns_cache=False,
            force_close=True,
            limit=AT_ONCE,
            ssl=self._verify_tls,
        )
        headers = {"User-Agent": "scrapy-ext", "Accept": "image/avif,image/webp,image/png,image/jpeg,image/gif"}
        # A compressed answer is none of the kinds, and nothing large comes out of a small one.
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            skip_auto_headers=("Accept-Encoding",),
            auto_decompress=False,
        )
        return self._session


async def _image_of(answer: aiohttp.ClientResponse) -> Image | None:
    data = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        data += piece
        if len(data) > MOST_BYTES:
            return None
    kind = next((media_type for first, media_type in _KINDS if first.match(data)), None)
    return None if kind is None else Image(bytes(data), kind)
