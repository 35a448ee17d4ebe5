"""Answers of the platform: their bodies, whole or in pieces as they arrive, and the errors that they report.

A body that breaks off is a failure, never a short answer. HTTP's own framing marks its end; a compressed one must also
have the end of the gzip stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final, TypeVar

import msgspec

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client import http1
from scrapy_ext.client.http import decompressed, is_compressed
from scrapy_ext.client.platform import json_lines as lines
from scrapy_ext.client.platform.calls import ClientCall
from scrapy_ext.client.platform.errors import (
    AttemptOver,
    BadRequest,
    DuplicateJob,
    Forbidden,
    PlatformError,
    Unauthorized,
    UnexpectedAnswer,
    error_class,
)
from scrapy_ext.client.retry import parse_retry_after
from scrapy_ext.compatibility.python import timeout_after

T = TypeVar("T")

#: Bytes of a whole answer (not a stream).
MAX_ANSWER_BYTES: Final = 256 * 2**20
_MAX_ERROR_BYTES: Final = 64 * 1024
_SHOWN: Final = 300


class Answer:
    """A whole answer with a status of success."""

    def __init__(self, call: ClientCall, status: int, body: bytes) -> None:
        self._call = call
        self.status = status
        self.body = body

    def json(self, type: type[T]) -> T:
        """Decode the body as JSON of this type; raises :class:`UnexpectedAnswer`."""
        try:
            return msgspec.json.decode(self.body, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._unexpected(str(error)) from None

    def array(self, type: type[T]) -> list[T]:
        """Decode the body as a JSON array of this type; raises :class:`UnexpectedAnswer`."""
        of_type: Any = list
        found: list[T] = self.json(of_type[type])
        return found

    def lines(self, type: type[T]) -> list[T]:
        """Decode the body as JSON lines of this type; raises :class:`UnexpectedAnswer`."""
        try:
            return msgspec.json.Decoder(type).decode_lines(self.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._unexpected(str(error)) from None

    def app(self) -> dict[str, Any]:
        """Return the object that answers an ``/api/*.json`` call; raises the error that its ``status`` reports."""
        decoded = self.json(dict)
        if decoded.get("status", "ok") != "ok":
            raise self.error(str(decoded.get("message", decoded["status"]))[:_SHOWN])
        return decoded

    def error(self, message: str) -> PlatformError:
        """Return the error that the body of an answer with a status of success reports."""
        return self._call.error(_kind_by_message(message) or BadRequest, message)

    def _unexpected(self, fault: str) -> PlatformError:
        shown = _shown(self.body) or "an empty body"
        return self._call.error(UnexpectedAnswer, f"not the JSON that was expected ({fault}): {shown}", self.status)


class Stream:
    """An answer that is read as it arrives. ``framed`` False: HTTP does not mark the end of the body, so that it may
    have broken off. Each wait for data takes ``timeout`` seconds at most."""

    def __init__(self, response: http1.Answer, timeout: float) -> None:
        self._response = response
        self._timeout = timeout
        headers = response.headers
        self.framed = "Content-Length" in headers or "chunked" in headers.get("Transfer-Encoding", "").lower()

    def lines(self) -> AsyncGenerator[bytes]:
        return lines.split(self.pieces())

    def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body, decompressed, as it arrives."""
        return _pieces(self._response, self._timeout)


async def whole(call: ClientCall, response: http1.Answer) -> Answer:
    """Read an answer to its end; raises the error that it reports."""
    if response.status >= 300:
        raise await refusal(call, response)
    body = await _read(call, response)
    if response.content_type == "text/html" and body.strip():
        raise _page(call, response)
    return Answer(call, response.status, body)


async def stream(call: ClientCall, response: http1.Answer, wait: float) -> Stream:
    """Begin to read an answer; raises the error that it reports."""
    if response.status >= 300:
        async with timeout_after(wait):
            raise await refusal(call, response)
    if response.content_type == "text/html" and response.content_length != 0:
        raise _page(call, response)
    return Stream(response, wait)


async def refusal(call: ClientCall, response: http1.Answer) -> PlatformError:
    """Return the error of an answer without success."""
    status, location = response.status, response.headers.get("Location")
    if 300 <= status < 400 and location:
        return call.error(UnexpectedAnswer, f"a redirect to {location[:_SHOWN]}", status)
    if response.content_type == "text/html":
        message = f"{response.reason or 'an error'} (an HTML page, not an answer of the platform)"
    else:
        message = _message(await _beginning(response)) or f"{response.reason or 'no reason given'}"
    kind = error_class(status)
    if kind is Forbidden and ATTEMPT_OVER in message:
        kind = AttemptOver
    if kind is BadRequest or call.host is Host.APP:
        kind = _kind_by_message(message) or kind
    retry_after = parse_retry_after(response.headers.get("Retry-After")) if status in (429, 503) else None
    return call.error(kind, message, status, retry_after)


def _page(call: ClientCall, response: http1.Answer) -> PlatformError:
    return call.error(UnexpectedAnswer, "an HTML page instead of data", response.status)


def _kind_by_message(message: str) -> type[PlatformError] | None:
    """Return the class of an error that the app and the job queue report by the text of a message alone."""
    if "already scheduled" in message or "Active job" in message:
        return DuplicateJob
    return Unauthorized if "Authentication failed" in message else None


async def _read(call: ClientCall, response: http1.Answer) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in _pieces(response):
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise call.error(BadRequest, f"the answer has more than {MAX_ANSWER_BYTES} bytes; ask for fewer records")
        pieces.append(piece)
    return b"".join(pieces)


async def _beginning(response: http1.Answer) -> bytes:
    body = b""
    async for piece in _pieces(response):
        body += piece
        if len(body) > _MAX_ERROR_BYTES:
            break
    return body


async def _pieces(response: http1.Answer, wait: float | None = None) -> AsyncGenerator[bytes]:
    """Yield the body, decompressed. Raises :class:`~scrapy_ext.client.http1.AnswerError` when it is cut off, and
    :class:`TimeoutError` when no data arrives for ``wait`` seconds."""
    chunks = _chunks(response, wait)
    async for piece in decompressed(chunks) if is_compressed(response.headers) else chunks:
        yield piece


async def _chunks(response: http1.Answer, wait: float | None) -> AsyncGenerator[bytes]:
    pieces = response.pieces()
    while True:
        try:
            async with timeout_after(wait):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        yield piece


def _message(body: bytes) -> str:
    """Return the ``message`` of an error body, or its text."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _shown(body)
    if isinstance(decoded, dict):
        for name in ("message", "detail", "error", "title"):
            if isinstance(decoded.get(name), str):
                return str(decoded[name])[:_SHOWN]
    return _shown(body)


def _shown(body: bytes) -> str:
    text = " ".join(body[: _SHOWN * 4].decode("utf-8", "replace").split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
