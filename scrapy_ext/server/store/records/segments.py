"""The inside of a stored chunk: stretches of lines, each with the time at which it was stored.

A chunk that was written at once is one stretch. One that small writes were merged into has several, and a column
beside the body with their lengths and times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.compression import pack
from scrapy_ext.server.store.records.chunks import MAX_BYTES, MAX_LINES, damaged, unpack_lines

_encode: Final = msgspec.msgpack.Encoder().encode
#: Pairs: how many lines, and how many milliseconds after the first of the chunk.
_Times = list[tuple[int, int]]
_decode: Final = msgspec.msgpack.Decoder(_Times).decode


class Stretch(NamedTuple):
    """Consecutive lines that were stored at the same time (ms)."""

    ts: int
    lines: list[bytes]


class StoredChunk(NamedTuple):
    """A chunk as a row keeps it, from its index on: ``records, ts, times, body``."""

    records: int
    ts: int
    times: bytes | None
    body: bytes


def unpack_stretches(ts: int, times: bytes | None, body: bytes) -> list[Stretch]:
    """What a row holds; raises :class:`StoreError` when it is damaged."""
    lines = unpack_lines(body)
    if times is None:
        return [Stretch(ts, lines)]
    stretches, at = [], 0
    for length, later in _read_times(times):
        stretches.append(Stretch(ts + later, lines[at : at + length]))
        at += length
    if at != len(lines):
        raise damaged(f"it has {len(lines)} lines, and the times of {at}")
    return stretches


def _read_times(times: bytes) -> _Times:
    try:
        return _decode(times)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(error) from None


def time_at(ts: int, times: bytes | None, place: int) -> int:
    """The time at which a line of a row was stored; raises :class:`StoreError` when it is damaged."""
    for length, later in _read_times(times) if times is not None else ():
        if place < length:
            return ts + later
        place -= length
    return ts


def growth(ts: int, times: bytes | None, records: int) -> Iterator[tuple[int, int]]:
    """The time (ms) at which a row was stored, and the number of its lines then; raises :class:`StoreError` when it is
    damaged."""
    number = 0
    for length, later in _read_times(times) if times is not None else ((records, 0),):
        number += length
        yield ts + later, number


def pack_stretches(stretches: Sequence[Stretch]) -> StoredChunk:
    """The row of one chunk."""
    lines = [line for stretch in stretches for line in stretch.lines]
    ts = stretches[0].ts
    same = all(stretch.ts == ts for stretch in stretches)
    times = None if same else _encode([(len(stretch.lines), stretch.ts - ts) for stretch in _joined(stretches)])
    return StoredChunk(len(lines), ts, times, pack(b"\n".join(lines)))


def length(stretches: Sequence[Stretch]) -> int:
    """How many lines they have together."""
    return sum(len(stretch.lines) for stretch in stretches)


def cut(stretches: Sequence[Stretch], low: int, high: int) -> list[Stretch]:
    """The lines ``low`` to ``high - 1``."""
    parts, at = [], 0
    for ts, lines in stretches:
        if part := lines[max(low - at, 0) : max(high - at, 0)]:
            parts.append(Stretch(ts, part))
        at += len(lines)
    return parts


def split(stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
    """The same lines in parts that may be chunks."""
    low, size = 0, 0
    total = length(stretches)
    for place, line in enumerate(line for stretch in stretches for line in stretch.lines):
        if place > low and (place - low == MAX_LINES or size + len(line) > MAX_BYTES):
            yield cut(stretches, low, place)
            low, size = place, 0
        size += len(line)
    yield cut(stretches, low, total)


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Neighbours of the same time as one."""
    joined: list[Stretch] = []
    for stretch in stretches:
        if joined and joined[-1].ts == stretch.ts:
            joined[-1] = Stretch(stretch.ts, joined[-1].lines + stretch.lines)
        else:
            joined.append(stretch)
    return joined
