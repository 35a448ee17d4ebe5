"""Requests over HTTP/1.1 to one server, with little processor time and memory: connections that are kept, answers that
are read into one buffer, and no layer in between.

llhttp parses the head of an answer, and a body without a length. Of a longer answer, no more than a buffer is read
until the caller asks for the body, so the caller decides about memory. A connection is used again only after a whole
answer, and never when the server sent more than that.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from aiohappyeyeballs import start_connection
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict
from yarl import URL

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, Self, timeout_after

#: Bytes of one read, and of one of a body in pieces that comes faster.
_READ: Final = 16 * 1024
_READ_MORE: Final = 128 * 1024
#: Most bytes of the head of an answer.
_MOST_HEAD: Final = 64 * 1024
#: Seconds that an unused connection is kept, below those of usual servers and proxies.
_KEPT: Final = 15.0
#: Seconds until the second address of a name is tried beside the first (RFC 8305).
_NEXT_ADDRESS: Final = 0.25
Body: TypeAlias = "bytes | bytearray"

_AGENT: Final = "scrapy-ext"


class ConnectError(OSError):
    """No connection: nothing was sent."""


class AnswerError(OSError):
    """No whole answer, though the request was sent."""


class Connections:
    """Connections to the server of a URL, which belong to the event loop of the first request.

    The paths of requests follow that of the URL. ``headers`` are those of every request; ``limit``: connections at
    once, 0: one for each request; ``proxy``: URL of an HTTP proxy, which may hold credentials.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, limit: int = 0, proxy: str | None = None) -> None:
        self._url = URL(url)
        self._proxy = URL(proxy) if proxy else None
        self._free: asyncio.Semaphore | None = asyncio.Semaphore(limit) if limit else None
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
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
        connection: _Connection | None = None
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

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.abort()
        return None

    def _release(self, connection: _Connection | None, *, whole: bool) -> None:
        if self._free is not None:
            self._free.release()
        if connection is None:
            return
        self._busy.discard(connection)
        if not whole or not connection.rest():
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

    async def _connect(self, seconds: float) -> _Connection:
        try:
            async with timeout_after(seconds):
                return await self._connected()
        except TIMEOUT_ERRORS as error:
            raise ConnectError(f"no connection within {seconds:g} seconds") from error
        except ConnectError:
            raise
        except (OSError, AnswerError) as error:
            raise ConnectError(_reason(error)) from error

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        first = self._proxy or self._url
        host = first.raw_host or ""
        secure = self._context() if first.scheme == "https" else None
        connection = _Connection(loop)
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

    async def _tunnel(self, connection: _Connection, proxy: URL) -> None:
        """Make the connection to a proxy one with the server, with TLS."""
        there = f"{_bracketed(self._url)}:{self._url.port}"
        head = _lines({"Host": there, "User-Agent": _AGENT, **_credentials(proxy)})
        connection.send(b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (there.encode("ascii"), head))
        await connection.head()
        if not 200 <= connection.status < 300:
            raise ConnectError(f"the proxy answers {connection.status}")
        await connection.start_tls(self._context(), self._url.raw_host or "")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class Answer:
    """One answer, a context manager. Its body is read once, whole or in pieces."""

    __slots__ = ("_connection", "_connections", "content_length", "headers", "reason", "status")

    def __init__(self, connection: _Connection, connections: Connections) -> None:
        self._connection = connection
        self._connections = connections
        self.status = connection.status
        self.reason = connection.reason
        self.headers = connection.headers
        #: Bytes of the body as it is sent; None: not known yet.
        self.content_length = connection.length

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
            if connection.is_whole:
                return
            await connection.more()

    def close(self) -> None:
        """Let the connection be used again after a whole answer; close it otherwise."""
        self._connections._release(self._connection, whole=self._connection.is_whole)


class _Connection(asyncio.BufferedProtocol):
    """One connection: idle, or with one request and its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: Any = None
        self._buffer = _buffer(_READ)
        #: The task that waits for the head, or for more of the body.
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._is_lost = False
        self._kept_until = 0.0
        self._is_paused = False
        #: The parser of the answer, and what it has found.
        self._parser = HttpResponseParser(self)
        self._is_asked = False
        #: The buffer for sending is full; the body of the request was not sent whole.
        self._is_full = self._is_cut = False
        self._has_head = self._is_kept = self._until_eof = False
        self._head_bytes = 0
        self._parts: list[bytes] = []
        #: Where the rest of a body with a length is received, and how much of the body is there.
        self._into: memoryview[int] | None = None
        self._filled = 0
        self._begin()

    # ── one request ──

    def send(self, written: bytes) -> None:
        self._begin()
        self._is_asked = True
        self._transport.write(written)

    async def upload(self, body: AsyncGenerator[bytes], *, is_chunked: bool) -> None:
        """Send a body in pieces, until there is an answer or an error."""
        async with contextlib.aclosing(body):
            async for piece in body:
                if self._has_head or self._error is not None:
                    self._is_cut = True
                    return
                if piece:
                    self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
                if self._is_full:
                    await self._wait()
        if is_chunked:
            self._transport.write(b"0\r\n\r\n")

    async def head(self) -> None:
        """Wait for the head of the answer."""
        while not self._has_head:
            await self._wait()

    async def body(self) -> Body:
        """Return the whole body, of which the length is known."""
        if self.is_whole:
            return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        into = bytearray(self.length or 0)
        for part in self.taken():
            into[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
        self._into = memoryview(into)
        await self._more()
        return into

    async def more(self) -> None:
        """Wait for more of the body, or for its end."""
        if not self._parts:
            await self._more()

    def taken(self) -> list[bytes]:
        """Remove and return the received parts of the body."""
        parts, self._parts = self._parts, []
        return parts

    def rest(self) -> bool:
        """Make the connection idle after a whole answer; return whether it may be used again."""
        self._kept_until = self._loop.time() + _KEPT
        # A server may answer before it has read the request.
        is_sent = not (self._is_cut or self._transport.get_write_buffer_size())
        if not (is_sent and self._is_kept and self.is_usable()) or self._is_paused:
            return False
        self._begin()
        if len(self._buffer) > _READ:
            self._buffer = _buffer(_READ)
        return True

    def is_usable(self) -> bool:
        return not (self._is_lost or self._error or self._transport.is_closing()) and (
            self._loop.time() <= self._kept_until
        )

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        if self._parts or self._error:
            raise AnswerError("the proxy sent data before the server")
        self._begin()
        self._transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        self._is_paused = False

    def _begin(self) -> None:
        """Forget the former answer."""
        self.status = 0
        self.reason = ""
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.length: int | None = None
        self.is_whole = False
        self._parser = HttpResponseParser(self)
        self._into = None
        self._is_asked = self._is_cut = self._has_head = self._is_kept = self._until_eof = False
        self._head_bytes = self._filled = 0
        self._parts = []

    async def _more(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        await self._wait()

    async def _wait(self) -> None:
        if self._error is None:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._check()

    def _check(self) -> None:
        if self._error is not None and not self.is_whole:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._wake()
        self.abort()

    # ── from the event loop ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview[int]:
        return self._buffer if self._into is None else self._into[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._into is not None:
            self._filled += nbytes
            if self._filled == len(self._into):
                self._into = None
                self.is_whole = True
                self._wake()
            return
        if not self._is_asked or self.is_whole:
            self._fail(AnswerError("the server sent data without a request"))
            return
        had_head = self._has_head
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(AnswerError(f"the answer is not HTTP: {error or type(error).__name__}"))
            return
        if not self._has_head:
            self._head_bytes += nbytes
            if self._head_bytes > _MOST_HEAD:
                self._fail(AnswerError(f"the head of the answer has more than {_MOST_HEAD} bytes"))
            return
        if had_head and nbytes == len(self._buffer) < _READ_MORE:
            self._buffer = _buffer(_READ_MORE)
        if had_head and not (self.is_whole or self._parts):
            return
        # A caller that wants the body asks for it before the next read, so only a further one pauses.
        if had_head and not (self.is_whole or self._is_paused):
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        if self._until_eof and self._has_head:
            self.is_whole = True
            self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        if not self.is_whole:
            reason = f": {error}" if error else ""
            self._error = self._error or AnswerError(f"the server closed the connection{reason}")
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    # ── from the parser ──

    def on_status(self, reason: bytes) -> None:
        if not self._has_head:
            self.reason = reason.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # not those after a chunked body
            self.headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # a preliminary answer; the one of the request follows
            self.headers.clear()
            return
        if self._has_head:  # a second answer, to no request
            self._is_kept = False
            return
        self.status = status
        self._has_head = True
        self._is_kept = self._parser.should_keep_alive()
        # llhttp refuses an answer with several of these headers.
        if (length := self.headers.get("Content-Length")) is not None:
            self.length = int(length)
        else:
            self._until_eof = "chunked" not in self.headers.get("Transfer-Encoding", "").lower()

    def on_body(self, part: bytes) -> None:
        if not self.is_whole:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        if self._has_head:
            self.is_whole = True


def _buffer(size: int) -> memoryview[int]:
    return memoryview(bytearray(size))


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
    return str(error) or type(error).__name__
