"""Calls of many crawls on one event loop: connections that are kept, and what is measured of each call."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections import defaultdict
from urllib.parse import urlencode

from rig.recording import kind_of
from scrapy_ext.api import compression

#: The client compresses bodies above this many bytes, except to a server on its own machine.
_COMPRESS_ABOVE = 1024


class Measured:
    """Calls by kind: seconds of each, errors, and bytes over the wire with headers."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.bodies: dict[str, int] = defaultdict(int)
        self.errors: list[str] = []
        self.sent = 0
        self.received = 0


class Wire:
    """Connection to a server, made with the first call and again after an error. One call at a time."""

    def __init__(self, port: int, key: str, measured: Measured, *, compress: bool = True) -> None:
        self._port = port
        self._authorization = b64encode(f"{key}:".encode()).decode()
        self._measured = measured
        self._compress = compress
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._lock = asyncio.Lock()

    async def call(
        self, method: str, path: str, body: bytes | None = None, *, packed: bool = False, **parameters: object
    ) -> bytes:
        """Make a call and return the body of its answer, empty after an error; ``packed``: the body is compressed."""
        headers = ""
        kind = kind_of(method, path)
        if body is not None:
            self._measured.bodies[kind] += len(body)
            if packed or (self._compress and len(body) > _COMPRESS_ABOVE):
                body, headers = body if packed else compression.gzip(body), "Content-Encoding: gzip\r\n"
            headers += f"Content-Type: application/x-jsonlines\r\nContent-Length: {len(body)}\r\n"
        elif method != "GET":
            headers = "Content-Length: 0\r\n"
        query = f"?{urlencode(parameters)}" if parameters else ""
        head = (
            f"{method} {path}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {self._authorization}\r\n"
            f"Accept: */*\r\nAccept-Encoding: gzip\r\nUser-Agent: Python/3 aiohttp/3\r\n{headers}\r\n"
        )
        async with self._lock:
            began = time.monotonic()
            try:
                status, answer = await self._exchange(head.encode() + (body or b""))
            except (OSError, asyncio.IncompleteReadError, ValueError) as error:
                self.close()
                status, answer = 0, repr(error).encode()
            self._measured.seconds[kind].append(time.monotonic() - began)
        if status != 200:
            self._measured.errors.append(f"{method} {path}: {status} {answer[:300].decode(errors='replace')}")
            return b""
        return answer

    def close(self) -> None:
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None

    async def _exchange(self, message: bytes) -> tuple[int, bytes]:
        reader, head = await self._answered(message)
        headers = head.lower()
        if b"transfer-encoding: chunked" in headers:
            body, size = await _chunked(reader)
        else:
            size = int(headers.split(b"content-length: ")[1].split(b"\r\n")[0])
            body = await reader.readexactly(size)
        self._measured.sent += len(message)
        self._measured.received += len(head) + size
        if b"content-encoding: gzip" in headers and body:
            body = b"".join(compression.unpack(body))
        return int(head.split(b" ", 2)[1]), body

    async def _answered(self, message: bytes) -> tuple[asyncio.StreamReader, bytes]:
        """Send a message and return the head of its answer; on a new connection if the server has closed the old."""
        is_old = self._ends is not None
        if self._ends is None or self._ends[0].at_eof():
            self.close()
            self._ends, is_old = await asyncio.open_connection("127.0.0.1", self._port), False
        reader, writer = self._ends
        try:
            writer.write(message)
            return reader, await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            # Closed while the message was on its way. Every call of a crawl may be repeated.
            if not is_old or getattr(error, "partial", b""):
                raise
            self.close()
            return await self._answered(message)


async def _chunked(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    """Return a chunked body, and its bytes on the wire."""
    pieces, total = [], 0
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line, 16)
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
        total += len(line) + size + 2
        if not size:
            return b"".join(pieces), total
