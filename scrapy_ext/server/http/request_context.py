"""The context of one request: its id, caller, bytes and memory, and the disposal of a body that was not read.

A server that answers before it has read the whole body, and closes, causes a broken connection at the sender: the
system discards the answer together with the unread bytes. So such an answer has ``Connection: close``, the rest of
the body is read and discarded for a bounded time, and then the connection is closed. A short body is read to its end
before the answer, and its connection stays open.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final, Protocol

from starlette.types import Message, Receive, Scope, Send

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.memory import RequestMemory

#: The keys of the :class:`RequestContext`, and of the connection, in the scope of a request.
SCOPE_KEY: Final = "scrapy_ext.request_context"
CONNECTION_KEY: Final = "scrapy_ext.connection"

_WELL_FORMED: Final = re.compile(rb"[\w.\-]{1,64}", re.ASCII)
_process: Final = secrets.token_hex(4)
_number: Final = itertools.count(1)


class Connection(Protocol):
    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a whole answer at once; return false, having sent nothing, if it must be sent in another way."""

    def send_part(self, part: bytes | memoryview) -> bool:
        """Send a part of an answer of unknown length without a copy; return false, having sent nothing, if it must be
        sent in another way."""

    async def drained(self) -> bool:
        """Wait until the client has read most of the sent bytes; return false when it has disconnected."""


class GoneError(OSError):
    """The client has disconnected, or was disconnected: nobody reads the rest of the answer."""


class RequestContext:
    """Layer between the application and the connection. ``received`` and ``sent`` count bytes of bodies; the client may
    pause for ``client_timeout`` seconds within its body."""

    __slots__ = (
        *("_connection", "_length", "_lingers", "_more", "_over", "_receive", "_send", "memory", "route"),
        *("held", "id", "lasts", "client_timeout", "received", "records", "sent", "status", "log_fields", "who"),
    )

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, memory: RequestMemory, client_timeout: float
    ) -> None:
        self._receive = receive
        self._send = send
        self.memory = memory
        self._connection: Connection | None = scope.get(CONNECTION_KEY)
        self._lingers = self._over = False
        #: True for an answer that lasts by design, such as a stream of events, which is never logged as slow.
        self.lasts = False
        self.client_timeout = client_timeout
        #: The announced bytes of the body; None for a body of unknown length.
        self._length: int | None = 0
        self.id = ""
        self.who = ""
        #: The declared path of its route; empty when there is none.
        self.route = ""
        #: Further fields of its log line, by name.
        self.log_fields: dict[str, str] = {}
        self.status = 0
        self.received = self.sent = self.records = self.held = 0
        for name, value in scope["headers"]:
            if name == b"content-length":
                self._length = int(value) if value.isdigit() else None
            elif name == b"transfer-encoding":
                self._length = None
            elif name == b"x-request-id" and _WELL_FORMED.fullmatch(value):
                self.id = value.decode()
        self._more = self._length != 0
        self.id = self.id or f"{_process}-{next(_number):x}"

    @property
    def announced(self) -> int:
        """The announced bytes of the body as sent; 0 when unknown."""
        return self._length or 0

    def hold(self, size: int) -> bool:
        """Count bytes until the request ends; return false without room for them now."""
        if self._over:
            return True  # work that outlives its request is not counted: nothing would release the bytes
        if not self.memory.hold(size):
            return False
        self.held += size
        return True

    def add(self, size: int) -> None:
        """Count bytes that are in memory already, until the request ends."""
        if not self._over:
            self.memory.add(size)
            self.held += size

    def release(self, size: int) -> None:
        """Stop counting bytes."""
        size = min(size, self.held)  # the request may have ended already
        self.held -= size
        self.memory.release(size)

    def is_alone_too_large(self, size: int) -> bool:
        """Return true when the bytes would find no room even if this were the only request."""
        return self.held + size > self.memory.limit

    def ended(self) -> None:
        """Release all bytes at the end of the request."""
        self.release(self.held)
        self._over = True

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            self._more = message.get("more_body", False)
        else:
            self._more = False
        return message

    async def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a whole answer, whose headers have its length. A short one takes the direct way, in less time."""
        if self._more or len(body) > limits.SEND_PIECE:
            await self.send({"type": "http.response.start", "status": status, "headers": headers})
            await self.send({"type": "http.response.body", "body": body})
            return
        headers = [*headers, (b"x-request-id", self.id.encode())]
        self.status = status
        self.sent += len(body)
        if self._connection is not None and self._connection.send_whole(status, headers, body):
            return
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self.id.encode())]
            if self._more:
                await self._read_rest()
            if self._more:
                self._lingers = True
                headers.append((b"connection", b"close"))
            await self._send({**message, "headers": headers})
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        self.sent += len(body)
        if self._lingers and not more:
            await self._send({**message, "more_body": True})
            self.release(self.held)  # the rest of the body is kept nowhere
            await self._discard_body()
            body = b""
            message = {"type": "http.response.body", "body": body}
        if self._connection is None or not (more or len(body) > limits.SEND_PIECE):
            await self._send(message)
        else:
            await self._send_pieces(self._connection, body, more=more)

    async def _send_pieces(self, connection: Connection, body: bytes | memoryview, *, more: bool) -> None:
        """Send a part of the body in pieces, each after the client has read most of the one before."""
        if len(body) > limits.SEND_PIECE:
            body = memoryview(body)
        while len(body) > limits.SEND_PIECE:
            await self._send_piece(connection, body[: limits.SEND_PIECE], more=True)
            body = body[limits.SEND_PIECE :]
        await self._send_piece(connection, body, more=more)

    async def _send_piece(self, connection: Connection, piece: bytes | memoryview, *, more: bool) -> None:
        if not (more and connection.send_part(piece)):
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})
        if more and not await connection.drained():
            raise GoneError

    async def _read_rest(self) -> None:
        if self._length is not None and self._length <= limits.SHORT_BODY:
            await self._discard_body()

    async def _discard_body(self) -> None:
        end = self.received + limits.LINGER
        try:
            async with timeout_after(limits.LINGER_TIME):
                while self._more and self.received < end:
                    await self.receive()
        except TIMEOUT_ERRORS:
            return


#: The context of the current request; None outside of requests.
CURRENT: ContextVar[RequestContext | None] = ContextVar("request_context", default=None)


def context_of(scope: Scope) -> RequestContext:
    context: RequestContext = scope[SCOPE_KEY]
    return context
