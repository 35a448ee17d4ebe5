"""Workers that come and go share the slots, and no slot is ever committed by two.

Time is the test's: a lease ends when the test says so, on however slow a machine. A *beat* is what a worker does three
times in a lease time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from scrapy_ext.client.platform.errors import Forbidden, Unreachable
from scrapy_ext.crawl.commit.events import Progress
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.leases import Leases
from scrapy_ext.crawl.commit.liveness import JournalLiveness
from tests.support.crawl_processes import stored
from tests.support.eventually import eventually_async
from tests.support.watched_client import WatchedClient, nothing

SLOTS = 8
LEASE = 30.0
#: In so many beats of all workers slots are where they belong, whatever happened before.
SETTLED = 12


class Clock:
    """In place of module ``time``."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in ("commit.liveness", "commit.journal"):
        monkeypatch.setattr(f"scrapy_ext.crawl.{module}.time", clock)
    return clock


class Worker:
    """A worker whose beats the test makes."""

    def __init__(self, process, lease_time=LEASE):
        self.process = process
        self.name = process.ownership.name
        self.slots: set[int] = set()
        self.lost: Fenced | None = None
        self.liveness = JournalLiveness(process.ownership, lease_time)
        self.leases = Leases(process.ownership, SLOTS, self.liveness, on_change=self.change, on_lost=self.lose)

    async def change(self, slots):
        self.slots = set(slots)

    def lose(self, fenced):
        self.lost = fenced
        self.slots = set()

    async def join(self):
        await self.process.ownership.open(set())
        await self.leases.join()
        return self

    async def beat(self):
        """One round of the worker's tasks."""
        for step in (self.liveness.renew, self.leases.balance):
            try:
                if self.lost is None:
                    await step()
            except Fenced as fenced:
                self.lose(fenced)
            except Unreachable:
                pass

    async def can_commit(self):
        return await self.process.can_commit()


@pytest.fixture
def joins(process):
    async def joins(name, client=None):
        made = process(f"commits-{name}", "auto", client) if client else process(f"commits-{name}", "auto")
        return await Worker(made).join()

    return joins


async def beats(clock, *workers, times=1):
    for _ in range(times):
        clock.now += LEASE / 3
        for worker in workers:
            await worker.beat()


def sizes(*workers):
    return sorted(len(worker.slots) for worker in workers)


def all_slots(*workers):
    return sorted(slot for worker in workers for slot in worker.slots)


async def test_one_worker_has_all_slots_at_once(clock, joins):
    assert (await joins("a")).slots == set(range(SLOTS))


@pytest.mark.parametrize(
    ("count", "shares"),
    [(2, [4, 4]), (3, [2, 3, 3]), (5, [1, 1, 2, 2, 2]), (8, [1] * 8), (10, [0, 0, *[1] * 8])],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
@pytest.mark.long(keep=2)
async def test_slots_are_shared_equally_but_for_one(clock, joins, count, shares):
    workers = []
    for number in range(count):
        workers.append(await joins(number))
        await beats(clock, *workers)
    for _ in range(SETTLED):
        if sizes(*workers) == shares:
            break
        await beats(clock, *workers)
    assert sizes(*workers) == shares
    assert all_slots(*workers) == list(range(SLOTS))
    kept = [set(worker.slots) for worker in workers]
    await beats(clock, *workers, times=3)
    assert [worker.slots for worker in workers] == kept, "slots that are shared equally stay where they are"
    assert not any(worker.lost for worker in workers)


async def test_a_worker_that_joins_gets_its_share_with_what_is_known_of_it(clock, joins):
    first = await joins("a")
    first.process.log.checkpoint.progress.add(Progress({slot: {"b": f"{slot:x}"} for slot in range(1, SLOTS)}))
    second = await joins("b")
    assert second.slots == set()
    await beats(clock, first, second, times=2)
    assert sizes(first, second) == [4, 4]
    for worker in (first, second):
        assert worker.process.log.checkpoint.progress.done == {
            slot: {"b": f"{slot:x}"} for slot in worker.slots if slot
        }


async def test_a_worker_beyond_the_slots_says_once_that_it_has_none(clock, joins, caplog):
    workers = [await joins(str(number)) for number in range(SLOTS + 1)]
    await beats(clock, *workers, times=SETTLED + 10)
    assert sizes(*workers) == [0, *[1] * SLOTS]
    (said,) = [line for line in caplog.messages if "nothing to do" in line]
    assert f"the frontier has {SLOTS} slots" in said
    assert f"its {SLOTS + 1} workers" in said


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "died"])
async def test_the_slots_of_one_that_is_gone_pass_on(clock, joins, has_ended):
    first, second = await joins("a"), await joins("b")
    await beats(clock, first, second, times=3)
    inherited = second.slots
    second.process.log.checkpoint.progress.add(Progress({slot: {"b": "1"} for slot in inherited}))
    await second.process.log.write()
    if has_ended:
        await second.process.ownership.close()
        await beats(clock, first)
    else:
        # One beat to see it for the last time, three until its lease is over, and one.
        await beats(clock, first, times=5)
    assert first.slots == set(range(SLOTS))
    assert first.process.log.checkpoint.progress.done.keys() == inherited
    assert not await second.can_commit()


async def test_a_worker_joins_while_the_last_items_of_another_cannot_be_stored(clock, joins, client, job):
    """As while the process of that one is stopped: its job is running, and its items are not for others to store."""

    async def refused(name, arguments):
        if name == "items.write":
            raise Forbidden("the job is running", path="/items")

    stopped = await joins("a")
    await stopped.process.begin_commit(job, 0, {"n": 1})
    stopped.process.log.checkpoint.closed = True
    await stopped.process.log.write()
    watched = WatchedClient(client)
    watched.before = refused
    joined = await joins("b", watched)
    assert joined.slots == set()
    watched.before = nothing
    await beats(clock, joined, times=2)
    assert joined.slots == set(range(SLOTS))
    assert await stored(client, job) == [{"n": 1}]


async def test_a_worker_that_is_slow_keeps_its_slots_while_it_commits(clock, joins):
    first, second = await joins("a"), await joins("b")
    await beats(clock, first, second, times=3)
    mine = second.slots
    for _ in range(6):
        await second.process.log.write()
        await beats(clock, first, times=2)
    assert second.slots == mine
    assert await second.can_commit()


async def test_a_worker_that_was_replaced_is_notified_and_can_write_no_more(clock, joins):
    first, second = await joins("a"), await joins("b")
    await beats(clock, first, second, times=3)
    await beats(clock, first, times=5)
    assert second.process.log.has_lapsed(LEASE)
    assert not first.process.log.has_lapsed(LEASE)
    await second.beat()
    assert second.lost is not None
    assert not await second.can_commit()
    again = await joins("b")  # A new process of the same job joins again.
    await beats(clock, first, again, times=3)
    assert sizes(first, again) == [4, 4]


async def test_a_worker_that_was_cut_off_itself_takes_nobody_for_dead(clock, joins):
    first, second = await joins("a"), await joins("b")
    await beats(clock, first, second, times=3)
    clock.now += 100 * LEASE
    await first.beat()
    assert await second.can_commit()
    await beats(clock, first, second, times=3)
    assert sizes(first, second) == [4, 4]


async def test_a_slot_is_given_up_only_when_nothing_of_it_is_under_way(clock, joins):
    first = await joins("a")
    done, asked = asyncio.Event(), asyncio.Event()

    async def slow(slots):
        if slots < first.slots:
            asked.set()
            await done.wait()
        first.slots = set(slots)

    first.leases._on_change = slow
    second = await joins("b")
    beating = asyncio.ensure_future(first.beat())
    await asked.wait()
    for _ in range(3):
        await second.beat()
    assert second.slots == set()
    done.set()
    await beating
    await second.beat()
    assert sizes(first, second) == [4, 4]


@pytest.mark.long
async def test_workers_that_have_no_slots_and_are_gone_are_struck_out(clock, joins):
    workers = [await joins(number) for number in range(10)]
    await beats(clock, *workers, times=3)
    idle = [worker for worker in workers if not worker.slots]
    assert len(idle) == 2
    busy = [worker for worker in workers if worker.slots]
    await beats(clock, *busy, times=8)
    _, assignment = await busy[0].process.ownership.assignment()
    assert sorted(assignment.owners) == sorted(worker.name for worker in busy)


def after_the_next_assignment(watched, meanwhile):
    """Have the reply to the next change of the assignment lost, after something else has happened."""

    async def lost(name, arguments):
        if name == "frontier.add" and "assignment" in arguments:
            watched.after = nothing
            await meanwhile()
            raise Unreachable("the connection broke", path="/played")

    watched.after = lost


async def append(worker, *, prune):
    """Change nothing of the assignment, in a new record."""
    ownership = worker.process.ownership
    number, assignment = await ownership.assignment()
    assert await ownership.assign(number, assignment, assignment.of(worker.name))
    if prune:
        await ownership._assignment._prune(number + 1)


async def test_slots_that_were_given_up_are_not_kept_when_the_reply_is_lost_and_another_has_them(clock, joins, client):
    watched = WatchedClient(client)
    first, second = await joins("a", watched), await joins("b")
    after_the_next_assignment(watched, second.beat)
    await beats(clock, first)
    assert sizes(first, second) == [4, 4]
    assert all_slots(first, second) == list(range(SLOTS))


async def test_slots_that_were_given_up_are_not_kept_when_nobody_can_say_who_changed_the_assignment(
    clock, joins, client
):
    watched = WatchedClient(client)
    first, second = await joins("a", watched), await joins("b")

    async def take_and_prune():
        await second.beat()
        await append(second, prune=True)

    after_the_next_assignment(watched, take_and_prune)
    await beats(clock, first)
    assert sizes(first, second) == [4, 4]
    assert all_slots(first, second) == list(range(SLOTS))


@pytest.mark.parametrize("is_pruned", [False, True])
async def test_slots_that_were_taken_are_used_when_the_reply_is_lost_and_another_changes_the_assignment(
    clock, joins, client, is_pruned
):
    watched = WatchedClient(client)
    first, second, third = await joins("a"), await joins("b", watched), await joins("c")
    await beats(clock, first)

    after_the_next_assignment(watched, lambda: append(third, prune=is_pruned))
    await second.beat()
    assert watched.after is nothing
    # Where the record is gone, the next heartbeat finds out.
    await beats(clock, second)
    assert second.slots
    assert not first.slots & second.slots


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.long(keep=1)
async def test_no_slot_is_ever_committed_by_two(clock, process, client, seed):
    """Workers that beat, commit, sleep, die and join at the same time, over a network that loses calls."""
    rng = random.Random(seed)
    watched = WatchedClient(client)

    async def weather(name, arguments):
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
        if rng.random() < 0.03:
            raise Unreachable("the connection broke", path="/played")

    workers: list[Worker] = []

    async def join():
        made = process(f"commits-{len(workers)}", "auto", watched)
        with contextlib.suppress(Unreachable):
            workers.append(await Worker(made).join())

    async def commit(worker):
        slots = set(worker.slots)
        if await worker.can_commit():
            return
        assert worker.process.log.is_fenced or not slots
        worker.lose(Fenced("replaced"))

    watched.before = watched.after = weather
    await join()
    asleep: set[Worker] = set()
    for _ in range(24):
        clock.now += LEASE / 3
        living = [worker for worker in workers if worker.lost is None]
        asleep = {worker for worker in living if rng.random() < (0.9 if worker in asleep else 0.15)}
        doing = [worker.beat() for worker in living if worker not in asleep]
        doing += [commit(worker) for worker in living if rng.random() < 0.05]
        if len(living) < 4 and rng.random() < 0.4:
            doing.append(join())
        rng.shuffle(doing)
        await asyncio.gather(*doing)

        for slot in range(SLOTS):
            claim = [worker for worker in workers if slot in worker.slots]
            can = [worker.name for worker in claim if len(claim) > 1 and await worker.can_commit()]
            assert len(can) <= 1, f"slot {slot} is committed by {can}"

    watched.before = watched.after = nothing
    living = [worker for worker in workers if worker.lost is None]
    living.append(await Worker(process("commits-last", "auto")).join())
    await beats(clock, *living, times=SETTLED)
    living = [worker for worker in living if worker.lost is None]
    assert all_slots(*living) == list(range(SLOTS))
    assert living[-1].slots


async def test_they_do_it_by_themselves(process):
    """Three workers with tasks of their own; one dies, and one is notified that it was taken for dead."""
    workers = [Worker(process(f"commits-{n}", "auto"), lease_time=0.6) for n in range(3)]
    for worker in workers:
        await worker.join()
        worker.leases.start()
    await eventually_async(lambda: sizes(*workers) == [2, 3, 3])
    first, *others = workers
    await first.leases.close()
    await eventually_async(lambda: sizes(*others) == [4, 4])
    assert not await first.can_commit()
    first.leases.start()
    await eventually_async(lambda: first.lost is not None)
    await others[0].leases.close()
    await others[0].process.ownership.close()
    await eventually_async(lambda: others[1].slots == set(range(SLOTS)))
    await others[1].leases.close()


async def test_a_worker_without_slots_that_slept_and_was_struck_out_gets_a_share_when_it_wakes_up(clock, joins):
    """first holds all 8; the second joins (0 slots), sleeps over its lease and is struck out; then it wakes up."""
    first, second = await joins("a"), await joins("b")
    await beats(clock, first, times=8)
    await beats(clock, first, second, times=SETTLED)
    assert second.lost is not None or len(second.slots) == 4
