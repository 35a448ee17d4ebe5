"""Whoever takes over from a process finishes what it had begun to commit, and keeps it from committing more."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ext.client.platform.errors import NotFound, Unreachable
from scrapy_ext.client.platform.slots import EachSlot
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.crawl.commit.assignment import Assignment
from scrapy_ext.crawl.commit.events import Checkpoint, Chunk, Progress, Redo
from scrapy_ext.crawl.commit.execution import take_over
from scrapy_ext.crawl.commit.journal import CommitLog, Fenced, Record, UnreadableJournal, to_data
from tests.support.crawl_processes import PROJECT, add, journal, packed, stored
from tests.support.watched_client import WatchedClient, fails, nothing

ITEMS = [{"n": n} for n in range(5)]


async def batch_ids(client, frontier, slot):
    return [batch.id for batch in await client.frontier.read(PROJECT, frontier, slot, 1000)]


async def died_in_a_commit(process, client, frontier, job):
    """The journal of a process that died right after its commit's record."""
    await add(client, frontier, "0", "page-1", "page-2")
    await add(client, frontier, "3", "page-3")
    dead = await process().open(0, 3)
    ids = {0: await batch_ids(client, frontier, "0"), 3: await batch_ids(client, frontier, "3")}
    await dead.begin_commit(job, 0, *ITEMS, acknowledge=ids)
    return dead


async def test_what_was_begun_is_stored_once_however_often_it_is_taken_over(process, client, frontier, job):
    dead = await died_in_a_commit(process, client, frontier, job)
    assert await stored(client, job) == []
    for _ in range(4):
        successor = process()
        _, checkpoint = await take_over(successor.journal, successor.finisher, Checkpoint(worker="next"))
        assert checkpoint.worker == "next"
        assert await stored(client, job) == ITEMS
        assert await batch_ids(client, frontier, "0") == await batch_ids(client, frontier, "3") == []
    # And its own call, if it comes late.
    await client.items.write(job, await packed(*ITEMS), 0, encoding="gzip")
    assert await stored(client, job) == ITEMS
    assert not await dead.can_commit()


async def test_items_are_stored_behind_those_that_are_there(process, client, job):
    await client.items.write(job, await packed({"n": "first"}), 0, encoding="gzip")
    dead = await process().open(0)
    await dead.begin_commit(job, 1, *ITEMS)
    await process().open(0)
    assert await stored(client, job) == [{"n": "first"}, *ITEMS]


async def test_an_empty_journal_is_taken_over_too(process):
    first = process()
    number, checkpoint = await take_over(first.journal, first.finisher, Checkpoint(worker="0/1", slots=[1]))
    assert (number, checkpoint.worker, checkpoint.slots) == (1, "0/1", [1])


async def test_a_takeover_that_races_with_a_commit_has_that_commit_or_refuses_it(process, client, job):
    """Seven times at different moments: the successor's record comes between two records of the writer."""
    for step in range(7):
        writer, heir = process(f"commits-{step}"), process(f"commits-{step}")
        await writer.ownership.open({0})
        committed = 0

        async def commit(writer=writer):
            nonlocal committed
            for n in range(1, 6):
                writer.log.checkpoint.start_items = n
                await writer.log.write()
                committed = n

        async def take(heir=heir, step=step):
            await asyncio.sleep(0.003 * step)
            return await take_over(heir.journal, heir.finisher, Checkpoint())

        outcome, (_, checkpoint) = await asyncio.gather(commit(), take(), return_exceptions=True)
        assert checkpoint.start_items == committed
        assert committed == 5 or isinstance(outcome, Fenced)
        assert not await writer.can_commit()


@pytest.mark.parametrize("call", ["frontier.add", "collections.get", "items.write", "frontier.delete_batches"])
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.long(keep=2)
async def test_a_takeover_that_dies_half_way_is_done_again_by_the_next(process, client, frontier, job, call, side):
    await died_in_a_commit(process, client, frontier, job)

    watched = WatchedClient(client)
    dying = process()
    dying.finisher._client, dying.finisher.payloads._client = watched, watched.collections
    dying.finisher._calls = EachSlot(watched.frontier, PROJECT, frontier)
    dying.finisher._retry = Retry(0.001, Backoff(0.001, 0.001))
    own = journal(watched, frontier, "dying", dying.finisher._retry, "commits-a")
    setattr(watched, side, fails(call, times=10**6))
    with pytest.raises(Unreachable):
        await take_over(own, dying.finisher, Checkpoint())

    await process().open(0, 3)
    assert await stored(client, job) == ITEMS
    assert await batch_ids(client, frontier, "0") == await batch_ids(client, frontier, "3") == []


async def test_two_that_take_over_at_once_do_it_one_after_the_other(process, client, frontier, job):
    await died_in_a_commit(process, client, frontier, job)
    heirs = [process() for _ in range(6)]
    taken = await asyncio.gather(*(take_over(heir.journal, heir.finisher, Checkpoint()) for heir in heirs))
    numbers = [number for number, _ in taken]
    assert len(set(numbers)) == len(heirs)
    can_write = []
    for heir, one in zip(heirs, taken, strict=True):
        try:
            await CommitLog(heir.journal, *one).write()
            can_write.append(one[0])
        except Fenced:
            pass
    assert can_write == [max(numbers)]
    assert await stored(client, job) == ITEMS


@pytest.mark.parametrize("key", ["progress", "redo", "slots"])
async def test_a_checkpoint_of_an_unreadable_form_is_reported_as_that(process, client, frontier, retry, key):
    await journal(client, frontier, "other version", retry, "commits-a").append(1, {key: "?"})
    with pytest.raises(UnreadableJournal, match=rf"record that this version cannot read .*\$\.{key}"):
        await process().ownership.open({0})


async def test_items_of_a_job_that_was_deleted_are_left_out(process, client, frontier, job, caplog):
    await add(client, frontier, "0", "page")
    dead = await process().open(0)
    await dead.begin_commit(job, 0, *ITEMS, acknowledge={0: await batch_ids(client, frontier, "0")})
    watched = WatchedClient(client)

    async def deleted(name, arguments):
        if name == "items.write":
            raise NotFound("no such job")

    watched.before = deleted
    await process(client=watched).open(0)
    assert f"5 items are not stored: job {job} was deleted" in caplog.text
    assert await batch_ids(client, frontier, "0") == []


async def test_items_that_are_no_longer_staged_are_reported_and_the_rest_is_done(
    process, client, frontier, job, caplog
):
    await add(client, frontier, "0", "page")
    dead = await process().open(0)
    redo = Redo(str(job), dead.writer, [Chunk(8, 0, 3)], {0: await batch_ids(client, frontier, "0")})
    dead.log.checkpoint.redo = redo
    await dead.log.write()
    await process().open(0)
    assert "3 items of job" in caplog.text
    assert "missing in collection scrapy_commits" in caplog.text
    assert await batch_ids(client, frontier, "0") == []


def test_progress_of_two_processes_is_what_either_has_done():
    one = Progress({0: {"a": "5", "b": "1"}})
    one.add(Progress({0: {"a": "2"}, 1: {"c": "ff"}}))
    assert one == Progress({0: {"a": "7", "b": "1"}, 1: {"c": "ff"}})
    assert one.of({1, 2}) == Progress({1: {"c": "ff"}})
    one.forget(1, "c")
    one.forget(1, "c")
    one.drop({5})
    assert one == Progress({0: {"a": "7", "b": "1"}})


def test_records_come_back_as_they_were_written():
    checkpoint = Checkpoint(
        worker="1/3",
        slots=[1, 4],
        idle=True,
        turns=3,
        start_items=9,
        progress=Progress({4: {"b1": "f0"}}),
        redo=Redo("7/1/1", "a", [Chunk(3, 100, 20)], {4: ["b0"]}),
    )
    assert Record(1, "a", to_data(checkpoint)).read(Checkpoint) == checkpoint
    assignment = Assignment({"commits-a": [0, 2], "commits-b": []}, Progress({2: {"b": "1"}}))
    assert Record(1, "a", to_data(assignment)).read(Assignment) == assignment


async def test_a_writer_that_skipped_a_number_cannot_commit_after_it_was_taken_over(process, client, frontier, retry):
    """It was cut off while it wrote, and writes again at the very moment at which another takes over."""
    watched = WatchedClient(client)
    own = journal(watched, frontier, "writer", Retry(0.001, Backoff(0.001, 0.001)), "commits-a")
    log = CommitLog(own, 0, Checkpoint())
    await log.write()
    watched.before = fails("frontier.add", times=10**6)
    with pytest.raises(Unreachable):
        await log.write()
    watched.before = nothing

    seeing = WatchedClient(client)
    heir = journal(seeing, frontier, "heir", retry, "commits-a")
    written = []

    async def let_it_write(name, arguments):
        if name == "frontier.add" and not written:
            log.checkpoint.start_items = 77
            written.append(await log.write())

    seeing.before = let_it_write
    _, checkpoint = await take_over(heir, process().finisher, Checkpoint())
    assert checkpoint.start_items == 77
    with pytest.raises(Fenced):
        await log.write()
