"""Compression with either library: what one writes, any program reads."""

from __future__ import annotations

import gzip
import importlib.util
import random
import sys
import zlib
from types import ModuleType
from typing import Any

import pytest

from scrapy_ext.api import compression as installed

chance = random.Random(1)
#: Around the lengths of the pieces in which data is inflated.
LENGTHS = (0, 1, 1000, 120 * 1024 - 1, 120 * 1024, 1_100_000)
DATA = [data for n in LENGTHS for data in (chance.randbytes(n), b"x" * n, chance.randbytes(n // 2).hex().encode())]


@pytest.fixture(params=["isal", "zlib"])
def deflate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module with this library; it takes zlib where the other is not installed."""
    if request.param == "isal":
        return installed
    monkeypatch.setitem(sys.modules, "isal", None)
    assert installed.__spec__ is not None
    assert installed.__spec__.origin is not None
    spec = importlib.util.spec_from_file_location("deflate_by_zlib", installed.__spec__.origin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_packed_is_unpacked_and_a_part_of_it_is_damaged(deflate: Any) -> None:
    for data in DATA:
        for packed in (deflate.pack(data), gzip.compress(data, 1), gzip.compress(data, 9)):
            assert b"".join(deflate.unpack(packed)) == data
            for end in (0, 2, len(packed) // 2, len(packed) - 1):
                with pytest.raises(deflate.DamagedError):
                    deflate.unpack(packed[:end])


def test_a_stream_is_inflated_however_it_comes(deflate: Any) -> None:
    for data in DATA:
        packed = gzip.compress(data, 1)
        inflater = deflate.Inflater(len(data))
        steps = [packed[at : at + 30_011] for at in range(0, len(packed), 30_011)]
        assert b"".join(piece for step in steps for piece in inflater.feed(step)) == data
        inflater.end()
        assert inflater.is_one_gzip


def test_the_end_of_the_blocks_of_a_stream_is_found(deflate: Any) -> None:
    for data in DATA:
        for packed, is_joinable in ((deflate.gzip(data), True), (gzip.compress(data, 1), False)):
            inflater = deflate.Inflater(len(data), finds_joinable=True)
            found = b"".join([*inflater.feed(packed), *inflater.rest()])
            inflater.end()
            assert (found, inflater.is_joinable, inflater.is_one_gzip) == (data, is_joinable, True)


def test_parts_that_are_compressed_alone_are_one_gzip_stream(deflate: Any) -> None:
    for data in DATA:
        parts = [data[at : at + 100_000] for at in range(0, len(data), 100_000)]
        frame = deflate.GzipFrame()
        for part in parts:
            frame.add(part)
        whole = frame.head + b"".join(map(deflate.deflated, parts)) + frame.tail
        inflater = zlib.decompressobj(31)
        assert inflater.decompress(whole) == data
        assert inflater.eof
        assert not inflater.unused_data
        assert gzip.decompress(deflate.gzip(data)) == data


def test_a_body_of_many_short_members_comes_in_few_pieces(deflate: Any) -> None:
    sent = gzip.compress(b"ab", mtime=0) * 50_000 + gzip.compress(b"", mtime=0) * 10_000
    inflater = deflate.Inflater(100_000)
    pieces = [piece for at in range(0, len(sent), 10_007) for piece in inflater.feed(sent[at : at + 10_007])]
    inflater.end()
    assert b"".join(pieces) == b"ab" * 50_000
    assert len(pieces) < 200
    assert max(map(len, pieces)) <= 136 * 1024
    with pytest.raises(deflate.SizeLimitError):
        list(deflate.Inflater(99_999).feed(sent))


def test_pieces_of_long_and_short_members_come_in_their_order(deflate: Any) -> None:
    long = chance.randbytes(1_000_000)
    inflater = deflate.Inflater(3_000_000)
    sent = b"".join(map(gzip.compress, (b"a", long, b"b", long, b"", b"c")))
    assert b"".join(inflater.feed(sent)) == b"a" + long + b"b" + long + b"c"
    inflater.end()
