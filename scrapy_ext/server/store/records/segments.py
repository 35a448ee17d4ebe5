"""Segments of a stored chunk: runs of lines that were stored at the same time.

A chunk written at once is one segment. One merged from small writes has several, and a column beside the body with
their lengths and times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.compression import pack_lines
from scrapy_ext.server.store.records.chunks import MAX_BYTES, MAX_LINES, damaged, unpack_lines

_encode: Final = msgspec.msgpack.Encoder().encode
#: Pairs of a number of lines and the milliseconds since the chunk's time.
_Times = list[tuple[int, int]]
_decode: Final = msgspec.msgpack.Decoder(_Times).decode


class Segment(NamedTuple):
    """Consecutive lines stored at the same time (ms)."""

    ts: int
    lines: list[bytes]


class StoredChunk(NamedTuple):
    """The columns of a chunk from its index on: ``records, ts, times, body``."""

    records: int
    ts: int
    times: bytes | None
    body: bytes


def unpack_segments(ts: int, times: bytes | None, body: bytes) -> list[Segment]:
    """Return the segments of a row; raise :class:`StoreError` when it is damaged."""
    lines = unpack_lines(body)
    if times is None:
        return [Segment(ts, lines)]
    segments, at = [], 0
    for length, later in _read_times(times):
        segments.append(Segment(ts + later, lines[at : at + length]))
        at += length
    if at != len(lines):
        raise damaged(f"it has {len(lines)} lines, and the times of {at}")
    return segments


def _read_times(times: bytes) -> _Times:
    try:
        return _decode(times)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(error) from None


def time_at(ts: int, times: bytes | None, place: int) -> int:
    """Return the time when a line of a row was stored; raise :class:`StoreError` when the row is damaged."""
    for length, later in _read_times(times) if times is not None else ():
        if place < length:
            return ts + later
        place -= length
    return ts


def growth(ts: int, times: bytes | None, records: int) -> Iterator[tuple[int, int]]:
    """Yield the times (ms) when a row was stored, with the number of its lines then; raise :class:`StoreError` when it
    is damaged."""
    number = 0
    for length, later in _read_times(times) if times is not None else ((records, 0),):
        number += length
        yield ts + later, number


def pack_segments(segments: Sequence[Segment]) -> StoredChunk:
    lines = [line for segment in segments for line in segment.lines]
    ts = segments[0].ts
    same = all(segment.ts == ts for segment in segments)
    times = None if same else _encode([(len(segment.lines), segment.ts - ts) for segment in _joined(segments)])
    return StoredChunk(len(lines), ts, times, pack_lines(b"\n".join([*lines, b""])))


def length(segments: Sequence[Segment]) -> int:
    """Return the number of lines."""
    return sum(len(segment.lines) for segment in segments)


def cut(segments: Sequence[Segment], low: int, high: int) -> list[Segment]:
    """Return the lines ``low`` to ``high - 1``."""
    parts, at = [], 0
    for ts, lines in segments:
        if part := lines[max(low - at, 0) : max(high - at, 0)]:
            parts.append(Segment(ts, part))
        at += len(lines)
    return parts


def split(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield the lines in parts that fit a chunk."""
    low, size = 0, 0
    total = length(segments)
    for place, line in enumerate(line for segment in segments for line in segment.lines):
        if place > low and (place - low == MAX_LINES or size + len(line) > MAX_BYTES):
            yield cut(segments, low, place)
            low, size = place, 0
        size += len(line)
    yield cut(segments, low, total)


def _joined(segments: Sequence[Segment]) -> list[Segment]:
    """Join neighbours of the same time."""
    joined: list[Segment] = []
    for segment in segments:
        if joined and joined[-1].ts == segment.ts:
            joined[-1] = Segment(segment.ts, joined[-1].lines + segment.lines)
        else:
            joined.append(segment)
    return joined
