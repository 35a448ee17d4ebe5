"""Answers of the platform: their bodies, whole or as they arrive, and the errors that they stand for.

A body that breaks off is a failure, never a short answer. HTTP's own framing gives its end; in a compressed one
the end of the gzip stream must have come as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobs import ATTEMPT_OVER
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

T = TypeVar("T")

#: A whole answer (not a stream) must fit into this.
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
        """The body as JSON of this type; raises :class:`UnexpectedAnswer`."""
        try:
            return msgspec.json.decode(self.body, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._unexpected(str(error)) from None

    def lines(self, type: type[T]) -> list[T]:
        """The body as JSON lines of this type; raises :class:`UnexpectedAnswer`."""
        try:
            return lines.decode(self.body, type)
        except lines.LineError as error:
            raise self._unexpected(str(error)) from None

    def app(self) -> dict[str, Any]:
        """The object that answers an ``/api/*.json`` call; raises the error that its ``status`` tells."""
        decoded = self.json(dict)
        if decoded.get("status", "ok") != "ok":
            told = str(decoded.get("message", decoded["status"]))[:_SHOWN]
            raise self.error(told)
        return decoded

    def error(self, message: str) -> PlatformError:
        """The error that the body of an answer tells, in spite of its status."""
        return self._call.error(_kind_by_message(message) or BadRequest, message)

    def _unexpected(self, fault: str) -> PlatformError:
        shown = _shown(self.body) or "an empty body"
        return self._call.error(UnexpectedAnswer, f"not the JSON that was expected ({fault}): {shown}", self.status)


class Stream:
    """An answer that is read as it arrives. ``framed`` says whether HTTP tells where the body ends; when it does
    not, an end proves nothing. Each wait for data takes ``timeout`` seconds at most."""

    def __init__(self, response: aiohttp.ClientResponse, timeout: float) -> None:
        self._response = response
        self._timeout = timeout
        headers = response.headers
        self.framed = "Content-Length" in headers or "chunked" in headers.get("Transfer-Encoding", "").lower()

    def lines(self) -> AsyncGenerator[bytes]:
        """The body's lines."""
        return lines.split(_pieces(self._response, self._timeout))


async def whole(call: ClientCall, response: aiohttp.ClientResponse) -> Answer:
    """Read an answer to its end; raises the error that it stands for."""
    if response.status >= 300:
        raise await refusal(call, response)
    body = await _read(call, response)
    if response.content_type == "text/html" and body.strip():
        raise _page(call, response)
    return Answer(call, response.status, body)


async def stream(call: ClientCall, response: aiohttp.ClientResponse, wait: float) -> Stream:
    """Begin to read an answer; raises the error that it stands for."""
    if response.status >= 300:
        async with asyncio.timeout(wait):
            raise await refusal(call, response)
    if response.content_type == "text/html" and response.content_length != 0:
        raise _page(call, response)
    return Stream(response, wait)


async def refusal(call: ClientCall, response: aiohttp.ClientResponse) -> PlatformError:
    """The error of an answer without success."""
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


def _page(call: ClientCall, response: aiohttp.ClientResponse) -> PlatformError:
    return call.error(UnexpectedAnswer, "an HTML page instead of data", response.status)


def _kind_by_message(message: str) -> type[PlatformError] | None:
    """The class of an error that the app and the job queue tell in words alone."""
    if "already scheduled" in message or "Active job" in message:
        return DuplicateJob
    return Unauthorized if "Authentication failed" in message else None


# ── bodies ──


async def _read(call: ClientCall, response: aiohttp.ClientResponse) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in _pieces(response):
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise call.error(BadRequest, f"the answer has more than {MAX_ANSWER_BYTES} bytes; ask for fewer records")
        pieces.append(piece)
    return b"".join(pieces)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for piece in _pieces(response):
        body += piece
        if len(body) > _MAX_ERROR_BYTES:
            break
    return body


async def _pieces(response: aiohttp.ClientResponse, wait: float | None = None) -> AsyncGenerator[bytes]:
    """The body, decompressed; one that is cut off raises :class:`aiohttp.ClientPayloadError`, and one of which nothing
    comes for ``wait`` seconds :class:`TimeoutError`."""
    chunks = _chunks(response, wait)
    async for piece in decompressed(chunks) if is_compressed(response) else chunks:
        yield piece


async def _chunks(response: aiohttp.ClientResponse, wait: float | None) -> AsyncGenerator[bytes]:
    # Not by sock_read of aiohttp: where a body came faster than it was read, its timer goes on after the end of the
    # body, fires on the idle connection, and fails the next call on it.
    while True:
        async with asyncio.timeout(wait):
            chunk = await response.content.readany()
        if not chunk:
            return
        yield chunk


# ── what a body says ──


def _message(body: bytes) -> str:
    """The ``message`` of an error body, or its text."""
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
