"""Runs of fingerprints and the filter before them, with runs so small that merges of merges happen."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.server.store import Store, fingerprint_filter, fingerprints
from scrapy_ext.server.store.engine import Transaction
from scrapy_ext.server.store.fingerprints import runs_of
from scrapy_ext.server.store.frontier import QueuedRequest, Slot, _add

from .conftest import Where

SLOT = Slot(1, "f", "0")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "RUN", 40)
    monkeypatch.setattr(fingerprints, "FAN", 3)
    monkeypatch.setattr(fingerprint_filter, "_SMALLEST", 64)


@pytest.fixture
async def other(where: Where, store: Store) -> AsyncIterator[Store]:
    """Another process's view of the same database."""
    opened = await Store.open(where)
    yield opened
    await opened.close()


def requests(*numbers: int) -> list[QueuedRequest]:
    return [QueuedRequest(b"%05d" % n, b'["%d",0]' % n, b"%d" % n, 0) for n in numbers]


async def listed(store: Store) -> list[bytes]:
    return [fp async for page in store.frontier.fingerprints(SLOT) for fp in page]


async def test_each_fingerprint_is_new_once_whoever_adds_it(
    store: Store, other: Store, where: Where, look: Any
) -> None:
    chance, known = random.Random(5), set[int]()
    for step in range(150):
        given = [chance.randrange(4000) for _ in range(chance.randrange(1, 60))]
        # mostly one of them, so that its filter is in use, and now and then the other, so that it must not be
        chosen = other if step % 13 == 0 else store
        assert await chosen.frontier.add(SLOT, requests(*given)) == len(set(given) - known)
        known.update(given)
    expected = [b"%05d" % n for n in sorted(known)]
    assert await listed(store) == expected
    rows = await look("SELECT fp, fdata FROM frontier_fingerprints")
    assert sorted((bytes(fp), bytes(fdata)) for fp, fdata in rows) == [(fp, b"%d" % int(fp)) for fp in expected]
    ((runs,),) = await look("SELECT runs FROM frontier_slots")
    levels = [run.level for run in runs_of(bytes(runs))]
    present = {number for (number,) in await look("SELECT DISTINCT run FROM frontier_fingerprints")}
    assert present <= {run.number for run in runs_of(bytes(runs))}
    if isinstance(where, Path):
        assert max(levels) >= 2  # that merges of merges were tried
        assert len(levels) < 20
    else:
        assert levels == [0]


async def test_what_was_rolled_back_is_not_known(store: Store) -> None:
    await store.frontier.add(SLOT, requests(*range(100)))
    await store.frontier.add(SLOT, requests(*range(100, 110)))

    async def fail(tx: Transaction) -> None:
        await _add(tx, SLOT, requests(500, 501), store.frontier._filters)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the test's own
        await store._engine.write(fail)
    assert await store.frontier.add(SLOT, requests(500, 501, 99)) == 2
    assert await store.frontier.add(SLOT, requests(500, 501, 99)) == 0


async def test_a_slot_from_before_there_were_runs_is_one_run(store: Store) -> None:
    await store.frontier.add(SLOT, requests(*range(30)))

    async def as_before(tx: Transaction) -> None:
        await tx.execute("UPDATE frontier_slots SET runs = NULL, stamp = 0")

    await store._engine.write(as_before)
    for first in range(0, 400, 20):
        assert await store.frontier.add(SLOT, requests(*range(first, first + 40))) == (20 if first else 10)
    assert len(await listed(store)) == 420


async def test_filters_have_a_bound_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint_filter, "MAX_BYTES", 4096)
    slots = [Slot(1, "f", str(n)) for n in range(4)]
    for first in range(0, 3000, 50):
        for slot in slots:
            assert await store.frontier.add(slot, requests(*range(first, first + 60))) == (50 if first else 60)
    filters = store.frontier._filters._filters.values()
    assert sum(len(each._bits) for each in filters) <= 4096
