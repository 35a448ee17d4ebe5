"""Content codings, undone: every one that is accepted, in every state that it comes in."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest

from scrapy_ext.server.extraction.http import bodies
from scrapy_ext.server.extraction.http.bodies import CodingError, CutShortError, OverLimitError, undo
from scrapy_ext.server.extraction.outgoing import ACCEPTED

TEXT = bytes(random.Random(1).choices(b"abcdefgh <>", k=100_000))
MIB = 1024 * 1024


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "the old name of gzip": ("X-GZip", gzip.compress),
    "deflate as the standard has it": ("deflate", zlib.compress),
    "deflate as some servers have it": ("deflate", bare_deflate),
    "brotli": ("br", brotli.compress),
    "zstd": ("zstd", bodies.zstd.compress),
}
every = pytest.mark.parametrize(("name", "coder"), CODERS.values(), ids=CODERS)


def test_all_that_is_asked_for_is_understood() -> None:
    assert ACCEPTED == "gzip, deflate, br, zstd"
    assert {name for name, _ in CODERS.values()} >= set(ACCEPTED.split(", "))


@every
def test_a_body_comes_back(name: str, coder: Callable[[bytes], bytes]) -> None:
    for data in (TEXT, b"", b"x"):
        assert undo(coder(data), name, len(TEXT)) == data
    assert undo(b"", name, 1) == b""  # of an answer to HEAD, say


@every
def test_of_a_body_that_is_cut_short_the_result_is_what_can_be_decoded(
    name: str, coder: Callable[[bytes], bytes]
) -> None:
    data = bytes(random.Random(2).choices(TEXT, k=500_000))  # Zstandard decodes in blocks of 128 KiB.
    coded = coder(data)
    for left in (len(coded) * 9 // 10, len(coded) - 5, len(coded) - 1):
        decoded = undo(coded[:left], name, len(data))
        assert decoded
        assert data.startswith(decoded)


@every
def test_a_body_that_is_cut_short_before_anything_can_be_decoded_is_no_result(
    name: str, coder: Callable[[bytes], bytes]
) -> None:
    coded = coder(TEXT)
    for left in (1, 2, 10):
        with pytest.raises(CutShortError):
            undo(coded[:left], name, len(TEXT))


def test_a_wrong_checksum_is_no_reason_to_lose_a_body() -> None:
    coded = gzip.compress(TEXT)
    assert undo(coded[:-8] + b"\0" * 8, "gzip", len(TEXT)) == TEXT
    with pytest.raises(OverLimitError):
        undo(coded[:-8] + b"\0" * 8, "gzip", len(TEXT) - 1)


@every
def test_the_size_that_counts_is_that_of_the_result(name: str, coder: Callable[[bytes], bytes]) -> None:
    with pytest.raises(OverLimitError):
        undo(coder(TEXT), name, len(TEXT) - 1)


@every
def test_a_bomb_takes_no_more_memory_than_a_page_may(name: str, coder: Callable[[bytes], bytes]) -> None:
    bomb = coder(bytes(8 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(OverLimitError):
            undo(bomb, name, MIB)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


@every
def test_what_is_no_such_coding_does_not_decode(name: str, coder: Callable[[bytes], bytes]) -> None:
    for junk in (b"<html>plain</html>", b"\xff\x00" * 100):
        with pytest.raises(CodingError):
            undo(junk, name, MIB)


def test_codings_are_undone_in_the_order_opposite_to_that_in_which_they_were_applied() -> None:
    assert undo(brotli.compress(gzip.compress(TEXT)), "gzip , BR", len(TEXT)) == TEXT
    assert undo(gzip.compress(gzip.compress(TEXT)), "gzip, identity, gzip", len(TEXT)) == TEXT
    with pytest.raises(CodingError):
        undo(TEXT, ", ".join(["gzip"] * 5), len(TEXT))
    with pytest.raises(OverLimitError):  # a bomb in a small parcel
        undo(gzip.compress(gzip.compress(bytes(8 * MIB))), "gzip, gzip", MIB)


def test_an_unknown_coding_is_left_with_all_below_it() -> None:
    coded = gzip.compress(TEXT)
    assert undo(coded, "gzip, exi", len(TEXT)) == coded
    assert undo(gzip.compress(b"packed"), "exi, gzip", 100) == b"packed"


def test_several_streams_are_one_body_and_what_is_none_is_thrown_away() -> None:
    assert undo(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", 2) == b"ab"
    assert undo(bodies.zstd.compress(b"a") + bodies.zstd.compress(b"b"), "zstd", 2) == b"ab"
    assert undo(gzip.compress(TEXT) + b"\0" * 512, "gzip", len(TEXT)) == TEXT
    assert undo(gzip.compress(b"a") + gzip.compress(b"b")[:-4], "gzip", 2) == b"ab"


def test_a_window_larger_than_the_standard_has_is_not_opened() -> None:
    parameters = {bodies.zstd.CompressionParameter.window_log: 27}
    coded = bodies.zstd.compress(random.Random(1).randbytes(9 * MIB), options=parameters)
    with pytest.raises(CodingError):
        undo(coded, "zstd", 16 * MIB)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_body_of_many_short_members_takes_time_and_memory_for_its_bytes_only(name: str) -> None:
    packed = gzip.compress(b"ab", mtime=0) if name == "gzip" else bodies.zstd.compress(b"ab")
    tracemalloc.start()
    try:
        assert undo(packed * 40_000, name, MIB) == b"ab" * 40_000
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()
    with pytest.raises(OverLimitError):
        undo(packed * 1000, name, 1999)
    with pytest.raises(CodingError):  # a million would take a minute
        undo(packed * 100_001, name, MIB)
