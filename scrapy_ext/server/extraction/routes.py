"""``POST /v1/extract`` over HTTP: authentication, request, result and problems.

Plain ASGI. Checks come in this order: path (404), method (405), credentials (401, 403), size and coding of the body
(413, 415, 408), JSON and the rules of the contract (400, 422), rates (429). Every error is a problem (RFC 9457). An
error without a row in the contract has the type ``about:blank``, as the RFC says.

Bytes of requests and answers count for the memory that all requests of the server share, from the first byte received
to the last one sent; without room for more, the request gets 503. An answer is sent in pieces, each after the one
before it, so that a slow client is seen to read.
"""

from __future__ import annotations

import asyncio
import io
import logging
import secrets
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from scrapy_ext.api import compression
from scrapy_ext.api.extraction import (
    CAUSE_HEADER,
    EXTENSIONS,
    EXTENSIONS_HEADER,
    ExtractRequest,
    ExtractResult,
    Problem,
    parse,
)
from scrapy_ext.api.extraction.extract_rules import EXTRACT_RULES
from scrapy_ext.api.extraction.fields import MAX_BODY_BYTES
from scrapy_ext.api.extraction.problems import (
    PROBLEM_CONTENT_TYPE,
    PROBLEM_TYPES,
    ExtractionError,
    overloaded,
    timed_out,
)
from scrapy_ext.api.extraction.rules import InvalidJsonError, body_too_large, problem_of, too_many_values
from scrapy_ext.api.json_decoder import weight
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after, uncancel
from scrapy_ext.server.auth.credentials import Caller, CallerLookupError, basic_credentials
from scrapy_ext.server.auth.rates import note_wrong_key, too_many
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.measures import LEFT, ExtractionMetrics
from scrapy_ext.server.extraction.request_limits import Hold, growing
from scrapy_ext.server.http.origins import FOREIGN, is_of_another_site
from scrapy_ext.server.http.request_context import SCOPE_KEY, GoneError, RequestContext
from scrapy_ext.server.http.routes import Access, Route
from scrapy_ext.server.http.schemas import JSON, Body, value
from scrapy_ext.server.logs import REQUEST_ID

_log = logging.getLogger(__name__)
_CHALLENGE: Final = (b"www-authenticate", b'Basic realm="extraction", charset="UTF-8"')
_CAUSE: Final = CAUSE_HEADER.lower().encode()
#: Sent with every answer, so that clients know the supported fields beside those of the contract.
_EXTENSIONS: Final = (EXTENSIONS_HEADER.lower().encode(), ", ".join(EXTENSIONS).encode())
_LONGEST_DOMAIN: Final = 255
#: Bytes of an answer that are sent at once.
PIECE: Final = 256 * 1024
Extract = Callable[[ExtractRequest, Caller, Hold], Awaitable[ExtractResult]]
CallerOf = Callable[[str], Awaitable[Caller | None]]
#: Request bodies shorter than this are parsed without a thread: one of the smallest objects takes 20 ms.
_SHORT: Final = 32 * 1024
_Headers = tuple[tuple[bytes, bytes], ...]


class _RefusalError(Exception):
    """A problem as the answer, with its headers."""

    def __init__(self, problem: Problem, headers: _Headers = ()) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers


class _DisconnectedError(Exception):
    """The caller disconnected."""


EXTRACT: Final = Route(
    "POST",
    "/v1/extract",
    "Fetch a page, and extract the requested data from it.",
    value("The requested data.", ExtractResult),
    body=Body(JSON, ExtractRequest),
    errors=(404, 405, 408, 414, 415, 431, *sorted({problem.status for problem in PROBLEM_TYPES.values()})),
    access=Access.EXTRACTION,
    tag="extraction",
)


class ExtractEndpoint:
    """The paths at and below ``/v1``; ``extract`` answers one request that keeps to the contract, for one caller."""

    def __init__(
        self, extract: Extract, caller_of: CallerOf, limits: ServiceLimits, metrics: ExtractionMetrics
    ) -> None:
        self._extract = extract
        self._caller_of = caller_of
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a path below ``/v1``."""
        try:
            try:
                async with timeout_after(self._limits.request):
                    answer = msgspec.json.encode(await self._answer(scope, receive))
            except TIMEOUT_ERRORS:
                raise timed_out(f"The request took longer than {self._limits.request:g} seconds.") from None
            if (exchange := scope.get(SCOPE_KEY)) is not None:
                exchange.add(len(answer))
            await self._send_answer(send, answer)
        except (_DisconnectedError, GoneError):
            return
        except _RefusalError as refusal:
            await _send_problem(scope, send, refusal.problem, refusal.headers)
        except ContractError as error:
            await _send_problem(scope, send, problem_of(error))
        except InvalidJsonError as error:
            await _send_problem(scope, send, Problem.of("/request/invalid-json", str(error)))
        except ExtractionError as error:
            await _send_problem(scope, send, error.problem, _headers_of(error))
        except Exception:
            number = REQUEST_ID.get() or secrets.token_hex(4)
            _log.exception("Request %s failed", number)
            detail = (
                f"The server failed to handle this request. Ask the operator: its log has the error under {number}."
            )
            await _send_problem(scope, send, Problem.of("/server/internal", detail))

    async def _answer(self, scope: Scope, receive: Receive) -> ExtractResult:
        if scope["path"] != EXTRACT.path:
            raise _RefusalError(
                Problem.of_refusal(404, f"There is nothing at {scope['path']}. The one operation is POST /v1/extract.")
            )
        if scope["method"] != EXTRACT.method:
            raise _RefusalError(Problem.of_refusal(405, "Send a POST request."), ((b"allow", EXTRACT.method.encode()),))
        headers = {name.lower(): value for name, value in scope["headers"]}
        if is_of_another_site(Headers(scope=scope)):
            raise _RefusalError(Problem.of_refusal(403, FOREIGN))
        caller = await self._check_key(scope, headers.get(b"authorization"))
        exchange: RequestContext | None = scope.get(SCOPE_KEY)
        if exchange is not None:
            exchange.who, exchange.route = caller.name, EXTRACT.path
        hold = hold_in(exchange)
        body = await _read_body(headers, receive, self._limits.request_body, hold)
        _hold_decoded(body, exchange, hold)
        request = await in_data_thread(parse, body) if _is_slow(body) else parse(body)
        if exchange is not None:
            exchange.log_fields["domain"] = (urlsplit(request.url).hostname or "")[:_LONGEST_DOMAIN]
        return await counted(
            self._metrics, request, caller, _unless_disconnected(self._extract(request, caller, hold), receive)
        )

    async def _send_answer(self, send: Send, answer: bytes) -> None:
        try:
            async with timeout_after(self._limits.answer):
                await _send(send, 200, b"application/json", answer)
        except TIMEOUT_ERRORS:
            # An answer that does not end closes the connection.
            _log.warning(
                "A client took longer than %g s to read its answer, so its connection was closed. It may read "
                "faster, or request less.",
                self._limits.answer,
            )

    async def _check_key(self, scope: Scope, authorization: bytes | None) -> Caller:
        credentials = basic_credentials((authorization or b"").decode("latin-1"))
        if credentials is None or not credentials[0]:
            if authorization:
                _bound_wrong_keys(scope)
            detail = "Send the API key as the user name of HTTP Basic authentication, with an empty password."
            raise _RefusalError(Problem.of("/auth/not-valid", detail), (_CHALLENGE,))
        try:
            caller = await self._caller_of(credentials[0])
        except CallerLookupError:
            raise overloaded("The API key cannot be looked up now. Send the request again later.") from None
        if caller is not None and not caller.refusal:
            return caller
        if caller is not None:
            raise _RefusalError(Problem.of("/auth/account-suspended", caller.refusal))
        _bound_wrong_keys(scope)
        detail = "The API key is not one of this server's. Note that its platform service has another key."
        raise _RefusalError(Problem.of("/auth/key-not-found", detail), (_CHALLENGE,))


def _bound_wrong_keys(scope: Scope) -> None:
    if wait := note_wrong_key(scope):
        raise _RefusalError(Problem.of_refusal(429, too_many(wait)), ((b"retry-after", str(wait).encode()),))


async def counted(
    metrics: ExtractionMetrics, request: ExtractRequest, caller: Caller, work: Awaitable[ExtractResult]
) -> ExtractResult:
    """Return the result of the work for a request, and count how it ends."""
    began = perf_counter()
    try:
        result = await work
    except BaseException as error:
        metrics.count(request, caller, _status_of(error), perf_counter() - began)
        raise
    metrics.count(request, caller, 200, perf_counter() - began)
    return result


def _status_of(error: BaseException) -> int:
    """Return the status that a request ends with; a request that is out of time is cancelled."""
    if isinstance(error, ExtractionError):
        return error.problem.status
    if isinstance(error, ContractError):
        return problem_of(error).status
    return LEFT if isinstance(error, _DisconnectedError) else 500


def hold_in(exchange: RequestContext | None) -> Hold:
    """Return the function that counts the bytes of a request against the memory that all requests may hold."""

    def hold(size: int) -> None:
        if exchange is not None and not exchange.hold(size):
            raise overloaded("The memory for requests is full. Send the request again later.")

    return hold


async def _read_body(headers: dict[bytes, bytes], receive: Receive, time_limit: float, hold: Hold) -> bytes:
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if coding not in (b"identity", b"gzip"):
        raise _RefusalError(
            Problem.of_refusal(415, "Send the body as it is, or with gzip."), ((b"accept-encoding", b"gzip"),)
        )
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise ContractError([body_too_large(int(length))])
    try:
        async with timeout_after(time_limit):
            body = await _receive_all(receive, hold)
    except TIMEOUT_ERRORS:
        raise _RefusalError(
            Problem.of_refusal(408, f"The body did not arrive within {time_limit:g} seconds.")
        ) from None
    return _inflate(body) if coding == b"gzip" else body


def _is_slow(body: bytes) -> bool:
    """Return whether a body takes long to parse: one of megabytes tenths of a second, one with selectors up to 60 ms.

    The name of a field may be written with escapes.
    """
    return len(body) >= _SHORT or EXTRACT_RULES.encode() in body or b"\\u" in body


def _hold_decoded(body: bytes, exchange: RequestContext | None, hold: Hold) -> None:
    """Count the memory of a decoded body: its values, and the same once more as a request."""
    size = 2 * weight(body) + len(body)
    if exchange is not None and exchange.is_alone_too_large(size):
        raise ContractError([too_many_values(exchange.memory.limit)])
    hold(size)


async def _receive_all(receive: Receive, hold: Hold) -> bytes:
    count = growing(hold)
    body = io.BytesIO()
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _DisconnectedError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise ContractError([body_too_large(size)])
        count(size)
        body.write(chunk)
        if not message.get("more_body", False):
            return body.getvalue()


def _inflate(body: bytes) -> bytes:
    try:
        return compression.gunzip(body, MAX_BODY_BYTES)
    except compression.SizeLimitError:
        raise ContractError([body_too_large(MAX_BODY_BYTES + 1)]) from None
    except compression.DamagedError:
        detail = "The body is not one whole gzip stream, as its Content-Encoding says."
        raise _RefusalError(Problem.of("/request/invalid", detail)) from None


async def _unless_disconnected(work: Awaitable[ExtractResult], receive: Receive) -> ExtractResult:
    """Return the result of the work, and cancel it when the caller disconnects."""
    working = asyncio.current_task()
    if working is None:
        raise RuntimeError("a coroutine runs in a task")
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        # The work closes its page before the request counts as ended.
        working.cancel()

    leaving = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if left and not uncancel(working):
            raise _DisconnectedError from None
        raise
    finally:
        leaving.cancel()


# ── answers ──


def _headers_of(error: ExtractionError) -> _Headers:
    named = ((b"retry-after", error.retry_after), (_CAUSE, error.cause and error.cause.value))
    return tuple((name, str(value).encode()) for name, value in named if value is not None)


async def _send_problem(scope: Scope, send: Send, problem: Problem, headers: _Headers = ()) -> None:
    if (exchange := scope.get(SCOPE_KEY)) is not None:
        exchange.log_fields["problem"] = problem.type
    await _send(send, problem.status, PROBLEM_CONTENT_TYPE.encode(), msgspec.json.encode(problem), headers)


async def _send(send: Send, status: int, content_type: bytes, body: bytes, headers: _Headers = ()) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", content_type),
                (b"content-length", str(len(body)).encode()),
                _EXTENSIONS,
                *headers,
            ],
        }
    )
    for start in range(0, len(body), PIECE):
        piece = body[start : start + PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": start + PIECE < len(body)})
