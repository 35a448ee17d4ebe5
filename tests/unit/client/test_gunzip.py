"""Answers that are compressed, in pieces that are few and not long."""

from __future__ import annotations

import gzip

from scrapy_ext.client.gunzip import Gunzip


def test_an_answer_of_many_short_members_comes_in_few_pieces() -> None:
    sent = gzip.compress(b"ab", mtime=0) * 50_000 + gzip.compress(b"", mtime=0) * 10_000
    gunzip = Gunzip()
    pieces = [piece for at in range(0, len(sent), 10_007) for piece in gunzip.feed(sent[at : at + 10_007])]
    assert b"".join(pieces) == b"ab" * 50_000
    assert gunzip.complete
    assert len(pieces) < 200
    assert max(map(len, pieces)) <= Gunzip.PIECE + Gunzip.LEAST


def test_pieces_of_a_long_member_come_in_their_order_with_those_of_short_ones() -> None:
    long = bytes(range(256)) * 4096
    sent = b"".join(map(gzip.compress, (b"a", long, b"b", long, b"", b"c")))
    gunzip = Gunzip()
    assert b"".join(gunzip.feed(sent)) == b"a" + long + b"b" + long + b"c"
    assert gunzip.complete
