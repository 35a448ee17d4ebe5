"""HTTP/1.1 as uvicorn speaks it, with bounds on what comes before a request reaches the application and on clients
that stop reading.

uvicorn has neither a limit for the size of headers nor a time for them to arrive, and waits for ever for a client
that does not read its answer. Each of the three would let a few clients take the memory or the connections of all.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrapy_ext.server.operation import limits
from scrapy_ext.server.operation.metrics import Metrics

_TARGET: Final = (414, f"The address is over {limits.TARGET} bytes. Send less in it.")
_HEADERS: Final = (431, f"The headers are over {limits.HEADERS} bytes or {limits.HEADER_COUNT} lines. Send fewer.")
_LATE: Final = (408, "The headers did not come in time.")


class _TooMuchError(Exception):
    """Stops the parser."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    #: Seconds for the headers to come, and for which a client may read nothing of what waits for it.
    patience = 60.0
    metrics = Metrics()

    _refusal: tuple[int, str] | None = None
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _begun = False
    _size = 0
    _unfinished = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come; its first request is due."""
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._headers_came()
        self._reads_again()
        super().connection_lost(exc)

    # ── what comes in ──

    def on_message_begin(self) -> None:
        """A request has begun."""
        super().on_message_begin()
        self._begun = True
        self._size = self._unfinished = 0
        if self._timer is None:
            self._await_headers()

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
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        if self._refusal is not None:
            return  # it was answered; what still comes is thrown away
        waiting = self._timer
        super().data_received(data)
        if waiting is not None and self._timer is waiting:
            # One header that does not end: the callbacks do not see it before it does.
            self._unfinished += len(data)
            if self._unfinished > limits.HEADERS + limits.TARGET:
                self._refuse(_HEADERS)

    def send_400_response(self, msg: str) -> None:
        """What the parser could not read is refused, with the reason that there is."""
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
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=UTF-8\r\n"
            f"content-length: {len(message) + 1}\r\nconnection: close\r\n\r\n{message}\n"
        )
        self.transport.write(head.encode())
        # Not at once: bytes that were not read would make the system throw the answer away.
        self.loop.call_later(limits.LINGER_TIME / 5, self.transport.close)

    def _await_headers(self) -> None:
        self._timer = self.loop.call_later(self.patience, self._late)

    def _headers_came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._await_headers()  # the request before this one is still being answered
        elif not self._begun:
            self.transport.close()  # nothing has come, and nothing is to be told
        else:
            self._refuse(_LATE)

    # ── what goes out ──

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer comes."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.patience, self._abort)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._reads_again()

    def _reads_again(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _abort(self) -> None:
        self._stalled = None
        self.transport.abort()


def bounded(patience: float, metrics: Metrics) -> type[BoundedProtocol]:
    """The protocol with this patience, which counts what it refuses."""
    return type("Protocol", (BoundedProtocol,), {"patience": patience, "metrics": metrics})
