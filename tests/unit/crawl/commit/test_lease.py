"""A worker's lease, by the age of its newest record and by what other processes wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ext.crawl.commit import journal
from scrapy_ext.crawl.commit.events import Checkpoint
from scrapy_ext.crawl.commit.journal import CommitLog, Place

NOW = 1000.0


@pytest.mark.parametrize(
    ("is_fenced", "age", "has_lapsed"),
    [(False, 0.0, False), (False, 30.0, False), (False, 30.1, True), (True, 0.0, True)],
)
def test_a_lease_is_held_until_it_lapses_or_is_fenced(
    monkeypatch: pytest.MonkeyPatch, is_fenced: bool, age: float, has_lapsed: bool
) -> None:
    monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: NOW))
    unused: Any = SimpleNamespace(place=Place(7, "frontier", "commits-a"))
    log = CommitLog(unused, 1, Checkpoint())
    log.is_fenced, log.written = is_fenced, NOW - age
    assert log.has_lapsed(30.0) is has_lapsed
