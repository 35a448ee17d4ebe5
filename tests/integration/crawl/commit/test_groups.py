"""Workers of a group take over the journals of dead ones, and store their last items in the streams of these."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.job_data import attempt_of_journal, journal_of
from scrapy_ext.api.platform.workers import Report, Silent
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import AttemptOver, Forbidden
from scrapy_ext.crawl.commit.leases import Leases
from scrapy_ext.settings import SettingError
from tests.support.crawl_processes import PROJECT, Process, stored

SLOTS = 4


class Worker:
    """A worker that has joined. It is alive as long as it is listed."""

    def __init__(self, client: PlatformClient, key: JobKey, process: Process, attempt: int) -> None:
        self.client, self.key, self.process, self.attempt = client, key, process, attempt
        self.ownership = process.ownership
        self.leases = Leases(self.ownership, SLOTS, self, on_change=self.change, on_lost=lambda fenced: None)
        self.slots: set[int] = set()

    def soon(self, workers):
        return 0.2

    async def change(self, slots: set[int]) -> None:
        self.slots = set(slots)

    async def open(self) -> Worker:
        await self.ownership.open(set())
        await self.leases.join()
        return self

    async def bury(self, other: Worker) -> None:
        """Name another worker as silent."""
        number = 2 + other.attempt
        silent = (Silent(other.attempt, 1),)
        await self.client.workers.report(
            PROJECT, Report(job=str(self.key), attempt=self.attempt, number=number, silent=silent)
        )

    def begin(self) -> None:
        pass

    async def live(self, names):
        listed = {row.attempt for row in await self.client.workers.list(PROJECT, self.key) if not row.closed}
        return [name for name in names if attempt_of_journal(name) in listed]


@pytest.fixture
async def joins(client, frontier, retry):
    key = JobKey.parse((await client.jobq.push(PROJECT, "spider", state="running")).key)
    async with AsyncExitStack() as opened:

        async def joins() -> Worker:
            nonce = secrets.token_hex(16)
            answer = await client.workers.report(PROJECT, Report(job=str(key), nonce=nonce, number=1, workers="3"))
            own = await opened.enter_async_context(PlatformClient(client.urls, answer.token))
            process = Process(own, frontier, retry, journal_of(key, answer.attempt), str(answer.worker))
            return await Worker(own, key, process, answer.attempt).open()

        yield joins


async def test_the_items_of_a_dead_worker_are_stored_once_in_its_stream(joins, client):
    dead, alive = await joins(), await joins()
    await alive.process.client.items.write_stream(alive.key, alive.attempt, b'{"of": "alive"}\n', 0)
    await dead.process.begin_commit(alive.key, 0, {"of": "dead"}, writer=dead.attempt)
    with pytest.raises(Forbidden):
        # It is listed, and may be about to store them itself.
        await alive.ownership.progress_of(dead.ownership.name, {0}, may_wait=False)
    await alive.bury(dead)
    await alive.leases.balance()
    assert alive.slots == set(range(SLOTS))
    assert await stored(client, alive.key) == [{"of": "alive"}, {"of": "dead"}]
    with pytest.raises(AttemptOver):
        await dead.process.client.items.write_stream(alive.key, dead.attempt, b'{"of": "dead"}\n', 0)
    assert (await client.jobs.metadata(alive.key))["state"] == "running"


async def test_so_are_those_of_one_without_slots_which_may_have_run_start(joins, client):
    first = await joins()
    dead = await joins()
    assert (first.slots, dead.slots) == (set(range(SLOTS)), set())
    dead.ownership.log.checkpoint.start_items = 1
    await dead.process.begin_commit(first.key, 0, {"of": "start"}, writer=dead.attempt)
    await first.bury(dead)
    await first.leases.balance()
    assert await stored(client, first.key) == [{"of": "start"}]
    assert list((await first.ownership.assignment())[1].owners) == [first.ownership.name]
    assert await first.ownership.start_items_of_others(first.key) == 1


async def test_workers_that_are_listed_keep_their_slots_however_long_they_write_nothing(joins):
    first, second = await joins(), await joins()
    for _ in range(3):
        await first.leases.balance()
        await second.leases.balance()
    assert (len(first.slots), len(second.slots)) == (2, 2)
    assert first.slots.isdisjoint(second.slots)


async def test_a_process_without_the_group_cannot_take_its_slots(joins, process):
    await joins()
    alone = process("commits-a", "0/1")
    with pytest.raises(SettingError, match="a job with several workers"):
        await alone.open(*range(SLOTS))


async def test_the_slots_of_a_worker_that_waits_for_the_others_are_taken_over_and_it_ends_as_it_would(joins, client):
    closed, alive = await joins(), await joins()
    await alive.leases.balance()
    await closed.ownership.close()

    async def report(number: int, **fields):
        own = Report(job=str(closed.key), attempt=closed.attempt, number=number, closed=True, **fields)
        return await closed.client.workers.report(PROJECT, own)

    await report(2)
    await alive.leases.balance()
    assert alive.slots == set(range(SLOTS))
    _, assignment = await alive.ownership.assignment()
    assert closed.ownership.name not in assignment.owners
    await closed.client.items.write_stream(closed.key, closed.attempt, b'{"of": "closed"}\n', 0)
    answer = await report(3, last=True, outcome="finished")
    assert [worker.attempt for worker in answer.workers] == [alive.attempt]
    assert await stored(client, closed.key) == [{"of": "closed"}]
