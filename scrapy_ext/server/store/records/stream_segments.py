"""Segments of a stream: runs of its records that follow one another in the job.

A row of ``record_streams`` has one segment, or many in ``packed``: MessagePack of the numbers ``records, gap, records,
gap …``. A segment begins in the stream at the end of the one before, and ``gap`` records of others after it in the job.
So most take some four bytes. The first one follows from the row, and its gap is 0.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.errors import StoreError

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[int]).decode


class StreamSegment(NamedTuple):
    """The records from ``start`` on of a stream, which are those from ``place`` on of the job."""

    start: int
    place: int
    records: int

    @property
    def end(self) -> int:
        return self.start + self.records

    def clipped(self, low: int, high: int) -> StreamSegment:
        """Return the part with the records ``low`` to ``high - 1`` of the stream."""
        start, end = max(self.start, low), min(self.end, high)
        return StreamSegment(start, self.place + start - self.start, end - start)


class StreamRow(NamedTuple):
    """A row: the first segment's ``start`` and ``place``, the ``records`` of all, and ``packed`` if there are many."""

    start: int
    place: int
    records: int
    packed: bytes | None = None

    def segments(self) -> list[StreamSegment]:
        """Return its segments; raise :class:`StoreError` when it is damaged."""
        if self.packed is None:
            return [StreamSegment(self.start, self.place, self.records)]
        found, start, place = list[StreamSegment](), self.start, self.place
        lengths, gaps = _unpacked(self.packed, self.records)
        for records, gap in zip(lengths, gaps, strict=True):
            place += gap
            found.append(StreamSegment(start, place, records))
            start += records
            place += records
        return found

    def place_of(self, index: int) -> int:
        """Return the index in the job of one of its records; raise :class:`StoreError` when it is damaged."""
        offset = index - self.start
        if self.packed is None:
            return self.place + offset
        # Without an object for each segment: a write looks for many parents.
        lengths, gaps = _unpacked(self.packed, self.records)
        segment = bisect_right([*accumulate(lengths)], offset)
        return self.place + offset + sum(gaps[: segment + 1])


def packed_row(segments: Sequence[StreamSegment]) -> StreamRow:
    """Return the row of segments that adjoin one another in their stream."""
    numbers, end = list[int](), segments[0].place
    for segment in segments:
        numbers += segment.records, segment.place - end
        end = segment.place + segment.records
    first = segments[0]
    return StreamRow(first.start, first.place, segments[-1].end - first.start, _encode(numbers))


def _unpacked(packed: bytes, records: int) -> tuple[list[int], list[int]]:
    """Return the lengths of segments of so many records, and the gaps before them."""
    try:
        numbers = _decode(packed)
    except msgspec.MsgspecError as error:
        raise StoreError(f"The segments of a stream are damaged: {error}. Restore a backup.") from error
    lengths, gaps = numbers[::2], numbers[1::2]
    if len(lengths) != len(gaps) or sum(lengths) != records:
        raise StoreError(
            f"The segments of a stream are damaged: they have {sum(lengths)} records, not {records}. Restore a backup."
        )
    return lengths, gaps
