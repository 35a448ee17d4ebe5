"""Gzip streams that are joined without being inflated."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import Any

import pytest

from scrapy_ext.api import compression
from scrapy_ext.api.compression import DamagedError, GzipFrame, Inflater, joinable, pack_lines, part_of, unmarked

chance = random.Random(1)
TEXTS = [b"a\n", b'{"n": 1}\n' * 3000, chance.randbytes(300_000).hex().encode() + b"\n", b"x" * 1_000_000 + b"\n"]


def _inflated(stream: bytes, step: int) -> tuple[bytes, Inflater]:
    inflater = Inflater(10_000_000, finds_joinable=True)
    pieces = [piece for at in range(0, len(stream), step) for piece in inflater.feed(stream[at : at + step])]
    pieces += inflater.rest()
    inflater.end()
    return b"".join(pieces), inflater


def _joined(streams: list[bytes]) -> bytes:
    frame, sent = GzipFrame(), [GzipFrame.head]
    for stream in streams:
        part = part_of(stream)
        assert part is not None
        frame.join(part.crc, part.length)
        sent.append(bytes(part.blocks))
    return b"".join([*sent, frame.tail])


def _one_member(stream: bytes) -> bytes:
    inflater = zlib.decompressobj(31)
    text = inflater.decompress(stream)
    assert inflater.eof
    assert not inflater.unused_data
    return text


@pytest.mark.parametrize("step", [1, 7, 10, 14, 15, 65_536])
def test_what_clients_of_the_package_send_is_joined_as_it_is(step: int) -> None:
    texts = TEXTS[:2] if step < 1000 else TEXTS
    stored = []
    for text in texts:
        for sent in (text, text[:-1]):
            found, inflater = _inflated(compression.gzip(sent), step)
            assert found == sent
            assert inflater.is_joinable
            assert inflater.is_one_gzip
            stored += [joinable(compression.gzip(sent), ends_line=inflater.ends_line), pack_lines(text)]
    assert all(gzip.decompress(one).endswith(b"\n") for one in stored)
    assert _one_member(_joined(stored)) == b"".join(text for text in texts for _ in range(4))


@pytest.mark.parametrize("step", [3, 65_536])
def test_other_streams_are_inflated_and_not_joined(step: int) -> None:
    text = TEXTS[1]
    for stream in (gzip.compress(text, 1), gzip.compress(text, 9), gzip.compress(text, 0), zlib.compress(text)):
        found, inflater = _inflated(stream, step)
        assert (found, inflater.is_joinable) == (text, False)
        assert part_of(stream) is None
    # Two members, of which the last one is joinable.
    found, inflater = _inflated(compression.gzip(text) * 2, step)
    assert (found, inflater.is_joinable, inflater.is_one_gzip) == (text * 2, False, False)


def test_a_mark_of_the_sender_is_removed() -> None:
    text, mark = TEXTS[1], pack_lines(b"\n")[:10]
    forged = mark + gzip.compress(text)[10:]
    assert part_of(forged) is not None
    assert part_of(unmarked(forged)) is None
    assert gzip.decompress(unmarked(forged)) == text
    assert unmarked(gzip.compress(text)) == gzip.compress(text)


def test_an_end_that_only_looks_like_that_of_blocks_is_refused() -> None:
    """A stored block may hold the bytes of the end of a joinable stream, so that it seems to end before its end."""
    text = b"a" * 20 + b"\x00\x00\xff\xff"
    # The last block is as long as the text and the two bytes of an empty last block.
    inside = text + b"\x03\x00"
    stream = gzip.compress(inside, 0)
    assert stream[-14:-8] == b"\x00\x00\xff\xff\x03\x00"
    with pytest.raises(DamagedError):
        _inflated(stream, 1000)


@pytest.mark.parametrize("place", [-1, -5])
def test_a_wrong_sum_of_a_joinable_stream_is_damage(place: int) -> None:
    stream = bytearray(compression.gzip(TEXTS[1]))
    stream[place] ^= 1
    with pytest.raises(DamagedError):
        _inflated(bytes(stream), 1000)


def test_checksums_are_combined_without_the_library() -> None:
    combine: Any = compression._combine
    for length in (0, 1, 7, 255, 4096, 1_000_003):
        one, other = chance.randbytes(100), chance.randbytes(length)
        assert combine(zlib.crc32(one), zlib.crc32(other), length) == zlib.crc32(one + other)
