"""Slots belong to one worker at a time, in every order of looks and changes, and whatever the clocks say."""

from __future__ import annotations

import random

import pytest

from scrapy_ext.crawl.commit.assignment import (
    Assignment,
    Sightings,
    Step,
    Worker,
    is_about_to_give_up,
    next_step,
)
from scrapy_ext.crawl.commit.events import Checkpoint, Progress

SLOTS = 5


def settled(assignment: Assignment, workers: list[str], rounds: int = 12) -> Assignment:
    """The assignment after each of the living workers has taken its steps."""
    for _ in range(rounds):
        for me in workers:
            live = [name for name in assignment.owners if name != me and name in workers]
            step = next_step(assignment, me, live, SLOTS)
            if step is not None:
                assignment = assignment.given(me, step.slots, Progress(), step.removed)
    return assignment


@pytest.mark.parametrize("count", range(1, 8))
def test_workers_share_the_slots_equally_but_for_one_and_then_rest(count: int) -> None:
    workers = [f"worker-{number}" for number in range(count)]
    assignment = Assignment({name: [] for name in workers} | {"dead": list(range(SLOTS)), "idle and dead": []})
    assignment = settled(assignment, workers)
    sizes = sorted(len(slots) for slots in assignment.owners.values())
    assert sum(sizes) == SLOTS
    assert sizes[-1] - sizes[0] <= 1
    assert sorted(assignment.owners) == workers
    assert settled(assignment, workers, 1) == assignment


@pytest.mark.parametrize("seed", range(100))
def test_a_slot_is_never_committed_by_two_whoever_is_taken_for_dead(seed: int) -> None:
    rng = random.Random(seed)
    workers = ["a", "b", "c"]
    number, assignment = 0, Assignment()
    fenced: set[str] = set()
    works: dict[str, set[int]] = {name: set() for name in workers}
    looked: dict[str, tuple[int, Assignment, Step]] = {}
    for _ in range(200):
        me = rng.choice(workers)
        if me in fenced:
            continue
        if me not in looked:
            others = [name for name in assignment.owners if name != me]
            step = next_step(assignment, me, [name for name in others if rng.random() < 0.7], SLOTS)
            if step is not None:
                looked[me] = number, assignment, step
                # Before it takes slots it takes their journals over; before it gives some up it stops to work on them.
                if step.slots > assignment.of(me):
                    fenced.update(assignment.owners_of(step.slots, but=me))
                works[me] &= step.slots
        else:
            seen, before, step = looked.pop(me)
            if seen == number:
                number, assignment = number + 1, before.given(me, step.slots, Progress(), step.removed)
                works[me] = set(step.slots)
            else:
                works[me] = assignment.of(me)
        for slot in range(SLOTS):
            assert sum(slot in works[name] for name in workers if name not in fenced) <= 1


def test_progress_waits_in_the_assignment_for_whoever_takes_the_slot() -> None:
    given_up = Progress({1: {"batch": "3"}})
    left = Assignment({"a": [0, 1]}).given("a", {0}, given_up)
    assert (left.owners, left.left) == ({"a": [0]}, given_up)
    assert left.given("b", {1}, Progress()) == Assignment({"a": [0], "b": [1]}, Progress(), "a")
    assert left.left == given_up, "a record that was read is not changed"


def test_the_first_worker_stores_the_items_of_start() -> None:
    first = Assignment().given("a", {0, 1}, Progress())
    assert first.given("b", {0, 1}, Progress()).start == first.start == "a"


@pytest.mark.parametrize(
    ("slots", "is_closed", "lends"),
    [([2], False, True), ([0, 2], False, False), ([2], True, False), ([], False, True)],
)
def test_an_owner_that_no_longer_claims_slots_is_waited_for(slots: list[int], is_closed: bool, lends: bool) -> None:
    assert is_about_to_give_up(Checkpoint(slots=slots, closed=is_closed), {0, 1}) is lends


def test_a_worker_expires_when_its_journal_has_not_moved_for_a_lease_time() -> None:
    sightings = Sightings(30.0)
    for number, began in ((1, 0), (2, 32)):
        for age, lives in ((0, True), (10, True), (20, True), (30, True), (31, False)):
            sightings.begin(began + age)
            assert sightings.lives("a", number, is_closed=False, now=began + age) is lives
            sightings.end(began + age)
    assert not sightings.lives("a", 3, is_closed=True, now=64)


def test_who_could_not_look_takes_nobody_for_dead() -> None:
    sightings = Sightings(30.0)
    for now in (0.0, 1000.0):
        sightings.begin(now)
        assert sightings.lives("a", 1, is_closed=False, now=now)
        sightings.end(now)


@pytest.mark.parametrize("text", ["", "1", "1/1", "2/1", "a/b", "-1/2", "0/0"])
def test_a_worker_that_is_none_is_not_read(text):
    assert Worker.parse(text) is None


def test_each_slot_has_one_owner():
    workers = [Worker.parse(f"{index}/3") for index in range(3)]
    assert all(sum(worker.owns(slot) for worker in workers) == 1 for slot in range(8))
