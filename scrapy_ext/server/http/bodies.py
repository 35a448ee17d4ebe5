"""Request bodies: inflated, cut into lines and decoded, all within limits, and never on trust of a header.

This module is the only way to a body (``tests/integration/server/http/test_bodies.py`` sees to that), and counts what
it becomes against the memory of the process before it decodes it:

- :func:`each_block` hands over one block of lines at a time, whose records are gone before the next one comes. What is
  kept of them is counted, and nothing else.
- :func:`gathered` hands over what the lines decode to, some thousands at a time, and counts each group until the next.
- :func:`objects`, :func:`document` and :func:`value` count what they return until the request ends.

Long work takes turns with that of other requests (:meth:`Memory.turn`).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from scrapy_ext.api.compression import DamagedError, Inflater, TooLargeError
from scrapy_ext.api.json_decoder import LINE, VALUE, decoder, values_in, weight
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import CURRENT, Exchange, exchange_of

MIB: Final = 1024 * 1024
#: Of one body, inflated. A job may send any number of them.
MAX_RECORDS_BODY: Final = 256 * MIB
MAX_BODY: Final = 64 * MIB
#: Of one JSON document, which is decoded at once. Nothing that is kept of one is over 1 MiB; escapes make that 6 MiB.
MAX_DOCUMENT: Final = 8 * MIB
MAX_FORM: Final = 4 * MIB
MAX_LINES: Final = 1_000_000
#: Of one line; what is longer can be no record of any kind.
MAX_LINE: Final = MIB
_MAX_FORM_FIELDS: Final = 10_000
#: Commas, colons and opening brackets of one JSON document of over :data:`_PLAIN` bytes: as many take a fifth of a
#: second to decode, in which the server does nothing else. A shorter document takes less, whatever is in it.
MAX_VALUES: Final = 500_000
_PLAIN: Final = MIB
#: Bytes that a field of a form takes beside its own, and one of its escapes while it is undone.
_FIELD: Final = 256
_ESCAPE: Final = 136
#: Blocks that are shorter are decoded without taking turns.
_SHORT: Final = 16 * 1024
#: What :func:`gathered` hands over at once takes about this, in bytes.
_GROUP: Final = 8 * MIB

T = TypeVar("T")


_decode_object: Final = decoder(dict[str, Any])
_decode_any: Final = decoder(Any)


async def _wire(request: Request) -> AsyncIterator[bytes]:
    stream, patience = request.stream(), exchange_of(request.scope).patience
    began, received = time.monotonic(), 0
    while True:
        left = began + patience + received / limits.SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(min(patience, max(left, 0))):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            rule = f"must not pause for {patience:g} s, nor be slower than {limits.SLOWEST} bytes/s"
            raise Refusal(408, f"Request Timeout. The body {rule}.") from None
        received += len(piece)
        if piece:
            yield piece


class Copy:
    """The body as it was sent, if that is one gzip stream of at most ``limit`` bytes; else ``data`` is None."""

    def __init__(self, limit: int) -> None:
        self.data: bytes | None = None
        self._limit = limit
        self._pieces = io.BytesIO()
        self._length = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece, which counts."""
        self._length += len(piece)
        if self._length <= self._limit:
            keep(len(piece))
            self._pieces.write(piece)
        else:
            self._pieces = io.BytesIO()

    def end(self, inflater: Inflater) -> None:
        """All pieces were taken and inflated."""
        if self._length <= self._limit and inflater.is_one_gzip:
            self.data = self._pieces.getvalue()


def keep(size: int, exchange: Exchange | None = None) -> None:
    """Count bytes that the current request keeps until its end; raises :class:`Refusal`."""
    exchange = exchange or CURRENT.get()
    if exchange is None or exchange.hold(size):
        return
    _check_alone(size, exchange)
    raise Refusal(503, "Too many large bodies are under way. Try again.", {"Retry-After": "2"})


def _check_alone(size: int, exchange: Exchange) -> None:
    """Refuse a body for which there is no room even where it is the only one."""
    if exchange.is_alone_too_large(size):
        bound = exchange.memory.limit // MIB
        raise Refusal(
            413,
            f"The body takes more memory than the {bound} MiB that this server has for requests. Send less of it, or "
            "start the server with a larger --memory.",
        )


def _turn(request: Request, size: int) -> AbstractAsyncContextManager[None]:
    """A context for work on so many bytes."""
    return contextlib.nullcontext() if size < _SHORT else exchange_of(request.scope).memory.turn()


async def passing(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body as it comes, inflated, up to ``limit`` bytes, for who keeps it on disk; raises :class:`Refusal`."""
    async for piece in _within(request, limit, Refusal(413, f"The body is over {limit} bytes. Send less."), None):
        yield piece


async def _within(request: Request, limit: int, too_large: Refusal, copy: Copy | None) -> AsyncIterator[bytes]:
    if exchange_of(request.scope).announced > limit:
        raise too_large
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        async for piece in _bounded(request, limit, too_large):
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Refusal(415, f"Content-Encoding {encoding[:60]} is not supported. Use gzip or none.")
    try:
        async for piece in _inflated(request, limit, too_large, copy):
            yield piece
    except TooLargeError:
        raise too_large from None
    except DamagedError as error:
        raise Refusal(400, f"The body is not correct {encoding} data: {error}.") from None


async def _bounded(request: Request, limit: int, too_large: Refusal) -> AsyncIterator[bytes]:
    """The body as it is sent; a compressed one is bounded, too, since any number of gzip members inflate to nothing."""
    length = 0
    async for piece in _wire(request):
        length += len(piece)
        if length > limit:
            raise too_large
        yield piece


async def _inflated(request: Request, limit: int, too_large: Refusal, copy: Copy | None) -> AsyncIterator[bytes]:
    inflater, turns = Inflater(limit), exchange_of(request.scope).memory
    any_data = False
    async for piece in _bounded(request, limit, too_large):
        any_data = True
        if copy is not None:
            copy.add(piece)
        steps = inflater.feed(piece)
        while True:
            # A small compressed body may become any number of pieces.
            async with turns.turn():
                inflated = next(steps, None)
            if inflated is None:
                break
            if inflated:
                yield inflated
    if any_data:
        inflater.end()
        if copy is not None:
            copy.end(inflater)


async def _whole(request: Request, limit: int, check: Callable[[bytes], None] | None = None) -> bytes:
    """The whole body, which counts twice while it grows, since its memory may have to be copied to a larger place.

    ``check`` is given each piece before it is kept.
    """
    exchange, data = exchange_of(request.scope), io.BytesIO()
    async for piece in _within(request, limit, Refusal(413, f"The body is over {limit} bytes. Send less."), None):
        if check is not None:
            check(piece)
        keep(2 * len(piece), exchange)
        data.write(piece)
    exchange.release(data.tell())
    return data.getvalue()


class Block(NamedTuple):
    """Some whole lines of a body, and the same without the last line break; ``first`` is the number of the first."""

    first: int
    data: bytes
    lines: list[bytes]


async def _blocks(request: Request, limit: int, copy: Copy | None = None) -> AsyncIterator[Block]:
    """The body's lines, which are counted from 1, as they come."""
    exchange = exchange_of(request.scope)
    number, rest = 1, b""
    async for piece in _within(request, limit, _too_large(limit), copy):
        exchange.release(len(rest))
        end = piece.rfind(b"\n")
        if end >= 0:
            data = rest + piece[:end]
            rest = piece[end + 1 :]
            number_here, number = number, number + 1 + data.count(b"\n")
            if number - 1 > MAX_LINES:
                raise Refusal(413, f"The body has over {MAX_LINES} lines. Send it in several requests.")
            yield Block(number_here, data, data.split(b"\n"))
        else:
            rest += piece
        if len(rest) > MAX_LINE:
            raise ContractError([_too_long(number, len(rest))])
        keep(len(rest), exchange)
    if rest:
        yield Block(number, rest, [rest])
    exchange.release(len(rest))


async def each_block(
    request: Request, work: Callable[[Block], int], limit: int = MAX_BODY, copy: Copy | None = None
) -> None:
    """Do some work on each block of lines, which returns the bytes that it keeps more of than before."""
    exchange = exchange_of(request.scope)
    async for block in _blocks(request, limit, copy):
        async with _turn(request, len(block.data)):
            kept = work(block)
        if kept > 0:
            keep(kept, exchange)
        else:
            exchange.release(-kept)


async def gathered(
    request: Request, decode: Callable[[bytes, int], Iterable[T]], limit: int = MAX_BODY
) -> AsyncIterator[list[T]]:
    """The decoded lines, each with its number, in groups; each group counts until the next is asked for.

    ``decode`` is not given blank lines.
    """
    exchange = exchange_of(request.scope)
    found: list[T] = []
    held = 0
    async for block in _blocks(request, limit):
        size = len(block.data) + weight(block.data)
        keep(size, exchange)
        held += size
        async with _turn(request, len(block.data)):
            for number, line in enumerate(block.lines, block.first):
                if line.strip():
                    found += decode(line, number)
        if held >= _GROUP:
            yield found
            found = []
            exchange.release(held)
            held = 0
    if found:
        yield found
    exchange.release(held)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"The body is over {limit} bytes. Send it in several requests.")


def _too_long(number: int, size: int) -> Violation:
    return Violation(
        f"line {number}",
        f"Serialized value too large - max {MAX_LINE} bytes, got {size} or more",
        "Send one JSON value per line, and less in each.",
        413,
    )


def record(line: bytes, number: int) -> dict[str, Any]:
    """A line that must be a JSON object; raises ``ContractError``."""
    try:
        found: dict[str, Any] = _decode_object(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(f"line {number}", "a JSON object", error) from None
    return found


def value(data: bytes, place: str = "body") -> Any:
    """Any JSON value."""
    _check_values(values_in(data), len(data), place)
    keep(weight(data))
    return _decoded(data, place)


def _check_values(values: int, size: int, place: str) -> None:
    if values > MAX_VALUES and size > _PLAIN:
        raise ContractError([Violation(place, f"has over {MAX_VALUES} values", "Send less of it.", 413)])


def _decoded(data: bytes, place: str) -> Any:
    try:
        return _decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(place, "JSON", error) from None


#: The default of :func:`document` for an empty body.
_REQUIRED: Final = object()


async def document(request: Request, limit: int = MAX_DOCUMENT, *, empty: Any = _REQUIRED) -> Any:
    """The JSON value that a body is; ``empty`` for one without any."""
    exchange, values, size = exchange_of(request.scope), 0, 0

    def count(piece: bytes) -> None:
        nonlocal values, size
        values += values_in(piece)
        size += len(piece)
        _check_alone(values * VALUE, exchange)
        _check_values(values, size, "body")

    data = await _whole(request, limit, count)
    if empty is not _REQUIRED and (not data or data.isspace()):
        return empty
    async with _turn(request, len(data)):
        keep(weight(data, values))
        return _decoded(data, "body")


def not_json(place: str, wanted: str, error: Exception) -> ContractError:
    """What to say of a line that cannot be decoded."""
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ContractError([Violation(place, f"is not {wanted}: {reason}", "Send one JSON value per line, in UTF-8.")])


async def objects(
    request: Request, limit: int = MAX_BODY, *, most: int = MAX_LINES
) -> list[tuple[int, bytes, dict[str, Any]]]:
    """The JSON objects of a body, a line each and ``most`` at most: line number, the line, what it decodes to."""
    found: list[tuple[int, bytes, dict[str, Any]]] = []
    exchange = exchange_of(request.scope)
    async for block in _blocks(request, limit):
        keep(len(block.data) + weight(block.data) + LINE * len(block.lines), exchange)
        async with _turn(request, len(block.data)):
            found += [
                (number, line, record(line, number))
                for number, line in enumerate(block.lines, block.first)
                if line.strip()
            ]
        if len(found) > most:
            raise Refusal(413, f"The body has over {most} lines. Send it in several requests.")
    return found


def strings(request: Request) -> AsyncIterator[list[str]]:
    """The strings of a body, in groups: on each line a JSON string or an array of them."""
    return gathered(request, _strings)


def _strings(line: bytes, number: int) -> list[str]:
    decoded = _decoded(line, f"line {number}")
    members = decoded if isinstance(decoded, list) else [decoded]
    if not all(isinstance(member, str) for member in members):
        raise ContractError(
            [Violation(f"line {number}", "must be a string or an array of strings", 'Write "a" or ["a","b"].')]
        )
    return members


async def form(request: Request) -> list[tuple[str, str]]:
    """The fields of a form body (``application/x-www-form-urlencoded``), in order."""
    data = await _whole(request, MAX_FORM)
    # A text that is not ASCII takes four bytes a character; each escape is an object of its own for a while.
    keep(12 * len(data) + _FIELD * data.count(b"&") + _ESCAPE * data.count(b"%"))
    try:
        async with _turn(request, len(data)):
            text = data.decode()
            return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FORM_FIELDS)
    except ValueError as error:
        raise ContractError(
            [Violation("body", f"is not a form in UTF-8: {error}", "Send application/x-www-form-urlencoded fields.")]
        ) from None
