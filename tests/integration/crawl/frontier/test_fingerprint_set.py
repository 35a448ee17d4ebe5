"""The set of fingerprints does what a Python set does, in less memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet


def test_an_empty_set_and_a_small_one_are_small() -> None:
    assert not FingerprintSet()
    assert b"x" * 20 not in FingerprintSet()
    empty, thousand = resident(0, 1_000)
    assert thousand - empty < 2**20


@pytest.mark.full
def test_twenty_million_take_25_bytes_each_at_the_rate_of_the_second_million() -> None:
    """By resident memory, which what the allocator wastes is part of."""
    empty, one, two = resident(0, 1_000_000, 2_000_000)
    at_twenty = two - empty + 18 * (two - one)
    assert at_twenty / 20_000_000 <= 25, f"{at_twenty / 20_000_000:.1f} bytes"
    assert (two - empty) / 2_000_000 <= 32


_MEASURE = """
import os
import sys

from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet

packed = FingerprintSet()
for count in map(int, sys.argv[1:]):
    while len(packed) < count:
        # Few at once, so that they leave no memory behind that counts.
        piece = os.urandom(20 * min(1000, count - len(packed)))
        for start in range(0, len(piece), 20):
            packed.add(piece[start : start + 20])
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
"""


def resident(*counts: int) -> list[int]:
    """Bytes of resident memory of a process whose set holds so many."""
    run = [sys.executable, "-c", _MEASURE, *map(str, counts)]
    said = subprocess.run(run, check=True, capture_output=True, text=True, timeout=300).stdout
    return [int(line) for line in said.split()]
