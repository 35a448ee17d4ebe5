"""Ingestion of jobs' records: checked and packed block by block, so that no body is held in memory.

A block of lines is decoded in one step, which suits most bodies. The lines of an unusual block are decoded one by one,
to find the invalid line, or to accept a different layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request

from scrapy_ext.api.json_decoder import LONG, decoder
from scrapy_ext.api.platform.records import (
    DEFAULT_METHOD,
    MAX_ITEM_BYTES,
    LogRecord,
    RequestRecord,
    StreamRequestRecord,
    too_large,
)
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.http import bodies, json_bodies
from scrapy_ext.server.store.records.chunks import ITEMS, MAX_BYTES, Packer, Record, RecordChunk, RecordKind

T = TypeVar("T")

#: The first and the last byte of a line before its line break.
_ENDS: Final = itemgetter(0, -2)
#: Maximum fields of a type; the decoder searches them one by one, which is too slow for more.
_MAX_FIELDS: Final = 200
#: Cached types; generating one takes longer than decoding a block.
_CACHED: Final = 64
#: Records that are measured at once.
_GROUP: Final = 32
#: Errors of a line with other fields, or of an invalid one.
_OTHER: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)

_encode: Final = msgspec.msgpack.Encoder().encode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class HomogeneousRecords:
    """Check of homogeneous records: most bodies have objects that all have the same fields, which is cheaper to check.

    A type that is generated for these fields decodes a line and verifies in one step that it has exactly these, so that
    only the size remains to count. A block with any other line is checked like every other block.
    """

    def __init__(self) -> None:
        #: The common fields; empty when unknown or different.
        self.names: tuple[str, ...] = ()
        self._given_up = False

    def size(self, lines: Sequence[bytes]) -> int | None:
        """Return the size of the records of these lines in stats; None when any has other fields."""
        return self._measured(lines, _total)

    def sizes(self, lines: Sequence[bytes]) -> list[int] | None:
        """Return the size of each of these records; None when any has other fields."""
        return self._measured(lines, _each)

    def _measured(self, lines: Sequence[bytes], measure: Callable[[Iterator[Record]], T]) -> T | None:
        if self._given_up:
            return None
        known = bool(self.names)
        names = self.names or _fields_of(lines[0])
        # The fields of the first line are a guess, which is worth a generated type only if that exists already.
        decode = _DECODERS.made(names) if known else _DECODERS.found(names)
        if decode is not None:
            try:
                found = measure(map(decode, lines))
            except _OTHER:
                pass
            else:
                self.names = names
                return found
        if known:  # the rest of the body is probably as mixed
            self.names, self._given_up = (), True
        return None

    def learn(self, records: Sequence[Record]) -> None:
        """Record the common fields of these decoded objects, if they have the same."""
        if self._given_up or not records:
            return
        fields = records[0].keys()
        if len(fields) <= _MAX_FIELDS and all(record.keys() == fields for record in records):
            self.names = tuple(fields)
        else:
            self._given_up = True


def _each(records: Iterator[Record]) -> list[int]:
    # Each record is freed before the next is created, so that their memory stays in the processor's cache.
    return list(map(len, map(_encode, records)))


def _total(records: Iterator[Record]) -> int:
    # One call for some records takes less time than one each, and their memory still fits the cache.
    size = 0
    while group := list(islice(records, _GROUP)):
        size += ITEMS.size(group)
    return size


def _fields_of(line: bytes) -> tuple[str, ...]:
    try:
        return tuple(_fields(line))
    except _OTHER:
        return ()


class _Decoders:
    """The decoders of objects with exactly some fields, of the fields that were used last."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], Callable[[bytes], Any] | None] = {}

    def found(self, names: tuple[str, ...]) -> Callable[[bytes], Any] | None:
        """Return the decoder of objects with these fields if it was generated before."""
        return self._found.get(names)

    def made(self, names: tuple[str, ...]) -> Callable[[bytes], Any] | None:
        """Return the decoder of objects with these fields; None if no type can have them."""
        if names not in self._found:
            if len(self._found) >= _CACHED:
                del self._found[next(iter(self._found))]
            self._found[names] = _decoder(names)
        return self._found[names]


_DECODERS: Final = _Decoders()


def _decoder(names: tuple[str, ...]) -> Callable[[bytes], Any] | None:
    rename = {f"f{place}": name for place, name in enumerate(names)}
    try:
        shape = msgspec.defstruct(
            "Shape", [(field, Any) for field in rename], rename=rename, forbid_unknown_fields=True, gc=False
        )
    except ValueError:  # a name with a quote or a control character
        return None
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(shape)
    return decoder.decode


class RecordChecker:
    """Decoder and checker of one kind of records: JSON objects, of a ``type`` if given, or arrays.

    ``defaults`` are added to records that lack them. ``homogeneous`` records count under their fields and have the size
    that :class:`HomogeneousRecords` returns.
    """

    def __init__(
        self,
        noun: str,
        remedy: str,
        *,
        type: type | None = None,
        defaults: Mapping[str, str] | None = None,
        array: bool = False,
        homogeneous: bool = False,
    ) -> None:
        self.homogeneous = homogeneous
        self._noun = noun
        self._remedy = remedy
        self._defaults = defaults or {}
        #: The first and the last byte of a record.
        self._ends = {tuple(b"[]" if array else b"{}")}
        each: Any = list[Any] if array else dict[str, Any]
        self._decode = decoder(each)
        self._decode_lines = decoder(each, lines=True)
        self._check: Callable[[bytes], Any] | None = None
        self._check_lines: Callable[[bytes], Any] | None = None
        if type is not None:
            checker: msgspec.json.Decoder[Any] = msgspec.json.Decoder(type)
            self._check, self._check_lines = checker.decode, checker.decode_lines

    def plain(self, block: bodies.Block) -> bool:
        """Return true when each line has the first and last character of a record, and none can be too long."""
        if block.ends_blank or len(block.data) > MAX_ITEM_BYTES:
            return False
        *others, last = block.ended
        try:
            return {(last[0], last[-1]), *map(_ENDS, others)} == self._ends
        except IndexError:  # a blank line
            return False

    def records(self, block: bodies.Block, *, plain: bool) -> tuple[Sequence[bytes], Sequence[Record]]:
        """Return the lines of a block that are not blank, and their values; raises ``ContractError``."""
        lines, records = self._read(block, plain=plain)
        for name, value in self._defaults.items():
            if not all(name in record for record in records):
                member = msgspec.json.encode({name: value})[1:]
                pairs = zip(lines, records, strict=True)
                lines = [line if name in record else line.rstrip()[:-1] + b"," + member for line, record in pairs]
                records = [{name: value} | record for record in records]
        return lines, records

    def _read(self, block: bodies.Block, *, plain: bool) -> tuple[Sequence[bytes], Sequence[Record]]:
        # In plain lines, no record spans a line break: no string contains one, and nowhere else does a record's last
        # character precede its first. So equal numbers of records and lines mean one record per line.
        if plain:
            try:
                records = self._decode_lines(block.data)
                if self._check_lines is not None:
                    self._check_lines(block.data)
                if len(records) == block.count:
                    return block.lines, records
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # raised again below, with the line
        return self._one_by_one(block)

    def _one_by_one(self, block: bodies.Block) -> tuple[Sequence[bytes], Sequence[Record]]:
        lines, records = [], []
        for number, line in enumerate(block.lines, block.first):
            stripped = line.strip()
            if stripped:
                records.append(self._record(stripped, f"line {number}"))
                lines.append(stripped)
        return lines, records

    def _record(self, line: bytes, place: str) -> Record:
        if len(line) > MAX_ITEM_BYTES:
            raise ContractError([too_large(place, len(line))])
        try:
            record = self._decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise json_bodies.not_json(place, self._noun, error, line) from None
        if self._check is not None:
            try:
                self._check(line)
            except msgspec.ValidationError as error:
                raise ContractError([Violation(place, f"is not {self._noun}: {error}", self._remedy)]) from None
        return record


ITEM: Final = RecordChecker("a JSON object", "Send one JSON object per line.", homogeneous=True)
REQUEST: Final = RecordChecker(
    "a request record",
    "Send time, url, status, duration and rs, and method unless it is GET.",
    type=RequestRecord,
    defaults={"method": DEFAULT_METHOD},
)
STREAM_REQUEST: Final = RecordChecker(
    "a request record",
    "Send time, url, status, duration and rs, and a parent as its index in the job or as writer:index.",
    type=StreamRequestRecord,
    defaults={"method": DEFAULT_METHOD},
)
LOG: Final = RecordChecker("a log record", "Send time (ms), level and message.", type=LogRecord)
SAMPLE: Final = RecordChecker(
    "a JSON array", "Send one JSON array per line, which begins with a time (ms).", array=True
)


async def packed(request: Request, checker: RecordChecker, kind: RecordKind) -> list[RecordChunk]:
    """Return the records of a body, checked and compressed; raises ``ContractError`` and :class:`Refusal`."""
    packer, chunks = Packer(kind), list[RecordChunk]()
    copy, fields = bodies.Copy(MAX_BYTES), HomogeneousRecords()
    as_sent = True

    def pack(block: bodies.Block) -> int:
        nonlocal as_sent
        held = packer.held
        plain = checker.plain(block)
        alike = plain and checker.homogeneous and len(block.data) < LONG
        fits = alike and packer.fits(block.count, block.data)
        full: Sequence[RecordChunk] = ()
        if fits and (total := fields.size(block.ended)) is not None:
            packer.add_whole(block.count, fields.names, total, block.data)
        elif alike and not fits and (sizes := fields.sizes(block.ended)) is not None:
            full = packer.add_alike(block.lines, fields.names, sizes, block.data)
        else:
            lines, records = checker.records(block, plain=plain)
            whole = lines is block.lines
            as_sent = as_sent and whole
            full = packer.add(lines, records, block.data if whole else None)
            if checker.homogeneous:
                fields.learn(records)
        chunks.extend(full)
        return packer.held - held + sum(chunk.held for chunk in full)

    await bodies.each_block(request, pack, bodies.MAX_RECORDS_BODY, copy)
    # A compressed body that makes one chunk is stored as sent.
    rest = packer.rest(copy.data if as_sent and not chunks else None)
    return chunks if rest is None else [*chunks, rest]
