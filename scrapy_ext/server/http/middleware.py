"""What every request goes through before the application: it gets an id, is counted and measured, is refused when
the server is ending or the request breaks a bound, and is told of in the log when it failed or was slow.

The log has its method, its path without the query (which may hold a key), its status, its length in milliseconds, the
bytes of both bodies, and who asked; of an extraction also the domain, and the type of its problem. Failures of the
server (5xx) are warnings, and so are slow requests. Requests that were refused (4xx) are told of only where a key was
right: nobody without one can fill the disk with lines. Of those that a full disk refused, one a minute is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapy_ext.api.extraction.problems import PROBLEM_CONTENT_TYPE, Problem
from scrapy_ext.server.auth.wrong_keys import SCOPE_KEY as WRONG_KEYS
from scrapy_ext.server.auth.wrong_keys import WrongKeys
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections
from scrapy_ext.server.http.memory import Memory, default_limit
from scrapy_ext.server.http.repeats import Repeats
from scrapy_ext.server.http.request_context import CURRENT, SCOPE_KEY, Exchange, GoneError
from scrapy_ext.server.observability.logs import REQUEST_ID
from scrapy_ext.server.observability.metrics import Metrics

logger = logging.getLogger("scrapy_ext.server.requests")

#: Seconds that a client waits before it tries again when this server ends: another one, or its next start.
_RETRY_AFTER: Final = "2"
_ENDING: Final = "The server is shutting down. Try again when it is back."
_LONGEST_PATH: Final = 200
#: The status of writes that a full disk refused.
_FULL: Final = 507
#: Paths that are answered until the end.
ALWAYS: Final = ("/healthz", "/readyz", "/metrics")
_NO_ROOM: Final = "The server holds as much of other requests as it can now. Send the request again later."
#: Bytes that a parameter, and a part of the path, of the address take when it is decoded; the shortest that counts.
_PARAMETER: Final = 512
_PART: Final = 128
_LONG: Final = 1024


class Front:
    """The outermost part of the application. ``slow``: seconds from which a request is told of; ``patience``: those
    for which a client may send nothing of a body."""

    def __init__(self, app: ASGIApp, *, slow: float, patience: float, memory: int | None = None) -> None:
        self._app = app
        self._patience = patience
        self._slow = slow
        self.metrics = Metrics()
        self.memory = Memory(memory or default_limit())
        self.wrong_keys = WrongKeys()
        self.under_way = 0
        self.ending = False
        #: Why the application did not start.
        self.failure: Exception | None = None
        #: The connections that are open; whoever listens sets it.
        self.connections = Connections(limits.CONNECTIONS)
        #: What is said when requests are accepted; None: where.
        self.ready: str | None = None
        #: Ends what needs the server to end well.
        self.before_end: Callable[[], Awaitable[None]] | None = None
        self._idle = asyncio.Event()
        self._full = Repeats()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever is not HTTP goes on as it is."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        exchange = Exchange(scope, receive, send, self.memory, self._patience)
        scope[SCOPE_KEY] = exchange
        scope[WRONG_KEYS] = self.wrong_keys
        REQUEST_ID.set(exchange.id)
        CURRENT.set(exchange)
        broken = True
        self.under_way += 1
        try:
            if self.ending and scope["path"] not in ALWAYS:
                await _refuse(scope, exchange, 503, _ENDING, (b"retry-after", _RETRY_AFTER.encode()))
            elif scope["query_string"].count(b"&") >= limits.PARAMETERS:
                await _refuse(scope, exchange, 400, f"The address has over {limits.PARAMETERS} parameters. Send fewer.")
            elif not _holds_address(scope["raw_path"], scope["query_string"], exchange):
                await _refuse(scope, exchange, 503, _NO_ROOM, (b"retry-after", _RETRY_AFTER.encode()))
            else:
                await self._app(scope, exchange.receive, exchange.send)
            broken = False
        except GoneError:
            pass  # it is counted as broken
        except asyncio.CancelledError:
            # The server ends, and this request was not done in its grace.
            if not self.ending or exchange.status:
                raise
            await _refuse(scope, exchange, 503, _ENDING, (b"retry-after", _RETRY_AFTER.encode()))
            broken = False
        finally:
            exchange.ended()
            self._ended(scope, exchange, perf_counter() - began, broken)

    def _ended(self, scope: Scope, exchange: Exchange, seconds: float, broken: bool) -> None:
        self.under_way -= 1
        if self.ending and not self.under_way:
            self._idle.set()
        status = exchange.status
        seconds = 0.0 if exchange.lasts else seconds
        what = (scope["path"], scope["method"])
        self.metrics.request(what, status, seconds, exchange.received, exchange.sent)
        if exchange.records and status < 300:
            self.metrics.records(scope["path"], exchange.records)
        if status == _FULL and not self._full.due():
            return
        if status >= 500 or broken or seconds >= self._slow:
            _tell(logging.WARNING, scope, exchange, seconds, broken)
        elif status >= 400 and exchange.who:
            _tell(logging.INFO, scope, exchange, seconds, broken)

    async def end(self, grace: float) -> None:
        """Refuse new requests, and wait until those under way have been answered, or ``grace`` seconds."""
        if self.before_end is not None:
            await self.before_end()
        self.ending = True
        if self.under_way:
            try:
                await asyncio.wait_for(self._idle.wait(), grace)
            except TimeoutError:
                logger.warning("%d requests did not end within %g s", self.under_way, grace)


def _holds_address(path: bytes, query: bytes, exchange: Exchange) -> bool:
    """Count what a long address takes once it is decoded; False when there is no room for it."""
    length = len(path) + len(query)
    if length < _LONG:
        return True
    return exchange.hold(8 * length + _PART * path.count(b"/") + _PARAMETER * (query.count(b"&") + 1))


def _tell(level: int, scope: Scope, exchange: Exchange, seconds: float, broken: bool) -> None:
    path = scope["raw_path"].decode("ascii", "replace")
    fields = {
        "method": scope["method"],
        "path": path if len(path) <= _LONGEST_PATH else path[: _LONGEST_PATH - 1] + "…",
        "status": exchange.status,
        "duration_ms": round(seconds * 1000, 1),
        "received": exchange.received,
        "sent": exchange.sent,
        "who": exchange.who,
        **exchange.told,
    }
    if broken:
        fields["broken"] = True
    text = " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("method", "path", "status"))
    message = f"{fields['method']} {fields['path']} {fields['status']} {text} request_id={exchange.id}"
    logger.log(level, "%s", message, extra={"fields": fields, "event": "request"})


async def _refuse(scope: Scope, exchange: Exchange, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
    """An answer that any client understands: a problem at the extraction service, elsewhere JSON where the server
    is at fault, else a line of text."""
    if scope["path"].startswith("/v1/"):
        problem = Problem.of("/limits/over-global-limit" if status == 503 else "/request/invalid", message)
        kind, content = PROBLEM_CONTENT_TYPE.encode(), msgspec.json.encode(problem)
    elif status >= 500:
        kind = b"application/json; charset=UTF-8"
        content = f'{{"status":"error","message":"{message}","request_id":"{exchange.id}"}}'.encode()
    else:
        kind, content = b"text/plain; charset=UTF-8", f"{message}\n".encode()
    named = [(b"content-type", kind), (b"content-length", str(len(content)).encode()), *headers]
    await exchange.send({"type": "http.response.start", "status": status, "headers": named})
    await exchange.send({"type": "http.response.body", "body": content})
