"""The order in which what a request has led to becomes final, and that it becomes so once."""

from __future__ import annotations

import asyncio
import zlib
from functools import partial
from operator import lt
from types import SimpleNamespace

import pytest
from scrapy import Request

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform.errors import Unreachable
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.crawl.commit.events import Checkpoint, Lot, OpenBatch, Progress, Stored
from scrapy_ext.crawl.commit.execution import Committer
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.protocol import Commits
from scrapy_ext.crawl.commit.tracking import Entry
from tests.support.crawl_processes import PROJECT
from tests.support.eventually import eventually_async

JOB = JobKey(PROJECT, 1, 1)


def lines(packed):
    return zlib.decompress(packed, zlib.MAX_WBITS | 16).decode().split()


class Recorder:
    """Records what is done to it. ``fail`` names the step that fails, ``hold`` the one that waits for ``go``."""

    def __init__(self):
        self.done = []
        self.fail = self.hold = None
        self.go = asyncio.Event()
        self.checkpoint = Checkpoint()
        self.payloads = SimpleNamespace(delete=self.delete)
        self.staged = {}
        self.items = {}

    async def step(self, name, *what):
        self.done.append((f"begin {name}", *what))
        await asyncio.sleep(0)
        if name == self.hold:
            await self.go.wait()
        if name == self.fail:
            raise RuntimeError(f"no {name}")
        self.done.append((name, *what))

    async def children(self):
        await self.step("children")

    async def stage(self, owner, number, packed):
        await self.step("stage", number)
        self.staged[number] = packed

    async def write(self):
        chunks = [] if self.checkpoint.redo is None else self.checkpoint.redo.chunks
        await self.step("journal", [(chunk.number, chunk.start, chunk.count) for chunk in chunks])

    async def store_chunk(self, redo, chunk, packed):
        await self.step("items", chunk.start)
        self.items.update(enumerate(lines(packed or self.staged[chunk.number]), chunk.start))

    async def acknowledge(self, batches):
        await self.step("acknowledge", batches)

    async def delete(self, owner, numbers):
        await self.step("forget", list(numbers))
        for number in numbers:
            del self.staged[number]

    def place(self, name):
        (place,) = (place for place, done in enumerate(self.done) if done[0] == name)
        return place

    def named(self, name):
        return [done[1] for done in self.done if done[0] == name]


@pytest.fixture
async def recorder():
    return Recorder()


@pytest.fixture
async def committer(recorder):
    made = []

    def make(start=0, interval=60.0, **more):
        committer = Committer(
            Commits(recorder.checkpoint, str(JOB), "me", start),
            recorder,
            more.get("finisher", recorder),
            interval=interval,
            flush_children=recorder.children,
            on_committed=lambda committed: recorder.done.append(("committed", committed)),
            on_failure=lambda error: recorder.done.append(("failed", error)),
        )
        made.append(committer)
        return committer

    yield make
    for one in made:
        await one.close()


def request(batch, position=0, *items):
    """A request that is complete."""
    entry = Entry("fp", Request("http://a.example/"), "a.example", Stored("fp", {}, batch, position), None)
    return lot_of(entry, *items)


def lot_of(entry, *items):
    return Lot(list(items), entry.stored, entry.payloads, origin=entry)


async def test_children_and_items_are_staged_then_journal_then_items_then_the_acknowledgement(committer, recorder):
    commits = committer()
    commits.add(request(OpenBatch(3, "a", 1), 0, b"1", b"2"))
    assert not commits.commits.is_idle
    await commits.close()
    assert commits.commits.is_idle
    steps = ["children", "begin journal", "journal", "begin items", "items", "begin acknowledge", "acknowledge"]
    places = [recorder.place(name) for name in [*steps, "committed"]]
    assert places == sorted(places)
    assert recorder.place("stage") < recorder.place("begin journal")
    assert recorder.named("acknowledge") == [{3: ["a"]}]
    assert recorder.items == {0: "1", 1: "2"}
    assert commits.commits.pending_bytes == 0


async def test_what_finishes_during_a_commit_is_committed_together_after_it(committer, recorder):
    commits = committer()
    recorder.hold = "items"
    commits.add(request(OpenBatch(0, "a", 1), 0, b"1"))
    commits.hurry()
    await eventually_async(lambda: recorder.named("begin items"))
    for name in "bcd":
        commits.add(request(OpenBatch(0, name, 1), 0, b"2"))
    commits.add(request(OpenBatch(3, "e", 1)))
    recorder.go.set()
    await commits.close()
    assert recorder.named("acknowledge") == [{0: ["a"]}, {0: ["b", "c", "d"], 3: ["e"]}]
    assert recorder.named("journal") == [[(1, 0, 1)], [(2, 1, 3)]]


async def test_items_are_stored_in_the_order_of_the_lots_from_the_given_index(committer, recorder):
    commits = committer(start=10)
    commits.add(request(OpenBatch(0, "a", 1), 0, b"1", b"2"))
    commits.add(Lot([b"3"]))
    await commits.close()
    assert recorder.items == {10: "1", 11: "2", 12: "3"}


async def test_nothing_but_finished_requests_is_acknowledged_without_items(committer, recorder):
    commits = committer()
    batch = OpenBatch(0, "a", 2)
    commits.add(request(batch, 0))
    commits.add(request(batch, 1))
    await commits.close()
    assert recorder.named("acknowledge") == [{0: ["a"]}]
    assert not recorder.named("begin items")
    assert not recorder.staged
    assert recorder.place("children") < recorder.place("journal")


async def test_a_batch_is_acknowledged_when_its_last_request_is_committed(committer, recorder):
    commits = committer()
    batch = OpenBatch(0, "a", 3, done=0b010)
    commits.add(request(batch, 2))
    commits.hurry()
    await eventually_async(lambda: recorder.named("committed"))
    assert recorder.named("acknowledge") == [{}]
    assert recorder.checkpoint.progress == Progress({0: {"a": "6"}})
    commits.add(request(batch, 0))
    await commits.close()
    assert recorder.named("acknowledge") == [{}, {0: ["a"]}]
    assert recorder.checkpoint.progress == Progress()


async def test_items_of_start_are_counted(committer, recorder):
    commits = committer()
    commits.add(Lot([b"1"], is_start=True))
    commits.add(Lot([b"2"]))
    commits.add(Lot([b"3"], is_start=True))
    await commits.close()
    assert recorder.checkpoint.start_items == 2


async def test_a_lot_waits_no_longer_than_the_interval(committer, recorder):
    commits = committer(interval=0.01)
    commits.add(Lot([b"1"]))
    await eventually_async(lambda: recorder.named("committed"))
    assert commits.commits.is_idle


@pytest.mark.parametrize(
    ("lots", "items", "size"), [(100, 0, 0), (1, 1000, 1), (1, 1, 2**20)], ids=["requests", "items", "bytes"]
)
async def test_many_do_not_wait_for_it(committer, recorder, lots, items, size):
    commits = committer()
    for number in range(lots):
        assert not recorder.done
        commits.add(request(OpenBatch(0, str(number), 1), 0, *[b"x" * size] * items))
    await eventually_async(lambda: recorder.named("committed"))


async def test_much_is_committed_in_pieces(committer, recorder):
    commits = committer()
    for number in range(40):
        commits.add(request(OpenBatch(0, str(number), 1), 0, *[b"%d" % number] * 250))
    await commits.close()
    assert max(count for ((_, _, count),) in recorder.named("journal")) <= 1250
    assert list(recorder.items.values()) == [str(number) for number in range(40) for _ in range(250)]


# ── spills ──


def spilling(batch, *items):
    entry = request(batch).origin
    for item in items:
        entry.add_item(item)
    return entry


async def test_items_that_were_staged_early_come_before_the_later_ones_of_their_request(committer, recorder):
    commits = committer()
    entry = spilling(OpenBatch(0, "a", 1), b"1", b"2")
    commits.spill(entry)
    entry.add_item(b"3")
    commits.spill(entry)
    assert (entry.items, entry.size) == ([], 0)
    entry.add_item(b"4")
    commits.add(lot_of(entry, *entry.take_items()))
    await commits.close()
    assert recorder.items == {0: "1", 1: "2", 2: "3", 3: "4"}
    assert recorder.named("journal") == [[(1, 0, 2), (2, 2, 1), (3, 3, 1)]]
    assert commits.commits.pending_bytes == 0


async def test_a_commit_waits_until_what_is_staged_early_is_there(committer, recorder):
    commits = committer()
    recorder.hold = "stage"
    entry = spilling(OpenBatch(0, "a", 1), b"1")
    commits.spill(entry)
    commits.add(lot_of(entry))
    commits.hurry()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not recorder.named("begin journal")
    recorder.go.set()
    await commits.close()
    assert recorder.items == {0: "1"}


async def test_items_of_an_attempt_that_failed_are_not_stored(committer, recorder):
    commits = committer()
    entry = spilling(OpenBatch(0, "a", 1), b"1", b"2")
    commits.spill(entry)
    entry.add_item(b"3")
    commits.discard(entry)
    entry.add_item(b"again")
    commits.add(lot_of(entry, *entry.take_items()))
    await commits.close()
    assert recorder.items == {0: "again"}


async def test_what_was_staged_is_removed_when_no_record_names_it_any_more(committer, recorder):
    commits = committer()
    for number in range(40):
        commits.add(Lot([b"%d" % number]))
        commits.hurry()
        await eventually_async(lambda: len(recorder.named("committed")), partial(lt, number))
        assert recorder.checkpoint.redo.chunks[0].number in recorder.staged
    await commits.close()
    assert len(recorder.staged) < 40
    forgotten = [number for numbers in recorder.named("forget") for number in numbers]
    assert len(forgotten) == len(set(forgotten)) >= 30
    assert list(recorder.items.values()) == [str(number) for number in range(40)]


async def test_garbage_that_cannot_be_removed_ends_nothing(committer, recorder):
    async def refuse(owner, numbers):
        raise Unreachable("away")

    recorder.payloads.delete = refuse
    commits = committer()
    for number in range(40):
        commits.add(Lot([b"1"]))
        commits.hurry()
        await eventually_async(lambda: len(recorder.named("committed")), partial(lt, number))
    assert commits.commits.failure is None


# ── failure and back-pressure ──

_BEHIND = {
    "children": ["journal", "items", "acknowledge"],
    "stage": ["journal", "items", "acknowledge"],
    "journal": ["items", "acknowledge"],
    "items": ["acknowledge"],
    "acknowledge": [],
}


@pytest.mark.parametrize("step", _BEHIND)
async def test_a_failure_ends_it_and_is_reported_and_nothing_of_what_follows_is_done(committer, recorder, step):
    commits = committer()
    recorder.fail = step
    commits.add(request(OpenBatch(0, "a", 1), 0, b"1"))
    await commits.close()
    (error,) = recorder.named("failed")
    assert str(error) == str(commits.commits.failure) == f"no {step}"
    assert not commits.commits.is_idle
    assert not any(recorder.named(f"begin {name}") for name in _BEHIND[step])
    assert not recorder.named("committed")
    commits.add(request(OpenBatch(0, "b", 1)))
    await commits.close()
    assert recorder.done[-1][0] == "failed"


async def test_a_process_that_was_replaced_stores_nothing(committer, recorder):
    async def fenced():
        raise Fenced("another writer")

    recorder.write = fenced
    commits = committer()
    commits.add(request(OpenBatch(0, "a", 1), 0, b"1"))
    await commits.close()
    assert isinstance(commits.commits.failure, Fenced)
    assert recorder.items == {}
    assert not recorder.named("begin acknowledge")


async def test_who_waits_for_room_goes_on_when_something_is_stored(committer, recorder):
    commits = committer()
    commits.add(Lot([b"x" * 100]))
    assert commits.commits.pending_bytes == 100
    async with timeout_after(60):
        while commits.commits.pending_bytes:
            await commits.wait_for_progress()
    assert list(recorder.items.values()) == ["x" * 100]


@pytest.mark.parametrize("step", ["journal", "stage"])
async def test_who_waits_for_room_goes_on_when_it_fails(committer, recorder, step):
    commits = committer()
    recorder.fail = step
    commits.add(Lot([b"x"]))
    async with timeout_after(60):
        while commits.commits.failure is None:
            await commits.wait_for_progress()
        await commits.wait_for_progress()


async def test_nobody_waits_when_nothing_does(committer):
    async with timeout_after(60):
        await committer().wait_for_progress()


async def test_who_waits_for_an_early_payload_goes_on_when_it_is_staged(committer, recorder):
    commits = committer()
    commits.spill(spilling(OpenBatch(0, "a", 1), b"x" * 10))
    assert commits.commits.pending_bytes == 10
    async with timeout_after(60):
        while commits.commits.pending_bytes:
            await commits.wait_for_progress()


async def test_closing_what_never_started_is_nothing(recorder):
    await Committer(
        Commits(Checkpoint(), str(JOB), "me", 0),
        recorder,
        recorder,
        interval=1.0,
        flush_children=recorder.children,
        on_committed=print,
        on_failure=print,
    ).close()
