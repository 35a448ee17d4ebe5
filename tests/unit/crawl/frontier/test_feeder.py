"""Waiting requests are sent, wanted ones are read, and the consumer is notified of each error."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from scrapy.settings import Settings

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.frontier import MAX_BATCH, Batch
from scrapy_ext.client.platform.errors import Forbidden, Unreachable
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.frontier.reading import Feeder
from scrapy_ext.crawl.frontier.slots import Slots
from scrapy_ext.crawl.session.writers import Writers


class Consumer:
    """Takes what comes, and says how it went, in the place of memory, arrivals, results and the end of the crawl.
    ``fails`` are raised in turn, by reads and by the named call."""

    def __init__(self):
        self.waiting = 0
        self.parked = 0
        self.expects_requests = True
        self.unplaced = 0
        self.taken = []
        self.wanted = []
        self.calls = []
        self.fails = {}
        self.changed = asyncio.Event()

    def notify(self, what):
        self.calls.append(what)
        self.changed.set()
        if self.fails.get(what):
            raise self.fails[what].pop(0)

    async def before_work(self):
        self.notify("work")

    async def look_up(self, batches):
        self.notify("look")

    def take(self, slot, batch):
        self.taken += [fp for fp, _ in batch.requests]
        self.waiting += len(batch.requests)

    def after_read(self, *, in_vain):
        pass

    async def when_empty(self):
        self.notify("empty")

    def wake(self):
        pass

    def give_up(self, error):
        self.calls.append(error)
        self.changed.set()

    async def until(self, condition):
        async with timeout_after(60):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class Platform:
    """The queues of a frontier, and as much of a session as their writers need."""

    are_joint = False

    def __init__(self, consumer):
        self.consumer = consumer
        self.batches = {}
        self.client = SimpleNamespace(frontier=self)
        self.job = SimpleNamespace(key=JobKey(7, 1, 1))
        crawler = SimpleNamespace(settings=Settings({"PLATFORM_FLUSH_INTERVAL": 60.0}), stats=None)
        self.writers = Writers(crawler, consumer.give_up)

    async def read(self, slot, mincount, known):
        self.consumer.notify("read")
        self.consumer.wanted.append(mincount)
        return [batch for batch in self.batches.get(slot, []) if batch.id not in known]

    async def add(self, slot, body):
        self.consumer.notify("send")
        lines = body.split()
        self.batches.setdefault(slot, []).extend(
            Batch(f"{slot}-{line.decode()}", [(line.decode(), None)]) for line in lines
        )
        return len(lines)


@pytest.fixture
async def consumer():
    return Consumer()


@pytest.fixture
async def slots(consumer):
    crawler = SimpleNamespace(stats=SimpleNamespace(inc_value=lambda name, by=1: None))
    platform = Platform(consumer)
    return Slots(crawler, platform, "frontier", platform)


@pytest.fixture
async def feeder(slots, consumer):
    retry = Retry(0.0, Backoff(0.001, 0.01))
    made = Feeder(slots, *[consumer] * 4, prefetch=10, retry=retry, on_failure=consumer.give_up)
    yield made
    await made.close()


def start(feeder, slots, owned):
    slots.own(owned)
    feeder.start()


async def test_what_is_sent_to_an_own_slot_comes_back(feeder, slots, consumer):
    start(feeder, slots, {0, 1})
    await consumer.until(lambda: "empty" in consumer.calls)
    assert not slots.has_work
    for number in range(3):
        slots.send(number % 2, b"r%d" % number, soon=True)
    assert slots.has_work
    await consumer.until(lambda: len(consumer.taken) == 3)
    assert sorted(consumer.taken) == ["r0", "r1", "r2"]


async def test_what_is_sent_to_a_slot_of_another_is_not_read(feeder, slots, consumer):
    start(feeder, slots, {0})
    slots.send(5, b"theirs", soon=True)
    await consumer.until(lambda: "send" in consumer.calls)
    await consumer.until(lambda: consumer.calls[-1] == "empty")
    assert consumer.taken == []


async def test_a_worker_without_slots_looks_for_its_end_at_each_poll(feeder, slots, consumer):
    start(feeder, slots, set())
    await consumer.until(lambda: "empty" in consumer.calls)
    for number in (2, 3):
        slots.poll()
        await consumer.until(lambda number=number: consumer.calls.count("empty") >= number)


async def test_all_is_durable_when_it_was_flushed(feeder, slots, consumer):
    start(feeder, slots, set())
    for slot in range(20):
        slots.send(slot, b"x", soon=True)
    await slots.flush()
    assert consumer.calls.count("send") == 20
    assert not slots.has_work


async def test_a_failure_that_passes_is_tried_again(feeder, slots, consumer):
    consumer.fails = {"read": [Unreachable("away")] * 3}
    start(feeder, slots, {0})
    await consumer.until(lambda: "empty" in consumer.calls)
    assert not any(isinstance(call, Exception) for call in consumer.calls)


@pytest.mark.parametrize(
    "error", [Forbidden("no"), Fenced("replaced"), ValueError("odd")], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("call", ["read", "work", "look"])
async def test_a_failure_that_does_not_pass_is_reported(feeder, slots, consumer, call, error):
    start(feeder, slots, set())
    slots.send(0, b"x", soon=True)
    await slots.flush()
    consumer.fails = {call: [error]}
    slots.own({0})
    await consumer.until(lambda: error in consumer.calls)


async def test_an_idle_worker_that_was_replaced_is_notified(feeder, slots, consumer):
    error = Fenced("replaced")
    consumer.fails = {"empty": [error]}
    start(feeder, slots, {0})
    await consumer.until(lambda: error in consumer.calls)


async def test_a_worker_that_waits_for_others_outlasts_an_outage(feeder, slots, consumer):
    consumer.fails = {"empty": [Unreachable("away")]}
    start(feeder, slots, {0})
    await consumer.until(lambda: consumer.calls.count("empty") >= 1)
    slots.poll()
    await consumer.until(lambda: consumer.calls.count("empty") >= 2)


async def test_while_all_requests_are_in_memory_a_slot_is_read_for_places_only(feeder, slots, consumer):
    start(feeder, slots, {0})
    await consumer.until(lambda: "empty" in consumer.calls)
    consumer.expects_requests, consumer.waiting = False, 1
    consumer.calls.clear()
    slots.send(0, b"a", soon=True)
    await slots.flush()
    slots.acknowledged(0, "an earlier batch")
    for _ in range(10):
        await asyncio.sleep(0)
    assert "read" not in consumer.calls
    consumer.unplaced = 5
    slots.place()
    await consumer.until(lambda: "a" in consumer.taken)
    for _ in range(10):
        await asyncio.sleep(0)
    assert consumer.calls.count("read") == 1, "it returned fewer requests than it requested"
    assert consumer.wanted[-1] > MAX_BATCH, "requests that are in memory take no more of it"
