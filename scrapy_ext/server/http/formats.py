"""Results in the formats of the API (platform-api.md, Common conventions), streamed.

Records come as the JSON bytes that are stored. JSON and JSON lines pass them on as they are; the other formats decode
them one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol
from xml.sax.saxutils import escape

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from scrapy_ext.api.compression import GzipFrame, deflated
from scrapy_ext.api.compression import gzip as gzipped
from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.formats import CONTENT_TYPES, TEXT_FORMATS, CsvOptions, Format, choose, csv_options
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.request_context import Exchange
from scrapy_ext.server.store.read_ahead import READ_AHEAD, ahead, closing, in_thread

Page = Sequence[bytes]


class Text(list[bytes]):
    """A page that is JSON lines already, in pieces of any length."""


#: A result that fits is sent whole, with its length; a longer one in pieces.
_WHOLE: Final = 256 * 1024
#: Of such a piece, at least, where it is not compressed: the memory for small ones is used again and again.
_PIECE: Final = 60 * 1024
#: Bytes that a stream holds beside its page, which reads ahead (chunks, inflated and compressed pieces) or not (a chunk
#: and a piece); the part of the memory of the process up to which it may; and bytes that a line of a page takes beside
#: its own.
_READ_AHEAD: Final = 6 * 1024 * 1024
_READ: Final = 768 * 1024
_FREE: Final = 0.25
_LINE: Final = 48
#: Copies of a piece that there are while it is written.
_COPIES: Final = 4
#: Records that are written at once in formats for which they are decoded: each may become a line with thousands of
#: columns.
_RUN: Final = 500
#: Bytes of records that are written in a thread in formats for which they are decoded.
_LONG: Final = 128 * 1024
#: A result that takes longer (seconds) is sent as it comes: so it is noticed when its client goes away.
_PATIENCE: Final = 5.0
#: Pieces that are compressed while the one before them is sent.
_COMPRESSED_AHEAD: Final = 2
#: Smaller results are not worth compressing.
_MIN_GZIP: Final = 256

_FORMATS: Final = tuple(Format)
_MEDIA_TYPES: Final = {kind: f"{content_type}; charset=UTF-8" for kind, content_type in CONTENT_TYPES.items()}

_decode: Final = decoder(Any)
_encode: Final = msgspec.json.Encoder().encode
_encode_msgpack: Final = msgspec.msgpack.Encoder().encode

logger = logging.getLogger(__name__)


class Writer(Protocol):
    """Writes records in one format."""

    head: bytes
    tail: bytes
    #: Whether it decodes the records, so that large ones are long work.
    decodes: bool
    #: How many times the bytes of a record its output may have at most, and how many bytes beside these.
    growth: int
    columns: int

    def page(self, records: Page) -> bytes:
        """Some records; not called with none."""


class _JsonLines:
    head = tail = b""
    decodes = False
    growth, columns = 1, 0

    def page(self, records: Page) -> bytes:
        return b"\n".join(records) + b"\n"


class _Json:
    head, tail = b"[", b"]\n"
    decodes = False
    growth, columns = 1, 0

    def __init__(self) -> None:
        self._separator = b""

    def page(self, records: Page) -> bytes:
        separator, self._separator = self._separator, b","
        return separator + b",".join(records)


class _Text:
    """A string as it is, so that it may be more than one line; anything else as JSON."""

    head = tail = b""
    decodes = True
    growth, columns = 1, 0

    def page(self, records: Page) -> bytes:
        return b"".join(_plain(_decode(record)).encode() + b"\n" for record in records)


#: What spreadsheets take for a formula at the beginning of a cell, also in its wide forms; numbers are none.
_FORMULA: Final = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")


def _without_formula(text: str) -> str:
    """The text of a cell that no spreadsheet runs: with an apostrophe before what would be a formula (OWASP, CSV
    Injection)."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


class _Csv:
    tail = b""
    decodes = True

    def __init__(self, options: CsvOptions, *, for_people: bool) -> None:
        self._options = options
        self._for_people = for_people
        # A quote becomes two, a field may be asked for several times, and each has a separator.
        self.growth = 2 * max(Counter(options.fields).values(), default=1)
        self.columns = len(options.fields) + 2
        self._special = re.compile("[" + re.escape(options.sep + options.quote + options.escape) + "\r\n]")
        self.head = self._row(options.fields) if options.include_headers else b""

    def page(self, records: Page) -> bytes:
        return b"".join(self._row(self._cells(_decode(record))) for record in records)

    def _cells(self, record: Any) -> list[str]:
        if not isinstance(record, dict):  # the values of one field: a column of its own
            return [_plain(record)]
        return [_plain(record.get(name)) for name in self._options.fields]

    def _row(self, cells: Sequence[str]) -> bytes:
        return (self._options.sep.join(map(self._cell, cells)) + self._options.lineend).encode()

    def _cell(self, text: str) -> str:
        if self._for_people:
            text = _without_formula(text)
        if not self._special.search(text):
            return text
        quote, escape_mark = self._options.quote, self._options.escape
        if escape_mark != quote:
            text = text.replace(escape_mark, escape_mark * 2)
        return quote + text.replace(quote, escape_mark + quote) + quote


class _Xml:
    """XML-RPC's types, as the parameter of a response: what any XML-RPC library reads."""

    head = b'<?xml version="1.0" encoding="UTF-8"?>\n<params><param><value><array><data>\n'
    tail = b"</data></array></value></param></params>\n"
    decodes = True
    growth, columns = 16, 0

    def page(self, records: Page) -> bytes:
        try:
            return b"".join(f"{_xml(_decode(record))}\n".encode() for record in records)
        except RecursionError:
            raise refused("format", "xml cannot be had of records that are nested so deeply", "Use jl.") from None


#: What XML 1.0 cannot hold, not even escaped.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _xml(value: Any) -> str:
    return f"<value>{_xml_type(value)}</value>"


def _xml_type(value: Any) -> str:
    match value:
        case None:
            return "<nil/>"
        case bool():
            return f"<boolean>{int(value)}</boolean>"
        case int():
            name = "int" if -(2**31) <= value < 2**31 else "i8"
            return f"<{name}>{value}</{name}>"
        case float():
            return f"<double>{value!r}</double>"
        case str():
            return f"<string>{_xml_text(value)}</string>"
        case list():
            return f"<array><data>{''.join(map(_xml, value))}</data></array>"
        case _:
            members = (f"<member><name>{_xml_text(name)}</name>{_xml(each)}</member>" for name, each in value.items())
            return f"<struct>{''.join(members)}</struct>"


def _xml_text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text), {"\r": "&#13;"})


class _MessagePack:
    """Objects one after the other. Whole numbers that 64 bits do not hold become text: all their digits are kept."""

    head = tail = b""
    decodes = True
    growth, columns = 1, 0

    def page(self, records: Page) -> bytes:
        return b"".join(map(_as_msgpack, records))


def _as_msgpack(record: bytes) -> bytes:
    value = _decode(record)  # one at a time: a page of decoded records takes thirty times its bytes
    try:
        return _encode_msgpack(value)
    except OverflowError:
        return _encode_msgpack(_in_64_bits(value))


def _in_64_bits(value: Any) -> Any:
    match value:
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case list():
            return [_in_64_bits(each) for each in value]
        case dict():
            return {name: _in_64_bits(each) for name, each in value.items()}
        case _:
            return value


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _encode(value).decode()


def format_of(call: Call, *, msgpack: bool = False) -> Format:
    """The format that a call asks for, ``msgpack`` where it is offered; raises ``ContractError``."""
    return choose(call.query.get("format"), call.header(b"accept") or "", _FORMATS if msgpack else TEXT_FORMATS)


def _writer(call: Call, kind: Format) -> Writer:
    match kind:
        case Format.JSON:
            return _Json()
        case Format.XML:
            return _Xml()
        case Format.TEXT:
            return _Text()
        case Format.CSV:
            options = csv_options(call.query)
            if len(options.lineend) not in (1, 2):
                raise refused("lineend", "must be one or two characters", "Write lineend=%0D%0A, for example.")
            return _Csv(options, for_people=call.for_people)
        case Format.MSGPACK:
            return _MessagePack()
        case Format.JSON_LINES:
            return _JsonLines()


async def result_of(call: Call, records: Page, *, msgpack: bool = False) -> Response:
    """The answer to a read whose records are all there."""
    if sum(map(len, records)) >= _PIECE:
        return await result(call, _only(records), msgpack=msgpack)
    kind = format_of(call, msgpack=msgpack)
    writer = _writer(call, kind)
    return _whole(call, kind, b"".join([writer.head, *_pieces(writer, records), writer.tail]))


def _pieces(writer: Writer, page: Page) -> Sequence[bytes]:
    if isinstance(page, Text):
        return page
    return [writer.page(page)] if page else ()


async def _only(records: Page) -> AsyncIterator[Page]:
    yield records


def _whole(call: Call, kind: Format, data: bytes) -> Response:
    return Response(data, headers=_headers(call), media_type=_MEDIA_TYPES[kind])


def _headers(call: Call) -> dict[str, str]:
    return {"Vary": "Accept, Accept-Encoding", **_attachment(call)}


async def result(call: Call, pages: AsyncIterator[Page], *, msgpack: bool = False) -> Response:
    """The answer to a read: as one piece when it is short, else as a stream.

    What fails before the first piece is ready has a status of its own. A stream that fails later breaks off
    without its end, so that no client takes it for complete.
    """
    kind = format_of(call, msgpack=msgpack)
    headers = _headers(call)
    gzip = accepts_gzip(call)
    exchange = call.exchange
    _reserve(exchange)
    stream = _encoded(_writer(call, kind), pages, _WHOLE if gzip else _PIECE, exchange)
    making = contextlib.nullcontext() if READ_AHEAD.get() else exchange.memory.making
    async with making:
        first = await anext(stream)
    if first.is_last:  # compressed, if it is to be, as every answer of one piece is
        return _whole(call, kind, first.data)
    if call.is_head:  # which is answered without reading further
        return Response(headers=headers, media_type=_MEDIA_TYPES[kind])
    body = _from(first, stream, making)
    if gzip:
        headers["Content-Encoding"] = "gzip"
        body = _compressed(body)
    return _Stream(body, headers=headers, media_type=_MEDIA_TYPES[kind])


class _Stream(StreamingResponse):
    """A stream that ends, and what it holds, with its answer: also when its client goes away."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with closing(aiter(self.body_iterator)):
            await super().__call__(scope, receive, send)


class _Piece(NamedTuple):
    data: bytes
    is_last: bool = False


def _reserve(exchange: Exchange) -> None:
    """Count what a stream holds beside its page: more where it may read ahead, which it may while memory is free."""
    memory = exchange.memory
    is_free = memory.held + _READ_AHEAD < memory.limit * _FREE
    READ_AHEAD.set(is_free)
    hold_answer(exchange, _READ_AHEAD if is_free else _READ)


def hold_answer(exchange: Exchange, size: int) -> None:
    """Count bytes of an answer until the request ends; raises :class:`Refusal`."""
    if not exchange.hold(size):
        raise Refusal(503, "Too many large answers are under way. Try again.", {"Retry-After": "2"})


async def _encoded(writer: Writer, pages: AsyncIterator[Page], size: int, exchange: Exchange) -> AsyncIterator[_Piece]:
    """Pieces of the result, of ``size`` at least: one, and more when it is not short or takes long."""
    waiting, length, sent = [writer.head], 0, time.monotonic()
    enough = _WHOLE
    async with closing(pages):
        async for page in pages:
            held = sum(map(len, page)) + _LINE * len(page)
            hold_answer(exchange, held)
            async for piece in _written(writer, page, exchange):
                waiting.append(piece)
                length += len(piece)
                if length >= enough:
                    hold_answer(exchange, length)
                    joined, waiting = b"".join(waiting), []
                    yield _Piece(joined)
                    del joined
                    exchange.release(length)
                    length, sent, enough = 0, time.monotonic(), size
            exchange.release(held)
            if time.monotonic() - sent > _PATIENCE:
                yield _Piece(b"".join(waiting))
                waiting, length, sent, enough = [], 0, time.monotonic(), size
    yield _Piece(b"".join([*waiting, writer.tail]), is_last=True)


async def _written(writer: Writer, page: Page, exchange: Exchange) -> AsyncIterator[bytes]:
    """A page in pieces, each written when the one before it was taken: some formats take many times the records.

    What it may take while it is written counts: text, bytes, and both joined.
    """
    if not writer.decodes:
        for piece in _pieces(writer, page):
            yield piece
        return
    for part in _parts(page):
        size = sum(map(len, part))
        taken = _COPIES * (writer.growth * size + writer.columns * len(part))
        hold_answer(exchange, taken)
        # Others have their turn meanwhile.
        piece = await asyncio.to_thread(writer.page, part) if size > _LONG // 4 else writer.page(part)
        exchange.release(taken)
        yield piece


def _parts(page: Page) -> Iterator[Page]:
    """The records in runs of about as many bytes as are worth a thread, and of some hundreds at most."""
    first, length = 0, 0
    for place, record in enumerate(page):
        if place > first and (length >= _LONG or place - first >= _RUN):
            yield page[first:place]
            first, length = place, 0
        length += len(record)
    if first < len(page):
        yield page[first:]


async def _from(
    piece: _Piece | None, rest: AsyncIterator[_Piece], making: AbstractAsyncContextManager[None]
) -> AsyncIterator[bytes]:
    try:
        async with closing(rest):
            while piece is not None:
                yield piece.data
                async with making:
                    piece = await anext(rest, None)
    except Exception as error:
        # The response ends here without its last chunk: the client sees a broken connection.
        logger.error("A result broke off: %s", error)
        raise


async def _compressed(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    frame = GzipFrame()

    def begin(piece: bytes) -> asyncio.Future[bytes]:
        frame.add(piece)
        return in_thread(deflated, piece)

    yield frame.head
    # Compressing takes longer than all else: several pieces at once, each by itself, in threads.
    async with closing(ahead(pieces, begin, _COMPRESSED_AHEAD)) as parts:
        async for part in parts:
            yield part
    yield frame.tail


def compress_whole(response: Response) -> None:
    """Compress an answer of one piece. The document makes no exception for short ones: those are only wrapped, which
    costs next to nothing."""
    body = bytes(response.body)
    if not body or "content-encoding" in response.headers:
        return
    response.body = gzipped(body, shorten=len(body) >= _MIN_GZIP)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(response.body))
    response.headers.setdefault("Vary", "Accept-Encoding")


def accepts_gzip(call: Call) -> bool:
    """Whether the caller takes gzip."""
    for part in (call.header(b"accept-encoding") or "").lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _attachment(call: Call) -> dict[str, str]:
    name = call.query.get("saveas")
    if not name:
        return {}
    if not re.fullmatch(r"[\w.\-]{1,255}", name, re.ASCII):
        raise refused("saveas", "must be letters, digits, '_', '-' or '.'", "Choose a plain file name.")
    return {"Content-Disposition": f"Attachment; filename={name}"}


def with_meta(line: bytes, members: Sequence[tuple[str, str | int]], *, first: bool = False) -> bytes:
    """A JSON object with members added, after its own or before them."""
    added = b",".join(_encode(name) + b":" + _encode(value) for name, value in members)
    if not added:
        return line
    inner = line.strip()[1:-1].strip()
    parts = [part for part in ((added, inner) if first else (inner, added)) if part]
    return b"{" + b",".join(parts) + b"}"
