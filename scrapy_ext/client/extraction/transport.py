"""``POST /extract`` over HTTP: one session, one request at a time and call, nothing retried."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec
from yarl import URL

from scrapy_ext.api.extraction import EXTENSIONS_HEADER
from scrapy_ext.client.extraction.errors import TooLargeError, UnreachableServiceError, timed_out
from scrapy_ext.client.extraction.memory import AnswerMemory, Hold
from scrapy_ext.client.extraction.redact import redacted, without_user
from scrapy_ext.client.http import authorization, base_url, decompressed, is_compressed, proxy_of

#: How much longer than the content an answer can be: Base64 makes it a third longer, escapes in JSON up to twice as
#: long, and headers and extracted data come on top.
_ANSWER_PER_BYTE: Final = 2
_ANSWER_ON_TOP: Final = 2**20

#: An answer of at most so many bytes is read as a whole.
_SMALL: Final = 64 * 1024
#: While an answer is joined, its bytes are there twice.
_JOINED: Final = 2

#: Errors after which nothing can have been sent.
_NOT_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)

#: Seconds for a connection.
_CONNECT: Final = 30.0
#: An answer without an extraction is there at once, or does not matter.
_ASKING: Final = aiohttp.ClientTimeout(total=10.0)
#: Statuses after which a service may answer otherwise when it is asked again.
_LATER: Final = (429, 500, 502, 503, 504)


class Bounds(msgspec.Struct, frozen=True):
    """What one request may take: ``timeout`` in seconds, None: the transport's own; ``max_size`` in bytes of the page
    that the answer holds, 0: any."""

    timeout: float | None = None
    max_size: int = 0


_UNBOUNDED: Final = Bounds()


class RawAnswer(NamedTuple):
    """An answer as it came, decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ExtractTransport:
    """The service at an address ending in ``/v1``. Made anywhere; its connections belong to the loop of the
    first call.

    ``timeout`` bounds one request from its first byte to the last of its answer, in seconds; ``connections``,
    how many are open at once (0: as many as there are requests).
    """

    def __init__(self, url: str, key: str, timeout: float, *, connections: int = 0) -> None:
        self.url = base_url(url, "EXTRACT_API_URL", "https://extract.example.com/v1")
        self._headers = {
            "Authorization": authorization(key, "EXTRACT_API_KEY"),
            "Content-Type": "application/json",
            "Accept": "application/json, application/problem+json",
            # The one coding that is undone in steps.
            "Accept-Encoding": "gzip",
        }
        self._proxy = proxy_of(self.url)
        self._timeout = timeout
        self._connections = connections
        #: Fields that the service knows beside those of the contract, as its answers say; None: none has said so.
        self.extensions: frozenset[str] | None = None
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<ExtractTransport to {self.url}>"

    async def post(self, body: bytes, bounds: Bounds = _UNBOUNDED, hold: Hold | None = None) -> RawAnswer:
        """Send a request body. ``hold`` counts the memory of the answer.

        Raises :class:`~scrapy_ext.client.extraction.errors.UnreachableServiceError` when no whole answer comes, and
        :class:`~scrapy_ext.client.extraction.errors.TooLargeError`.
        """
        seconds = (self._timeout if bounds.timeout is None else bounds.timeout) or None
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=min(seconds or _CONNECT, _CONNECT))
        session = self._opened()
        try:
            async with (
                # Not by aiohttp: time that an answer waits for memory does not count.
                asyncio.timeout(seconds) as deadline,
                session.post(self._endpoint, data=body, allow_redirects=False, timeout=timeout) as response,
            ):
                reading = _Reading(response, bounds.max_size, hold or Hold(AnswerMemory()), deadline)
                answer = RawAnswer(response.status, response.headers, await reading.whole())
                self._learn(answer.headers)
                return answer
        except _NOT_CONNECTED as error:
            told = f"cannot connect to {self.url} ({_reason(error)})"
            raise UnreachableServiceError(told, ambiguous=False) from None
        except TimeoutError as error:
            told = f"no answer from {self.url} within {seconds or 0:g} seconds (DOWNLOAD_TIMEOUT)"
            raise timed_out(told) from error
        except (aiohttp.ClientError, OSError) as error:
            told = f"no whole answer from {self.url} ({_reason(error)})"
            raise UnreachableServiceError(told, ambiguous=True) from None

    async def ask_extensions(self) -> None:
        """Ask the service for :attr:`extensions`, without an extraction, which would be billed.

        Raises :class:`~scrapy_ext.client.extraction.errors.UnreachableServiceError` while it has no answer.
        """
        session = self._opened()
        try:
            async with session.options(self._endpoint, allow_redirects=False, timeout=_ASKING) as response:
                self._learn(response.headers)
                if self.extensions is None and response.status not in _LATER:
                    self.extensions = frozenset()
        except (aiohttp.ClientError, OSError) as error:
            told = f"{self.url} does not say what it knows ({_reason(error)})"
            raise UnreachableServiceError(told, ambiguous=False) from None

    def _learn(self, headers: Mapping[str, str]) -> None:
        named = headers.get(EXTENSIONS_HEADER)
        if named is not None and self.extensions is None:
            self.extensions = frozenset(name.strip() for name in named.split(","))

    async def close(self) -> None:
        """Close the connections. The transport can be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._endpoint = URL(f"{self.url}/extract")
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(limit=self._connections),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._proxy,
            )
        return self._session


def _reason(error: Exception) -> str:
    """What went wrong, without the address of a proxy: its password may be in it."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.status} {error.message}".strip()
    return without_user(str(error)) or type(error).__name__


class _Reading:
    """The body of one answer on its way into memory."""

    def __init__(self, response: aiohttp.ClientResponse, max_size: int, hold: Hold, deadline: asyncio.Timeout) -> None:
        self._response = response
        self._max_size = max_size
        self._most = max_size * _ANSWER_PER_BYTE + _ANSWER_ON_TOP if max_size else sys.maxsize
        self._hold = hold
        self._deadline = deadline

    async def whole(self) -> bytes:
        """The body, decompressed; raises ``TooLargeError``."""
        if is_compressed(self._response):
            return await self._joined(decompressed(self._response.content.iter_any()))
        expected = self._response.content_length
        if expected is not None:
            self._check(expected)
            if expected <= _SMALL:
                await self._hold.resize(expected, self._deadline)
                return await self._response.read()
        return await self._joined(self._pieces())

    async def _joined(self, pieces: AsyncGenerator[bytes]) -> bytes:
        found: list[bytes] = []
        size = 0
        # Closed at once, also where a piece is refused: it refers to the hold.
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                size += len(piece)
                self._check(size)
                await self._hold.resize(_JOINED * size, self._deadline)
                found.append(piece)
        return b"".join(found)

    async def _pieces(self) -> AsyncGenerator[bytes]:
        async for chunk in self._response.content.iter_any():
            yield chunk

    def _check(self, size: int) -> None:
        if size > self._most:
            raise too_large(size, self._max_size)


def too_large(size: int, max_size: int, fields: Mapping[str, Any] | None = None) -> TooLargeError:
    """The error for an answer or a page of so many bytes, which was asked for with these fields."""
    told = f"{size} bytes are more than the {max_size} that DOWNLOAD_MAXSIZE allows"
    return TooLargeError(told, sent=redacted(fields or {}))
