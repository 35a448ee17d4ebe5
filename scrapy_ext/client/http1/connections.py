"""The connections to one server that are kept, how they are made, and the answers that they bring."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Final
from urllib.parse import unquote

from aiohappyeyeballs import start_connection
from yarl import URL

from scrapy_ext.client.http1.connection import AnswerError, Body, Connection
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, Self, timeout_after

#: Seconds that an unused connection is kept, below those of usual servers and proxies.
_KEPT: Final = 15.0
#: Seconds until the second address of a name is tried beside the first (RFC 8305).
_NEXT_ADDRESS: Final = 0.25
_AGENT: Final = "scrapy-ext"


class ConnectError(OSError):
    """No connection: nothing was sent."""


class Connections:
    """Connections to the server of a URL, which belong to the event loop of the first request.

    The paths of requests follow that of the URL. ``headers`` are those of every request; ``limit``: connections at
    once, 0: one for each request; ``proxy``: URL of an HTTP proxy, which may hold credentials.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, limit: int = 0, proxy: str | None = None) -> None:
        self._url = URL(url)
        self._proxy = URL(proxy) if proxy else None
        self._free: asyncio.Semaphore | None = asyncio.Semaphore(limit) if limit else None
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._tls: ssl.SSLContext | None = None
        default = {"Host": _host(self._url), "User-Agent": _AGENT, "Accept": "*/*"}
        own = {**default, **headers}
        target = self._url.raw_path.rstrip("/")
        if self._proxy is not None and self._url.scheme == "http":
            target = f"http://{_host(self._url)}{target}"
            own |= _credentials(self._proxy)
        self._target = target
        self._head = _lines(own)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | AsyncGenerator[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        *,
        connect_timeout: float,
    ) -> Answer:
        """Send a request; return its answer when the head is there, and the body too if it came with it.

        ``path`` is percent-encoded, and may have a query. A body in pieces is sent until the server answers; without
        ``Content-Length`` in ``headers``, in chunks. The answer must be closed. Raises :class:`ConnectError`,
        :class:`AnswerError`, and the errors of the body.
        """
        if self._free is not None:
            await self._free.acquire()
        connection: Connection | None = None
        try:
            connection = self._take() or await self._connect(connect_timeout)
            self._busy.add(connection)
            if isinstance(body, bytes):
                length = b"Content-Length: %d\r\n" % len(body)
                connection.send(self._head_of(method, path, headers, length) + body)
            else:
                is_chunked = "Content-Length" not in (headers or {})
                framing = b"Transfer-Encoding: chunked\r\n" if is_chunked else b""
                connection.send(self._head_of(method, path, headers, framing))
                await connection.upload(body, is_chunked=is_chunked)
            await connection.head()
        except BaseException:
            self._release(connection, whole=False)
            raise
        return Answer(connection, self)

    async def close(self) -> None:
        """Close every connection. Those of answers that are read break off."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()
        # The event loop closes the sockets in its next turns; TLS needs one more.
        for _ in range(3):
            await asyncio.sleep(0)

    def _head_of(self, method: str, path: str, headers: Mapping[str, str] | None, framing: bytes) -> bytes:
        line = f"{method} {self._target}{path} HTTP/1.1\r\n".encode("ascii")
        own = _lines(headers) if headers else b""
        return b"%b%b%b%b\r\n" % (line, self._head, own, framing)

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.abort()
        return None

    def _release(self, connection: Connection | None, *, whole: bool) -> None:
        if self._free is not None:
            self._free.release()
        if connection is None:
            return
        self._busy.discard(connection)
        if not whole or not connection.rest(_KEPT):
            connection.abort()
            return
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweep_later()

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(_KEPT, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        kept = []
        for connection in self._idle:
            if connection.is_usable():
                kept.append(connection)
            else:
                connection.abort()
        self._idle = kept
        if kept:
            self._sweep_later()

    # ── connecting ──

    async def _connect(self, seconds: float) -> Connection:
        try:
            async with timeout_after(seconds):
                return await self._connected()
        except TIMEOUT_ERRORS as error:
            raise ConnectError(f"no connection within {seconds:g} seconds") from error
        except ConnectError:
            raise
        except (OSError, AnswerError) as error:
            raise ConnectError(_reason(error)) from error

    async def _connected(self) -> Connection:
        loop = asyncio.get_running_loop()
        first = self._proxy or self._url
        host = first.raw_host or ""
        secure = self._context() if first.scheme == "https" else None
        connection = Connection(loop)
        addresses = await loop.getaddrinfo(host, first.port, type=socket.SOCK_STREAM)
        # asyncio has this too, and uvloop has not.
        opened = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS, interleave=1)
        try:
            name = host if secure else None
            await loop.create_connection(lambda: connection, sock=opened, ssl=secure, server_hostname=name)
        except BaseException:
            opened.close()
            raise
        if self._proxy is not None and self._url.scheme == "https":
            try:
                await self._tunnel(connection, self._proxy)
            except BaseException:
                connection.abort()
                raise
        return connection

    async def _tunnel(self, connection: Connection, proxy: URL) -> None:
        """Make the connection to a proxy one with the server, with TLS."""
        there = f"{_bracketed(self._url)}:{self._url.port}"
        head = _lines({"Host": there, "User-Agent": _AGENT, **_credentials(proxy)})
        connection.send(b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (there.encode("ascii"), head))
        await connection.head()
        if not 200 <= connection.answer.status < 300:
            raise ConnectError(f"the proxy answers {connection.answer.status}")
        await connection.start_tls(self._context(), self._url.raw_host or "")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class Answer:
    """One answer, a context manager. Its body is read once, whole or in pieces."""

    __slots__ = ("_connection", "_connections", "content_length", "headers", "reason", "status")

    def __init__(self, connection: Connection, connections: Connections) -> None:
        self._connection = connection
        self._connections = connections
        received = connection.answer
        self.status = received.status
        self.reason = received.reason
        self.headers = received.headers
        #: Bytes of the body as it is sent; None: not known yet.
        self.content_length = received.length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def content_type(self) -> str:
        """The media type without parameters; empty: not given."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def read(self) -> Body:
        """Return the body of an answer with a length."""
        return await self._connection.body()

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Iterate over the body as it comes."""
        connection = self._connection
        while True:
            parts = connection.taken()
            for part in parts:
                yield part
            if parts:
                continue
            if connection.answer.is_whole:
                return
            await connection.more()

    def close(self) -> None:
        """Let the connection be used again after a whole answer; close it otherwise."""
        self._connections._release(self._connection, whole=self._connection.answer.is_whole)


def _host(url: URL) -> str:
    return _bracketed(url) if url.is_default_port() else f"{_bracketed(url)}:{url.port}"


def _bracketed(url: URL) -> str:
    host = url.raw_host or ""
    return f"[{host}]" if ":" in host else host


def _credentials(proxy: URL) -> dict[str, str]:
    if proxy.raw_user is None and proxy.raw_password is None:
        return {}
    pair = f"{unquote(proxy.raw_user or '')}:{unquote(proxy.raw_password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _lines(headers: Mapping[str, str]) -> bytes:
    """Return headers as lines; raise :class:`ValueError` for one that would be more than its line."""
    text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise ValueError(f"a header of {', '.join(headers)} holds the end of a line")
    return text.encode("latin-1")


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}). If an authority of your own has signed it, set "
            "SSL_CERT_FILE to the file of that authority's certificate"
        )
    return str(error) or type(error).__name__
