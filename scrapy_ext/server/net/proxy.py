"""Forward proxy of a browser page, on loopback, which connects where the guard permits.

A page is not confined to the requested URL: redirects, sub-resources, frames, workers, WebSockets and scripts open
connections of their own. Chromium sends all of them, also those to loopback, to this proxy, where they are checked.

* Each page has a proxy on its own port, which ends with the page. So the bytes, connections and failures of a page are
  known, and no connection outlives it. There are no proxy credentials: Chromium accepts them only from a client that
  intercepts every request (measured: a fifth fewer pages per second), and they would only protect, for the seconds
  that the port exists, against local processes that can connect to the same hosts themselves. Deployed code may not
  connect to it where the system can prevent that (``confinement``).
* Two forms of request are served, those of browsers: ``CONNECT host:port`` and ``GET http://host/path``. A plain HTTP
  request gets its own connection and ``Connection: close`` both ways, so that no second request uses a connection that
  was checked for another host.
* Waits are bounded by the page: :meth:`PageProxy.close` ends every connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.problems import ExtractionError, permanent
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.jobprocess.confinement import addresses
from scrapy_ext.server.config.extraction_limits import MIB, ServiceLimits
from scrapy_ext.server.net.guard import MOST_INTERIM, Guard
from scrapy_ext.server.net.upstream import Streams, Upstream

#: Header of the proxy's own responses, with a value that no site can know.
FAILURE_HEADER: Final = "Extraction-Proxy-Failure"
_HEAD_BYTES: Final = 256 * 1024
_CHUNK: Final = 64 * 1024
#: Maximum seconds and chunks of reading after a refusal.
_LINGER: Final = 1.0
_REST_CHUNKS: Final = 64
_HOP_BY_HOP: Final = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"trailer", b"upgrade")
)
#: Begins of requests that may be sent again.
_REPEATABLE: Final = (b"GET ", b"HEAD ", b"OPTIONS ")
_FAILURES_KEPT: Final = 256


class _Refused(Exception):  # noqa: N818  (a response, not a program error)
    """The proxy refuses a request; the message is the rest of the HTTP status line."""


class _Head(NamedTuple):
    """The head of a request: its target, the bytes to forward, and the length of its body."""

    tunnel: bool
    host: str
    port: int
    forward: bytes
    body: int


class PageProxy:
    """The proxy of one page; :attr:`url` is for Chromium. ``upstream`` is the operator's proxy, if any."""

    def __init__(self, guard: Guard, limits: ServiceLimits, upstream: Upstream | None = None) -> None:
        self._upstream = upstream
        self._guard = guard
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._serves = False
        self._bytes = 0
        self._token = secrets.token_hex(16)
        self._failures: dict[tuple[str, int], ExtractionError] = {}
        self._port = 0
        self.url = ""

    async def __aenter__(self) -> PageProxy:
        await self.start()
        self.serve(self._upstream)
        return self

    async def start(self) -> None:
        """Listen. Connections are closed at once until :meth:`serve` is called: a spare page has no request yet."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        addresses.close_port(self._port)
        self.url = f"http://127.0.0.1:{self._port}"

    def serve(self, upstream: Upstream | None) -> None:
        """Serve connections from now on."""
        self._upstream = upstream
        self._serves = True

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection and accept no more."""
        if self._server is not None:
            addresses.open_port(self._port)
            self._server.close()
            self._server = None
        await self.refuse()

    async def refuse(self) -> None:
        """End every connection and serve no more, while the page closes: no other proxy may get its port before."""
        self._serves = False
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)

    def failure(self, url: str) -> ExtractionError | None:
        """Return the error of a failed connection for this URL, if any."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        except ValueError:
            return None
        return self._failures.get((parts.hostname or "", port))

    def is_own_answer(self, headers: Mapping[str, str]) -> bool:
        """Return true when a response is the proxy's own; header names are in lower case, or case-insensitive."""
        return headers.get(FAILURE_HEADER.lower()) == self._token

    # ── one connection ──

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  (a coroutine runs in a task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            if self._serves and len(self._tasks) <= self._limits.page_connections:
                await self._serve(reader, writer)
        except _Refused as refusal:
            await self._answer(writer, str(refusal))
            await _read_rest(reader)
        except ExtractionError:
            await self._answer(writer, "502 Bad Gateway")
        except (OSError, asyncio.IncompleteReadError):
            pass  # Either side disconnected; closing below ends the other.
        except asyncio.CancelledError:
            pass  # The page is closed, and nobody awaits this task.
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise _Refused("431 Request Header Fields Too Large") from None
        head = _read_head(raw)
        site = await self._connect(head.host, head.port)
        try:
            if head.tunnel:
                writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
                await self._tunnel((reader, writer), site)
            else:
                await self._forward(head, (reader, writer), site)
        finally:
            site[1].close()

    async def _connect(self, host: str, port: int) -> Streams:
        try:
            if self._upstream is None:
                return await self._guard.connect(host, port)
            endpoints = await self._guard.endpoints(host, port)
            return await self._upstream.connect(host, endpoints, self._limits.connect)
        except ExtractionError as failure:
            if len(self._failures) < _FAILURES_KEPT:
                self._failures[host, port] = failure
            raise

    async def _tunnel(self, page: Streams, site: Streams) -> None:
        """Relay bytes both ways until either side ends."""
        ways = {asyncio.ensure_future(self._relay(one[0], other[1])) for one, other in ((page, site), (site, page))}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _forward(self, head: _Head, page: Streams, site: Streams) -> None:
        """Forward one plain HTTP request and its response."""
        (reader, writer), (there, back) = page, site
        back.write(head.forward)
        left = head.body
        while left:
            chunk = await reader.read(min(left, _CHUNK))
            if not chunk:
                return
            left -= len(chunk)
            self._count(len(chunk))
            back.write(chunk)
            await back.drain()
        try:
            writer.write(await _answer_head(there))
        except (asyncio.LimitOverrunError, ValueError):
            raise _Refused("502 Bad Gateway") from None
        except (OSError, asyncio.IncompleteReadError):
            # Of a connection that ends without an answer, Chromium may send a request once more, also an order.
            if head.forward.startswith(_REPEATABLE):
                raise
            raise _Refused("502 Bad Gateway") from None
        await self._relay(there, writer)

    async def _relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(_CHUNK):
            self._count(len(chunk))
            sink.write(chunk)
            await sink.drain()

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._limits.page_bytes:
            raise ConnectionAbortedError("the page is over its limit of bytes")

    @property
    def is_over_limit(self) -> bool:
        """Return true when the page was cut off for its size."""
        return self._bytes > self._limits.page_bytes

    def too_large(self) -> ExtractionError:
        """Return the problem of a page that was cut off."""
        return permanent(f"The page needs more than {self._limits.page_bytes // MIB} MiB.", Cause.TOO_LARGE)

    async def _answer(self, writer: asyncio.StreamWriter, status: str) -> None:
        with contextlib.suppress(OSError):
            writer.write(
                f"HTTP/1.1 {status}\r\n{FAILURE_HEADER}: {self._token}\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            await writer.drain()


async def _read_rest(reader: asyncio.StreamReader) -> None:
    """Read what the client is still sending: because of unread bytes, the system would discard the answer."""
    with contextlib.suppress(OSError, *TIMEOUT_ERRORS):
        async with timeout_after(_LINGER):
            for _ in range(_REST_CHUNKS):
                if not await reader.read(_CHUNK):
                    return


# ── heads ──


def _read_head(raw: bytes) -> _Head:
    line, _, rest = raw.partition(b"\r\n")
    method, _, tail = line.partition(b" ")
    target, _, version = tail.rpartition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not method.isalpha():
        raise _Refused("400 Bad Request")
    if method == b"CONNECT":
        host, port = _authority(target.decode("latin-1"), None)
        return _Head(True, host, port, b"", 0)
    try:
        parts = urlsplit(target.decode("latin-1"))
    except ValueError:
        raise _Refused("400 Bad Request") from None
    if parts.scheme != "http" or "@" in parts.netloc:
        raise _Refused("400 Bad Request")
    host, port = _authority(parts.netloc, 80)
    path = target.split(b"/", 3)[3:] or [b""]
    lines, body = _headers_to_forward(rest)
    start = b"%b /%b HTTP/1.1" % (method, path[0])
    return _Head(False, host, port, b"\r\n".join((start, *lines, b"Connection: close", b"", b"")), body)


def _authority(text: str, default_port: int | None) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port or default_port
    except ValueError:
        raise _Refused("400 Bad Request") from None
    if not host or port is None or parts.path or "@" in text:
        raise _Refused("400 Bad Request")
    return host, port


def _headers_to_forward(rest: bytes) -> tuple[list[bytes], int]:
    """Return header lines without hop-by-hop headers, and the length of the body."""
    lines, body, has_length = [], 0, False
    for line in rest.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        lower = name.strip().lower()
        if not colon or lower in _HOP_BY_HOP:
            continue
        if lower == b"transfer-encoding":
            # Browsers send lengths over HTTP/1.1; two readings of a body's end allow request smuggling.
            raise _Refused("411 Length Required")
        if lower == b"content-length":
            if not value.strip().isdigit() or has_length:
                raise _Refused("400 Bad Request")
            has_length = True
            body = int(value)
        lines.append(line)
    return lines, body


async def _answer_head(there: asyncio.StreamReader) -> bytes:
    """Return the head of the target's response with ``Connection: close``, without other hop-by-hop headers."""
    for _ in range(MOST_INTERIM + 1):
        raw = await there.readuntil(b"\r\n\r\n")
        line, _, rest = raw.partition(b"\r\n")
        status = line.split(b" ", 2)[1:2]
        if not line.startswith(b"HTTP/1.") or not status or not status[0].isdigit():
            raise ValueError("not an HTTP answer")
        if status[0] == b"101":
            raise ValueError("an upgrade that was not asked for")
        if int(status[0]) < 200:
            continue
        kept = [
            header
            for header in rest.split(b"\r\n")
            if header and header.partition(b":")[0].strip().lower() not in _HOP_BY_HOP
        ]
        return b"\r\n".join((line, *kept, b"Connection: close", b"", b""))
    raise ValueError("interim answers without a final one")
