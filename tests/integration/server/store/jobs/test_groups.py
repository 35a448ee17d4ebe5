"""Groups whose workers run on nodes: the ends of their processes, losses, and the end of the job, on each engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.permits import MOST_DOMAINS, MOST_STARTS, BudgetReport, DomainReport
from scrapy_ext.api.platform.stat_kinds import Stat, StatKind
from scrapy_ext.api.platform.worker_bounds import Bounds
from scrapy_ext.api.platform.workers import Report, ReportAnswer, Silent
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from tests.support.stores import Clock

Change = Callable[[str], Any]
Look = Callable[[str], Any]


@pytest.fixture
async def job(store: Store) -> JobKey:
    """A job with workers 0 to 2 on node ``a``, whose attempts are 1 to 3."""
    await store.nodes.join(StoredNode("a", "host", 6, frozenset(), 1, 1, 1, draining=False))
    (key,) = await store.jobs.add(1, [NewJob("spider", JobState.PENDING, {"job_workers": "3"})], "tests")
    assert isinstance(key, JobKey)
    assert [attempt.number for attempt in await store.attempts.place()] == [1, 2, 3]
    return key


async def report(store: Store, key: JobKey, attempt: int, number: int = 1, **fields: Any) -> ReportAnswer:
    return await store.groups.report(key, Report(job=str(key), attempt=attempt, number=number, **fields))


async def state(store: Store, key: JobKey) -> tuple[str, Any]:
    job = await store.jobs.get(key)
    assert job is not None
    return job.state.value, job.metadata.get("close_reason")


async def vacant(look: Look) -> int:
    return int((await look("SELECT vacant FROM jobs"))[0][0])


async def test_the_job_ends_with_the_process_of_its_last_worker(store: Store, job: JobKey) -> None:
    for attempt in (1, 2, 3):
        answer = await report(store, job, attempt, last=True, outcome="finished")
        assert len(answer.workers) == 3
        assert answer.workers[attempt - 1].ended
    assert await state(store, job) == ("running", None)
    for attempt in (1, 2, 3):
        assert await store.attempts.end(Attempt(job, attempt), None)
    assert await state(store, job) == ("finished", "finished")
    assert not await store.attempts.end(Attempt(job, 3), None)


@pytest.mark.parametrize(
    ("ended", "expected", "places"),
    [
        ("killed by SIGKILL", ("running", None), 1),
        ("killed by oom", ("running", None), 1),
        ("shutdown", ("running", None), 1),
        ("failed", ("running", "failed"), 0),
        ("build_failed", ("running", "build_failed"), 0),
        ("timed out", ("running", "timed out"), 0),
    ],
)
async def test_a_killed_process_leaves_a_place_and_a_failed_one_closes_the_crawl(
    store: Store, job: JobKey, look: Look, ended: str, expected: tuple[str, str | None], places: int
) -> None:
    await store.attempts.end(Attempt(job, 2), ended)
    closing = (await report(store, job, 1)).closing
    assert ((await state(store, job))[0], closing.reason if closing else None) == expected
    assert await vacant(look) == places


async def test_a_job_of_which_nobody_has_found_the_end_waits_again(
    store: Store, job: JobKey, look: Look, clock: Clock
) -> None:
    assert (await report(store, job, 1)).run_start
    await report(store, job, 1, number=2, start="done", stats={"n": Stat(StatKind.SUM, 2)})
    for attempt in (1, 2):
        await store.attempts.give_back(Attempt(job, attempt))
    assert await vacant(look) == 2
    await store.attempts.give_back(Attempt(job, 3))
    assert (await state(store, job), await vacant(look)) == (("pending", None), 0)
    stored = await store.jobs.get(job)
    assert stored is not None
    assert stored.metadata["frameworkstats"] == {"n": 2}
    clock.now += 5000
    assert await look("SELECT started, losses, last_attempt FROM worker_groups") == [(1, 0, 3)]


async def test_a_dead_node_releases_each_of_its_workers(store: Store, job: JobKey, look: Look) -> None:
    await report(store, job, 1, last=True, outcome="finished")
    assert len(await store.attempts.release_jobs("a", 1, 5)) == 3
    assert await state(store, job) == ("pending", None)
    assert await look("SELECT losses FROM worker_groups") == [(2,)]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("found 1, found 2, found 3, over 2, over 3, over 1", "finished"),
        ("lost 2, lost 3, found 1, over 1", "finished"),
        ("found 1, lost 2, lost 3, over 1", "pending"),
        ("found 1, over 1, lost 2, lost 3", "pending"),
        ("found 1, lost 2, found 3, over 1, over 3", "finished"),
        ("found 1, drained 2, drained 3, over 1", "pending"),
    ],
)
async def test_a_job_is_finished_if_the_end_was_found_after_the_last_loss(
    store: Store, job: JobKey, history: str, expected: str
) -> None:
    for step in history.split(", "):
        assert (await state(store, job))[0] == "running"
        what, number = step.split()
        attempt = Attempt(job, int(number))
        if what == "found":
            await report(store, job, attempt.number, last=True, outcome="finished")
        elif what == "drained":
            await store.attempts.give_back(attempt)
        else:
            await store.attempts.end(attempt, "killed by SIGKILL" if what == "lost" else None)
    assert (await state(store, job))[0] == expected


async def test_no_number_of_an_attempt_is_used_again(store: Store, job: JobKey) -> None:
    for attempt in (1, 2, 3):
        await store.attempts.give_back(Attempt(job, attempt))
    assert await store.attempts.place() == [Attempt(job, number) for number in (4, 5, 6)]
    assert (await report(store, job, 4)).run_start
    with pytest.raises(ContractError, match="attempt: 3 of job 1/1/1 is over"):
        await report(store, job, 3)


async def test_workers_without_a_node_take_none_of_the_places_of_a_project(store: Store) -> None:
    await store.nodes.join(StoredNode("a", "host", 6, frozenset(), 1, 1, 1, draining=False))
    await store.projects.merge(1, {"max_running": b"1"})
    new = [NewJob("spider", state, {}) for state in (JobState.RUNNING, JobState.PENDING)]
    local, waiting = await store.jobs.add(1, new, "tests")
    assert isinstance(local, JobKey)
    await store.groups.report(local, Report(job=str(local), nonce="0" * 32, number=1, workers="2"))
    assert [attempt.key for attempt in await store.attempts.place()] == [waiting]
    assert await store.attempts.orphaned() == []


async def test_the_rows_of_killed_workers_go_with_their_deleted_job(store: Store, clock: Clock, look: Look) -> None:
    (local,) = await store.jobs.add(1, [NewJob("spider", JobState.RUNNING, {})], "tests")
    assert isinstance(local, JobKey)
    await store.groups.report(local, Report(job=str(local), nonce="0" * 32, number=1, workers="2"))
    await store.jobs.delete(1, [local], "tests")
    clock.now += 40 * 24 * 3600 * 1000
    await store.purge()
    assert sum([forgotten async for forgotten in store.expiry.deleted_jobs(30)]) == 1
    assert await look("SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM worker_groups)") == [(0, 0)]


async def test_a_job_with_a_reason_to_close_ends_when_its_node_dies(store: Store, job: JobKey) -> None:
    await report(store, job, 2, closing="closespider_itemcount")
    await store.attempts.release_jobs("a", 1, 5)
    assert await state(store, job) == ("finished", "closespider_itemcount")


async def test_a_cancelled_job_ends_when_its_node_dies(store: Store, job: JobKey) -> None:
    await store.jobs.cancel(1, [job], "tests")
    await store.attempts.release_jobs("a", 1, 5)
    assert await state(store, job) == ("finished", "cancelled")


async def test_a_silent_worker_of_a_node_leaves_a_place(store: Store, job: JobKey, look: Look) -> None:
    await report(store, job, 3, number=4)
    answer = await report(store, job, 1, silent=(Silent(2, 0), Silent(3, 3)))
    assert [worker.attempt for worker in answer.workers] == [1, 3]
    assert await vacant(look) == 1
    assert not await store.attempts.end(Attempt(job, 2), "killed by SIGKILL")
    assert await vacant(look) == 1


async def test_a_worker_that_has_ended_is_not_silent(store: Store, job: JobKey) -> None:
    await report(store, job, 2, last=True, outcome="finished")
    assert len((await report(store, job, 1, silent=(Silent(2, 1),))).workers) == 3


async def test_a_worker_that_waits_for_the_others_crawls_no_more(store: Store, job: JobKey, look: Look) -> None:
    """It neither runs ``start()`` nor counts as one that the group could do without."""
    assert (await report(store, job, 1)).run_start
    for attempt in (1, 2):
        answer = await report(store, job, attempt, number=2, closed=True)
    assert [worker.closed for worker in answer.workers] == [True, True, False]
    assert [worker.closed for worker in await store.groups.listed(job)] == [True, True, False]
    assert not answer.run_start
    await store.groups.set_bounds(job, Bounds(1, 1))
    assert not (await report(store, job, 3)).leave
    assert (await report(store, job, 3, number=2)).run_start


@pytest.mark.parametrize(
    ("left", "known", "expected"),
    [
        ("drained", 0, ("pending", None)),
        ("drained", 1, ("finished", "finished")),
        ("killed", 0, ("pending", None)),
        ("killed", 1, ("finished", "finished")),
    ],
)
async def test_an_end_that_was_found_before_another_worker_left_work_is_none(
    store: Store, job: JobKey, left: str, known: int, expected: tuple[str, Any]
) -> None:
    """Workers that wait for the end know how many had ended unfinished when they found it, or looked again."""
    for attempt in (1, 2):
        await report(store, job, attempt, closed=True)
    if left == "drained":
        await report(store, job, 3, last=True, outcome="shutdown")
        await store.attempts.give_back(Attempt(job, 3))
    else:
        await store.attempts.end(Attempt(job, 3), "killed by SIGKILL")
    for attempt in (1, 2):
        assert (await report(store, job, attempt, number=2, closed=True)).unfinished == 1
        answer = await report(store, job, attempt, number=3, last=True, outcome="finished", unfinished=known)
        assert answer.unfinished == 1
    for attempt in (1, 2):
        await store.attempts.end(Attempt(job, attempt), None)
    assert await state(store, job) == expected


async def test_no_worker_is_added_while_all_wait_for_each_other(store: Store, job: JobKey, look: Look) -> None:
    for attempt in (1, 2):
        await report(store, job, attempt, closed=True)
    await report(store, job, 1, number=2, closed=True, silent=(Silent(3, 0),))
    assert await vacant(look) == 0


async def test_nobody_joins_a_job_of_nodes(store: Store, job: JobKey) -> None:
    with pytest.raises(ContractError, match="runs on nodes"):
        await store.groups.report(job, Report(job=str(job), nonce="0" * 32, number=1))


@pytest.mark.parametrize(("minutes", "reason"), [(59, "node_lost"), (61, None)])
async def test_a_job_loses_no_more_workers_in_an_hour_than_five_times_the_highest_number(
    store: Store, job: JobKey, change: Change, clock: Clock, minutes: int, reason: str | None
) -> None:
    since = clock.now - 60_000 * minutes
    await change(f'UPDATE worker_groups SET losses = 14, stats = \'{{"lost_since":{since},"lost":14}}\'')
    await store.attempts.end(Attempt(job, 2), "killed by SIGKILL")
    closing = (await report(store, job, 1)).closing
    assert (closing and closing.reason) == reason


async def test_the_losses_of_a_job_that_has_lost_all_workers_count_in_its_next_run(
    store: Store, job: JobKey, look: Look
) -> None:
    for attempt in (1, 2, 3):
        await store.attempts.end(Attempt(job, attempt), "killed by SIGKILL")
    assert await state(store, job) == ("pending", None)
    ((stored,),) = await look("SELECT stats FROM worker_groups")
    assert msgspec.json.decode(stored)["lost"] == 3


async def test_a_process_of_a_job_without_a_group_ends_it_as_ever(store: Store, job: JobKey, change: Change) -> None:
    await change("DELETE FROM worker_groups")
    await change("DELETE FROM attempts WHERE attempt > 1")
    with pytest.raises(ContractError, match="no group"):
        await report(store, job, 1)
    await store.attempts.end(Attempt(job, 1), "killed by SIGKILL")
    assert await state(store, job) == ("finished", "killed by SIGKILL")


async def test_an_answer_has_a_bounded_number_of_start_times_in_all(store: Store, job: JobKey) -> None:
    # Each domain with a delay of 1 ms had 3 000: those of 200 domains took over half a second in the transaction.
    domains = {str(place): DomainReport(limit=9, want=10**9, delay=1) for place in range(MOST_DOMAINS)}
    given = (await report(store, job, 1, domains=domains)).permits
    assert len(given) == MOST_DOMAINS
    assert sum(len(permit.starts) for permit in given.values()) == MOST_STARTS


async def test_what_is_over_of_domains_that_nobody_reports_any_more_is_removed_in_steps(
    store: Store, job: JobKey, look: Look, change: Change
) -> None:
    most = MOST_DOMAINS
    for number in range(1, 8):
        names = [f"{number}-{place}" for place in range(most)]
        await report(store, job, 1, number, domains={name: DomainReport(want=1, delay=1000) for name in names})
    await report(
        store, job, 2, domains={"paused": DomainReport(pause=3600.0)}, budgets={"requests": BudgetReport(9, want=1)}
    )
    later = 2**60
    await change(
        f"UPDATE group_shares SET expires = CASE name WHEN 'domain:1-0' THEN {later} ELSE 1 END "
        "WHERE name LIKE 'domain:%'"
    )
    await change(f"UPDATE group_domains SET next_start = CASE domain WHEN '1-0' THEN {later} ELSE 1 END")

    async def left() -> tuple[int, int]:
        shares = await look("SELECT count(*) FROM group_shares WHERE name LIKE 'domain:%'")
        return int(shares[0][0]), int((await look("SELECT count(*) FROM group_domains"))[0][0])

    assert await left() == (7 * most, 7 * most + 1)
    await report(store, job, 3)
    assert await left() == (7 * most, 7 * most + 1)
    await report(store, job, 3, 2, stats={})
    assert await left() == (2 * most, 2 * most + 1)
    await report(store, job, 3, 3, stats={})
    assert await left() == (1, 2)
    assert await look("SELECT domain FROM group_domains ORDER BY domain") == [("1-0",), ("paused",)]
    assert await look("SELECT count(*) FROM group_shares WHERE name = 'budget:requests'") == [(2,)]
