"""Places of a job's workers on nodes: placing, bounds, and the load that changes their number, on each engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scrapy_ext.api.platform.feeding import Feed
from scrapy_ext.api.platform.job_data import frontier_of
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.permits import DomainReport
from scrapy_ext.api.platform.worker_bounds import Bounds
from scrapy_ext.api.platform.workers import Queue, Report, ReportAnswer
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from tests.support.stores import Clock

Look = Callable[[str], Any]


async def join(store: Store, name: str, units: int) -> None:
    await store.nodes.join(StoredNode(name, "host", units, frozenset(), 1, 1, 1, draining=False))


async def add(store: Store, workers: str | None = None, **metadata: Any) -> JobKey:
    given = metadata if workers is None else {"job_workers": workers, **metadata}
    (key,) = await store.jobs.add(1, [NewJob("spider", JobState.PENDING, given)], "tests")
    assert isinstance(key, JobKey)
    return key


async def placed(store: Store) -> list[tuple[JobKey, int]]:
    return [(attempt.key, attempt.number) for attempt in await store.attempts.place()]


async def workers(store: Store, key: JobKey) -> list[tuple[int, int, str]]:
    """Worker number, attempt and node of each worker."""
    return [(row.worker, row.attempt, row.node) for row in await store.groups.listed(key)]


async def vacant(look: Look) -> list[int]:
    return [row[0] for row in await look("SELECT vacant FROM jobs ORDER BY job")]


async def report(store: Store, key: JobKey, attempt: int, number: int = 1, **fields: Any) -> ReportAnswer:
    return await store.groups.report(key, Report(job=str(key), attempt=attempt, number=number, **fields))


async def state(store: Store, key: JobKey) -> str:
    job = await store.jobs.get(key)
    assert job is not None
    return job.state.value


@pytest.mark.parametrize("text", [None, "1", "many", 7])
async def test_a_job_of_one_worker_has_no_group(store: Store, look: Look, text: Any) -> None:
    await join(store, "a", 4)
    key = await add(store, text)
    assert await placed(store) == [(key, 1)]
    assert await look("SELECT * FROM worker_groups") == []
    assert await vacant(look) == [0]


async def test_the_workers_of_a_job_are_on_all_nodes(store: Store) -> None:
    await join(store, "a", 3)
    await join(store, "b", 2)
    key = await add(store, "4")
    assert await placed(store) == [(key, 1), (key, 2), (key, 3), (key, 4)]
    found = await workers(store, key)
    assert [each[:2] for each in found] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert sorted(node for _, _, node in found) == ["a", "a", "b", "b"]


async def test_a_job_begins_with_the_places_that_there_are(store: Store, look: Look) -> None:
    await join(store, "a", 2)
    key = await add(store, "4..8")
    assert len(await placed(store)) == 2
    assert (await state(store, key), await vacant(look)) == ("running", [2])
    await join(store, "b", 4)
    assert await placed(store) == [(key, 3), (key, 4)]
    assert await vacant(look) == [0]


async def test_each_worker_uses_the_units_of_the_job(store: Store) -> None:
    await join(store, "a", 5)
    key = await add(store, "4", units=2)
    assert len(await placed(store)) == 2
    (node,) = await store.nodes.listed()
    assert (node.used, node.free) == (4, 1)
    assert len(await workers(store, key)) == 2


async def test_places_and_pending_jobs_rank_by_priority_and_age(store: Store) -> None:
    await join(store, "a", 1)
    group = await add(store, "3")
    assert await placed(store) == [(group, 1)]
    younger = await add(store)
    urgent = await add(store, priority=4)
    await join(store, "b", 3)
    assert await placed(store) == [(urgent, 1), (group, 2), (group, 3)]
    await join(store, "c", 1)
    assert await placed(store) == [(younger, 1)]


async def test_a_project_with_the_maximum_of_jobs_gets_workers_for_them(store: Store) -> None:
    await store.projects.merge(1, {"max_running": b"1"})
    await join(store, "a", 8)
    group = await add(store, "3")
    await add(store)
    assert await placed(store) == [(group, 1), (group, 2), (group, 3)]


async def test_a_drained_worker_is_replaced_at_its_number_and_is_no_loss(store: Store, look: Look) -> None:
    await join(store, "a", 3)
    key = await add(store, "3")
    await placed(store)
    await store.attempts.give_back(Attempt(key, 2))
    assert await vacant(look) == [1]
    assert await placed(store) == [(key, 4)]
    assert [each[:2] for each in await workers(store, key)] == [(0, 1), (1, 4), (2, 3)]
    assert await look("SELECT losses FROM worker_groups") == [(0,)]


async def test_a_dead_node_leaves_places_for_others_while_a_worker_lives(store: Store, look: Look) -> None:
    await join(store, "a", 2)
    await join(store, "b", 1)
    key = await add(store, "3")
    await placed(store)
    assert len(await store.attempts.release_jobs("a", 1, 5)) == 2
    assert (await state(store, key), await vacant(look)) == ("running", [2])
    assert await look("SELECT losses FROM worker_groups") == [(2,)]
    await join(store, "c", 2)
    assert len(await placed(store)) == 2


async def test_a_job_without_a_worker_waits_and_begins_anew_with_other_attempts(store: Store, look: Look) -> None:
    await join(store, "a", 2)
    key = await add(store, "2")
    await placed(store)
    await store.attempts.release_jobs("a", 1, 5)
    assert (await state(store, key), await vacant(look)) == ("pending", [0])
    await join(store, "b", 1)
    assert await placed(store) == [(key, 3)]
    assert await vacant(look) == [1]
    assert await look("SELECT losses FROM worker_groups") == [(2,)]


async def test_nobody_fills_the_places_of_a_job_that_closes(store: Store, look: Look) -> None:
    await join(store, "a", 1)
    stopped, key = await add(store, "2", priority=4), await add(store)
    assert await placed(store) == [(stopped, 1)]
    await store.jobs.cancel(1, [stopped], "tests")
    await join(store, "b", 1)
    assert await placed(store) == []  # which finds that there is no place any more
    assert await placed(store) == [(key, 1)]
    assert await vacant(look) == [0, 0]


async def test_a_worker_that_a_node_stops_closes_the_crawl_for_no_other(store: Store) -> None:
    await join(store, "a", 2)
    key = await add(store, "2")
    await placed(store)
    await report(store, key, 1, closing="shutdown")
    assert (await report(store, key, 2)).closing is None
    await report(store, key, 1, number=2, closing="closespider_itemcount")
    closing = (await report(store, key, 2, number=2)).closing
    assert closing is not None
    assert closing.reason == "closespider_itemcount"


async def test_a_worker_of_a_node_joins_as_the_attempt_that_it_is(store: Store) -> None:
    await join(store, "a", 2)
    key = await add(store, "2")
    await placed(store)
    for _ in range(2):  # the answer was lost
        answer = await report(store, key, 2, nonce="0" * 32, workers="2")
        assert (answer.attempt, answer.worker) == (2, 1)


# ── bounds ──


async def test_fewer_workers_are_reached_by_those_with_the_highest_numbers(store: Store, look: Look) -> None:
    await join(store, "a", 4)
    key = await add(store, "4")
    await placed(store)
    await store.groups.set_bounds(key, Bounds(2, 2))
    leaves = [(await report(store, key, attempt)).leave for attempt in (1, 2, 3, 4)]
    assert leaves == [False, False, True, True]
    for attempt in (3, 4):
        await report(store, key, attempt, number=2, last=True, outcome="shutdown")
        await store.attempts.end(Attempt(key, attempt), None)
    assert (await state(store, key), await vacant(look)) == ("running", [0])
    job = await store.jobs.get(key)
    assert job is not None
    assert job.metadata["job_workers"] == "2"


async def test_more_workers_are_placed(store: Store, look: Look) -> None:
    await join(store, "a", 4)
    key = await add(store, "2")
    await placed(store)
    await store.groups.set_bounds(key, Bounds(3, 8))
    assert await vacant(look) == [1]
    assert await placed(store) == [(key, 3)]


async def test_more_workers_than_the_frontier_has_slots_are_refused(store: Store) -> None:
    await join(store, "a", 4)
    key = await add(store, "2")
    await placed(store)
    await store.feeds.declare(key.project, frontier_of(key), Feed(slots=8))
    with pytest.raises(ContractError, match=r"frontier of 8 slots.*9 are too many"):
        await store.groups.set_bounds(key, Bounds(3, 9))
    await store.groups.set_bounds(key, Bounds(3, 8))


async def test_a_pending_job_gets_other_bounds(store: Store) -> None:
    key = await add(store)
    await store.groups.set_bounds(key, Bounds(2, 2))
    await join(store, "a", 4)
    assert await placed(store) == [(key, 1), (key, 2)]


async def test_the_bounds_of_other_jobs_are_refused(store: Store) -> None:
    await join(store, "a", 1)
    key = await add(store)
    await placed(store)
    with pytest.raises(ContractError, match="no node can add workers"):
        await store.groups.set_bounds(key, Bounds(2, 2))
    await store.attempts.end(Attempt(key, 1), "finished")
    with pytest.raises(ContractError, match="is finished"):
        await store.groups.set_bounds(key, Bounds(2, 2))
    with pytest.raises(ContractError, match="does not exist"):
        await store.groups.set_bounds(JobKey(1, 1, 99), Bounds(2, 2))


# ── load ──


async def test_busy_workers_get_another_one_and_idle_ones_lose_one(store: Store, clock: Clock, look: Look) -> None:
    await join(store, "a", 4)
    key = await add(store, "1..4")
    assert await placed(store) == [(key, 1)]
    for number in range(1, 18):
        await report(store, key, 1, number=number, queue=Queue(memory=9, more=True))
        clock.now += 2000
    assert await vacant(look) == [1]
    assert await placed(store) == [(key, 2)]
    await report(store, key, 2, queue=Queue())
    for number in range(2, 30):
        clock.now += 2000
        await report(store, key, 1, number=16 + number, queue=Queue(memory=1, idle=1.4))
        leaves = (await report(store, key, 2, number=number, queue=Queue(idle=2.0))).leave
        if leaves:
            break
    assert leaves
    assert number > 10


@pytest.mark.parametrize(
    ("domains", "places"),
    [
        ([(8, 300, 8, 0)], 0),
        ([(64, 300, 4, 0)], 1),
        ([(8, 300, 8, 0), (8, 1, 1, 0)], 0),
        ([(8, 300, 8, 0), (8, 300, 2, 0)], 1),
        ([(8, 2, 1, 500)], 0),
        ([], 1),
    ],
    ids=[
        "one at its limit",
        "one with many that wait and few open",
        "another one without requests that wait",
        "another one below its limit",
        "one with a delay",
        "none",
    ],
)
async def test_busy_workers_get_no_other_one_while_the_limits_of_all_domains_are_used(
    store: Store, clock: Clock, look: Look, domains: list[tuple[int, int, int, int]], places: int
) -> None:
    await join(store, "a", 4)
    key = await add(store, "1..4")
    assert await placed(store) == [(key, 1)]
    reported = {
        f"{place}.example": DomainReport(limit=limit, want=want, held=requests, open=requests, delay=delay)
        for place, (limit, want, requests, delay) in enumerate(domains)
    }
    for number in range(1, 18):
        await report(store, key, 1, number=number, queue=Queue(memory=9, more=True), domains=reported)
        clock.now += 2000
    assert await vacant(look) == [places]
