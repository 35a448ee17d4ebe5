"""Runs of fingerprints and the filter before them, with runs so small that merges of merges happen."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.frontier import fingerprint_filter, fingerprint_runs, fingerprints
from scrapy_ext.server.store.frontier.fingerprint_runs import runs_of
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot, add_requests
from tests.support.stores import Where

SLOT = Slot(1, "f", "0")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "RUN", 40)
    monkeypatch.setattr(fingerprints, "FAN", 3)
    monkeypatch.setattr(fingerprints, "_STEP", 50)
    monkeypatch.setattr(fingerprints, "_LEAST_LOAD", 5)
    monkeypatch.setattr(fingerprints, "_LOAD", 3)
    monkeypatch.setattr(fingerprint_runs, "BLOCK_BYTES", 100)
    monkeypatch.setattr(fingerprint_runs, "_IN_A_BLOCK", 16)
    monkeypatch.setattr(fingerprint_runs, "_LOOK_UPS", 30)
    monkeypatch.setattr(fingerprints, "_ROWS", 4)
    monkeypatch.setattr(fingerprints, "_MOST_READ", 500)
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


async def kept(look: Any) -> dict[bytes, int]:
    """All fingerprints of the database, as they are stored, and how often: one in a row, or many."""
    found = [bytes(fp) for (fp,) in await look("SELECT fp FROM frontier_fingerprints")]
    found += [bytes(fp) for (fp,) in await look("SELECT fp FROM frontier_long_fingerprints")]
    for table in ("frontier_fingerprint_blocks", "frontier_packed_fingerprints"):
        for (fps,) in await look(f"SELECT fps FROM {table}"):
            found += bytes(fps)[1:-1].split(b"\xff")
    return dict(Counter(found))


async def data(look: Any) -> dict[bytes, bytes]:
    rows = await look("SELECT fp, fdata FROM frontier_fingerprint_data")
    assert len({fp for fp, _ in rows}) == len(rows)
    return {bytes(fp): bytes(fdata) for fp, fdata in rows}


async def test_each_fingerprint_is_new_once_whoever_adds_it(store: Store, other: Store, look: Any) -> None:
    chance, known = random.Random(5), set[int]()
    for step in range(150):
        given = [chance.randrange(4000) for _ in range(chance.randrange(1, 60))]
        # mostly one of them, so that its filter is in use, and now and then the other, so that it must not be
        chosen = other if step % 13 == 0 else store
        assert await chosen.frontier.add(SLOT, requests(*given)) == len(set(given) - known)
        known.update(given)
    expected = [b"%05d" % n for n in sorted(known)]
    assert await listed(store) == expected
    assert await kept(look) == dict.fromkeys(expected, 1)
    assert await data(look) == {fp: b"%d" % int(fp) for fp in expected}
    ((stored,),) = await look("SELECT runs FROM frontier_slots")
    runs = runs_of(bytes(stored))
    present = await look("SELECT DISTINCT run FROM frontier_packed_fingerprints")
    assert {number for (number,) in present} == {run.number for run in runs if run.size}
    assert max(run.level for run in runs) >= 2  # that merges of merges were tried
    assert len(runs) < 20
    assert sum(run.size for run in runs) == len(known)


async def test_what_was_rolled_back_is_not_known(store: Store) -> None:
    await store.frontier.add(SLOT, requests(*range(100)))
    await store.frontier.add(SLOT, requests(*range(100, 110)))

    async def fail(tx: Transaction) -> None:
        await add_requests(tx, SLOT, requests(500, 501), store.frontier.filters)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the test's own
        await store._engine.write(fail)
    assert await store.frontier.add(SLOT, requests(500, 501, 99)) == 2
    assert await store.frontier.add(SLOT, requests(500, 501, 99)) == 0


async def test_what_another_adds_is_read_and_no_new_filter_is_loaded(store: Store, other: Store) -> None:
    filters, first = [], 0
    for first in range(0, 4000, 20):
        chosen = other if first // 20 % 2 else store
        assert await chosen.frontier.add(SLOT, requests(*range(max(first - 30, 0), first + 20))) == 20
        filters.append(next(iter(chosen.frontier.filters._filters.values())))
    assert len(set(map(id, filters))) == 2
    # one that has not looked for long begins a new one
    for later in range(first + 20, first + 2020, 20):
        assert await store.frontier.add(SLOT, requests(*range(later, later + 20))) == 20
    assert await other.frontier.add(SLOT, requests(*range(7000))) == 7000 - (first + 2020)
    assert next(iter(other.frontier.filters._filters.values())) not in filters


async def test_another_may_use_the_numbers_of_runs_that_were_rolled_back(store: Store, other: Store) -> None:
    await store.frontier.add(SLOT, requests(*range(100)))
    await other.frontier.add(SLOT, requests(*range(100, 110)))

    async def fail(tx: Transaction) -> None:
        await add_requests(tx, SLOT, requests(*range(1000, 1100)), store.frontier.filters)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the test's own
        await store._engine.write(fail)
    assert await other.frontier.add(SLOT, requests(*range(2000, 2100))) == 100
    assert await store.frontier.add(SLOT, requests(*range(1000, 1100), *range(2000, 2100))) == 100


@pytest.mark.parametrize("length", [fingerprint_runs.KEY_BYTES - 5, fingerprint_runs.KEY_BYTES, 20_000])
async def test_long_fingerprints_that_begin_alike_are_known(store: Store, length: int) -> None:
    given = [
        QueuedRequest(b"x" * length + b"%05d" % n, b'["x",0]', None, 0)
        for n in random.Random(7).sample(range(900), 900)
    ]
    for first in range(0, 900, 30):
        assert await store.frontier.add(SLOT, given[max(first - 50, 0) : first + 30]) == 30
    assert await store.frontier.add(SLOT, given) == 0
    assert await listed(store) == sorted(request.fp for request in given)


async def test_a_new_filter_whose_first_addition_fails_is_not_taken_for_current(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await other.frontier.add(SLOT, requests(*range(30)))

    async def fail(*_: object) -> None:
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(fingerprints.SlotFingerprints, "_merge", fail)
        with pytest.raises(ValueError):  # noqa: PT011 - the test's own
            await store.frontier.add(SLOT, requests(1000))
    assert await other.frontier.add(SLOT, requests(*range(2000, 2100))) == 100
    assert await store.frontier.add(SLOT, requests(*range(2000, 2110))) == 10


class _Failing:
    """A transaction whose statement of this number fails."""

    def __init__(self, tx: Transaction, number: int) -> None:
        self._tx = tx
        self._left = number

    def __getattr__(self, name: str) -> Any:
        statement = getattr(self._tx, name)

        async def run(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise ValueError("the statement fails")
            return await statement(*arguments, **named)

        return run


async def test_a_failure_of_any_statement_changes_nothing(store: Store, other: Store) -> None:
    chance, known = random.Random(11), set[int]()

    async def add(tx: Transaction, given: list[QueuedRequest], number: int) -> int:
        return await add_requests(_Failing(tx, number), SLOT, given, store.frontier.filters)  # type: ignore[arg-type]

    for step in range(120):
        given = [chance.randrange(3000) for _ in range(chance.randrange(1, 50))]
        if step % 3 == 2:
            store.frontier.filters.drop((1, 1))
        with contextlib.suppress(ValueError):
            assert await store._engine.write(add, requests(*given), step % 40) == len(set(given) - known)
            known.update(given)
        chosen = other if step % 2 else store
        again = [*given, *(chance.randrange(3000) for _ in range(20))]
        assert await chosen.frontier.add(SLOT, requests(*again)) == len(set(again) - known)
        known.update(again)
    assert await listed(store) == [b"%05d" % n for n in sorted(known)]


async def test_filters_have_a_bound_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint_filter, "MAX_BYTES", 4096)
    slots = [Slot(1, "f", str(n)) for n in range(4)]
    for first in range(0, 3000, 50):
        for slot in slots:
            assert await store.frontier.add(slot, requests(*range(first, first + 60))) == (50 if first else 60)
    filters = store.frontier.filters._filters.values()
    assert sum(each.size for each in filters) <= 4096


def test_new_slots_take_no_filter_that_a_large_slot_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint_filter, "MAX_BYTES", 258 * 64)
    monkeypatch.setattr(fingerprint_filter, "_SMALL", 4 * 64)
    filters, numbers = fingerprint_filter.SlotFilters(), [b"%d" % n for n in range(8000)]
    small, large = [(2, number) for number in range(6)], [(1, number) for number in range(4)]
    chosen = {owner: filters.of(owner, 1) for owner in (*small[:2], *large)}
    for first in range(0, 8000, 10):
        for owner in large:
            assert filters.of(owner, first + 10) is chosen[owner]
            if chosen[owner].loading.loaded is not None:
                chosen[owner].load(chosen[owner].loading, [numbers[:first]], None)
            chosen[owner].add(numbers[first : first + 10])
    for owner in small:
        filters.of(owner, 1)
    assert all(filters.of(owner, 8000) is chosen[owner] for owner in large)
    sizes = [chosen[owner].size for owner in large]
    assert max(sizes) <= 4 * min(sizes)
    assert 0.6 * fingerprint_filter.MAX_BYTES < sum(sizes) < 0.9 * fingerprint_filter.MAX_BYTES


def test_large_slots_share_the_room_after_a_restart() -> None:
    filters = fingerprint_filter.SlotFilters()
    sizes = [filters.of((1, number), 25_000_000).size for number in range(4)]
    assert max(sizes) <= 2 * min(sizes)
    assert sum(sizes) <= fingerprint_filter.MAX_BYTES


async def test_a_filter_that_grows_is_asked_until_the_larger_one_knows_all() -> None:
    filters, numbers = fingerprint_filter.SlotFilters(), [b"%d" % n for n in range(3000)]
    for known in range(0, 2990, 10):
        chosen, there = filters.of((1, 1), known + 10), sorted(numbers[:known])
        after = chosen.loading.loaded
        if after is not None:  # what is there is loaded in halves
            end = None if after or not there else there[known // 2]
            chosen.load(chosen.loading, [[fp for fp in there if fp > after and (end is None or fp <= end)]], end)
        assert sorted(chosen.doubtful(numbers[:known])) == there
        chosen.add(numbers[known : known + 10])
    chosen = filters.of((1, 1), 3000)
    assert chosen.size >= 1024
    assert len(chosen.doubtful(b"other %d" % n for n in range(1000))) < 200


#: Runs of an earlier version, some being merged into one; PostgreSQL had one run, with a row for each fingerprint.
EARLIER = {
    "sqlite": b"[[9,1,0,null,true],[1,0,40,9],[2,0,40,9],[5,1,0,null,true],[4,0,80,null]]",
    "postgresql": b"[[1,0,300,null]]",
}


@pytest.mark.parametrize("runs", EARLIER.values(), ids=EARLIER)
async def test_fingerprints_of_an_earlier_version_are_known_and_stay(store: Store, look: Any, runs: bytes) -> None:
    earlier = runs_of(runs)
    long = [b"x" * 600 + b"%d" % n for n in range(10)]
    given = [*(b"%05d" % n for n in range(300)), *long]

    async def as_earlier(tx: Transaction) -> None:
        await tx.execute("INSERT INTO counters (project, name, value) VALUES (1, 'frontier slot', 1)")
        await tx.execute(
            """INSERT INTO frontier_slots (project, frontier, slot, number, last_batch, runs, stamp)
               VALUES (1, 'f', '0', 1, 0, $1, 5)""",
            runs,
        )
        for place, run in enumerate(earlier):
            fps = given[place :: len(earlier)]
            if run.packed:
                for first in range(0, len(fps), 7):
                    part = fps[first : first + 7]
                    await tx.execute(
                        """INSERT INTO frontier_fingerprint_blocks (project, slot, run, first, fps)
                           VALUES (1, 1, $1, $2, $3)""",
                        run.number,
                        part[0],
                        b"\xff" + b"\xff".join(part) + b"\xff",
                    )
            else:
                await tx.execute_many(
                    "INSERT INTO frontier_fingerprints (project, slot, run, fp) VALUES (1, 1, $1, $2)",
                    [(run.number, fp) for fp in fps],
                )

    await store._engine.write(as_earlier)
    assert await listed(store) == given
    new = [QueuedRequest(fp, b'["x",0]', None, 0) for fp in (*long, b"x" * 700)]
    assert await store.frontier.add(SLOT, new) == 1
    for first in range(0, 2000, 20):
        assert await store.frontier.add(SLOT, requests(*range(first, first + 40))) == (20 if first > 260 else 0)
    assert await listed(store) == [*(b"%05d" % n for n in range(2020)), *long, b"x" * 700]
    assert set((await kept(look)).values()) == {1}
