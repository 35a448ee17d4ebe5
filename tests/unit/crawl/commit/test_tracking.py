"""Completion of a request, and the requests and items that it led to."""

from __future__ import annotations

import asyncio
import weakref
from contextvars import copy_context

import pytest
from scrapy import Request

from scrapy_ext.crawl.commit.events import OpenBatch, Payload, Stored
from scrapy_ext.crawl.commit.tracking import START, Entry, Tracker, current


class NotingTracker(Tracker):
    """Notes the entries that it returned: complete ones, and holders that got results before they were."""

    def __init__(self):
        super().__init__()
        self.completed = []
        self.inherited = []

    def finished(self, request):
        entry = super().finished(request)
        if entry is not None:
            (self.completed if entry.is_complete else self.inherited).append(entry)
        return entry


@pytest.fixture
def tracker():
    return NotingTracker()


@pytest.fixture
def completed(tracker):
    return tracker.completed


@pytest.fixture
def inherited(tracker):
    return tracker.inherited


def url(name):
    return f"http://a.example/{name}"


def read(tracker, *names, slot=0):
    batch = OpenBatch(slot, "batch", len(names))
    return [
        tracker.read(Stored(name, {}, batch, position), Request(url(name)), "a.example")
        for position, name in enumerate(names)
    ]


def local(tracker, name, parent):
    return tracker.local(name, Request(url(name)), "a.example", parent)


def test_a_request_is_complete_once_when_the_engine_lets_go_of_it(tracker, completed):
    one, two = read(tracker, "1", "2")
    first, second = tracker.handed_out(one), tracker.handed_out(two)
    assert (tracker.unfinished, tracker.is_open(one)) == (2, True)
    tracker.finished(first)
    tracker.finished(first)
    assert [entry.fp for entry in completed] == ["1"]
    assert (tracker.unfinished, tracker.is_open(one), tracker.is_open(two)) == (1, False, True)
    tracker.finished(second)
    assert [entry.fp for entry in completed] == ["1", "2"]
    assert tracker.unfinished == 0


def test_a_request_that_was_never_read_changes_nothing(tracker, completed):
    read(tracker, "1")
    tracker.finished(Request(url("robots.txt")))
    assert (completed, tracker.unfinished) == ([], 1)


def test_a_retry_carries_on_for_its_origin(tracker, completed):
    (entry,) = read(tracker, "1")
    request = tracker.handed_out(entry)
    entry.request = request.replace(dont_filter=True)
    tracker.finished(request)
    assert completed == []
    tracker.finished(tracker.handed_out(entry))
    assert completed == [entry]


def test_a_batch_knows_when_each_of_its_requests_is_committed():
    batch = OpenBatch(0, "b", 3, done=0b101)
    assert not batch.is_done
    batch.done |= 0b010
    assert batch.is_done
    assert OpenBatch(0, "empty", 0).is_done


def test_the_holder_of_a_local_request_is_complete_only_when_that_is(tracker, completed):
    holder, other = read(tracker, "holder", "other")
    request = tracker.handed_out(holder)
    child = local(tracker, "local", holder)
    tracker.finished(request)
    tracker.finished(tracker.handed_out(other))
    assert completed == [other]
    assert tracker.is_open(holder)
    tracker.finished(tracker.handed_out(child))
    assert completed == [other, holder]
    assert not tracker.is_open(holder)


def test_a_local_request_that_finishes_first_does_not_complete_its_holder(tracker, completed):
    (holder,) = read(tracker, "holder")
    request = tracker.handed_out(holder)
    tracker.finished(tracker.handed_out(local(tracker, "local", holder)))
    assert completed == []
    tracker.finished(request)
    assert completed == [holder]


def test_local_requests_of_local_requests_have_the_same_holder(tracker, completed):
    (holder,) = read(tracker, "holder")
    request = tracker.handed_out(holder)
    child = local(tracker, "child", holder)
    tracker.finished(request)
    grandchild = local(tracker, "grandchild", child)
    tracker.finished(tracker.handed_out(child))
    assert completed == []
    assert grandchild.holder is holder
    assert holder.local_fps == ["child", "grandchild"]
    tracker.finished(tracker.handed_out(grandchild))
    assert completed == [holder]


def test_what_local_requests_lead_to_is_their_holders(tracker, completed):
    (holder,) = read(tracker, "holder")
    child = local(tracker, "local", holder)
    holder.add_item(b"of the holder")
    child.add_item(b"of the child")
    child.payloads.append(Payload(1, 5))
    tracker.finished(tracker.handed_out(child))
    assert (holder.items, holder.size) == ([b"of the holder", b"of the child"], 25)
    assert holder.payloads == [Payload(1, 5)]
    assert (child.items, child.payloads) == ([], [])
    assert holder.take_items() == [b"of the holder", b"of the child"]
    assert (holder.items, holder.size) == ([], 0)


def test_a_local_request_without_a_holder_is_complete_by_itself(tracker, completed):
    one = local(tracker, "of start", None)
    child = local(tracker, "its child", one)
    assert child.holder is None
    tracker.finished(tracker.handed_out(one))
    tracker.finished(tracker.handed_out(child))
    assert completed == [one, child]


def test_a_request_that_is_tried_again_is_complete_again(tracker, completed):
    (entry,) = read(tracker, "1")
    entry.children["child"] = 2
    entry.error = "ValueError: no"
    tracker.finished(tracker.handed_out(entry))
    entry.answers.append(b"paid")
    again = Request(url("1"))
    following = tracker.again(entry, again)
    assert (following.attempt, following.error, following.children, following.is_complete) == (2, None, {}, False)
    assert (following.stored, following.slot, following.answers) == (entry.stored, entry.slot, [b"paid"])
    assert (tracker.unfinished, tracker.is_open(following)) == (1, True)
    # Tasks that the first attempt left behind do not count for the second.
    assert (tracker.is_open(entry), tracker.is_open(following)) == (False, True)
    assert tracker.handed_out(following) is again
    tracker.finished(again)
    assert completed == [entry, following]


def test_entries_of_slots_that_are_given_up_can_be_dropped(tracker, completed):
    (one,), (two,) = read(tracker, "1", slot=1), read(tracker, "2", slot=2)
    local(tracker, "local", one)
    assert tracker.entries_of({1}) == [one]
    tracker.drop(one)
    tracker.drop(one)
    assert tracker.entries_of({1, 2}) == [two]
    assert completed == []


async def test_the_tasks_of_a_request_and_no_others_work_for_it(tracker):
    """As the engine does: it starts a task when it has been handed a request, and tasks start tasks."""
    one, two = read(tracker, "1", "2")
    seen = {}

    async def callback(name):
        await asyncio.sleep(0)
        seen[name] = current.get()
        if name != "pipeline":
            await asyncio.ensure_future(callback("pipeline"))
            seen[f"{name} after"] = current.get()

    tasks = []
    for entry in (one, two):
        current.set(entry)
        tasks.append(asyncio.ensure_future(callback(entry.fp)))
    current.set(None)
    await asyncio.gather(*tasks)
    assert (seen["1"], seen["1 after"], seen["2"], seen["2 after"]) == (one, one, two, two)
    assert current.get() is None


def test_what_runs_for_start_is_no_entry():
    assert not isinstance(START, Entry)
    assert copy_context().run(current.get) is None


def test_a_finished_request_counts_as_open_while_what_it_holds_is_not_finished(tracker, completed, inherited):
    (holder,) = read(tracker, "holder", slot=3)
    tracker.handed_out(holder)
    first, second = (tracker.local(name, Request(url(name)), "a.example", holder) for name in ("first", "second"))
    tracker.finished(holder.request)
    assert list(tracker.entries_of({3})) == [holder]
    for local in (first, second):
        tracker.handed_out(local)
        local.add_item(b"{}")
        tracker.finished(local.request)
    assert not tracker.entries_of({3})
    assert inherited == [holder], "its items can be staged before it is complete"
    assert (completed, holder.items) == ([holder], [b"{}", b"{}"])


def test_an_entry_that_is_released_keeps_its_place_and_neither_request_nor_form(tracker, completed):
    (entry,) = read(tracker, "1")
    request = weakref.ref(entry.request)
    place = entry.stored.batch, entry.stored.position
    tracker.finished(tracker.handed_out(entry))
    entry.release()
    assert entry.is_released
    assert (entry.stored.batch, entry.stored.position, entry.stored.form) == (*place, {})
    assert request() is None


def test_a_local_request_is_released_with_its_end(tracker, inherited):
    (holder,) = read(tracker, "holder")
    tracker.handed_out(holder)
    child = local(tracker, "local", holder)
    request = weakref.ref(child.request)
    tracker.finished(tracker.handed_out(child))
    assert child.is_released
    assert not holder.is_released
    assert request() is None
