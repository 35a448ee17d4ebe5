"""Request bodies: inflated and split into lines within limits, without trust in headers.

All bodies are read through this module (checked by ``tests/integration/server/http/test_bodies.py``). JSON is decoded
in :mod:`scrapy_ext.server.http.json_bodies`, forms in :mod:`scrapy_ext.server.http.form_bodies`. What a body takes is
counted against the memory of the process:

- :func:`each_block` processes one block of lines at a time, whose records are freed before the next; only kept bytes
  are counted.
- :func:`gathered` yields the decoded lines, some thousands at a time, and counts each group until the next.
- :func:`whole` returns the body, which counts until the request ends.

Long work is serialized with that of other requests (:meth:`RequestMemory.turn`).
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

from starlette.requests import Request

from scrapy_ext.api.compression import DamagedError, Inflater, SizeLimitError, joinable, unmarked
from scrapy_ext.api.json_decoder import weight
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.request_context import CURRENT, RequestContext, context_of

MIB: Final = 1024 * 1024
#: Bytes of one inflated body. A job may send any number of bodies.
MAX_RECORDS_BODY: Final = 256 * MIB
MAX_BODY: Final = 64 * MIB
MAX_LINES: Final = 1_000_000
#: Bytes of one line; no kind of record is longer.
MAX_LINE: Final = MIB
#: Bytes of a block below which it is decoded without a turn.
_SHORT: Final = 16 * 1024
#: Bytes of a piece of a copy below which the next one is joined to it, since many small ones would take more memory.
_LEAST: Final = 4 * 1024
#: Bytes of memory of a group of :func:`gathered`.
_GROUP: Final = 8 * MIB

T = TypeVar("T")


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
    check_alone(size, context)
    raise Refusal(503, "Too many large bodies are under way. Try again.", {"Retry-After": "2"})


def check_alone(size: int, context: RequestContext) -> None:
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


async def blocks(request: Request, limit: int, copy: Copy | None = None) -> AsyncIterator[Block]:
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
    async for block in blocks(request, limit, copy):
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
    async for block in blocks(request, MAX_BODY):
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
