"""Placing of jobs on nodes, on each engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.rows import MAX_METADATA_BYTES, StoredJob
from scrapy_ext.server.store.jobs.states import Change
from tests.support.stores import ENGINES


async def join(store: Store, name: str, units: int, *, tags: Sequence[str] = (), project: int = 1) -> None:
    await store.nodes.join(StoredNode(name, "host", units, frozenset(tags), project, 1, 1, draining=False))


async def add(store: Store, *jobs: dict[str, Any], project: int = 1) -> list[JobKey]:
    new = [NewJob("spider", JobState.PENDING, metadata) for metadata in jobs]
    return [key for key in await store.jobs.add(project, new, "tests") if isinstance(key, JobKey)]


async def placed(store: Store) -> list[JobKey]:
    """The jobs that are placed now, in their order."""
    return [attempt.key for attempt in await store.attempts.place()]


async def stored(store: Store, key: JobKey) -> StoredJob:
    job = await store.jobs.get(key)
    assert job is not None
    return job


async def node_of(store: Store, key: JobKey) -> str:
    job = await store.jobs.get(key)
    assert job is not None
    return str(job.metadata["node"])


async def test_the_highest_priority_goes_first_then_who_has_waited_longest(store: Store) -> None:
    low, first, high, second = await add(store, {"priority": 0}, {"priority": 2}, {"priority": 4}, {"priority": 2})
    await join(store, "a", 4)
    assert await placed(store) == [high, first, second, low]


async def test_a_node_has_as_many_jobs_as_units(store: Store) -> None:
    keys = await add(store, {"units": 2}, {"units": 2}, {"units": 2})
    await join(store, "a", 5)
    assert await placed(store) == keys[:2]
    assert await placed(store) == []
    await store.attempts.end(Attempt(keys[0], 1), "finished")
    assert await placed(store) == keys[2:]


async def test_jobs_go_to_the_node_with_most_room(store: Store) -> None:
    await join(store, "a", 2)
    await join(store, "b", 4)
    keys = await add(store, *[{}] * 4)
    await placed(store)
    assert [await node_of(store, key) for key in keys].count("b") == 3


async def test_a_large_job_is_not_starved_by_small_ones(store: Store) -> None:
    await join(store, "a", 3)
    small = await add(store, {}, {})
    assert await placed(store) == small
    (large,) = await add(store, {"units": 3})
    later = await add(store, {}, {})
    assert await placed(store) == [], "the free unit is kept for the large one"
    for key in small:
        await store.attempts.end(Attempt(key, 1), "finished")
    assert await placed(store) == [large]
    await store.attempts.end(Attempt(large, 1), "finished")
    assert await placed(store) == later


async def test_what_is_kept_for_a_large_job_is_on_one_node_only(store: Store) -> None:
    await join(store, "a", 3)
    await join(store, "b", 1)
    (small,) = await add(store, {})
    assert await placed(store) == [small]
    assert await node_of(store, small) == "a"
    await add(store, {"units": 3})
    (later,) = await add(store, {})
    assert await placed(store) == [later]
    assert await node_of(store, later) == "b"


async def test_jobs_that_fit_nowhere_hold_nobody_up(store: Store) -> None:
    await join(store, "a", 2, tags=["eu"])
    huge, gpu, eu, plain = await add(
        store, {"units": 6, "priority": 4}, {"node_tags": ["gpu"], "priority": 4}, {"node_tags": ["eu"]}, {}
    )
    assert await placed(store) == [eu, plain]
    await join(store, "b", 6, tags=["gpu", "eu"])
    assert await placed(store) == [huge]
    await store.attempts.end(Attempt(huge, 1), "finished")
    assert await placed(store) == [gpu]
    assert await node_of(store, gpu) == "b"


async def test_a_project_runs_no_more_jobs_than_it_may(store: Store) -> None:
    await join(store, "a", 5)
    await join(store, "b", 5, project=2)
    await store.projects.merge(1, {"max_running": b"2"})
    keys = await add(store, {"priority": 4}, {"priority": 4}, {"priority": 4})
    others = await add(store, {}, {}, project=2)
    assert sorted(await placed(store)) == sorted([*keys[:2], *others])
    await store.projects.merge(1, {"max_running": b"3"})
    assert await placed(store) == keys[2:]


@pytest.mark.parametrize("value", [b'"many"', b"[]", b"null"])
async def test_a_limit_that_is_no_number_is_none(store: Store, value: bytes) -> None:
    await join(store, "a", 5)
    await store.projects.merge(1, {"max_running": value})
    keys = await add(store, {}, {})
    assert await placed(store) == keys


async def test_jobs_without_code_wait_and_hold_nobody_up(store: Store) -> None:
    await join(store, "a", 5)
    await add(store, {"priority": 4}, project=7)
    keys = await add(store, {})
    assert await placed(store) == keys


async def test_one_whose_nodes_lack_the_code_holds_no_other_of_its_project_up(store: Store) -> None:
    await join(store, "a", 5)
    await join(store, "b", 5, tags=["gpu"], project=2)
    await add(store, {"priority": 4, "node_tags": ["gpu"]})
    keys = await add(store, {})
    assert await placed(store) == keys


async def test_many_that_fit_nowhere_hold_nobody_up(store: Store) -> None:
    await join(store, "a", 1)
    await add(store, *({"node_tags": [f"other-{number}"]} for number in range(101)))
    keys = await add(store, {})
    assert await placed(store) == keys


async def test_metadata_that_clients_have_filled_stops_no_change_of_state(store: Store) -> None:
    await join(store, "a", 5)
    full, kept = await add(store, {}, {})
    room = MAX_METADATA_BYTES
    while room > 1:  # to the last byte
        text = (await stored(store, full)).metadata.get("text", "")
        try:
            await store.jobs.merge(full, {"text": text + "x" * room})
        except ContractError:
            room //= 2
    assert await placed(store) == [full, kept]
    await store.attempts.give_back(Attempt(full, 1))
    assert await placed(store) == [full]
    assert await store.jobs.note(full, {"version": "local"})
    await store.jobs.cancel(1, [full], "tests")
    await store.attempts.end(Attempt(full, 2), None)
    assert (await stored(store, full)).metadata["close_reason"] == "failed"
    assert await store.jobs.delete(1, [full], "tests") == 1


@pytest.mark.parametrize(
    ("said", "seen", "reason"),
    [
        ("finished", "killed by SIGSEGV", "finished"),
        ("no_more_products", "shutdown", "no_more_products"),
        ("shutdown", "timed out", "timed out"),
        ("shutdown", None, "shutdown"),
        (None, "killed by SIGKILL", "killed by SIGKILL"),
        (None, None, "failed"),
    ],
)
async def test_what_a_crawl_says_of_its_end_counts_unless_it_was_asked_to(
    store: Store, said: str | None, seen: str | None, reason: str
) -> None:
    await join(store, "a", 1)
    (key,) = await add(store, {})
    (attempt,) = await store.attempts.place()
    if said is not None:
        await store.attempts.said(attempt, said)
    await store.attempts.end(attempt, seen)
    assert (await stored(store, key)).metadata["close_reason"] == reason


async def test_each_step_is_reported_once_and_that_a_job_waits_again(store: Store) -> None:
    await join(store, "a", 1)
    await add(store, {})
    (attempt,) = await store.attempts.place()
    await store.attempts.give_back(attempt)
    (again,) = await store.attempts.place()
    assert not await store.attempts.give_back(attempt), "it is over"
    await store.attempts.end(again, "finished")
    messages = await store.activity.page(1, MAX_NUMBER, 10)
    events = [msgspec.json.decode(message.event)["event"] for message in reversed(messages)]
    steps = ["scheduled", "started", "interrupted", "started", "completed"]
    assert events == [f"job:{step}" for step in steps]


async def test_a_job_that_others_have_finished_is_not_begun_again_beside_its_process(store: Store) -> None:
    await join(store, "a", 1)
    (key,) = await add(store, {})
    (attempt,) = await store.attempts.place()
    await store.jobs.change(1, [Change(key, JobState.FINISHED, {})], "tests")
    with pytest.raises(ContractError, match="its process has not ended yet"):
        await store.jobs.change(1, [Change(key, JobState.RUNNING, {})], "tests")
    await store.attempts.end(attempt, "shutdown")
    await store.jobs.change(1, [Change(key, JobState.RUNNING, {})], "tests")
    assert (await stored(store, key)).state is JobState.RUNNING


async def test_a_node_that_drains_gets_nothing(store: Store) -> None:
    await join(store, "a", 5)
    await store.nodes.drain("a")
    await add(store, {})
    assert await placed(store) == []


async def test_one_that_comes_back_goes_before_those_that_were_scheduled_later(store: Store) -> None:
    await join(store, "a", 1)
    first, second = await add(store, {}, {})
    assert await placed(store) == [first]
    await store.attempts.give_back(Attempt(first, 1))
    assert await placed(store) == [first]
    assert await store.attempts.numbers(first) == [2]
    await store.attempts.end(Attempt(first, 2), None)
    assert await placed(store) == [second]


async def test_a_script_whose_node_is_lost_is_not_run_again(store: Store) -> None:
    await join(store, "a", 2)
    (key,) = [
        key
        for key in await store.jobs.add(1, [NewJob("py:once.py", JobState.PENDING, {})], "tests")
        if isinstance(key, JobKey)
    ]
    assert await placed(store) == [key]
    assert await store.attempts.release_jobs("a", 1, 5) == [Attempt(key, 1)]
    job = await store.jobs.get(key)
    assert job is not None
    assert (job.state, job.metadata["close_reason"]) == (JobState.FINISHED, "node_lost")


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_the_next_of_many_is_found_without_looking_at_the_others(
    store: Store, look: Callable[[str], Any], where: Path | DatabaseUrl
) -> None:
    """The index gives the jobs in their order: no plan sorts, or goes through all of them."""
    await add(store, *[{"priority": n % 5} for n in range(2000)])
    # Otherwise the plan depends on whether PostgreSQL has counted the jobs by itself, and when.
    await store._engine.write(lambda tx: tx.execute("ANALYZE"))
    head = """SELECT priority, since, project, queued, spider, job FROM jobs
              WHERE state = 'pending' AND node_tags = '[]' AND units = 1
              ORDER BY priority DESC, since, project, queued LIMIT 1"""
    units = """SELECT node_tags, units FROM jobs WHERE state = 'pending' AND node_tags = '[]' AND units > 1
               ORDER BY units LIMIT 1"""
    tags = """SELECT node_tags, units FROM jobs WHERE state = 'pending' AND node_tags > '[]'
              ORDER BY node_tags, units LIMIT 1"""
    for query, sought in ((head, "node_tags=? AND units=?"), (units, "node_tags=? AND units>?"), (tags, "node_tags>?")):
        rows = await look(f"EXPLAIN {'QUERY PLAN ' if isinstance(where, Path) else ''}{query}")
        plan = " ".join(str(row) for row in rows)
        assert sought in plan or isinstance(where, DatabaseUrl)
        assert "jobs_to_place" in plan
        assert "Sort" not in plan
        assert "TEMP B-TREE" not in plan
