"""Results: formats, compression and streaming of records (platform-api.md, Common conventions)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar, cast

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from scrapy_ext.api.compression import GzipFrame, GzipPart, deflated
from scrapy_ext.api.compression import gzip as gzipped
from scrapy_ext.api.platform.formats import CONTENT_TYPES, FILE_FORMATS, Format, choose
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import (
    Encoder,
    MissingLibraryError,
    Page,
    Spool,
    SpoolLimitError,
    check_installed,
    encoder_of,
    spool_schema,
)
from scrapy_ext.formats.columns import blocks
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.http.answers import BytesResponse, Refusal
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.record_writers import columns_of, finds_columns, offered, writer_of, written
from scrapy_ext.server.http.request_context import RequestContext
from scrapy_ext.server.store.read_ahead import READ_AHEAD, ahead, closing, in_thread

T = TypeVar("T")

#: Bytes up to which a result is sent whole, with its length; a longer one is sent in pieces.
_WHOLE: Final = 256 * 1024
#: Minimum bytes of an uncompressed piece: the memory of small pieces is reused.
_PIECE: Final = 60 * 1024
#: Bytes of a stream beside its page, with read-ahead (chunks, inflated and compressed pieces) or without (a chunk and a
#: piece); the part of the bound of memory up to which streams read ahead; and bytes of a line of a page beside its own.
_READ_AHEAD: Final = 6 * 1024 * 1024
_READ: Final = 768 * 1024
_FREE: Final = 0.25
_LINE: Final = 48
#: Copies of a piece while it is written.
_COPIES: Final = 4
#: Records that are decoded and written at once: each may become a line with thousands of columns.
_RUN: Final = 500
#: Bytes of records that are decoded and written in a thread.
_LONG: Final = 128 * 1024
#: Seconds after which a slow result is sent in parts, so that a disconnected client is noticed.
_UNSENT_TIME: Final = 5.0
#: Pieces that are compressed during the transfer of the piece before them.
_COMPRESSED_AHEAD: Final = 2
#: Smaller results are not worth compressing.
_MIN_GZIP: Final = 256

#: Bytes of memory of a file whose columns are found first: blocks of the temporary file, arrays of a row group.
_FILE: Final = 40 * 1024 * 1024
#: One thread for all files: their work holds the interpreter's lock, and each thread would keep 10 MB of its own.
_FILE_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="files")
#: Maximum bytes of its temporary file, which is compressed and has no name.
_SPOOLED: Final = 2 * 1024**3

_MEDIA_TYPES: Final = {
    kind: content_type if kind in FILE_FORMATS else f"{content_type}; charset=UTF-8"
    for kind, content_type in CONTENT_TYPES.items()
}
#: Types of files that are compressed already.
_COMPRESSED: Final = tuple(CONTENT_TYPES[kind] for kind in FILE_FORMATS)

#: Values of ``Accept`` of clients that take any format.
_ANY_TYPE: Final = (None, "", "*/*")
#: The encoder without state of its own, and the headers of most answers.
_LINES: Final = encoder_of(Format.JSON_LINES)
_JSON_LINES: Final = (
    (b"vary", b"Accept, Accept-Encoding"),
    (b"content-type", _MEDIA_TYPES[Format.JSON_LINES].encode()),
)

_encode: Final = msgspec.json.Encoder().encode

logger = logging.getLogger(__name__)


def format_of(call: Call, *, msgpack: bool = False, files: bool = False) -> Format:
    """Return the format of the answer to a call; raises ``ContractError``."""
    parameter, accept = call.query.get("format"), call.header(b"accept")
    if not parameter and accept in _ANY_TYPE:
        return Format.JSON_LINES
    return choose(parameter, accept or "", offered(msgpack=msgpack, files=files))


async def result_of(call: Call, records: Page, *, msgpack: bool = False, files: bool = False) -> Response:
    """Return the answer to a read whose records are in memory."""
    kind = format_of(call, msgpack=msgpack, files=files)
    if sum(map(len, records)) >= _PIECE or finds_columns(call, kind):
        return await result(call, each([records]), msgpack=msgpack, files=files)
    if kind is Format.JSON_LINES:
        return _whole(call, kind, b"".join(written(_LINES, records)))
    writer = writer_of(call, kind)
    return _whole(call, kind, b"".join([writer.begin(), *written(writer, records), writer.end()]))


async def limited(pages: AsyncIterator[Sequence[T]], count: int | None) -> AsyncIterator[Sequence[T]]:
    """Yield pages up to ``count`` elements, or all."""
    async with closing(pages):
        async for page in pages:
            yield page if count is None else page[:count]
            count = None if count is None else max(count - len(page), 0)
            if count == 0:
                return


async def each(pages: Iterable[Page]) -> AsyncIterator[Page]:
    """Yield pages that are in memory."""
    for page in pages:
        yield page


def _whole(call: Call, kind: Format, data: bytes) -> Response:
    if kind is Format.JSON_LINES and "saveas" not in call.query:
        return BytesResponse(data, _JSON_LINES)
    return Response(data, headers=_headers(call, kind), media_type=_MEDIA_TYPES[kind])


def _headers(call: Call, kind: Format) -> dict[str, str]:
    return {"Vary": "Accept, Accept-Encoding", **_attachment(call, kind)}


async def result(
    call: Call, pages: AsyncIterator[Page | GzipPart], *, msgpack: bool = False, files: bool = False
) -> Response:
    """Return the answer to a read: one piece if it is short, else a stream.

    Lines in a :class:`GzipPart` are sent as they are, so it is for compressed JSON lines only (:func:`accepts_gzip`).

    A failure before the first piece has its own status. A later failure breaks off the stream without its end, so that
    no client accepts it as complete.
    """
    kind = format_of(call, msgpack=msgpack, files=files)
    headers = _headers(call, kind)
    # The bytes of a file are compressed already.
    gzip = accepts_gzip(call) and kind not in FILE_FORMATS
    context = call.context
    _reserve(context)
    size = _WHOLE if gzip else _PIECE
    if finds_columns(call, kind):
        stream = _file(call, kind, cast("AsyncIterator[Page]", pages), size)
    else:
        stream = _encoded(writer_of(call, kind), pages, size, context)
    preparing = contextlib.nullcontext() if READ_AHEAD.get() else context.memory.preparing
    async with preparing:
        first = await anext(stream)
    if first.is_last:  # compressed, if at all, like every answer of one piece
        return _whole(call, kind, first.data)
    if call.is_head:  # answered without further reads
        return Response(headers=headers, media_type=_MEDIA_TYPES[kind])
    pieces = _from(first, stream, preparing)
    if gzip:
        headers["Content-Encoding"] = "gzip"
        body = _compressed(pieces)
    else:
        body = _uncompressed(pieces)
    return _Stream(body, headers=headers, media_type=_MEDIA_TYPES[kind])


class _Stream(StreamingResponse):
    """A stream that is closed with its answer, also when the client disconnects."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with closing(aiter(self.body_iterator)):
            await super().__call__(scope, receive, send)


class _Piece(NamedTuple):
    data: bytes
    is_last: bool = False
    #: What follows the data, and is compressed already.
    part: GzipPart | None = None


def _reserve(context: RequestContext) -> None:
    """Count the bytes of a stream beside its page; it reads ahead while memory is free."""
    memory = context.memory
    is_free = memory.held + _READ_AHEAD < memory.limit * _FREE
    READ_AHEAD.set(is_free)
    hold_answer(context, _READ_AHEAD if is_free else _READ)


def hold_answer(context: RequestContext, size: int) -> None:
    """Count bytes of an answer until the request ends; raises :class:`Refusal`."""
    if not context.hold(size):
        raise Refusal(503, "Too many large answers are under way. Try again.", {"Retry-After": "2"})


def _in_file_thread(work: Callable[..., T], *args: object, **options: object) -> asyncio.Future[T]:
    """Run a step of a file."""
    return asyncio.get_running_loop().run_in_executor(_FILE_THREAD, functools.partial(work, *args, **options))


async def _file(call: Call, kind: Format, pages: AsyncIterator[Page], size: int) -> AsyncIterator[_Piece]:
    """Yield the pieces of a file whose columns are found first, in records that a temporary file keeps meanwhile.

    An empty piece is yielded after seconds without another, so that a disconnected client is noticed.
    """
    try:
        check_installed(kind)
    except MissingLibraryError as error:
        raise Refusal(501, f"Not Implemented. {error}") from None
    context = call.context
    hold_answer(context, _FILE)
    spool = await _in_file_thread(Spool, spool_schema(kind, columns_of(call)), limit=_SPOOLED)
    try:
        async with closing(_spooled(spool, pages, context)) as waits:
            async for wait in waits:
                yield wait
        writer = await _in_file_thread(writer_of, call, kind, spool.schema)
        async with closing(_encoded(writer, _read_back(spool), size, context)) as pieces:
            async for piece in pieces:
                yield piece
    finally:
        spool.close()


async def _spooled(spool: Spool, pages: AsyncIterator[Page], context: RequestContext) -> AsyncIterator[_Piece]:
    """Put all records into the temporary file; yield an empty piece every few seconds."""
    sent = time.monotonic()
    async with closing(pages):
        async for page in pages:
            held = sum(map(len, page)) + _LINE * len(page)
            hold_answer(context, held)
            for part in blocks(page, _LONG, _RUN):
                try:
                    await _in_file_thread(spool.add, part)
                except SpoolLimitError as error:
                    raise Refusal(413, f"{error}") from None
                except OSError as error:
                    logger.error("A temporary file of a download could not be written: %s", error)
                    message = "The server has no room for the temporary file. Choose fewer records, or the format jl."
                    raise Refusal(507, message) from None
                if time.monotonic() - sent > _UNSENT_TIME:
                    yield _Piece(b"")
                    sent = time.monotonic()
            context.release(held)


async def _read_back(spool: Spool) -> AsyncIterator[Page]:
    pages = spool.pages()
    while page := await _in_file_thread(next, pages, None):
        yield page


async def _ended(writer: Encoder) -> bytes:
    """Return the end of a file, made in a thread where it is long."""
    return await _in_file_thread(writer.end) if writer.kept else writer.end()


async def _encoded(
    writer: Encoder, pages: AsyncIterator[Page | GzipPart], size: int, context: RequestContext
) -> AsyncIterator[_Piece]:
    """Yield the pieces of a result, of at least ``size`` bytes unless it is short or slow."""
    waiting, length, sent = [writer.begin()], 0, time.monotonic()
    enough = _WHOLE
    async with closing(pages):
        async for page in pages:
            if isinstance(page, GzipPart):
                held = len(page.blocks)
                hold_answer(context, held)
                yield _Piece(b"".join(waiting), part=page)
                waiting, length, sent, enough = [], 0, time.monotonic(), size
                context.release(held)
                continue
            held = sum(map(len, page)) + _LINE * len(page)
            hold_answer(context, held)
            async for piece in _written(writer, page, context):
                waiting.append(piece)
                length += len(piece)
                if length >= enough:
                    hold_answer(context, length)
                    joined, waiting = b"".join(waiting), []
                    yield _Piece(joined)
                    del joined
                    context.release(length)
                    length, sent, enough = 0, time.monotonic(), size
            context.release(held)
            if time.monotonic() - sent > _UNSENT_TIME:
                yield _Piece(b"".join(waiting))
                waiting, length, sent, enough = [], 0, time.monotonic(), size
    yield _Piece(b"".join([*waiting, await _ended(writer)]), is_last=True)


async def _written(writer: Encoder, page: Page, context: RequestContext) -> AsyncIterator[bytes]:
    """Yield a page in pieces, written on demand: in some formats, it takes many times the bytes of the records.

    The maximum bytes during writing are counted: text, bytes, and both joined.
    """
    if not writer.decodes:
        for piece in written(writer, page):
            yield piece
        return
    for part in blocks(page, _LONG, _RUN):
        size = sum(map(len, part))
        taken = _COPIES * (writer.growth * size + writer.columns * len(part))
        hold_answer(context, taken)
        # A thread leaves the event loop to other requests.
        if writer.kept:
            piece = await _in_file_thread(writer.page, part)
        else:
            piece = await in_data_thread(writer.page, part) if size > _LONG // 4 else writer.page(part)
        context.release(taken)
        yield piece


async def _from(
    piece: _Piece | None, rest: AsyncIterator[_Piece], preparing: AbstractAsyncContextManager[None]
) -> AsyncIterator[_Piece]:
    try:
        async with closing(rest):
            while piece is not None:
                yield piece
                async with preparing:
                    piece = await anext(rest, None)
    except Exception as error:
        # The response ends without its last chunk, so the client reports a broken connection.
        logger.error("A result broke off: %s", error)
        raise


async def _uncompressed(pieces: AsyncIterator[_Piece]) -> AsyncIterator[bytes]:
    async with closing(pieces):
        async for piece in pieces:
            yield piece.data


async def _compressed(pieces: AsyncIterator[_Piece]) -> AsyncIterator[bytes | memoryview]:
    frame = GzipFrame()

    def begin(piece: _Piece) -> asyncio.Future[Sequence[bytes | memoryview]]:
        if piece.data:
            frame.add(piece.data)
        if piece.part is not None:
            frame.join(piece.part.crc, piece.part.length)
            if not piece.data:
                ready: asyncio.Future[Sequence[bytes | memoryview]] = asyncio.get_running_loop().create_future()
                ready.set_result([piece.part.blocks])
                return ready
        return in_thread(_blocks_of, piece)

    yield frame.head
    # Compression takes most of the time, so several pieces are compressed at once, in threads.
    async with closing(ahead(pieces, begin, _COMPRESSED_AHEAD)) as parts:
        async for part in parts:
            for blocks in part:
                yield blocks
    yield frame.tail


def _blocks_of(piece: _Piece) -> Sequence[bytes | memoryview]:
    return [deflated(piece.data)] if piece.part is None else [deflated(piece.data), piece.part.blocks]


def compress_whole(response: Response) -> None:
    """Compress an answer of one piece. The contract has no exception for short ones, which are stored in a gzip frame
    uncompressed at almost no cost."""
    body = bytes(response.body)
    if not body or "content-encoding" in response.headers or response.media_type in _COMPRESSED:
        return
    response.body = gzipped(body, shorten=len(body) >= _MIN_GZIP)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(response.body))
    response.headers.setdefault("Vary", "Accept-Encoding")


def accepts_gzip(call: Call) -> bool:
    codings = call.header(b"accept-encoding")
    return codings is not None and is_gzip_among(codings)


def is_gzip_among(codings: str) -> bool:
    """Return whether an ``Accept-Encoding`` header allows gzip."""
    for part in codings.lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def name_file(call: Call, answer: Response) -> None:
    """Name the file of an answer that is not made of records as ``saveas`` says, if the call has it."""
    if answer.status_code == HTTPStatus.OK and "content-disposition" not in answer.headers:
        answer.headers.update(_named_file(call))


def _named_file(call: Call) -> dict[str, str]:
    name = call.query.get("saveas")
    if not name:
        return {}
    if not re.fullmatch(r"[\w.\-]{1,255}", name, re.ASCII):
        raise refused("saveas", "must be letters, digits, '_', '-' or '.'", "Choose a plain file name.")
    return {"Content-Disposition": f"Attachment; filename={name}"}


def _attachment(call: Call, kind: Format) -> dict[str, str]:
    named = _named_file(call)
    if not named and kind in FILE_FORMATS:
        return {"Content-Disposition": f"Attachment; filename={_file_name(call, kind)}"}
    return named


def _file_name(call: Call, kind: Format) -> str:
    """Return a name made of the path: ``items-1-2-3.parquet``."""
    return re.sub(r"[^A-Za-z0-9_\-]+", "_", "-".join(call.parts))[:200] + f".{kind.value}"


def with_meta(line: bytes, members: Sequence[tuple[str, str | int]], *, first: bool = False) -> bytes:
    """Return a JSON object with further members, after its own or before them."""
    added = b",".join(_encode(name) + b":" + _encode(value) for name, value in members)
    if not added:
        return line
    inner = line.strip()[1:-1].strip()
    parts = [part for part in ((added, inner) if first else (inner, added)) if part]
    return b"{" + b",".join(parts) + b"}"
