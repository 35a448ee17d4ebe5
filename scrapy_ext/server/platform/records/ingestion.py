"""Records of jobs on their way in: checked and packed as they come, so that a body is never held.

Each block of lines is decoded in one go, which is what most bodies need. Where anything is unusual in a block, its
lines are looked at one by one: that finds the line that is to blame, and takes what is only laid out in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec
from starlette.requests import Request

from scrapy_ext.api.json_decoder import LONG, decoder
from scrapy_ext.api.platform.records import DEFAULT_METHOD, MAX_ITEM_BYTES, LogRecord, RequestRecord, too_large
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.http import bodies
from scrapy_ext.server.platform.records.homogeneous import Shapes
from scrapy_ext.server.store.records.chunks import MAX_BYTES, Packer, Record, RecordChunk, RecordKind

_ENDS: Final = itemgetter(0, -1)


class Form:
    """What a record of a kind must be: a JSON object, of a certain type if there is one, or an array.

    ``defaults`` are written into the records of a type that lack them.
    """

    def __init__(
        self,
        noun: str,
        remedy: str,
        *,
        type: type | None = None,
        defaults: Mapping[str, str] | None = None,
        array: bool = False,
        shapes: bool = False,
    ) -> None:
        #: Whether records count under their fields and have the size that :class:`Shapes` gives.
        self.has_shapes = shapes
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
        """Whether each line begins as a record begins, ends as one ends, and is not too long."""
        try:
            return set(map(_ENDS, block.lines)) == self._ends and max(map(len, block.lines)) <= MAX_ITEM_BYTES
        except IndexError:  # a blank line
            return False

    def records(self, block: bodies.Block, *, plain: bool) -> tuple[Sequence[bytes], Sequence[Record]]:
        """The lines of a block that are not blank, and what they decode to; raises ``ContractError``."""
        lines, records = self._read(block, plain=plain)
        for name, value in self._defaults.items():
            if not all(name in record for record in records):
                member = msgspec.json.encode({name: value})[1:]
                pairs = zip(lines, records, strict=True)
                lines = [line if name in record else line.rstrip()[:-1] + b"," + member for line, record in pairs]
                records = [{name: value} | record for record in records]
        return lines, records

    def _read(self, block: bodies.Block, *, plain: bool) -> tuple[Sequence[bytes], Sequence[Record]]:
        # Where lines are plain, no record goes over a line break: no string holds one, and nowhere else does a
        # record's last character come before its first. As many records as lines: one on each.
        if plain:
            try:
                records = self._decode_lines(block.data)
                if self._check_lines is not None:
                    self._check_lines(block.data)
                if len(records) == len(block.lines):
                    return block.lines, records
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # the same again below, where the line is known
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
            raise bodies.not_json(place, self._noun, error) from None
        if self._check is not None:
            try:
                self._check(line)
            except msgspec.ValidationError as error:
                raise ContractError([Violation(place, f"is not {self._noun}: {error}", self._remedy)]) from None
        return record


ITEM: Final = Form("a JSON object", "Send one JSON object per line.", shapes=True)
REQUEST: Final = Form(
    "a request record",
    "Send time, url, status, duration and rs, and method unless it is GET.",
    type=RequestRecord,
    defaults={"method": DEFAULT_METHOD},
)
LOG: Final = Form("a log record", "Send time (ms), level and message.", type=LogRecord)
SAMPLE: Final = Form("a JSON array", "Send one JSON array per line, which begins with a time (ms).", array=True)


async def packed(request: Request, form: Form, kind: RecordKind) -> list[RecordChunk]:
    """The records of a body, checked and compressed; raises ``ContractError`` and :class:`Refusal`."""
    packer, chunks = Packer(kind), list[RecordChunk]()
    copy, shapes = bodies.Copy(MAX_BYTES), Shapes()
    as_sent = True

    def pack(block: bodies.Block) -> int:
        nonlocal as_sent
        held = packer.held
        plain = form.plain(block)
        alike = plain and form.has_shapes and len(block.data) < LONG
        if alike and (sizes := shapes.sizes(block.lines)) is not None:
            full = packer.add_alike(block.lines, shapes.names, sizes, block.data)
        else:
            lines, records = form.records(block, plain=plain)
            whole = lines is block.lines
            as_sent = as_sent and whole
            full = packer.add(lines, records, block.data if whole else None)
            if form.has_shapes:
                shapes.learn(records)
        chunks.extend(full)
        return packer.held - held + sum(chunk.held for chunk in full)

    await bodies.each_block(request, pack, bodies.MAX_RECORDS_BODY, copy)
    # What was sent compressed and is one chunk is stored as it was sent.
    rest = packer.rest(copy.data if as_sent and not chunks else None)
    return chunks if rest is None else [*chunks, rest]
