"""The middleware of all requests: it assigns ids, counts and measures, refuses requests that break a bound or that
arrive while the server ends, and logs failed and slow requests.

A log line has the method, the path without the query (which may contain a key), the status, the duration in
milliseconds, the bytes of both bodies and the caller; for extraction also the domain and the problem type. Failures of
the server (5xx) and slow requests are warnings. Refused requests (4xx) are logged for callers with a right key only, so
that nobody else can fill the disk with lines. Of writes that a full disk refused, one per minute is logged.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapy_ext.api.extraction.problems import PROBLEM_CONTENT_TYPE, Problem
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.auth.rates import SCOPE_KEY as WRONG_KEYS
from scrapy_ext.server.auth.rates import WrongKeys
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.connections import Connections
from scrapy_ext.server.http.memory import RequestMemory, default_limit
from scrapy_ext.server.http.request_context import CURRENT, SCOPE_KEY, GoneError, RequestContext
from scrapy_ext.server.logs import REQUEST_ID, Repeats
from scrapy_ext.server.metrics import Metrics
from scrapy_ext.telemetry.spans import NO_SPAN, Span, server_span, trace_id

logger = logging.getLogger("scrapy_ext.server.requests")

#: Seconds until a client may try again when this server ends, at another server or after a restart.
_RETRY_AFTER: Final = "2"
_ENDING: Final = "The server is shutting down. Try again when it is back."
_LONGEST_PATH: Final = 200
#: The status of writes that a full disk refused.
_FULL: Final = 507
#: Paths that are answered until the end.
ALWAYS: Final = ("/healthz", "/readyz", "/metrics")
#: Paths that supervision and crawls poll.
_POLLED: Final = re.compile(r"/(?:healthz|readyz|metrics|hcf/[^/]+/[^/]+/feed)/?")
#: Polls whose last status is remembered, and characters of the path of one.
_MOST_POLLS: Final = 1000
_LONGEST_POLL: Final = 400
_NO_ROOM: Final = "The server has no memory left for this request now. Send the request again later."
#: Bytes of memory of a decoded parameter, and of a part of the path; bytes from which an address counts.
_PARAMETER: Final = 512
_PART: Final = 128
_LONG: Final = 1024


class RequestMiddleware:
    """The middleware around ``app``. A request of ``slow`` seconds or more is logged; a client that sends nothing of a
    body for ``client_timeout`` seconds is refused; ``memory`` is the bound of bytes that requests hold."""

    def __init__(self, app: ASGIApp, *, slow: float, client_timeout: float, memory: int | None = None) -> None:
        self._app = app
        self._client_timeout = client_timeout
        self._slow = slow
        self.metrics = Metrics()
        self.memory = RequestMemory(memory or default_limit())
        self.wrong_keys = WrongKeys()
        self.under_way = 0
        self.ending = False
        #: The error of a failed start.
        self.failure: Exception | None = None
        #: The open connections; set by the process that listens.
        self.connections = Connections(limits.CONNECTIONS)
        #: The text of the line ``ready …``; None for the server's URL.
        self.ready: str | None = None
        #: The application of a worker's own address for its supervision (``--status-address``).
        self.status: ASGIApp | None = None
        #: Ends parts that need the running server to end well.
        self.before_end: Callable[[], Awaitable[None]] | None = None
        self._idle = asyncio.Event()
        self._full = Repeats()
        #: The last status of each poll, by path and caller.
        self._polls: dict[tuple[str, str], int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; pass on what is not HTTP."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        span = NO_SPAN if scope["path"] in ALWAYS else server_span(scope["method"], scope["path"], scope["headers"])
        with span:
            await self._answer(scope, receive, send, span)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, span: Span) -> None:
        began = perf_counter()
        context = RequestContext(scope, receive, send, self.memory, self._client_timeout)
        scope[SCOPE_KEY] = context
        scope[WRONG_KEYS] = self.wrong_keys
        REQUEST_ID.set(context.id)
        CURRENT.set(context)
        broken = True
        self.under_way += 1
        try:
            if self.ending and scope["path"] not in ALWAYS:
                await _refuse(scope, context, 503, _ENDING, (b"retry-after", _RETRY_AFTER.encode()))
            elif scope["query_string"].count(b"&") >= limits.PARAMETERS:
                await _refuse(scope, context, 400, f"The address has over {limits.PARAMETERS} parameters. Send fewer.")
            elif not _holds_address(scope["raw_path"], scope["query_string"], context):
                await _refuse(scope, context, 503, _NO_ROOM, (b"retry-after", _RETRY_AFTER.encode()))
            else:
                await self._app(scope, context.receive, context.send)
            broken = False
        except GoneError:
            pass  # counted as broken
        except asyncio.CancelledError:
            # The server ends, and this request exceeded its grace.
            if not self.ending or context.status:
                raise
            await _refuse(scope, context, 503, _ENDING, (b"retry-after", _RETRY_AFTER.encode()))
            broken = False
        finally:
            context.ended()
            if span.is_recorded:
                _describe(span, scope, context)
            self._ended(scope, context, perf_counter() - began, broken)

    def _ended(self, scope: Scope, context: RequestContext, seconds: float, broken: bool) -> None:
        self.under_way -= 1
        if self.ending and not self.under_way:
            self._idle.set()
        status = context.status
        seconds = 0.0 if context.lasts else seconds
        self.metrics.request((scope["path"], scope["method"]), status, seconds, context.received, context.sent)
        if context.records and status < 300:
            self.metrics.records(scope["path"], context.records)
        if status == _FULL and not self._full.due():
            return
        if not (broken or seconds >= self._slow or self._is_news(scope, context)):
            return
        if status >= 500 or broken or seconds >= self._slow:
            _log(logging.WARNING, scope, context, seconds, broken)
        elif status >= 400 and context.who:
            _log(logging.INFO, scope, context, seconds, broken)

    def _is_news(self, scope: Scope, context: RequestContext) -> bool:
        """Return false for a poll with the status that it had before, which would be a line each second or so."""
        path = scope["path"]
        if scope["method"] != "GET" or len(path) > _LONGEST_POLL or not _POLLED.fullmatch(path):
            return True
        poll = (path, context.who)
        before = self._polls.pop(poll, None)
        if len(self._polls) >= _MOST_POLLS:
            del self._polls[next(iter(self._polls))]
        self._polls[poll] = context.status
        return before != context.status

    async def end(self, grace: float) -> None:
        """Refuse new requests, and wait until those under way have been answered, or ``grace`` seconds."""
        if self.before_end is not None:
            await self.before_end()
        self.ending = True
        if self.under_way:
            try:
                await asyncio.wait_for(self._idle.wait(), grace)
            except TIMEOUT_ERRORS:
                logger.warning(
                    "%d requests did not end within %g s of the stop, and are ended. Their clients can send them again",
                    self.under_way,
                    grace,
                )


def _describe(span: Span, scope: Scope, context: RequestContext) -> None:
    """Set what is known of a request at its end."""
    span.set("scrapy_ext.request_id", context.id)
    if context.route:
        span.set("http.route", context.route)
        span.rename(f"{scope['method']} {context.route}")
    if not context.status:
        span.failed("broken")
        return
    span.answered(context.status)
    if context.status >= 500 and (problem := context.log_fields.get("problem")):
        span.failed(problem)


def _holds_address(path: bytes, query: bytes, context: RequestContext) -> bool:
    """Count the memory of a long decoded address; return false without room for it."""
    length = len(path) + len(query)
    if length < _LONG:
        return True
    return context.hold(8 * length + _PART * path.count(b"/") + _PARAMETER * (query.count(b"&") + 1))


def _log(level: int, scope: Scope, context: RequestContext, seconds: float, broken: bool) -> None:
    path = scope["raw_path"].decode("ascii", "replace")
    fields = {
        "method": scope["method"],
        "path": path if len(path) <= _LONGEST_PATH else path[: _LONGEST_PATH - 1] + "…",
        "status": context.status,
        "duration_ms": round(seconds * 1000, 1),
        "received": context.received,
        "sent": context.sent,
        "who": context.who,
        **context.log_fields,
    }
    if broken:
        fields["broken"] = True
    text = " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("method", "path", "status"))
    message = f"{fields['method']} {fields['path']} {fields['status']} {text} request_id={context.id}"
    if trace := trace_id():
        message += f" trace_id={trace}"
    logger.log(level, "%s", message, extra={"fields": fields, "event": "request"})


async def _refuse(
    scope: Scope, context: RequestContext, status: int, message: str, *headers: tuple[bytes, bytes]
) -> None:
    """Send a refusal in the form of the service: a problem for extraction, JSON for faults of the server, else text."""
    if scope["path"].startswith("/v1/"):
        kind, content = PROBLEM_CONTENT_TYPE.encode(), msgspec.json.encode(Problem.of_refusal(status, message))
    elif status >= 500:
        kind = b"application/json; charset=UTF-8"
        content = f'{{"status":"error","message":"{message}","request_id":"{context.id}"}}'.encode()
    else:
        kind, content = b"text/plain; charset=UTF-8", f"{message}\n".encode()
    named = [(b"content-type", kind), (b"content-length", str(len(content)).encode()), *headers]
    await context.send({"type": "http.response.start", "status": status, "headers": named})
    await context.send({"type": "http.response.body", "body": content})
