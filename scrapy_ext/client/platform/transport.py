"""The one way in which this client talks HTTP: authentication, compression, timeouts, retries.

A call states whether it can be repeated. Those that can are tried again after a failure that may pass, waiting
as long as the server asks; the others are sent once.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.addresses import proxy_of
from scrapy_ext.client.credentials import authorization
from scrapy_ext.client.platform import answers
from scrapy_ext.client.platform.answers import Answer, Stream
from scrapy_ext.client.platform.calls import ClientCall
from scrapy_ext.client.platform.errors import PlatformError, UnexpectedAnswer, Unreachable
from scrapy_ext.client.platform.json_lines import LineError
from scrapy_ext.client.platform.patience import Patience, Trials
from scrapy_ext.client.platform.urls import PlatformUrls, query

T = TypeVar("T")

#: Request bodies above this many bytes are compressed,
COMPRESS_ABOVE: Final = 1024
#: and above this many in a thread, since compressing a megabyte takes tens of milliseconds.
THREAD_ABOVE: Final = 64 * 1024
#: Fast rather than small: JSON shrinks to a quarter at the lowest level already.
GZIP_LEVEL: Final = 1
#: Seconds of a call whose body is a file.
UPLOAD_SECONDS: Final = 900.0


class Transport:
    """A session with the platform. Made anywhere; its connections belong to the loop of the first call."""

    def __init__(
        self, urls: PlatformUrls, key: str, *, timeout: float, patience: Patience, compress: bool = True
    ) -> None:
        self.urls = urls
        self.patience = patience
        self._authorization = authorization(key, "PLATFORM_API_KEY")
        self._proxies = {host: proxy_of(urls.base(host)) for host in Host}
        self._timeout = timeout
        self._compress = compress
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<Transport to {self.urls}>"

    async def close(self) -> None:
        """Close the connections. The transport can be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, call: ClientCall) -> Answer:
        """Make a call and read its whole answer; raises :class:`PlatformError`."""
        return await self.read(call, lambda answer: answer)

    async def read(self, call: ClientCall, interpret: Callable[[Answer], T]) -> T:
        """Make a call and interpret its answer. When that raises :class:`PlatformError`, as a call does, the
        call is made again if it is worth it."""
        headers, body = await self._prepared(call)
        trials = Trials(self._patience_of(call))
        timeout = aiohttp.ClientTimeout(total=self._timeout if call.source is None else UPLOAD_SECONDS)
        while True:
            try:
                with _told_as_unreachable(call, self.urls):
                    async with self._request(call, headers, body, timeout) as response:
                        answer = await answers.whole(call, response)
                return _interpreted(call, answer, interpret)
            except PlatformError as error:
                await trials.failed(error)

    @asynccontextmanager
    async def stream(self, call: ClientCall) -> AsyncIterator[Stream]:
        """Make a call once and read its answer as it arrives. The reading raises :class:`PlatformError` too."""
        headers, body = await self._prepared(call)
        try:
            with _told_as_unreachable(call, self.urls):
                async with asyncio.timeout(self._timeout):
                    response = await self._request(call, headers, body, aiohttp.ClientTimeout(total=None))
                async with response:
                    # The whole may take as long as its reader needs; each wait for data is bounded.
                    yield await answers.stream(call, response, self._timeout)
        except LineError as error:
            raise call.error(UnexpectedAnswer, str(error)) from None

    def _patience_of(self, call: ClientCall) -> Patience:
        attempts = call.attempts if call.repeatable else 1
        return self.patience if attempts is None else Patience(attempts, 0.0, self.patience.backoff)

    def _request(
        self,
        call: ClientCall,
        headers: dict[str, str],
        body: bytes | AsyncIterator[bytes] | None,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.client._RequestContextManager:
        parameters = query(call.parameters)
        address = self.urls.base(call.host) + call.path + (f"?{parameters}" if parameters else "")
        # A redirect is not followed: it would turn a POST into a GET, and may lead the key to another host.
        return self._opened().request(
            call.method,
            URL(address, encoded=True),
            headers=headers,
            data=body,
            timeout=timeout,
            proxy=self._proxies[call.host],
            allow_redirects=False,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"Authorization": self._authorization},
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _prepared(self, call: ClientCall) -> tuple[dict[str, str], bytes | AsyncIterator[bytes] | None]:
        headers = {"Accept": call.accept, "Accept-Encoding": "gzip" if self._compress else "identity"}
        headers.update(call.headers)
        if call.source is not None:
            return {**headers, "Content-Type": call.content_type}, call.source()
        body = call.body
        if body is None:
            return headers, None
        headers["Content-Type"] = call.content_type
        if call.encoding is not None:
            if call.encoding != "identity":
                headers["Content-Encoding"] = call.encoding
        elif self._compress and len(body) > COMPRESS_ABOVE:
            headers["Content-Encoding"] = "gzip"
            body = await gzipped(body)
        return headers, body


@contextmanager
def _told_as_unreachable(call: ClientCall, urls: PlatformUrls) -> Iterator[None]:
    """Turns what aiohttp raises into :class:`Unreachable`."""
    try:
        yield
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        message = f"no whole answer from {urls.base(call.host)}: {_reason(error)}"
        raise call.error(Unreachable, message) from error


def _interpreted(call: ClientCall, answer: Answer, interpret: Callable[[Answer], T]) -> T:
    try:
        return interpret(answer)
    except (msgspec.ValidationError, ContractError, LineError) as error:
        raise call.error(UnexpectedAnswer, f"not the answer that was expected ({error})", answer.status) from None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect ({error.os_error.strerror or error.os_error})"
    return str(error) or type(error).__name__


async def gzipped(body: bytes) -> bytes:
    """A body compressed as this transport compresses, off the event loop if it is large."""
    return await asyncio.to_thread(_gzip, body) if len(body) > THREAD_ABOVE else _gzip(body)


def _gzip(body: bytes) -> bytes:
    compress = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return compress.compress(body) + compress.flush()
