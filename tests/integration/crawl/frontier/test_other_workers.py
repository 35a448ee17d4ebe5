"""A crawl of several workers is over when nobody has anything to do, and not before."""

from __future__ import annotations

import pytest

from scrapy_ext.client.platform.slots import EachSlot
from scrapy_ext.crawl.frontier.end_of_crawl import OtherWorkers
from tests.support.crawl_processes import PROJECT, add
from tests.support.watched_client import WatchedClient

SLOTS = 8


@pytest.fixture
async def workers(process):
    """Two with nothing to do."""
    both = [await process(f"commits-{n}", f"{n}/2").open(*range(n, SLOTS, 2)) for n in range(2)]
    for one in both:
        await be(one, idle=True)
    return both


async def be(worker, *, idle):
    worker.log.checkpoint.idle = idle
    worker.log.checkpoint.turns += 1
    await worker.log.write()


async def state(worker, client=None, *, leaves_rest=False):
    ownership = worker.ownership
    ownership.client = client or worker.client
    ownership.calls = EachSlot(ownership.client.frontier, PROJECT, ownership.frontier)
    return await OtherWorkers(ownership, SLOTS, leaves_rest=leaves_rest).look()


async def test_it_is_over_when_all_are_idle_and_all_slots_empty(workers):
    assert [(await state(worker)).is_over for worker in workers] == [True, True]


async def test_it_is_not_over_while_another_is_busy(workers):
    await be(workers[1], idle=False)
    seen = await state(workers[0])
    assert not seen.is_over
    assert seen.busy == ["worker 1/2 (PLATFORM_JOB=commits-1)"]
    await be(workers[1], idle=True)
    assert (await state(workers[0])).is_over


async def test_one_that_looks_does_not_count_itself(workers):
    await be(workers[0], idle=False)
    assert (await state(workers[0])).is_over
    assert not (await state(workers[1])).is_over


@pytest.mark.parametrize("slot", [0, 1, 7])
async def test_it_is_not_over_while_a_slot_has_requests(workers, client, frontier, slot):
    await add(client, frontier, str(slot), "page")
    seen = await state(workers[0])
    assert (seen.is_over, seen.waiting) == (False, slot)
    (batch,) = await client.frontier.read(PROJECT, frontier, str(slot), 1)
    assert not (await state(workers[0])).is_over  # Read is not done.
    await client.frontier.delete_batches(PROJECT, frontier, str(slot), [batch.id])
    assert (await state(workers[0])).is_over


async def test_dead_letters_do_not_keep_a_crawl_going(workers, client, frontier):
    await add(client, frontier, "dead-letters", "page")
    assert (await state(workers[0])).is_over


async def test_another_that_has_ended_does_not_keep_it_going(workers):
    await be(workers[1], idle=False)
    await workers[1].ownership.close()
    assert (await state(workers[0])).is_over


async def test_another_that_has_ended_with_requests_left_keeps_it_going(workers, client, frontier):
    await workers[1].ownership.close()
    await add(client, frontier, "1", "page")
    assert (await state(workers[0])).waiting == 1


def when_all_slots_were_read(client, happens):
    """A client that lets something happen between the looks at the slots and the second look at the workers."""
    watched, reads = WatchedClient(client), 0

    async def hook(name, arguments):
        nonlocal reads
        reads += name == "frontier.read" and arguments[2].isdigit()
        if reads == SLOTS:
            reads += 1
            await happens()

    watched.after = hook
    return watched


async def test_it_is_not_over_when_another_had_something_to_do_meanwhile(workers, client):
    async def work():
        await be(workers[1], idle=False)
        await be(workers[1], idle=True)

    assert not (await state(workers[0], when_all_slots_were_read(client, work))).is_over
    assert (await state(workers[0])).is_over


async def test_it_is_not_over_when_a_slot_has_moved_meanwhile(workers, client):
    async def move():
        await workers[1].ownership.claim_all({1, 3})

    assert not (await state(workers[0], when_all_slots_were_read(client, move))).is_over


async def test_it_is_not_over_when_a_worker_has_joined_meanwhile(workers, client, process):
    async def join():
        await process("commits-new", "auto").open()

    assert not (await state(workers[0], when_all_slots_were_read(client, join))).is_over
    assert not (await state(workers[0])).is_over


async def test_what_shows_only_that_another_lives_does_not_put_it_off(workers, client):
    async def beat():
        await workers[1].log.write()

    assert (await state(workers[0], when_all_slots_were_read(client, beat))).is_over


async def test_a_kept_worker_leaves_what_was_pushed_to_workers_that_have_ended_and_nothing_of_its_own(
    workers, client, frontier
):
    await add(client, frontier, "1", "page")
    assert not (await state(workers[0], leaves_rest=True)).is_over, "the other worker may still read it"
    workers[1].log.checkpoint.closed = True
    await workers[1].log.write()
    assert not (await state(workers[0])).is_over
    assert (await state(workers[0], leaves_rest=True)).is_over
    await add(client, frontier, "2", "page")
    assert (await state(workers[0], leaves_rest=True)).waiting == 2
