"""Every input that a fuzzer is started with, and every one that it has found, once: what must hold, holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz.target import CORPUS, Target, all_targets

TARGETS = all_targets()
#: Of all files together: a corpus is for reading, too.
MOST_BYTES = 300_000


def calls_of(function: Callable[[], None]) -> int:
    """Number of functions that it calls, in Python and in C."""
    number = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return number


@pytest.mark.parametrize("found", TARGETS.values(), ids=TARGETS)
def test_what_a_parser_promises_holds_for_every_input_of_its_corpus(found: Target) -> None:
    entries = found.entries()
    assert entries
    for name, data in entries:
        found.check(data)  # whatever is imported late is there for the second time
        calls = calls_of(lambda data=data: found.check(data))
        most, each = found.calls
        assert calls <= most + each * len(data), f"{name}: {calls} calls for {len(data)} bytes"


@pytest.mark.parametrize("found", TARGETS.values(), ids=TARGETS)
@pytest.mark.long(keep=30)
def test_what_a_parser_promises_holds_for_inputs_that_are_cut_short_or_bent(found: Target) -> None:
    for _, data in found.entries():
        for at in {0, 1, len(data) // 3, len(data) // 2, max(len(data) - 1, 0)}:
            found.check(data[:at])
            found.check(data[:at] + b"\xff\x00" + data[at + 1 :])
            found.check(data[:at] + data)


def test_the_corpus_is_small_and_belongs_to_targets() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < MOST_BYTES
