"""``POST /extract`` over HTTP: one session, one request at a time and call, nothing retried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import aiohttp

from scrapy_ext.client.addresses import base_url, proxy_of
from scrapy_ext.client.credentials import authorization
from scrapy_ext.client.extraction.errors import UnreachableServiceError

#: An answer larger than this is not read to its end. Base64 makes a page a third larger.
MAX_ANSWER_BYTES: Final = 512 * 2**20

#: Errors after which nothing can have been sent.
_NOT_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


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
        }
        self._proxy = proxy_of(self.url)
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 30.0))
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<ExtractTransport to {self.url}>"

    async def post(self, body: bytes) -> RawAnswer:
        """Send a request body; raises :class:`~scrapy_ext.client.extraction.errors.UnreachableServiceError`
        when no whole answer comes."""
        try:
            async with self._opened().post(f"{self.url}/extract", data=body, allow_redirects=False) as response:
                return RawAnswer(response.status, response.headers, await _read(response))
        except _NOT_CONNECTED as error:
            raise UnreachableServiceError(f"cannot connect to {self.url} ({error})", ambiguous=False) from error
        except TimeoutError as error:
            told = f"no answer from {self.url} within {self._timeout.total:g} seconds"
            raise UnreachableServiceError(told, ambiguous=True) from error
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise UnreachableServiceError(f"no whole answer from {self.url} ({reason})", ambiguous=True) from error

    async def close(self) -> None:
        """Close the connections. The transport can be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(limit=self._connections),
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._proxy,
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
