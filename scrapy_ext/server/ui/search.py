"""Bounded search through the records of a job, continued from the returned position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.read_ahead import in_thread
from scrapy_ext.server.store.records.records import RecordStore, Slice, Span

#: Maximum records and bytes of one search.
MOST_RECORDS: Final = 100_000
MOST_BYTES: Final = 64 * 1024 * 1024

Wanted = Callable[[bytes], bool]


class Found(NamedTuple):
    """Matching records with their indexes, the first index not searched, and ``ended`` when there are no more."""

    records: list[tuple[int, bytes]]
    next: int
    ended: bool


async def search_records(store: RecordStore, key: JobKey, start: int, wanted: Wanted, count: int) -> Found:
    """Return the first ``count`` matching records from ``start`` on, within the bounds of one search."""
    found: list[tuple[int, bytes]] = []
    at, size = start, 0

    def chosen(part: Slice) -> list[tuple[int, bytes]]:
        return [(number, line) for number, line in enumerate(part.lines, part.start) if wanted(line)]

    async for part in store.scan(Span(*key), (key.spider, key.job, start), MOST_RECORDS):
        found += await in_thread(chosen, part)
        at = part.start + len(part.lines)
        size += sum(map(len, part.lines))
        if len(found) > count:
            return Found(found[:count], found[count - 1][0] + 1, ended=False)
        if size >= MOST_BYTES:
            return Found(found, at, ended=False)
    return Found(found, at, ended=at - start < MOST_RECORDS)


def with_text(text: str) -> Wanted:
    """Return a predicate for records that contain a text, ignoring case."""
    lowered = msgspec.json.encode(text)[1:-1].decode().lower()

    def wanted(line: bytes) -> bool:
        # The writer may have escaped letters differently.
        if b"\\u" in line or b"\\/" in line:
            line = msgspec.json.encode(msgspec.json.decode(line))
        return lowered in line.decode().lower()

    return wanted


class _Line(msgspec.Struct):
    level: int
    message: str


_line: Final = msgspec.json.Decoder(_Line).decode


def logged(level: int, text: str = "") -> Wanted:
    """Return a predicate for log lines of at least a level that contain a text, ignoring case."""
    lowered = text.lower()

    def wanted(line: bytes) -> bool:
        record = _line(line)
        return record.level >= level and lowered in record.message.lower()

    return wanted
