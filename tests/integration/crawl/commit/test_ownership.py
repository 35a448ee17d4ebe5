"""Slots belong to one process at a time, and what is known of them goes with them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.commit.assignment import Worker
from scrapy_ext.crawl.commit.events import Checkpoint, Progress
from scrapy_ext.crawl.commit.execution import take_over
from scrapy_ext.crawl.commit.journal import Fenced, UnreadableJournal
from scrapy_ext.crawl.commit.leases import ASSIGNMENT, finish_replaced
from scrapy_ext.crawl.session.job import CrawlJob, cannot_be_resumed
from tests.support.crawl_processes import PROJECT, add, journal
from tests.support.eventually import eventually_async
from tests.support.watched_client import WatchedClient

SLOTS = 8


def slots_of(index, count):
    return {slot for slot in range(SLOTS) if Worker(index, count).owns(slot)}


async def start(process, index, count, job=None):
    """A worker with a fixed index, of a job of its own."""
    return await process(f"commits-{job or index}", f"{index}/{count}").open(*slots_of(index, count))


async def owners(one):
    return (await one.ownership.assignment())[1].owners


@pytest.mark.parametrize("count", [1, 2, 3, 8, 11])
async def test_workers_that_start_together_take_each_slot_once(process, count):
    workers = await asyncio.gather(*(start(process, index, count) for index in range(count)))
    assigned = await owners(workers[0])
    assert sorted(slot for slots in assigned.values() for slot in slots) == list(range(SLOTS))
    assert assigned == {f"commits-{index}": sorted(slots_of(index, count)) for index in range(count)}
    assert all([await worker.can_commit() for worker in workers])


async def test_one_worker_stores_the_items_of_start_and_does_so_when_it_is_resumed(process):
    workers = await asyncio.gather(*(start(process, index, 3) for index in range(3)))
    (first,) = (index for index, worker in enumerate(workers) if worker.ownership.stores_start_items)
    for index in range(3):
        again = await start(process, index, 3)
        assert again.ownership.stores_start_items == (index == first)
    newcomer = await start(process, first, 3, "new")
    assert not newcomer.ownership.stores_start_items


async def test_another_number_of_workers_moves_slots_with_their_progress(process):
    for index in range(2):
        worker = await start(process, index, 2)
        for slot in slots_of(index, 2):
            worker.log.checkpoint.progress.add(Progress({slot: {f"batch-{slot}": "5"}}))
        await worker.ownership.close()

    first = [await start(process, index, 3) for index in range(2)]
    last = await start(process, 2, 3, "new")
    for index, worker in enumerate([*first, last]):
        mine = slots_of(index, 3)
        assert worker.log.checkpoint.progress.of(mine).done == {slot: {f"batch-{slot}": "5"} for slot in mine}
        assert worker.log.checkpoint.slots == sorted(mine)
    assert sorted(await owners(last)) == ["commits-0", "commits-1", "commits-new"]


@pytest.mark.parametrize("job", ["0", "another"], ids=["the same job", "another job"])
async def test_an_older_process_of_an_index_cannot_commit_once_a_newer_one_has_opened(process, job):
    older = await start(process, 0, 2)
    bystander = await start(process, 1, 2)
    newer = await start(process, 0, 2, job)
    assert not await older.can_commit()
    assert await newer.can_commit()
    assert await bystander.can_commit()
    assert await owners(newer) == {f"commits-{job}": sorted(slots_of(0, 2)), "commits-1": sorted(slots_of(1, 2))}


async def new(process, client, name="commits-a"):
    """A process that takes the frontier for new."""
    one = process(name, client=client)
    await one.ownership.open({0, 1}, is_new=True)
    await one.ownership.claim_all({0, 1})
    return one


async def test_a_new_frontier_is_opened_without_a_read(process, client):
    watched, calls = WatchedClient(client), []

    async def note(name, arguments):
        calls.append(name)

    watched.before = note
    one = await new(process, watched)
    assert calls == ["frontier.add"] * 2
    assert one.ownership.is_first
    assert one.ownership.stores_start_items
    assert await owners(one) == {"commits-a": [0, 1]}
    assert (await one.journal.head()).data["slots"] == [0, 1]
    assert await one.can_commit()


@pytest.mark.parametrize("name", ["commits-a", "commits-b"], ids=["the same job", "another job"])
async def test_a_frontier_that_was_taken_for_new_is_taken_over_with_its_progress(process, client, name):
    older = await process("commits-a").open(0, 1)
    older.log.checkpoint.progress.add(Progress({1: {"batch": "5"}}))
    await older.log.write()
    newer = await new(process, client, name)
    assert newer.log.checkpoint.progress.done == {1: {"batch": "5"}}
    assert await owners(newer) == {name: [0, 1]}
    assert newer.ownership.is_first == (name == "commits-b")
    assert newer.ownership.stores_start_items == (name == "commits-a")
    assert [await one.can_commit() for one in (older, newer)] == [False, True]


async def test_of_several_that_take_a_frontier_for_new_one_can_commit(process, client):
    names = ["commits-a", "commits-a", "commits-b", "commits-c"]
    done = await asyncio.gather(*(new(process, client, name) for name in names), return_exceptions=True)
    opened = [one for one in done if not isinstance(one, BaseException)]
    assert all(isinstance(outcome, Fenced) or outcome in opened for outcome in done)
    assert [await one.can_commit() for one in opened].count(True) == 1


@pytest.mark.parametrize("same_job", [True, False], ids=["the same job", "two jobs"])
async def test_of_two_that_open_at_once_one_can_commit(process, same_job):
    for attempt in range(5):
        names = [f"{attempt}", f"{attempt}" if same_job else f"{attempt}-other"]
        both = [process(f"commits-{name}") for name in names]
        done = await asyncio.gather(*(one.open(0, 1) for one in both), return_exceptions=True)
        assert all(isinstance(outcome, Fenced) or outcome in both for outcome in done)
        assert [await one.can_commit() for one in both].count(True) == 1


async def test_progress_of_slots_that_are_given_up_waits_for_whoever_takes_them(process):
    first = await process("commits-a", "auto").open(0, 1, 2)
    first.log.checkpoint.progress.add(Progress({0: {"a": "1"}, 1: {"b": "3"}, 2: {"c": "7"}}))
    assert await first.ownership.assign(*await first.ownership.assignment(), {0})
    assert first.log.checkpoint.progress.done == {0: {"a": "1"}}
    assert (await first.ownership.assignment())[1].left.done == {1: {"b": "3"}, 2: {"c": "7"}}

    second = process("commits-b", "auto")
    await second.ownership.open(set())
    assert await second.ownership.assign(*await second.ownership.assignment(), {2})
    assert second.log.checkpoint.progress.done == {2: {"c": "7"}}
    assert (await second.ownership.assignment())[1].left.done == {1: {"b": "3"}}
    assert await first.can_commit()


async def test_what_was_taken_is_in_the_journal_before_it_is_assigned(process):
    """Whoever takes over from one that died in between finds the progress."""
    first = await process("commits-a").open(0)
    first.log.checkpoint.progress.add(Progress({0: {"a": "1"}}))
    await first.log.write()
    second = process("commits-b")
    await second.ownership.open({0})
    look = await second.ownership.assignment()
    second.log.checkpoint.progress.add(await second.ownership.progress_of("commits-a", {0}, may_wait=False))
    # Somebody else is faster, so that nothing is assigned to the second.
    third = await process("commits-c").open(0)
    assert not await second.ownership.assign(*look, {0})
    head = await second.journal.head()
    assert head.data["progress"]["done"] == {"0": {"a": "1"}}
    assert third.log.checkpoint.progress.done == {0: {"a": "1"}}


async def test_who_looked_before_another_claimed_has_to_look_again(process):
    """Also when the other had the slots before, as a process that is resumed has."""
    await process("commits-a").open(0)
    slow = process("commits-b")
    await slow.ownership.open({0})
    look = await slow.ownership.assignment()
    resumed = await process("commits-a").open(0)
    assert not await slow.ownership.assign(*look, {0})
    assert await resumed.can_commit()


async def test_a_process_waits_for_another_that_is_about_to_pass_its_slots_on(process):
    first = await start(process, 0, 1)
    first.log.checkpoint.slots = [0, 2, 4, 6]  # It was started again as 0/2, and has not come to its claim.
    await first.log.write()
    joining = asyncio.ensure_future(start(process, 1, 2))
    await eventually_async(process("commits-1").journal.head, lambda head: head and head.number >= 1)
    await first.ownership.claim_all({0, 2, 4, 6})
    second = await joining
    assert await first.can_commit()
    assert await second.can_commit()


async def test_a_process_that_does_not_pass_its_slots_on_in_time_loses_them(process, monkeypatch):
    first = await start(process, 0, 1)
    first.log.checkpoint.slots = [0, 2, 4, 6]
    await first.log.write()
    times = iter([0.0, 1.0])
    clock = SimpleNamespace(monotonic=lambda: next(times, 1000.0))
    monkeypatch.setattr("scrapy_ext.crawl.commit.leases.time", clock)
    await start(process, 1, 2)
    assert not await first.can_commit()
    assert (await owners(first))["commits-1"] == [1, 3, 5, 7]


async def test_who_has_ended_says_so_and_is_not_waited_for(process):
    first = await start(process, 0, 1)
    await first.ownership.close()
    assert (await first.journal.head()).data["closed"] is True
    await start(process, 0, 2, "new")
    assert not await first.can_commit()


async def test_an_assignment_of_an_unreadable_form_is_reported_as_that(process, client, frontier, retry):
    await journal(client, frontier, "other version", retry, ASSIGNMENT).append(1, {"owners": 5})
    with pytest.raises(UnreadableJournal, match="record that this version cannot read"):
        await process().open(0)


async def test_an_assignment_slot_that_holds_requests_is_reported_as_that(process, client, frontier):
    await add(client, frontier, ASSIGNMENT, "a page")
    with pytest.raises(UnreadableJournal, match="is no journal"):
        await process().open(0)


def test_what_is_not_open_says_so(process):
    with pytest.raises(RuntimeError, match="not open"):
        _ = process().log


async def test_another_number_of_workers_that_start_together_come_to_an_agreement(process):
    """Though each wants slots that the others' former processes had; nobody is fenced for it."""
    for index in range(2):
        worker = await start(process, index, 2)
        worker.log.checkpoint.progress.add(Progress({slot: {"b": "1"} for slot in slots_of(index, 2)}))
        await worker.log.write()
    workers = await asyncio.gather(*(start(process, index, 3) for index in range(3)))
    assert await owners(workers[0]) == {f"commits-{index}": sorted(slots_of(index, 3)) for index in range(3)}
    assert all([await worker.can_commit() for worker in workers])
    for index, worker in enumerate(workers):
        assert worker.log.checkpoint.progress.of(slots_of(index, 3)).done.keys() == slots_of(index, 3)


# ── jobs of those that were replaced ──


async def state_of(client, key):
    metadata = await client.jobs.metadata(key)
    return metadata["state"], metadata.get("close_reason")


def journal_of(key):
    return f"commits-{key.spider}-{key.job}"


async def new_job(client, state="running"):
    return JobKey.parse((await client.jobq.push(PROJECT, "books", state=state)).key)


async def test_the_job_of_a_process_that_is_gone_ends_when_its_slots_are_taken_over(process, client):
    dead, alive, newer = [await new_job(client) for _ in range(3)]
    await process(journal_of(dead), "0/2").open(0, 2)
    await process(journal_of(alive), "1/2").open(1, 3)
    await process(journal_of(newer), "0/2").open(0, 2)
    assert await state_of(client, dead) == ("finished", "frontier_lease_lost")
    assert await state_of(client, alive) == ("running", None)
    assert await state_of(client, newer) == ("running", None)


async def test_the_job_of_a_process_that_has_ended_by_itself_keeps_its_reason(process, client):
    ended, between = await new_job(client), await new_job(client)
    await client.jobq.update(PROJECT, ended, state="finished", close_reason="finished")
    for key, slot in ((ended, 0), (between, 1)):
        worker = await process(journal_of(key), "0/1").open(slot)
        await worker.ownership.close()
    await process(journal_of(await new_job(client)), "0/1").open(0, 1)
    assert await state_of(client, ended) == ("finished", "finished")
    # Its process has written its last record, and is about to finish its job.
    assert await state_of(client, between) == ("running", None)


async def test_a_job_that_a_node_runs_is_left_to_the_node(client, job, monkeypatch):
    """The node sees its process end, and starts it again or finishes the job. Only a node writes the attempt."""

    async def metadata(_key):
        return {"state": "running", "attempt": 1}

    monkeypatch.setattr(client.jobs, "metadata", metadata)
    await finish_replaced(client, job)
    monkeypatch.undo()
    assert await state_of(client, job) == ("running", None)


async def test_a_takeover_that_died_before_it_finished_the_job_is_made_good_by_the_next(process, client):
    key = await new_job(client)
    older = await process(journal_of(key), "0/1").open(0)
    await take_over(older.journal, older.finisher, Checkpoint(closed=True))
    await process(journal_of(await new_job(client)), "0/1").open(0)
    assert await state_of(client, key) == ("finished", "frontier_lease_lost")


async def test_a_job_that_was_deleted_holds_nobody_up(process, client):
    key = await new_job(client)
    await process(journal_of(key), "0/1").open(0)
    await client.jobq.update(PROJECT, key, state="finished")
    await client.jobq.update(PROJECT, key, state="deleted")
    newer = await process(journal_of(await new_job(client)), "0/1").open(0)
    assert await newer.can_commit()


# ── journals of jobs that are finished ──


async def slots_in(client, frontier):
    return set(await client.frontier.slots(PROJECT, frontier))


async def test_the_journal_of_a_finished_job_goes_and_its_slots_are_free(process, client, frontier):
    key = await new_job(client)
    first = await process(journal_of(key), "0/1").open(0, 1)
    await first.ownership.close()
    await first.ownership.forget()
    assert await slots_in(client, frontier) == {ASSIGNMENT}
    second = await process(journal_of(await new_job(client)), "0/1").open(0, 1)
    assert await second.can_commit()
    assert list(await owners(second)) == [second.ownership.name]


async def test_a_journal_with_progress_stays_for_whoever_takes_the_slots(process, client, frontier):
    first = await process("commits-1-1", "0/1").open(0)
    first.log.checkpoint.progress.add(Progress({0: {"a": "1"}}))
    await first.ownership.close()
    await first.ownership.forget()
    second = await process("commits-1-2", "0/1").open(0)
    assert second.log.checkpoint.progress.done == {0: {"a": "1"}}


async def test_a_process_that_slept_past_the_end_of_its_job_cannot_commit(process, client, frontier):
    """It would write to an empty journal as if nobody had taken over from it."""
    key = await new_job(client)
    sleeper = await process(journal_of(key), "0/1").open(0)
    newer = await process(journal_of(key), "0/1").open(0)
    await newer.ownership.close()
    await newer.ownership.forget()
    assert journal_of(key) in await slots_in(client, frontier)
    assert not await sleeper.can_commit()


@pytest.mark.parametrize(
    ("state", "reason", "gone"),
    [
        ("running", None, False),
        ("finished", "shutdown", False),
        ("finished", "finished", True),
        ("deleted", None, True),
    ],
)
async def test_a_job_can_be_resumed_unless_it_is_finished_or_gone(client, state, reason, gone):
    key = await new_job(client)
    if state != "running":
        await client.jobq.update(PROJECT, key, state="finished", close_reason=reason)
    if state == "deleted":
        await client.jobq.update(PROJECT, key, state=state)
    assert await cannot_be_resumed(client, CrawlJob(key, resumed=False)) is gone
