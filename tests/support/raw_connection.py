"""A connection that is used as no well-behaved client would."""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_ext.compatibility.python import Self, timeout_after
from tests.support.eventually import TIMEOUT


class RawAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Raw:
    """Bytes to the server and back; ``limit`` makes the buffer for what comes back small."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        self._where = (parts.hostname, parts.port)
        self._key = key

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(*self._where)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> bool:
        """Send some bytes; False when the server has closed."""
        try:
            self.writer.write(data)
            async with timeout_after(TIMEOUT):
                await self.writer.drain()
        except ConnectionError:
            return False
        return not self.reader.at_eof()

    async def head(self, method: str, path: str, *, then: bytes = b"", **headers: str) -> None:
        """Send the request line and the headers, and what comes after them in the same piece."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        if self._key is not None:
            lines.append(f"Authorization: Basic {b64encode(f'{self._key}:'.encode()).decode()}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode() + then)

    async def chunk(self, data: bytes) -> bool:
        """Send a piece of a chunked body."""
        return await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def answer(self) -> RawAnswer:
        """Read an answer that has a Content-Length."""
        async with timeout_after(TIMEOUT):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(": ") for line in head[1:] if line)
            headers = {name.lower(): value for name, _, value in pairs}
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return RawAnswer(int(head[0].split()[1]), headers, body)

    async def rest(self) -> bytes:
        """Bytes that arrive until the server closes."""
        async with timeout_after(TIMEOUT):
            return await self.reader.read()
