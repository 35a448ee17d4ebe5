"""Reading ahead from a queue that gives its head again and again."""

import asyncio

import pytest

from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.crawl.frontier.slots import SlotReader, read_together


class Queue:
    """The documented behaviour of a slot's queue: whole batches from the head until mincount is reached. Known ones are
    left out by the client."""

    def __init__(self, *sizes):
        self.batches = [Batch(f"b{n}", [(f"{n}-{i}", None) for i in range(size)]) for n, size in enumerate(sizes)]
        self.asked = []

    def head(self, mincount):
        taken = []
        for batch in self.batches:
            if sum(len(b.requests) for b in taken) >= mincount:
                break
            taken.append(batch)
        return taken

    async def read(self, mincount, known):
        self.asked.append(mincount)
        return [batch for batch in self.head(mincount) if batch.id not in known]


def ids(batches):
    return [batch.id for batch in batches]


async def test_what_is_held_is_asked_past_and_not_given_twice():
    queue = Queue(100, 100, 100)
    reader = SlotReader(0, queue.read)
    assert ids(await reader.more(50)) == ["b0"]
    assert ids(await reader.more(150)) == ["b1", "b2"]
    assert ids(await reader.more(10)) == []
    assert queue.asked == [50, 250, 310]


async def test_a_slot_is_read_again_only_after_something_was_written():
    reader = SlotReader(0, Queue(1).read)
    assert reader.may_have_more
    await reader.more(10)
    assert reader.may_have_more
    await reader.more(10)
    assert not reader.may_have_more
    reader.written()
    assert reader.may_have_more


async def test_a_slot_that_others_write_to_is_read_again_when_it_is_polled():
    queue = Queue()
    reader = SlotReader(0, queue.read)
    await reader.more(10)
    assert not reader.may_have_more
    queue.batches = Queue(1).batches
    reader.poll()
    assert reader.may_have_more
    assert ids(await reader.more(10)) == ["b0"]


async def test_a_server_that_bounds_its_reads_is_read_to_the_end():
    class Bounded(Queue):
        def head(self, mincount):
            return super().head(mincount)[:3]

    queue = Bounded(*[1] * 10)
    reader = SlotReader(0, queue.read)
    seen = []
    while reader.may_have_more:
        found = await reader.more(100)
        seen += ids(found)
        if not found and queue.batches:
            done = queue.batches.pop(0)
            reader.deleted(done.id)
    assert seen == [f"b{n}" for n in range(10)]


async def test_a_write_during_a_read_is_not_overlooked():
    class Raced(Queue):
        async def read(self, mincount, known):
            taken = await super().read(mincount, known)
            reader.written()
            return taken

    reader = SlotReader(0, Raced().read)
    assert await reader.more(10) == []
    assert reader.may_have_more


async def test_a_late_read_does_not_bring_back_a_batch_that_was_deleted():
    queue = Queue(1, 1)
    reader = SlotReader(0, queue.read)
    await reader.more(2)
    reader.deleted("b0")
    assert ids(await reader.more(10)) == []


async def test_nor_does_one_that_was_deleted_while_the_read_was_on_its_way():
    class Slow(Queue):
        async def read(self, mincount, known):
            if "b0" in known:
                reader.deleted("b0")
            return await super().read(mincount, known)

    reader = SlotReader(0, Slow(1, 1).read)
    assert ids(await reader.more(1)) == ["b0"]
    assert ids(await reader.more(1)) == ["b1"]
    assert ids(await reader.more(1)) == []


async def test_of_many_deleted_batches_the_last_are_remembered():
    queue = Queue(*[1] * 1200)
    reader = SlotReader(0, queue.read)
    for batch in await reader.more(1200):
        reader.deleted(batch.id)
    assert len(reader._deleted) == 1000
    queue.batches = queue.batches[200:]
    assert ids(await reader.more(1)) == []


async def test_what_could_not_be_taken_comes_again():
    reader = SlotReader(0, Queue(2, 2).read)
    batches = await reader.more(10)
    reader.forget(batches)
    assert reader.may_have_more
    assert ids(await reader.more(10)) == ids(batches) == ["b0", "b1"]


async def test_batches_that_have_arrived_when_the_reads_are_cancelled_are_read_again():
    queue, never = Queue(1, 1), asyncio.Event()

    async def hang(mincount, known):
        await never.wait()

    readers = [SlotReader(0, queue.read), SlotReader(1, hang)]
    task = asyncio.ensure_future(read_together(readers, [reader.more(1) for reader in readers]))
    while not queue.asked:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert readers[0].may_have_more
    assert ids(await readers[0].more(1)) == ["b0"]
