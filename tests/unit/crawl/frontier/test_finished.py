"""Finished requests are committed in the order in which they finished, once their batch is known."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request

from scrapy_ext.crawl.commit.events import OpenBatch, Stored
from scrapy_ext.crawl.commit.tracking import Entry
from scrapy_ext.crawl.frontier import results as module
from scrapy_ext.crawl.frontier.results import FinishedRequests

URL = "http://a.example/"


class Waiting:
    """The requests of a test; ``reads`` counts how often their batches were asked for."""

    def __init__(self, interval=60.0):
        self.committed = []
        self.reads = 0
        self.has_read = asyncio.Event()
        self.queue = FinishedRequests(lambda entry: self.committed.append(entry.fp), self.read, interval)

    def read(self):
        self.reads += 1
        self.has_read.set()


@pytest.fixture
async def waiting():
    made = Waiting()
    yield made
    made.queue.close()


def direct(fp, size=0):
    entry = Entry(fp, Request(URL), "a.example", None, None, slot=0)
    entry.size = size
    return entry


def place(entry):
    entry.stored = Stored(entry.fp, {}, OpenBatch(0, "batch", 1), 0)
    return entry


def local(fp):
    return Entry(fp, Request(URL), "a.example", None, None)


async def test_what_has_its_place_is_committed_at_once(waiting):
    waiting.queue.add(place(direct("a")), 5)
    waiting.queue.add(local("b"), 5)
    assert (waiting.committed, waiting.reads) == (["a", "b"], 0)


async def test_what_finished_later_waits_for_what_finished_earlier(waiting):
    first, second = direct("first"), direct("second", size=7)
    waiting.queue.add(first, 5)
    waiting.queue.add(place(second), 5)
    waiting.queue.add(local("third"), 5)
    waiting.queue.release(in_vain=False)
    assert (waiting.committed, len(waiting.queue), waiting.queue.bytes) == ([], 3, 7)
    place(first)
    waiting.queue.release(in_vain=False)
    assert (waiting.committed, len(waiting.queue), waiting.queue.bytes) == (["first", "second", "third"], 0, 0)


async def test_where_no_place_can_be_had_the_others_pass(waiting):
    for entry in (direct("a"), place(direct("b")), direct("c"), place(direct("d"))):
        waiting.queue.add(entry, 5)
    waiting.queue.release(in_vain=True)
    assert (waiting.committed, len(waiting.queue)) == (["b", "d"], 2)


async def test_batches_are_read_when_enough_requests_wait_by_what_is_in_memory(waiting):
    for number in range(99):
        waiting.queue.add(direct(str(number)), 10)
    assert waiting.reads == 0
    waiting.queue.add(direct("enough"), 10_000)
    assert waiting.reads == 0, "each read brings all of them"
    waiting.queue.add(direct("more"), 10)
    assert waiting.reads == 1


async def test_reads_for_many_requests_are_half_an_interval_apart():
    waiting = Waiting(interval=4.0)
    for number in range(1000):
        waiting.queue.add(direct(str(number)), 10)
    assert waiting.reads == 1
    waiting.has_read.clear()
    await asyncio.wait_for(waiting.has_read.wait(), 30)
    assert waiting.reads == 2, "for those that came after the first read"
    waiting.queue.add(direct("more"), 10)
    assert waiting.reads == 2
    waiting.queue.add(direct("last"), 0)
    assert waiting.reads == 3, "the end of a crawl does not wait"
    waiting.queue.close()


async def test_batches_are_read_when_nothing_else_is_left_or_items_are_large(waiting):
    waiting.queue.add(direct("last"), 0)
    assert waiting.reads == 1
    waiting.queue.add(direct("large", size=module._ENOUGH_BYTES), 5)
    assert waiting.reads == 2


async def test_batches_are_read_after_a_while():
    waiting = Waiting(interval=0.01)
    waiting.queue.add(direct("a"), 5)
    await waiting.has_read.wait()
    assert waiting.reads == 1


async def test_who_waits_for_room_waits_for_a_read(waiting):
    entry = direct("a", size=100)
    waiting.queue.add(entry, 5)
    task = asyncio.ensure_future(waiting.queue.wait())
    await waiting.has_read.wait()
    place(entry)
    waiting.queue.release(in_vain=False)
    await task
    assert waiting.queue.bytes == 0
