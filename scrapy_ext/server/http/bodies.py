"""Request bodies: inflated, split into lines and decoded within limits, without trust in headers.

All bodies are read through this module (checked by ``tests/integration/server/http/test_bodies.py``), forms by
:mod:`scrapy_ext.server.http.form_bodies`. Their values are counted against the memory of the process before they are
decoded:

- :func:`each_block` processes one block of lines at a time, whose records are freed before the next; only kept bytes
  are counted.
- :func:`gathered` yields the decoded lines, some thousands at a time, and counts each group until the next.
- :func:`objects`, :func:`document` and :func:`value` count their result until the request ends.

Long work is serialized with that of other requests (:meth:`RequestMemory.turn`).
"""

from __future__ import annotations

import contextlib
import io
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request

from scrapy_ext.api.compression import DamagedError, Inflater, SizeLimitError, joinable, unmarked
from scrapy_ext.api.json_decoder import LINE, VALUE, decoder, values_in, weight
from scrapy_ext.api.repeated_names import repeated_names
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import CURRENT, RequestContext, context_of

MIB: Final = 1024 * 1024
#: Bytes of one inflated body. A job may send any number of bodies.
MAX_RECORDS_BODY: Final = 256 * MIB
MAX_BODY: Final = 64 * MIB
#: Bytes of one JSON document, which is decoded at once. Stored values have up to 1 MiB, or 6 MiB with escapes.
MAX_DOCUMENT: Final = 8 * MIB
MAX_LINES: Final = 1_000_000
#: Bytes of one line; no kind of record is longer.
MAX_LINE: Final = MIB
#: Marks that some editors and shells write before a text.
_MARKS: Final = (BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)
#: Repeated names that an error has.
_MOST_REPEATED: Final = 20
#: Commas, colons and opening brackets of one JSON document of over :data:`_PLAIN` bytes: decoding so many takes a fifth
#: of a second, in which the server does nothing else. Shorter documents take less.
MAX_VALUES: Final = 500_000
_PLAIN: Final = MIB
#: Bytes of a block below which it is decoded without a turn.
_SHORT: Final = 16 * 1024
#: Bytes of a piece of a copy below which the next one is joined to it, since many small ones would take more memory.
_LEAST: Final = 4 * 1024
#: Bytes of memory of a group of :func:`gathered`.
_GROUP: Final = 8 * MIB

T = TypeVar("T")
Fields = dict[str, Any]

_decode_object: Final = decoder(dict[str, Any])
_decode_any: Final = decoder(Any)


async def _wire(request: Request) -> AsyncIterator[bytes]:
    stream, client_timeout = request.stream(), context_of(request.scope).client_timeout
    began, received = time.monotonic(), 0
    while True:
        left = began + client_timeout + received / limits.SLOWEST - time.monotonic()
        try:
            async with timeout_after(min(client_timeout, max(left, 0))):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TIMEOUT_ERRORS:
            rule = f"must not pause for {client_timeout:g} s, nor be slower than {limits.SLOWEST} bytes/s"
            raise Refusal(408, f"Request Timeout. The body {rule}.") from None
        received += len(piece)
        if piece:
            yield piece


class Copy:
    """Copy of a body as sent. ``data`` is None unless that is one gzip stream of at most ``limit`` bytes.

    One that can be joined with others is marked (:mod:`scrapy_ext.api.compression`).
    """

    def __init__(self, limit: int) -> None:
        self.data: bytes | None = None
        self._limit = limit
        self._pieces = list[bytes]()
        self._length = 0

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= self._limit:
            keep(len(piece))
            if self._pieces and len(self._pieces[-1]) < _LEAST:
                self._pieces[-1] += piece
            else:
                self._pieces.append(piece)
        else:
            self._pieces.clear()

    def end(self, inflater: Inflater) -> None:
        """Complete the copy after all pieces were inflated."""
        if self._length <= self._limit and inflater.is_one_gzip:
            data = b"".join(self._pieces)
            self.data = joinable(data, ends_line=inflater.ends_line) if inflater.is_joinable else unmarked(data)


def keep(size: int, context: RequestContext | None = None) -> None:
    """Count bytes that a request (default: the current one) keeps until its end; raises :class:`Refusal`."""
    context = context or CURRENT.get()
    if context is None or context.hold(size):
        return
    _check_alone(size, context)
    raise Refusal(503, "Too many large bodies are under way. Try again.", {"Retry-After": "2"})


def _check_alone(size: int, context: RequestContext) -> None:
    """Refuse a body that would find no room even as the only one."""
    if context.is_alone_too_large(size):
        bound = context.memory.limit // MIB
        raise Refusal(
            413,
            f"The body takes more memory than the {bound} MiB that this server has for requests. Send less of it, or "
            "start the server with a larger --memory.",
        )


def turn(request: Request, size: int) -> AbstractAsyncContextManager[None]:
    """Return the context manager of work on so many bytes."""
    return contextlib.nullcontext() if size < _SHORT else context_of(request.scope).memory.turn()


async def passing(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the inflated body, up to ``limit`` bytes, for a caller that stores it on disk; raises :class:`Refusal`."""
    async for piece in _within(request, limit, Refusal(413, f"The body is over {limit} bytes. Send less."), None):
        yield piece


async def _within(request: Request, limit: int, too_large: Refusal, copy: Copy | None) -> AsyncIterator[bytes]:
    if context_of(request.scope).announced > limit:
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
    except SizeLimitError:
        raise too_large from None
    except DamagedError as error:
        raise Refusal(400, f"The body is not correct {encoding} data: {error}.") from None


async def _bounded(request: Request, limit: int, too_large: Refusal) -> AsyncIterator[bytes]:
    """Yield the body as sent. A compressed one is bounded, too: any number of gzip members may inflate to nothing."""
    length = 0
    async for piece in _wire(request):
        length += len(piece)
        if length > limit:
            raise too_large
        yield piece


async def _inflated(request: Request, limit: int, too_large: Refusal, copy: Copy | None) -> AsyncIterator[bytes]:
    inflater = Inflater(limit, finds_joinable=copy is not None)
    any_data = False
    async for piece in _bounded(request, limit, too_large):
        any_data = True
        if copy is not None:
            copy.add(piece)
        async for inflated in _in_turns(request, inflater.feed(piece)):
            yield inflated
    if any_data:
        if copy is not None:
            async for inflated in _in_turns(request, inflater.rest()):
                yield inflated
        inflater.end()
        if copy is not None:
            copy.end(inflater)


async def _in_turns(request: Request, steps: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the output of some steps. A small compressed body may become any number of pieces."""
    turns = context_of(request.scope).memory
    while True:
        async with turns.turn():
            inflated = next(steps, None)
        if inflated is None:
            return
        if inflated:
            yield inflated


async def whole(request: Request, limit: int, check: Callable[[bytes], None] | None = None) -> bytes:
    """Return the whole body after ``check`` of each piece; raises :class:`Refusal`.

    It counts twice while it grows, since it may be copied.
    """
    context, data = context_of(request.scope), io.BytesIO()
    async for piece in _within(request, limit, Refusal(413, f"The body is over {limit} bytes. Send less."), None):
        if check is not None:
            check(piece)
        keep(2 * len(piece), context)
        data.write(piece)
    context.release(data.tell())
    return data.getvalue()


class Block:
    """Some whole lines of a body: their bytes without the last line break, and the number of the first of them."""

    __slots__ = ("_lines", "data", "ended", "first")

    def __init__(self, first: int, data: bytes) -> None:
        self.first = first
        self.data = data
        #: The lines, each but the last with its line break, and without a last line that is empty. Splitting long
        #: lines takes four times as long.
        self.ended: list[bytes] = io.BytesIO(data).readlines()
        self._lines: list[bytes] | None = None

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self.ended) + self.ends_blank

    @property
    def ends_blank(self) -> bool:
        """True if the last line is empty."""
        return not self.data or self.data.endswith(b"\n")

    @property
    def lines(self) -> list[bytes]:
        """The lines, without line breaks."""
        if self._lines is None:
            self._lines = self.data.split(b"\n")
        return self._lines


async def _blocks(request: Request, limit: int, copy: Copy | None = None) -> AsyncIterator[Block]:
    """Yield the lines of the body in blocks; line numbers begin with 1."""
    context = context_of(request.scope)
    number, rest = 1, b""
    too_large = Refusal(413, f"The body is over {limit} bytes. Send it in several requests.")
    async for piece in _within(request, limit, too_large, copy):
        context.release(len(rest))
        end = piece.rfind(b"\n")
        if end >= 0:
            data = b"".join((rest, memoryview(piece)[:end]))
            rest = piece[end + 1 :]
            block = Block(number, data)
            number += block.count
            if number - 1 > MAX_LINES:
                raise Refusal(413, f"The body has over {MAX_LINES} lines. Send it in several requests.")
            yield block
        else:
            rest += piece
        if len(rest) > MAX_LINE:
            rule = f"Serialized value too large - max {MAX_LINE} bytes, got {len(rest)} or more"
            remedy = "Send one JSON value per line, and less in each."
            raise ContractError([Violation(f"line {number}", rule, remedy, 413)])
        keep(len(rest), context)
    if rest:
        yield Block(number, rest)
    context.release(len(rest))


async def each_block(
    request: Request, work: Callable[[Block], int], limit: int = MAX_BODY, copy: Copy | None = None
) -> None:
    """Process each block of lines; ``work`` returns the change of the bytes that it keeps."""
    context = context_of(request.scope)
    async for block in _blocks(request, limit, copy):
        async with turn(request, len(block.data)):
            kept = work(block)
        if kept > 0:
            keep(kept, context)
        else:
            context.release(-kept)


async def gathered(
    request: Request,
    decode: Callable[[bytes, int], Iterable[T]],
    *,
    decode_usual: Callable[[Block], Iterable[T] | None] | None = None,
) -> AsyncIterator[list[T]]:
    """Yield the decoded lines in groups, each of which counts until the next.

    ``decode`` receives each line that is not blank, and its number. ``decode_usual`` does the same for all lines of a
    block at once, which is faster; it returns None for an unusual one.
    """
    context = context_of(request.scope)
    found: list[T] = []
    held = 0
    async for block in _blocks(request, MAX_BODY):
        size = len(block.data) + weight(block.data)
        keep(size, context)
        held += size
        async with turn(request, len(block.data)):
            usual = None if decode_usual is None else decode_usual(block)
            if usual is not None:
                found += usual
            else:
                for number, line in enumerate(block.lines, block.first):
                    if line.strip():
                        found += decode(line, number)
        if held >= _GROUP:
            yield found
            found = []
            context.release(held)
            held = 0
    if found:
        yield found
    context.release(held)


def record(line: bytes, number: int) -> dict[str, Any]:
    """Return the JSON object of a line; raises ``ContractError``."""
    try:
        found: dict[str, Any] = _decode_object(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(f"line {number}", "a JSON object", error, line) from None
    return found


def value(data: bytes, place: str = "body") -> Any:
    """Return any JSON value; raises ``ContractError``."""
    _check_values(values_in(data), len(data), place)
    keep(weight(data))
    return _decoded(data, place)


def given(data: bytes, place: str) -> Any:
    """Return a JSON value that somebody wrote; raises ``ContractError``, also for a name that an object has twice."""
    found = value(data, place)
    _check_names(data, place)
    return found


def _check_names(data: bytes, place: str = "") -> None:
    try:
        violations = list(repeated_names(data.decode(), _MOST_REPEATED, place=place))
    except RecursionError as error:
        raise not_json(place or "body", "JSON", error, data) from None
    if violations:
        raise ContractError(violations)


def _check_values(values: int, size: int, place: str) -> None:
    if values > MAX_VALUES and size > _PLAIN:
        raise ContractError([Violation(place, f"has over {MAX_VALUES} values", "Send less of it.", 413)])


def _decoded(data: bytes, place: str) -> Any:
    try:
        return _decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(place, "JSON", error, data) from None


#: The default of ``empty`` in :func:`document`: a body is required.
_REQUIRED: Final = object()


async def document(
    request: Request, limit: int = MAX_DOCUMENT, *, empty: object = _REQUIRED, by_hand: bool = False
) -> Any:
    """Return the JSON value of a body; ``empty`` for an empty body. ``by_hand``: somebody may have written it, so that
    a name which an object has twice is refused."""
    context, values, size = context_of(request.scope), 0, 0

    def count(piece: bytes) -> None:
        nonlocal values, size
        values += values_in(piece)
        size += len(piece)
        _check_alone(values * VALUE, context)
        _check_values(values, size, "body")

    data = await whole(request, limit, count)
    if empty is not _REQUIRED and (not data or data.isspace()):
        return empty
    async with turn(request, len(data)):
        keep(weight(data, values))
        found = _decoded(data, "body")
        if by_hand:
            _check_names(data)
        return found


async def fields_of(
    request: Request,
    example: str,
    limit: int = MAX_DOCUMENT,
    *,
    empty: object = _REQUIRED,
    by_hand: bool = False,
) -> Fields:
    """Return the JSON object of a body; raises ``ContractError``, which shows the ``example``."""
    found = await document(request, limit, empty=empty, by_hand=by_hand)
    if not isinstance(found, dict):
        raise refused("body", "must be a JSON object", f"Write {example}.")
    return found


async def known_fields(request: Request, known: Iterable[str], example: str, limit: int) -> Fields:
    """Return the JSON object of a body; raises ``ContractError`` for one with other fields than the known ones."""
    fields, known = await fields_of(request, example, limit, by_hand=True), list(known)
    for name in fields:
        if name not in known:
            raise refused(name[:60], "is not a field of this request", f"The fields are {', '.join(known)}.")
    return fields


async def flag_of(request: Request, name: str, limit: int) -> bool:
    """Return the one field of a body, which is true or false; raises ``ContractError``."""
    example = f'{{"{name}": true}}'
    value = (await known_fields(request, [name], example, limit)).get(name)
    if not isinstance(value, bool):
        raise refused(name, "must be true or false", f"Write {example}.")
    return value


def not_json(place: str, wanted: str, error: Exception, data: bytes) -> ContractError:
    """Return the error of a text that cannot be decoded."""
    reason, remedy = str(error), "Send one JSON value per line, in UTF-8."
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif data.startswith(_MARKS):
        reason, remedy = "it begins with a byte order mark (BOM)", "Send UTF-8 without the mark."
    return ContractError([Violation(place, f"is not {wanted}: {reason}", remedy)])


async def objects(
    request: Request, limit: int = MAX_BODY, *, most: int = MAX_LINES
) -> list[tuple[int, bytes, dict[str, Any]]]:
    """Return line number, line and value of the JSON objects of a body, one per line and at most ``most``."""
    found: list[tuple[int, bytes, dict[str, Any]]] = []
    context = context_of(request.scope)
    async for block in _blocks(request, limit):
        keep(len(block.data) + weight(block.data) + LINE * len(block.lines), context)
        async with turn(request, len(block.data)):
            found += [
                (number, line, record(line, number))
                for number, line in enumerate(block.lines, block.first)
                if line.strip()
            ]
        if len(found) > most:
            raise Refusal(413, f"The body has over {most} lines. Send it in several requests.")
    return found


def strings(request: Request) -> AsyncIterator[list[str]]:
    """Yield the strings of a body in groups: each line is a JSON string or an array of strings."""
    return gathered(request, _strings)


def _strings(line: bytes, number: int) -> list[str]:
    decoded = _decoded(line, f"line {number}")
    members = decoded if isinstance(decoded, list) else [decoded]
    if not all(isinstance(member, str) for member in members):
        raise ContractError(
            [Violation(f"line {number}", "must be a string or an array of strings", 'Write "a" or ["a","b"].')]
        )
    return members
