"""HTTP/1.1 of uvicorn, with bounds on requests before they reach the application, and on clients that stop reading.

uvicorn limits neither the size of headers nor the time for them, reads pipelined requests without end, and waits
forever for a client that does not read its answer. So a few clients could take all memory or connections. The number
of connections is bounded in :mod:`connections`. The names of uvicorn that this needs are in :mod:`uvicorn_names`.

A slow reader is measured by the bytes that leave the buffer of its connection. It is disconnected when none has left
for ``client_timeout`` seconds, or when the average falls below :data:`limits.SLOWEST` per second beyond that time.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections import deque
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrapy_ext.api.extraction.problems import PROBLEM_CONTENT_TYPE, Problem
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections
from scrapy_ext.server.http.memory import RequestMemory
from scrapy_ext.server.http.middleware import ALWAYS
from scrapy_ext.server.http.request_context import CONNECTION_KEY
from scrapy_ext.server.metrics import Metrics

_NOT_HTTP: Final = (
    400,
    "This is not HTTP that can be read. An address has characters beyond ASCII only in encoded form, such as %C3%A9.",
)
_TARGET: Final = (414, f"The address is over {limits.TARGET} bytes. Send less in it.")
_HEADERS: Final = (431, f"The headers are over {limits.HEADERS} bytes or {limits.HEADER_COUNT} lines. Send fewer.")
_LATE: Final = (408, "The headers did not come in time. Send them at once.")
_NO_ROOM: Final = (503, "The server has no memory left for this request now. Send the request again later.")
_FULL: Final = {
    "limit": (503, "All connections of the server are in use. Try again later, or raise --connections."),
    "address": (
        429,
        "This address has as many connections as it may. Use fewer, or raise --connections-per-address. For a proxy "
        "before the server, use --reverse-proxy.",
    ),
}
#: Without an answer: the client sends these requests again on another connection.
_PIPELINED: Final = (0, "")
#: Linux: the limit of unsent bytes in the system, without those on their way to the client.
_NOTSENT_LOWAT: Final = getattr(socket, "TCP_NOTSENT_LOWAT", None)
#: Bytes that are parsed at once: a client may send a body in chunks of one byte, or requests of twenty.
_STEP: Final = 16 * limits.KIB
#: The same within a body of known length, of which only the buffer is bounded.
_BODY_STEP: Final = 64 * limits.KIB
#: Seconds of such parsing, over all connections, until the event loop runs other tasks.
_PARSING: Final = 0.002
#: Bytes of Python objects for a header, and for a pipelined request.
_HEADER: Final = 200
_REQUEST: Final = 4 * limits.KIB
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
#: Characters that would end a header, or that are invalid in it.
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - {ord("\t")})
#: The method and the target at the begin of a request.
_REQUEST_LINE: Final = re.compile(rb"[A-Z]+ (/[^\s?]*)")
#: Begin of the paths whose errors are problems (extraction-api.md, Errors).
_EXTRACTION: Final = b"/v1/"
_WATCHED: Final = tuple(path.encode() for path in ALWAYS)


class _TooMuchError(Exception):
    """End of parsing."""


class _Flow(FlowControl):
    """Flow control that resumes reading after everything read was parsed."""

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._protocol.read_on()


class _Parsing:
    """Round robin of the connections with much to parse: one step of each, for a moment at a time."""

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
            # The connection stays in the queue meanwhile, so that this is not scheduled twice.
            protocol = self._waiting[0]
            more = protocol.parse_step()
            self._waiting.popleft()
            if more:
                self._waiting.append(protocol)
            if time.monotonic() > until:
                break
        if self._waiting:
            loop.call_soon(self._run, loop)


class _Answer:
    """The transport of one answer.

    Its head is sent with the first part of the body if that comes in the same round of the event loop: a second call of
    the system would take as long as a look-up.
    """

    __slots__ = ("_begun", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._head = b""

    def write(self, data: bytes) -> None:
        if not self._begun and data != _CONTINUE:
            self._begun = True
            self._head = data
            self._loop.call_soon(self._flush)
            return
        if self._head and len(data) <= _STEP:
            data, self._head = self._head + data, b""
        else:
            self._flush()
        self._transport.write(data)

    def writelines(self, parts: Iterable[bytes | memoryview]) -> None:
        self._flush()
        self._transport.writelines(parts)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)


class BoundedProtocol(HttpToolsProtocol):
    #: Maximum seconds for headers to arrive, and for a client to read nothing of its answer.
    client_timeout = 60.0
    metrics = Metrics()
    memory = RequestMemory(limits.MEMORY)
    open_connections = Connections(limits.CONNECTIONS)

    parsing = _Parsing()

    #: The address of the request; uvicorn sets it at the begin of each.
    url = b""
    #: The bytes that are parsed now.
    _piece = b""
    _refusal: tuple[int, str] | None = None
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _begun = False
    #: True from the begin of a request to the end of its headers.
    _in_head = False
    _size = 0
    _unfinished = 0
    #: The bytes that were read, the number of those that were parsed, and whether the rest is queued.
    _read = b""
    _at = 0
    _queued = False
    #: Counted bytes of incoming buffers, of the head of the request, and of the outgoing buffer.
    _in = 0
    _head = 0
    _out = 0
    #: The time at which the client stopped reading, and the buffered bytes then and at the last check.
    _since = 0.0
    _first = 0
    _left = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
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
        self._await_headers(min(self.client_timeout, limits.FIRST_REQUEST))

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections.lost(self)
        self._headers_came()
        self._reader_resumed()
        self._read, self._at, self._head = b"", 0, 0
        self.pipeline.clear()
        self._count(0, 0)
        super().connection_lost(exc)

    # ── requests ──

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= limits.PIPELINE:
            self.pipeline[0][0].keep_alive = False  # the newest: the connection ends after its answer
            self.open_connections.closed["pipeline"] += 1
            self._stop(_PIPELINED)
        super().on_message_begin()
        self._begun = True
        self._size = self._unfinished = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        if len(self.url) + len(url) > limits.TARGET:
            self._stop(_TARGET)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        if self._size > limits.HEADERS or len(self.headers) >= limits.HEADER_COUNT:
            self._stop(_HEADERS)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
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
        # Its task has not begun yet.
        self.cycle.transport = _Answer(self.transport, self.loop)  # type: ignore[assignment]
        if self.pipeline or self._head:
            self._count_in()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if len(self.cycle.body) > max(limits.UNCOUNTED, self._in):
            self._count_in()

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the client: a few at once, more in steps."""
        if self._refusal is not None:
            return  # after the refusal, the rest is discarded
        if len(data) <= _STEP and not self._read:
            self._feed(data)
            return
        self._read = self._read[self._at :] + data if self._read else data
        self._at = 0
        self.transport.pause_reading()
        self._count_in()
        self.read_on()

    def read_on(self) -> None:
        """Parse the bytes that were read, then read more; pause while the application has enough."""
        if self._read and not self._queued:
            self._queued = True
            self.parsing.add(self, self.loop)
        elif not self._read and not self.transport.is_closing():
            self.transport.resume_reading()

    def parse_step(self) -> bool:
        """Parse some of the bytes that were read; return true when more can be parsed now."""
        if self.transport.is_closing() or self._refusal is not None:
            self._read, self._at = b"", 0
        elif not self.flow.read_paused:
            begin, self._at = self._at, self._at + self._step()
            self._feed(self._read[begin : self._at])
            if self._at >= len(self._read):
                self._read, self._at = b"", 0
        if self._read and not self.flow.read_paused:
            return True
        self._queued = False
        if not self._read and not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
        return False

    def _step(self) -> int:
        """Return the bytes to parse at once: more of a body whose length is known, since it causes one callback."""
        if self._in_head or not self.headers or self.cycle is None:
            return _STEP
        return _BODY_STEP if any(name == b"content-length" for name, _ in self.headers) else _STEP

    def _feed(self, data: bytes) -> None:
        waiting = self._timer
        self._piece = data
        super().data_received(data)
        self._piece = b""
        if self._in_head and self._timer is None and self._refusal is None:
            self._await_headers(self.client_timeout)
        if waiting is not None and self._timer is waiting:
            # A header without an end causes no callback.
            self._unfinished += len(data)
            if self._unfinished > limits.HEADERS + limits.TARGET:
                self._refuse(_HEADERS)

    def _count_in(self) -> None:
        """Count the bytes that wait for the parser or the application; few do not count."""
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
        """Refuse what the parser could not read, for the known reason."""
        if self._refusal is not _PIPELINED:
            self._refuse(self._refusal or _NOT_HTTP)

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
        kind, body = "text/plain; charset=UTF-8", f"{message}\n".encode()
        if self._path().startswith(_EXTRACTION):
            kind, body = PROBLEM_CONTENT_TYPE, msgspec.json.encode(Problem.of_refusal(status, message))
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\n"
            f"{again}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.flow.resume_reading()
        # With a delay: because of unread bytes, the system would discard the answer.
        self.loop.call_later(limits.LINGER_TIME / 5, self._end)

    def _path(self) -> bytes:
        """Return the path of the request; the parser does not report one that it refuses."""
        found = None if self.url else _REQUEST_LINE.match(self._piece)
        return self.url if found is None else found[1]

    def _end(self) -> None:
        """Close the connection without waiting for the client to read."""
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
            self._await_headers(self.client_timeout)  # the request before this one is still being answered
            return
        self.open_connections.closed["late"] += 1
        if not self._begun:
            self._end()  # without a request, there is nothing to answer
        else:
            self._refuse(_LATE)

    # ── between requests ──

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            self._head = 0
            self.open_connections.rest(self)
        if self._in:
            self._count_in()
        if self._stalled is None and self.transport.get_write_buffer_size():
            self._watch()

    def timeout_keep_alive_handler(self) -> None:
        self.open_connections.closed["idle"] += 1
        self._end()

    def close_idle(self, reason: str) -> None:
        """Close for the sake of another connection."""
        self.open_connections.closed[reason] += 1
        self.open_connections.lost(self)
        self._end()

    # ── answers ──

    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a whole answer in one piece. False, without effect, for all but the usual case."""
        cycle, line = self.cycle, _STATUS_LINES.get(status)
        if line is None or self.pipeline or cycle.response_started or cycle.disconnected or not cycle.keep_alive:
            return False
        if len(body) > limits.SEND_BUFFER or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        lines = list(map(b": ".join, (*cycle.default_headers, *headers)))
        text = b"".join(lines)
        if len(text.translate(None, _CONTROLS)) != len(text):
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(b"%b%b\r\n\r\n%b" % (line, b"\r\n".join(lines), body))
        cycle.message_event.set()
        self.on_response_complete()
        return True

    def pause_writing(self) -> None:
        """Watch a client that reads more slowly than the answer is produced."""
        super().pause_writing()
        self._count(self._in, self.transport.get_write_buffer_size())
        self.memory.stalled[self] = time.monotonic()
        if self._stalled is None:
            self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader_resumed()

    def send_part(self, part: bytes | memoryview) -> bool:
        """Send a part of a chunked answer without a copy of it. False, without effect, for all but the usual case."""
        cycle = self.cycle
        if self.pipeline or not cycle.chunked_encoding or cycle.response_complete or cycle.disconnected:
            return False
        if len(part) <= _STEP or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        cycle.transport.writelines([b"%x\r\n" % len(part), part, b"\r\n"])
        return True

    async def drained(self) -> bool:
        if self.flow.write_paused:
            await self.flow.drain()
        return not self.transport.is_closing()

    def cut_off(self, reason: str) -> None:
        self.open_connections.closed[reason] += 1
        self.transport.abort()

    def _watch(self) -> None:
        self._since = time.monotonic()
        self._first = self._left = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(self.client_timeout, self._check_reader)

    def _check_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if not left:
            self._stalled = None
            return
        allowed = self.client_timeout + (self._first - left) / limits.SLOWEST
        if left >= self._left or time.monotonic() - self._since > allowed:
            self._stalled = None
            self.cut_off("slow")
            return
        self._left = left
        if self.memory.stalled.pop(self, None) is not None:
            self.memory.stalled[self] = time.monotonic()
        self._stalled = self.loop.call_later(self.client_timeout, self._check_reader)

    def _reader_resumed(self) -> None:
        self.memory.stalled.pop(self, None)
        self._count(self._in, 0)
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def bounded(
    client_timeout: float, metrics: Metrics, memory: RequestMemory, connections: Connections
) -> type[BoundedProtocol]:
    """Return the protocol class with these settings, whose ``metrics`` count refusals."""
    named = {"client_timeout": client_timeout, "metrics": metrics, "memory": memory, "open_connections": connections}
    return type("Protocol", (BoundedProtocol,), {**named, "parsing": _Parsing()})
