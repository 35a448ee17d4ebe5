"""A worker's lease, by the age of its newest record and by what other processes wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ext.crawl.frontier import workers
from scrapy_ext.crawl.frontier.workers import Leases

NOW = 1000.0


@pytest.mark.parametrize(
    ("is_fenced", "age", "has_lapsed"),
    [(False, 0.0, False), (False, 30.0, False), (False, 30.1, True), (True, 0.0, True)],
)
def test_a_lease_is_held_until_it_lapses_or_is_fenced(
    monkeypatch: pytest.MonkeyPatch, is_fenced: bool, age: float, has_lapsed: bool
) -> None:
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: NOW))
    log = SimpleNamespace(is_fenced=is_fenced, written=NOW - age)
    ownership: Any = SimpleNamespace(log=log)

    async def ignore(_slots: set[int]) -> None: ...

    leases = Leases(ownership, 5, 30.0, on_change=ignore, on_lost=print)
    assert leases.has_lapsed is has_lapsed
