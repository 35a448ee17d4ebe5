"""HTTP of the client of the platform: addresses, authentication, compression, timeouts, retries.

A repeatable call is sent again after a temporary failure, when the time that the server requests has passed. The others
are sent once.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

import msgspec

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client import http1
from scrapy_ext.client.http import authorization, base_url, gzipped, proxy_of
from scrapy_ext.client.http1 import ConnectError, Connections
from scrapy_ext.client.platform import answers
from scrapy_ext.client.platform.answers import Answer, Stream
from scrapy_ext.client.platform.calls import ClientCall, query
from scrapy_ext.client.platform.errors import UnexpectedAnswer, Unreachable
from scrapy_ext.client.platform.json_lines import LineError
from scrapy_ext.client.retry import Attempts, Limits, repeat
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.telemetry.spans import Span, client_span

T = TypeVar("T")

#: Request bodies above this many bytes are compressed.
COMPRESS_ABOVE: Final = 1024
#: Connections to one address at once.
_CONNECTIONS: Final = 100
#: Seconds of a call whose body is a file.
UPLOAD_SECONDS: Final = 900.0

_URL_SETTINGS: Final = {
    Host.APP: "PLATFORM_APP_URL",
    Host.STORAGE: "PLATFORM_STORAGE_URL",
    Host.JOBQ: "PLATFORM_JOBQ_URL",
}
_EXAMPLE: Final = "https://platform.example.com"


class PlatformUrls(msgspec.Struct, frozen=True):
    """The base addresses of a platform, without a slash at the end."""

    app: str
    storage: str
    jobq: str

    def __post_init__(self) -> None:
        for host, setting in _URL_SETTINGS.items():
            msgspec.structs.force_setattr(self, host.value, base_url(self.base(host), setting, _EXAMPLE))

    @classmethod
    def single(cls, url: str) -> PlatformUrls:
        """Return the addresses of a platform that serves everything at one address."""
        base = base_url(url, "PLATFORM_URL", _EXAMPLE)
        return cls(base, base, base)

    def base(self, host: Host) -> str:
        address: str = getattr(self, host.value)
        return address


class Transport:
    """A session with the platform. Made anywhere; its connections belong to the loop of the first call."""

    def __init__(
        self,
        urls: PlatformUrls,
        key: str,
        *,
        timeout: float,
        limits: Limits,
        compress: bool = True,
        pace: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.urls = urls
        self.limits = limits
        self._pace = pace
        self._authorization = authorization(key, "PLATFORM_API_KEY")
        self._timeout = timeout
        self._compress = compress
        self._opened: dict[str, Connections] = {}

    def __repr__(self) -> str:
        return f"<Transport to {self.urls}>"

    async def close(self) -> None:
        """Close the connections. The transport can be used again afterwards."""
        opened, self._opened = self._opened, {}
        for connections in opened.values():
            await connections.close()

    async def send(self, call: ClientCall) -> Answer:
        """Make a call and return its whole answer; raises :class:`PlatformError`."""
        return await self.read(call, lambda answer: answer)

    async def read(self, call: ClientCall, interpret: Callable[[Answer], T]) -> T:
        """Make a call and interpret its answer. A temporary :class:`PlatformError`, of the call or the interpretation,
        repeats the call."""
        headers, body = await self._prepared(call)
        seconds = self._timeout if call.source is None else UPLOAD_SECONDS
        tries = itertools.count()

        async def once() -> T:
            await self._wait()
            with self._span(call, next(tries)) as span, _unreachable(call, self.urls):
                async with timeout_after(seconds):
                    with await self._request(call, {**headers, **span.headers}, body) as response:
                        span.answered(response.status)
                        answer = await answers.whole(call, response)
            return _interpreted(call, answer, interpret)

        return await repeat(once, Attempts(self._limits_of(call)).failed)

    @asynccontextmanager
    async def stream(self, call: ClientCall) -> AsyncIterator[Stream]:
        """Make a call once and read its answer as it arrives; raises :class:`PlatformError`, also while reading."""
        headers, body = await self._prepared(call)
        await self._wait()
        try:
            with self._span(call, 0) as span, _unreachable(call, self.urls):
                headers = {**headers, **span.headers}
                async with timeout_after(self._timeout):
                    response = await self._request(call, headers, body)
                with response:
                    span.answered(response.status)
                    # The reader may take its time for the whole; the wait for each piece of data is bounded.
                    yield await answers.stream(call, response, self._timeout)
        except LineError as error:
            raise call.error(UnexpectedAnswer, str(error)) from None

    def _span(self, call: ClientCall, resend: int) -> Span:
        # Most calls are made for many requests of a spider. The first part of the path is the resource.
        resource = "/" + call.path[1:].partition("/")[0]
        return client_span(call.method, self.urls.base(call.host) + call.path, resource, resend, own_trace=True)

    async def _wait(self) -> None:
        if self._pace is not None:
            await self._pace()

    def _limits_of(self, call: ClientCall) -> Limits:
        attempts = call.attempts if call.repeatable else 1
        return self.limits if attempts is None else Limits(attempts, 0.0, self.limits.backoff)

    async def _request(
        self, call: ClientCall, headers: dict[str, str], body: bytes | AsyncGenerator[bytes]
    ) -> http1.Answer:
        parameters = query(call.parameters)
        path = call.path + (f"?{parameters}" if parameters else "")
        # A redirect is not followed: it would turn a POST into a GET, and may lead the key to another host.
        connections = self._connections(self.urls.base(call.host))
        return await connections.request(call.method, path, body, headers, connect_timeout=self._timeout)

    def _connections(self, base: str) -> Connections:
        opened = self._opened.get(base)
        if opened is None:
            own = {"Authorization": self._authorization}
            opened = self._opened[base] = Connections(base, own, limit=_CONNECTIONS, proxy=proxy_of(base))
        return opened

    async def _prepared(self, call: ClientCall) -> tuple[dict[str, str], bytes | AsyncGenerator[bytes]]:
        headers = {"Accept": call.accept, "Accept-Encoding": "gzip" if self._compress else "identity"}
        headers.update(call.headers)
        if call.source is not None:
            return {**headers, "Content-Type": call.content_type}, call.source()
        body = call.body
        if body is None:
            return headers, b""
        headers["Content-Type"] = call.content_type
        if call.encoding is not None:
            if call.encoding != "identity":
                headers["Content-Encoding"] = call.encoding
        elif self._compress and len(body) > COMPRESS_ABOVE:
            headers["Content-Encoding"] = "gzip"
            body = await gzipped(body)
        return headers, body


@contextmanager
def _unreachable(call: ClientCall, urls: PlatformUrls) -> Iterator[None]:
    """Raise :class:`Unreachable` for the errors of connections."""
    try:
        yield
    except (*TIMEOUT_ERRORS, OSError) as error:
        message = f"no whole answer from {urls.base(call.host)}: {_reason(error)}"
        raise call.error(Unreachable, message) from error


def _interpreted(call: ClientCall, answer: Answer, interpret: Callable[[Answer], T]) -> T:
    try:
        return interpret(answer)
    except (msgspec.ValidationError, ContractError, LineError) as error:
        raise call.error(UnexpectedAnswer, f"not the answer that was expected ({error})", answer.status) from None


def _reason(error: Exception) -> str:
    if isinstance(error, TIMEOUT_ERRORS):
        return "timed out"
    if isinstance(error, ConnectError):
        return f"cannot connect ({error})"
    return str(error) or type(error).__name__
