"""Segments of a stream that are packed into one row."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.records.stream_segments import StreamRow, StreamSegment, packed_row


@st.composite
def adjoining(draw: st.DrawFn) -> list[StreamSegment]:
    """Segments of a stream, with records of others between them."""
    segments, start, place = list[StreamSegment](), draw(st.integers(0, 2**40)), draw(st.integers(0, 2**50))
    for records, gap in draw(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 2**40)), min_size=1, max_size=20)):
        segments.append(StreamSegment(start, place, records))
        start, place = start + records, place + records + gap
    return segments


@given(adjoining(), st.data())
def test_each_record_has_the_place_that_it_had(segments: list[StreamSegment], data: st.DataObject) -> None:
    row = packed_row(segments)
    assert (row.start, row.place, row.start + row.records) == (segments[0].start, segments[0].place, segments[-1].end)
    assert row.segments() == segments
    segment = data.draw(st.sampled_from(segments))
    for index in (segment.start, segment.end - 1, data.draw(st.integers(segment.start, segment.end - 1))):
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
