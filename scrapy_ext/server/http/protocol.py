"""HTTP/1.1 as uvicorn speaks it, with bounds on what comes before a request reaches the application and on clients
that stop reading.

uvicorn has neither a limit for the size of headers nor a time for them to arrive, reads requests ahead without end, and
waits for ever for a client that does not read its answer. Each of these would let a few clients take the memory or the
connections of all. How many connections there may be is in :mod:`connections`.

A client that does not read is measured by what leaves the buffer of its connection: it loses the connection when
nothing has left for ``patience`` seconds, or less than :data:`limits.SLOWEST` a second on average beside these.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections import deque
from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections
from scrapy_ext.server.http.memory import Memory
from scrapy_ext.server.http.middleware import ALWAYS
from scrapy_ext.server.http.request_context import CONNECTION_KEY
from scrapy_ext.server.observability.metrics import Metrics

_TARGET: Final = (414, f"The address is over {limits.TARGET} bytes. Send less in it.")
_HEADERS: Final = (431, f"The headers are over {limits.HEADERS} bytes or {limits.HEADER_COUNT} lines. Send fewer.")
_LATE: Final = (408, "The headers did not come in time. Send them at once.")
_NO_ROOM: Final = (503, "The server holds as much of other requests as it can now. Send the request again later.")
_FULL: Final = {
    "limit": (503, "All connections of the server are in use. Try again later, or raise --connections."),
    "address": (
        429,
        "This address has as many connections as it may. Use fewer, or raise --connections-per-address. For a proxy "
        "before the server, use --reverse-proxy.",
    ),
}
#: No answer: the client sends these again on another connection.
_PIPELINED: Final = (0, "")
#: Linux: bytes that wait unsent in the system, as opposed to those under way to the client.
_NOTSENT_LOWAT: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)
#: Bytes that are parsed at once: a client may send a body in chunks of a byte, or requests of twenty.
_STEP: Final = 16 * limits.KIB
#: Seconds of such parsing, of all connections together, before others have their turn.
_PARSING: Final = 0.002
#: Bytes of Python's objects for a header, and for a request that waits for the answer to the one before it.
_HEADER: Final = 200
_REQUEST: Final = 4 * limits.KIB
_WATCHED: Final = tuple(path.encode() for path in ALWAYS)


class _TooMuchError(Exception):
    """Stops the parser."""


class _Flow(FlowControl):
    """Reading goes on only when all that was read is parsed."""

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        """The application wants more."""
        if self.read_paused:
            self.read_paused = False
            self._protocol.read_on()


class _Parsing:
    """The connections that have more to parse than a little: a step of each in turn, for a moment at a time."""

    def __init__(self) -> None:
        self._waiting: deque[BoundedProtocol] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, protocol: BoundedProtocol, loop: asyncio.AbstractEventLoop) -> None:
        self._waiting.append(protocol)
        if len(self._waiting) == 1:
            loop.call_soon(self._run, loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        until = time.monotonic() + _PARSING
        while self._waiting:
            # It stays in the queue meanwhile, so that nothing else schedules this.
            protocol = self._waiting[0]
            more = protocol.parse_step()
            self._waiting.popleft()
            if more:
                self._waiting.append(protocol)
            if time.monotonic() > until:
                break
        if self._waiting:
            loop.call_soon(self._run, loop)


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    #: Seconds for the headers to come, and for which a client may read nothing of what waits for it.
    patience = 60.0
    metrics = Metrics()
    memory = Memory(limits.MEMORY)
    open_connections = Connections(limits.CONNECTIONS)

    parsing = _Parsing()

    _refusal: tuple[int, str] | None = None
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _begun = False
    _size = 0
    _unfinished = 0
    #: What was read, how much of it is parsed, and whether it waits for its turn.
    _read = b""
    _at = 0
    _queued = False
    #: What buffers for what comes in, the head of the request, and the buffer for what goes out count for.
    _in = 0
    _head = 0
    _out = 0
    #: When the client stopped reading; what waited for it then, and when it was last looked at.
    _since = 0.0
    _first = 0
    _left = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come; its first request is due."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        transport.set_write_buffer_limits(limits.SEND_BUFFER, limits.SEND_BUFFER // 4)
        found = transport.get_extra_info("socket")
        if found is not None and _NOTSENT_LOWAT is not None:
            with contextlib.suppress(OSError):  # no TCP
                found.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, limits.SEND_BUFFER)
        if self.open_connections.full():
            self.open_connections.closed["limit"] += 1
            transport.abort()
            return
        self.open_connections.made(self)
        self._await_headers(min(self.patience, limits.FIRST_REQUEST))

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self.open_connections.lost(self)
        self._headers_came()
        self._reads_again()
        self._read, self._at, self._head = b"", 0, 0
        self.pipeline.clear()
        self._count(0, 0)
        super().connection_lost(exc)

    # ── what comes in ──

    def on_message_begin(self) -> None:
        """A request has begun."""
        if len(self.pipeline) >= limits.PIPELINE:
            self.pipeline[0][0].keep_alive = False  # the newest: the connection ends behind its answer
            self.open_connections.closed["pipeline"] += 1
            self._stop(_PIPELINED)
        super().on_message_begin()
        self._begun = True
        self._size = self._unfinished = 0
        if self._timer is None:
            self._await_headers(self.patience)

    def on_url(self, url: bytes) -> None:
        """A piece of the address."""
        if len(self.url) + len(url) > limits.TARGET:
            self._stop(_TARGET)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole header."""
        self._size += len(name) + len(value)
        if self._size > limits.HEADERS or len(self.headers) >= limits.HEADER_COUNT:
            self._stop(_HEADERS)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request goes to the application."""
        self._headers_came()
        if (why := self.open_connections.busy(self)) is not None and not self.url.startswith(_WATCHED):
            self.open_connections.closed[why] += 1
            self._stop(_FULL[why])
        size = len(self.url) + self._size + _HEADER * len(self.headers)
        if size > limits.UNCOUNTED:
            if not self.memory.fits(size):
                self._stop(_NO_ROOM)
            self._head += size
        self.scope[CONNECTION_KEY] = self  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        if self.pipeline or self._head:
            self._count_in()

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        super().on_body(body)
        if len(self.cycle.body) > max(limits.UNCOUNTED, self._in):
            self._count_in()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        if self._refusal is not None:
            return  # it was answered; what still comes is thrown away
        if len(data) <= _STEP and not self._read:
            self._feed(data)
            return
        self._read = self._read[self._at :] + data if self._read else data
        self._at = 0
        self.transport.pause_reading()
        self._count_in()
        self.read_on()

    def read_on(self) -> None:
        """Parse what was read and then read more; not while the application has enough."""
        if self._read and not self._queued:
            self._queued = True
            self.parsing.add(self, self.loop)
        elif not self._read and not self.transport.is_closing():
            self.transport.resume_reading()

    def parse_step(self) -> bool:
        """Parse some of what was read; returns whether there is more to be parsed now."""
        if self.transport.is_closing() or self._refusal is not None:
            self._read, self._at = b"", 0
        elif not self.flow.read_paused:
            begin, self._at = self._at, self._at + _STEP
            self._feed(self._read[begin : self._at])
            if self._at >= len(self._read):
                self._read, self._at = b"", 0
        if self._read and not self.flow.read_paused:
            return True
        self._queued = False
        if not self._read and not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
        return False

    def _feed(self, data: bytes) -> None:
        waiting = self._timer
        super().data_received(data)
        if waiting is not None and self._timer is waiting:
            # One header that does not end: the callbacks do not see it before it does.
            self._unfinished += len(data)
            if self._unfinished > limits.HEADERS + limits.TARGET:
                self._refuse(_HEADERS)

    def _count_in(self) -> None:
        """Count what waits to be parsed or to be handled; little of it does not count."""
        body = len(self.cycle.body) if self.cycle is not None else 0
        size = len(self._read) + body + self._head + _REQUEST * len(self.pipeline)
        self._count(size if size > limits.UNCOUNTED else 0, self._out)

    def _count(self, coming: int, going: int) -> None:
        more = coming - self._in + going - self._out
        self._in, self._out = coming, going
        if more > 0:
            self.memory.add(more)
        elif more:
            self.memory.release(-more)

    def send_400_response(self, msg: str) -> None:
        """What the parser could not read is refused, with the reason that there is."""
        if self._refusal is not _PIPELINED:
            self._refuse(self._refusal or (400, "This is not HTTP that can be read."))

    def _stop(self, refusal: tuple[int, str]) -> None:
        self._refusal = refusal
        raise _TooMuchError

    def _refuse(self, refusal: tuple[int, str]) -> None:
        self._refusal = refusal
        self._headers_came()
        if self.transport.is_closing():
            return
        status, message = refusal
        self.metrics.unreadable(status)
        again = "retry-after: 2\r\n" if status in (429, 503) else ""
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=UTF-8\r\n"
            f"{again}content-length: {len(message) + 1}\r\nconnection: close\r\n\r\n{message}\n"
        )
        self.transport.write(head.encode())
        self.flow.resume_reading()
        # Not at once: bytes that were not read would make the system throw the answer away.
        self.loop.call_later(limits.LINGER_TIME / 5, self._end)

    def _end(self) -> None:
        """Close the connection; what its client does not read is not waited for."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _await_headers(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._late)

    def _headers_came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._await_headers(self.patience)  # the request before this one is still being answered
            return
        self.open_connections.closed["late"] += 1
        if not self._begun:
            self._end()  # nothing has come, and there is nothing to answer
        else:
            self._refuse(_LATE)

    # ── between requests ──

    def on_response_complete(self) -> None:
        """An answer was handed over whole."""
        super().on_response_complete()
        if not self.pipeline:
            self._head = 0
            self.open_connections.rest(self)
        if self._in:
            self._count_in()
        if self._stalled is None and self.transport.get_write_buffer_size():
            self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """No other request has come."""
        self.open_connections.closed["idle"] += 1
        self._end()

    def close_idle(self, reason: str) -> None:
        """Make room for another connection."""
        self.open_connections.closed[reason] += 1
        self.open_connections.lost(self)
        self._end()

    # ── what goes out ──

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer comes."""
        super().pause_writing()
        self._count(self._in, self.transport.get_write_buffer_size())
        self.memory.stalled[self] = time.monotonic()
        if self._stalled is None:
            self._watch()

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._reads_again()

    async def drained(self) -> bool:
        """See :class:`exchange.Connection`."""
        if self.flow.write_paused:
            await self.flow.drain()
        return not self.transport.is_closing()

    def cut_off(self, reason: str) -> None:
        """See :class:`memory.Reader`."""
        self.open_connections.closed[reason] += 1
        self.transport.abort()

    def _watch(self) -> None:
        self._since = time.monotonic()
        self._first = self._left = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(self.patience, self._look)

    def _look(self) -> None:
        left = self.transport.get_write_buffer_size()
        if not left:
            self._stalled = None
            return
        allowed = self.patience + (self._first - left) / limits.SLOWEST
        if left >= self._left or time.monotonic() - self._since > allowed:
            self._stalled = None
            self.cut_off("slow")
            return
        self._left = left
        if self.memory.stalled.pop(self, None) is not None:
            self.memory.stalled[self] = time.monotonic()
        self._stalled = self.loop.call_later(self.patience, self._look)

    def _reads_again(self) -> None:
        self.memory.stalled.pop(self, None)
        self._count(self._in, 0)
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def bounded(patience: float, metrics: Metrics, memory: Memory, connections: Connections) -> type[BoundedProtocol]:
    """The protocol with this patience and these bounds, which counts what it refuses."""
    named = {"patience": patience, "metrics": metrics, "memory": memory, "open_connections": connections}
    return type("Protocol", (BoundedProtocol,), {**named, "parsing": _Parsing()})
