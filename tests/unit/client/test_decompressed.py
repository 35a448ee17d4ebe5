"""Answers that are compressed, in pieces that are few and not long."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable

import pytest

from scrapy_ext.client.http import decompressed
from scrapy_ext.client.http1 import AnswerError

#: Bytes of a piece at most.
PIECE = 256 * 1024


async def pieces(sent: bytes, step: int) -> list[bytes]:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(sent), step):
            yield sent[at : at + step]

    return [piece async for piece in decompressed(chunks())]


async def test_an_answer_of_many_short_members_comes_in_few_pieces() -> None:
    sent = gzip.compress(b"ab", mtime=0) * 50_000 + gzip.compress(b"", mtime=0) * 10_000
    found = await pieces(sent, 10_007)
    assert b"".join(found) == b"ab" * 50_000
    assert len(found) < 200
    assert max(map(len, found)) <= PIECE


async def test_pieces_of_a_long_member_come_in_their_order_with_those_of_short_ones() -> None:
    long = bytes(range(256)) * 4096
    sent = b"".join(map(gzip.compress, (b"a", long, b"b", long, b"", b"c")))
    assert b"".join(await pieces(sent, len(sent))) == b"a" + long + b"b" + long + b"c"


async def test_an_answer_without_a_body_is_empty() -> None:
    assert await pieces(b"", 1) == []


@pytest.mark.parametrize("harm", [lambda sent: sent[:-1], lambda sent: sent + b"x", lambda sent: b"x" + sent])
async def test_an_answer_that_is_damaged_or_cut_off_is_an_error(harm: Callable[[bytes], bytes]) -> None:
    with pytest.raises(AnswerError):
        await pieces(harm(gzip.compress(b"abc")), 5)
