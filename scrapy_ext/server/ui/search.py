"""Looking through the records of a job for some of them: a bounded number at a time, then on from where that ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.read_ahead import in_thread
from scrapy_ext.server.store.records.records import RecordStore, Slice, Span

#: Records that one page looks through, and bytes of them.
MOST_RECORDS: Final = 100_000
MOST_BYTES: Final = 64 * 1024 * 1024

Wanted = Callable[[bytes], bool]


class Found(NamedTuple):
    """Records with their indexes, and the first index that was not looked at; ``ended``: there is none."""

    records: list[tuple[int, bytes]]
    next: int
    ended: bool


async def look_through(store: RecordStore, key: JobKey, start: int, wanted: Wanted, count: int) -> Found:
    """The first ``count`` records from ``start`` on that are wanted, as far as that takes a bounded time."""
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
    """Whether a record has this text anywhere in it, whatever its case."""
    lowered = msgspec.json.encode(text)[1:-1].decode().lower()

    def wanted(line: bytes) -> bool:
        if b"\\u" in line or b"\\/" in line:  # written otherwise than the text that is looked for
            line = msgspec.json.encode(msgspec.json.decode(line))
        return lowered in line.decode().lower()

    return wanted


class _Line(msgspec.Struct):
    level: int
    message: str


_line: Final = msgspec.json.Decoder(_Line).decode


def logged(level: int, text: str = "") -> Wanted:
    """Whether a line of a log has at least this level, and this text in it, whatever its case."""
    lowered = text.lower()

    def wanted(line: bytes) -> bool:
        record = _line(line)
        return record.level >= level and lowered in record.message.lower()

    return wanted
