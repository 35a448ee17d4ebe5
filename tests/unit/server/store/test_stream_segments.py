"""Segments of a stream that are packed into one row."""

from __future__ import annotations

import random

import msgspec
import pytest

from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.records.stream_segments import StreamRow, StreamSegment, packed_row


def adjoining(drawn: random.Random) -> list[StreamSegment]:
    """Segments of a stream, with records of others between them."""
    segments, start, place = list[StreamSegment](), drawn.randrange(2**40), drawn.randrange(2**50)
    for _ in range(drawn.randrange(1, 20)):
        records, gap = drawn.choice([1, drawn.randrange(1, 2000)]), drawn.choice([0, 3, 300, 2**40])
        segments.append(StreamSegment(start, place, records))
        start, place = start + records, place + records + gap
    return segments


@pytest.mark.parametrize("seed", range(20))
def test_each_record_has_the_place_that_it_had(seed: int) -> None:
    segments = adjoining(random.Random(seed))
    row = packed_row(segments)
    assert (row.start, row.place, row.start + row.records) == (segments[0].start, segments[0].place, segments[-1].end)
    assert row.segments() == segments
    for segment in segments:
        for index in (segment.start, segment.start + segment.records // 2, segment.end - 1):
            assert row.place_of(index) == segment.place + index - segment.start


def test_a_segment_takes_some_four_bytes() -> None:
    # 32 workers with some 20 records each in turn.
    segments = [StreamSegment(20 * number, 640 * number, 20) for number in range(128)]
    packed = packed_row(segments).packed
    assert packed is not None
    assert len(packed) < 4.1 * len(segments)


@pytest.mark.parametrize("packed", [b"", b"\xc1", msgspec.msgpack.encode([3]), msgspec.msgpack.encode([3, 0, 2, 7])])
def test_a_damaged_row_is_an_error(packed: bytes) -> None:
    row = StreamRow(10, 20, 4, packed)
    with pytest.raises(StoreError, match="segments of a stream"):
        row.segments()
    with pytest.raises(StoreError, match="segments of a stream"):
        row.place_of(13)
