"""One request and its answer, as the server sees them from outside: its id, its bytes, and what becomes of a body
that nobody has read.

A server that answers before it has read the whole body, and closes, makes the sender see a broken connection
instead of the answer: the system throws the answer away with the bytes that were not read. So the answer goes out
with ``Connection: close``, what still comes is read and thrown away for a bounded time, and then the connection
ends. A short body is read to its end before the answer, and its connection goes on.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from contextvars import ContextVar
from typing import Final, Protocol

from starlette.types import Message, Receive, Scope, Send

from scrapy_ext.server.http import limits
from scrapy_ext.server.http.memory import Memory

#: Where a request's :class:`Exchange` is in its scope, and the connection that it came on.
SCOPE_KEY: Final = "scrapy_ext.exchange"
CONNECTION_KEY: Final = "scrapy_ext.connection"

_WELL_FORMED: Final = re.compile(rb"[\w.\-]{1,64}", re.ASCII)
_process: Final = secrets.token_hex(4)
_number: Final = itertools.count(1)


class Connection(Protocol):
    """Sends an answer to its client."""

    async def drained(self) -> bool:
        """Wait until the client has read most of what was sent; False when it has gone."""


class GoneError(OSError):
    """The client has gone, or was cut off: nobody reads the rest of the answer."""


class Exchange:
    """Stands between the application and the connection. ``received`` and ``sent`` are bytes of bodies,
    ``patience`` the seconds for which the client may send nothing of its body."""

    __slots__ = (
        *("_connection", "_length", "_lingers", "_more", "_over", "_receive", "_send", "memory"),
        *("held", "id", "lasts", "patience", "received", "records", "sent", "status", "told", "who"),
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, memory: Memory, patience: float) -> None:
        self._receive = receive
        self._send = send
        self.memory = memory
        self._connection: Connection | None = scope.get(CONNECTION_KEY)
        self._lingers = self._over = False
        #: Whether it is meant to take long, so that it is not slow.
        self.lasts = False
        self.patience = patience
        #: Of the body that is announced; None: not announced, and its end will be seen when it comes.
        self._length: int | None = 0
        self.id = ""
        self.who = ""
        #: What the log has of it besides, by name.
        self.told: dict[str, str] = {}
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
        """The size that the request gives for its body, as it is sent; 0 when it gives none."""
        return self._length or 0

    def hold(self, size: int) -> bool:
        """Count bytes that are kept until the request ends; False when there is no room for them now."""
        if self._over:
            return True  # what goes on after its request is no part of it, and nothing would release them
        if not self.memory.hold(size):
            return False
        self.held += size
        return True

    def add(self, size: int) -> None:
        """Count bytes that are there already until the request ends."""
        if not self._over:
            self.memory.add(size)
            self.held += size

    def release(self, size: int) -> None:
        """Count bytes no longer."""
        size = min(size, self.held)  # it may have ended already
        self.held -= size
        self.memory.release(size)

    def is_alone_too_large(self, size: int) -> bool:
        """Return whether the request would find no room for so many more bytes even if there were no other."""
        return self.held + size > self.memory.limit

    def ended(self) -> None:
        """Give back what was held."""
        self.release(self.held)
        self._over = True

    async def receive(self) -> Message:
        """The next message of the client."""
        message = await self._receive()
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            self._more = message.get("more_body", False)
        else:
            self._more = False
        return message

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
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
        self.sent += len(message.get("body", b""))
        more = message.get("more_body", False)
        if self._lingers and not more:
            await self._send({**message, "more_body": True})
            self.release(self.held)  # what still comes is kept nowhere
            await self._throw_away()
            message = {"type": "http.response.body", "body": b""}
        await self._send_pieces(message, more=more)

    async def _send_pieces(self, message: Message, *, more: bool) -> None:
        """Send a part of the body; what follows waits until it has mostly gone."""
        body = message.get("body", b"")
        connection = self._connection
        if connection is None:
            await self._send(message)
            return
        while len(body) > limits.SEND_PIECE:
            await self._send({"type": "http.response.body", "body": body[: limits.SEND_PIECE], "more_body": True})
            body = memoryview(body)[limits.SEND_PIECE :]
            if not await connection.drained():
                raise GoneError
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        if more and not await connection.drained():
            raise GoneError

    async def _read_rest(self) -> None:
        if self._length is not None and self._length <= limits.SHORT_BODY:
            await self._throw_away()

    async def _throw_away(self) -> None:
        end = self.received + limits.LINGER
        try:
            async with asyncio.timeout(limits.LINGER_TIME):
                while self._more and self.received < end:
                    await self.receive()
        except TimeoutError:
            return


#: The exchange that this code runs for; None outside of requests.
CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


def exchange_of(scope: Scope) -> Exchange:
    """The exchange that a request belongs to."""
    exchange: Exchange = scope[SCOPE_KEY]
    return exchange
