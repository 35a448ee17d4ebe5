"""Request bodies: inflated, cut into lines and decoded, all within limits, and never on trust of a header."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.deflate import DamagedError, Inflater, TooLargeError
from scrapy_ext.server.operation.exchange import exchange_of
from scrapy_ext.server.platform.answers import Refusal

MIB: Final = 1024 * 1024
#: Of one body, inflated. A job may send any number of them.
MAX_RECORDS_BODY: Final = 256 * MIB
MAX_BODY: Final = 64 * MIB
MAX_FORM: Final = 4 * MIB
MAX_LINES: Final = 1_000_000
#: Of one line; what is longer can be no record of any kind.
MAX_LINE: Final = MIB
_MAX_FORM_FIELDS: Final = 10_000
#: Bytes a second that a body must come with on average, beside the time for which its client may send nothing.
_SLOWEST: Final = 1024
#: Seconds after which a body that came at once lets others have their turn.
_TURN: Final = 0.002
#: What a decoded record takes beside its bytes.
_RECORD: Final = 256

_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_decode_any: Final = msgspec.json.Decoder().decode


async def _wire(request: Request) -> AsyncIterator[bytes]:
    stream, patience = request.stream(), exchange_of(request.scope).patience
    began, received = time.monotonic(), 0
    while True:
        left = began + patience + received / _SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(min(patience, max(left, 0))):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            told = (
                f"Request Timeout. The body must not pause for {patience:g} s, nor be slower than {_SLOWEST} bytes/s."
            )
            raise Refusal(408, told) from None
        received += len(piece)
        if piece:
            yield piece


class Copy:
    """The body as it was sent, if that is one gzip stream of at most ``limit`` bytes; else ``data`` is None."""

    def __init__(self, limit: int) -> None:
        self.data: bytes | None = None
        self._limit = limit
        self._pieces: list[bytes] = []
        self._length = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self._length += len(piece)
        if self._length <= self._limit:
            self._pieces.append(piece)

    def end(self, inflater: Inflater) -> None:
        """All pieces were taken and inflated."""
        if self._length <= self._limit and inflater.is_one_gzip:
            self.data = b"".join(self._pieces)


def _hold(request: Request, size: int) -> None:
    """Count what is kept until the request ends; raises :class:`Refusal` when all requests keep too much."""
    if not exchange_of(request.scope).hold(size):
        raise Refusal(503, "Too many large bodies are under way. Try again.", {"Retry-After": "2"})


async def pieces(request: Request, limit: int, copy: Copy | None = None) -> AsyncIterator[bytes]:
    """The body as it comes, inflated, up to ``limit`` bytes; raises :class:`Refusal`."""
    too_large = Refusal(413, f"The body is over {limit} bytes. Send it in several requests.")
    async for piece in _within(request, limit, too_large, copy):
        _hold(request, len(piece))
        yield piece


async def passing(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The same for a body that is kept on disk, and does not count for what requests hold in memory."""
    async for piece in _within(request, limit, Refusal(413, f"The body is over {limit} bytes. Send less."), None):
        yield piece


async def _within(request: Request, limit: int, too_large: Refusal, copy: Copy | None) -> AsyncIterator[bytes]:
    if exchange_of(request.scope).announced > limit:
        raise too_large
    async for piece in _inflated(request, limit, too_large, copy):
        yield piece


async def _inflated(request: Request, limit: int, too_large: Refusal, copy: Copy | None) -> AsyncIterator[bytes]:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        length = 0
        async for piece in _wire(request):
            length += len(piece)
            if length > limit:
                raise too_large
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Refusal(415, f"Content-Encoding {encoding[:60]} is not supported. Use gzip or none.")
    inflater, any_data = Inflater(limit), False
    try:
        async for piece in _wire(request):
            any_data = True
            if copy is not None:
                copy.add(piece)
            for inflated in inflater.feed(piece):
                yield inflated
        if any_data:
            inflater.end()
            if copy is not None:
                copy.end(inflater)
    except TooLargeError:
        raise too_large from None
    except DamagedError as error:
        raise Refusal(400, f"The body is not correct {encoding} data: {error}.") from None


async def whole(request: Request, limit: int = MAX_BODY) -> bytes:
    """The whole body."""
    return b"".join([piece async for piece in pieces(request, limit)])


class Block(NamedTuple):
    """Some whole lines of a body, and the same without the last line break; ``first`` is the number of the first."""

    first: int
    data: bytes
    lines: list[bytes]


async def blocks(request: Request, limit: int = MAX_BODY, copy: Copy | None = None) -> AsyncIterator[Block]:
    """The body's lines, which are counted from 1, as they come."""
    number, rest, turn = 1, b"", time.monotonic()
    async for piece in pieces(request, limit, copy):
        end = piece.rfind(b"\n")
        if end >= 0:
            data = rest + piece[:end]
            block = Block(number, data, data.split(b"\n"))
            yield block
            number += len(block.lines)
            if number > MAX_LINES:
                raise Refusal(413, f"The body has over {MAX_LINES} lines. Send it in several requests.")
            rest = piece[end + 1 :]
            # A small compressed body may hold millions of lines: others have their turn in between.
            if time.monotonic() - turn > _TURN:
                await asyncio.sleep(0)
                turn = time.monotonic()
        else:
            rest += piece
        if len(rest) > MAX_LINE:
            raise ContractError([_too_long(number, len(rest))])
    if rest:
        yield Block(number, rest, [rest])


async def lines(request: Request, limit: int = MAX_BODY) -> AsyncIterator[tuple[int, list[bytes]]]:
    """The body's lines in groups, each with the number of its first line."""
    async for block in blocks(request, limit):
        yield block.first, block.lines


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
        return _decode_object(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(f"line {number}", "a JSON object", error) from None


def value(data: bytes, place: str = "body") -> Any:
    """Any JSON value."""
    try:
        return _decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(place, "JSON", error) from None


def not_json(place: str, wanted: str, error: Exception) -> ContractError:
    """What to say of a line that cannot be decoded."""
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ContractError([Violation(place, f"is not {wanted}: {reason}", "Send one JSON value per line, in UTF-8.")])


async def objects(request: Request, limit: int = MAX_BODY) -> list[tuple[int, bytes, dict[str, Any]]]:
    """The JSON objects of a body, a line each: line number, the line, what it decodes to."""
    found: list[tuple[int, bytes, dict[str, Any]]] = []
    async for first, group in lines(request, limit):
        new = [(number, line, record(line, number)) for number, line in enumerate(group, first) if line.strip()]
        _hold(request, _RECORD * len(new))
        found += new
    return found


async def strings(request: Request) -> list[str]:
    """The strings of a body: on each line a JSON string or an array of them."""
    found: list[str] = []
    async for first, group in lines(request):
        for number, line in enumerate(group, first):
            if not line.strip():
                continue
            decoded = value(line, f"line {number}")
            members = decoded if isinstance(decoded, list) else [decoded]
            if not all(isinstance(member, str) for member in members):
                raise ContractError(
                    [Violation(f"line {number}", "must be a string or an array of strings", 'Write "a" or ["a","b"].')]
                )
            found += members
    return found


async def form(request: Request) -> list[tuple[str, str]]:
    """The fields of a form body (``application/x-www-form-urlencoded``), in order."""
    try:
        text = (await whole(request, MAX_FORM)).decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FORM_FIELDS)
    except ValueError as error:
        raise ContractError(
            [Violation("body", f"is not a form in UTF-8: {error}", "Send application/x-www-form-urlencoded fields.")]
        ) from None
