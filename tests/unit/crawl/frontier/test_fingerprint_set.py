"""The set of fingerprints does what a Python set does, in less memory."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator

import pytest

from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet


def hashes(rng: random.Random) -> bytes:
    """As of Scrapy."""
    return hashlib.sha1(rng.randrange(20_000).to_bytes(4, "big")).digest()


def numbers(rng: random.Random) -> bytes:
    """A fingerprinter that counts."""
    return rng.randrange(20_000).to_bytes(20, "big")


def one_tag(rng: random.Random) -> bytes:
    """All with the same last byte."""
    return rng.randrange(5_000).to_bytes(19, "big") + b"x"


def two_letters(rng: random.Random) -> bytes:
    """Many that hold each other's ends and beginnings."""
    return b"a" * rng.randrange(21) + b"b" * rng.randrange(21)


def lengths(rng: random.Random) -> bytes:
    """Of any length."""
    return rng.randbytes(2) * rng.randrange(20)


KINDS = (hashes, numbers, one_tag, two_letters, lengths)


@pytest.mark.parametrize(
    ("kind", "few"),
    [
        pytest.param(
            kind, few, marks=() if kind is hashes or few == 300 else pytest.mark.long, id=f"{kind.__name__}-{few}"
        )
        for kind in KINDS
        for few in (0, 1, 300, 2**16)
    ],
)
def test_it_says_what_a_python_set_says(kind: Callable[[random.Random], bytes], few: int) -> None:
    rng = random.Random(f"{kind.__name__} {few}")
    packed, plain = FingerprintSet(few=few), set()
    for _ in range(15_000):
        fp, other = kind(rng), kind(rng)
        assert (other in packed) == (other in plain)
        assert packed.add(fp) == (fp not in plain)
        plain.add(fp)
        assert len(packed) == len(plain)
    assert all(fp in packed and not packed.add(fp) for fp in plain)


def test_full_chunks_of_one_bucket_keep_every_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ext.crawl.frontier.fingerprint_set._BUCKETS", 1)
    stored = [hashlib.sha1(b"in %d" % number).digest() for number in range(2_000)]
    packed = FingerprintSet(few=0)
    assert all(packed.add(fp) for fp in stored)
    assert all(fp in packed for fp in stored)
    assert not any(hashlib.sha1(b"out %d" % number).digest() in packed for number in range(2_000))
    assert len(packed) == 2_000


def test_what_is_on_its_way_into_the_buckets_is_found_all_the_time() -> None:
    packed = FingerprintSet(few=1_000)
    added: list[bytes] = []
    for fp in distinct(2_000):
        assert packed.add(fp)
        added.append(fp)
        assert added[0] in packed
        assert not packed.add(added[len(added) // 2])
    assert all(fp in packed for fp in added)
    assert len(packed) == 2_000


def distinct(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield hashlib.sha1(str(number).encode()).digest()
