"""One connection over HTTP/1.1: idle, or with one request and its answer.

llhttp parses the head of an answer, and a body without a length. Of a longer answer, no more than a buffer is read
until the caller asks for the body, so the caller decides about memory. A connection is used again only after a whole
answer, and never when the server sent more than that.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from typing import Any, Final, TypeAlias

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

#: Bytes of one read, and of one of a body in pieces that comes faster.
_READ: Final = 16 * 1024
_READ_MORE: Final = 128 * 1024
#: Most bytes of the head of an answer.
_MOST_HEAD: Final = 64 * 1024
Body: TypeAlias = "bytes | bytearray"


class AnswerError(OSError):
    """No whole answer, though the request was sent."""


class ReceivedAnswer:
    """An answer as it is received: its parser calls the methods ``on_…``. It has a status once its head is there."""

    def __init__(self) -> None:
        self.status = 0
        self.reason = ""
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.length: int | None = None
        self.is_whole = False
        #: True if the server keeps the connection after it.
        self.is_kept = False
        self.head_bytes = 0
        #: Received parts of the body.
        self.parts: list[bytes] = []
        #: Where the rest of a body with a length is received, and how much of the body is there.
        self.into: memoryview[int] | None = None
        self.filled = 0
        #: None when the connection is done with it: the parser refers to this object.
        self.parser: Any = HttpResponseParser(self)

    @property
    def is_until_eof(self) -> bool:
        """True if the end of the connection is the end of the body."""
        is_chunked = "chunked" in self.headers.get("Transfer-Encoding", "").lower()
        return bool(self.status) and self.length is None and not is_chunked

    def fill(self, size: int) -> bool:
        """Count bytes that were received in the rest of the body; return true at its end."""
        self.filled += size
        if self.into is None or self.filled < len(self.into):
            return False
        self.into = None
        self.is_whole = True
        return True

    def on_status(self, reason: bytes) -> None:
        if not self.status:
            self.reason = reason.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # not those after a chunked body
            self.headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        status = self.parser.get_status_code()
        if status < 200:  # a preliminary answer; the one of the request follows
            self.headers.clear()
            return
        if self.status:  # a second answer, to no request
            self.is_kept = False
            return
        self.status = status
        self.is_kept = self.parser.should_keep_alive()
        # llhttp refuses an answer with several of these headers.
        if (length := self.headers.get("Content-Length")) is not None:
            self.length = int(length)

    def on_body(self, part: bytes) -> None:
        if not self.is_whole:
            self.parts.append(part)

    def on_message_complete(self) -> None:
        if self.status:
            self.is_whole = True


class Connection(asyncio.BufferedProtocol):
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
        #: A request was sent. The buffer for sending is full; the body of the request was not sent whole.
        self._is_asked = self._is_full = self._is_cut = False
        self.answer = ReceivedAnswer()

    # ── one request ──

    def send(self, written: bytes) -> None:
        self._is_asked = True
        self._transport.write(written)

    async def upload(self, body: AsyncGenerator[bytes], *, is_chunked: bool) -> None:
        """Send a body in pieces, until there is an answer or an error."""
        async with contextlib.aclosing(body):
            async for piece in body:
                if self.answer.status or self._error is not None:
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
        while not self.answer.status:
            await self._wait()

    async def body(self) -> Body:
        """Return the whole body, of which the length is known."""
        answer = self.answer
        if answer.is_whole:
            return answer.parts[0] if len(answer.parts) == 1 else b"".join(answer.parts)
        into = bytearray(answer.length or 0)
        for part in self.taken():
            into[answer.filled : answer.filled + len(part)] = part
            answer.filled += len(part)
        answer.into = memoryview(into)
        await self._more()
        return into

    async def more(self) -> None:
        """Wait for more of the body, or for its end."""
        if not self.answer.parts:
            await self._more()

    def taken(self) -> list[bytes]:
        """Remove and return the received parts of the body."""
        parts, self.answer.parts = self.answer.parts, []
        return parts

    def rest(self, seconds: float) -> bool:
        """Make the connection idle after a whole answer; return whether it may be used again within ``seconds``."""
        self._kept_until = self._loop.time() + seconds
        # A server may answer before it has read the request.
        is_sent = not (self._is_cut or self._transport.get_write_buffer_size())
        if not (is_sent and self.answer.is_kept and self.is_usable()) or self._is_paused:
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
        if self.answer.parts or self._error:
            raise AnswerError("the proxy sent data before the server")
        self._begin()
        self._transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        self._is_paused = False

    def _begin(self) -> None:
        """Forget the former answer."""
        self.answer.parser = None
        self.answer = ReceivedAnswer()
        self._is_asked = self._is_cut = False

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
        if self._error is not None and not self.answer.is_whole:
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
        answer = self.answer
        return self._buffer if answer.into is None else answer.into[answer.filled :]

    def buffer_updated(self, nbytes: int) -> None:
        answer = self.answer
        if answer.into is not None:
            if answer.fill(nbytes):
                self._wake()
            return
        if not self._is_asked or answer.is_whole:
            self._fail(AnswerError("the server sent data without a request"))
            return
        had_head = bool(answer.status)
        try:
            answer.parser.feed_data(self._buffer[:nbytes])
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(AnswerError(f"the answer is not HTTP: {error or type(error).__name__}"))
            return
        if not answer.status:
            answer.head_bytes += nbytes
            if answer.head_bytes > _MOST_HEAD:
                self._fail(AnswerError(f"the head of the answer has more than {_MOST_HEAD} bytes"))
            return
        if had_head and nbytes == len(self._buffer) < _READ_MORE:
            self._buffer = _buffer(_READ_MORE)
        if had_head and not (answer.is_whole or answer.parts):
            return
        # A caller that wants the body asks for it before the next read, so only a further one pauses.
        if had_head and not (answer.is_whole or self._is_paused):
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        if self.answer.is_until_eof:
            self.answer.is_whole = True
            self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        if not self.answer.is_whole:
            reason = f": {error}" if error else ""
            self._error = self._error or AnswerError(f"the server closed the connection{reason}")
        self.answer.parser = None
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()


def _buffer(size: int) -> memoryview[int]:
    return memoryview(bytearray(size))
