"""A crawl killed at any step of its commit protocol ends, run again, with exactly the items of an undisturbed one.

Each test kills one process at one call that it makes: before the platform gets it, when the platform has done it and
the answer is lost, or when it has the answer.
"""

from __future__ import annotations

import itertools

import pytest

from tests.support.crash.lives import Worker
from tests.support.faults import KillPoint, Step, When

REACTORLESS = "TWISTED_REACTOR_ENABLED = False\n"
PROTOCOL = (
    Step.READ,
    Step.CHILDREN,
    Step.PAYLOAD,
    Step.JOURNAL,
    Step.ITEMS,
    Step.ACKNOWLEDGE,
)
DEATHS = (When.BEFORE, When.LOST_REPLY, When.AFTER)
#: The few that each run of the tests has: those between whose steps something could be lost or doubled.
QUICK = {
    KillPoint(Step.CHILDREN, When.LOST_REPLY, 2),
    KillPoint(Step.JOURNAL, When.LOST_REPLY, 2),
    KillPoint(Step.ITEMS, When.BEFORE, 1),
    KillPoint(Step.ACKNOWLEDGE, When.BEFORE, 1),
}


def points() -> list[object]:
    everywhere = [
        *itertools.starmap(KillPoint, itertools.product(PROTOCOL, DEATHS, range(4))),
        *itertools.starmap(KillPoint, itertools.product([Step.DEAD_LETTERS, Step.ASSIGNMENT], DEATHS)),
    ]
    return [
        pytest.param(point, id=str(point), marks=() if point in QUICK else pytest.mark.full) for point in everywhere
    ]


def finish(worker: Worker) -> None:
    """Run it to its end. A process that was killed at the answer to its last record may have finished its job."""
    if not worker.is_done:
        worker.finish()


@pytest.mark.parametrize("point", points())
def test_a_crawl_killed_at_a_step_ends_with_exactly_the_items_of_an_undisturbed_one(crawls, point):
    worker = crawls.worker(start_items=2)
    worker.start(point).die()
    finish(worker)
    crawls.check(start_items=2)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(KillPoint(step, when, 1), id=str(KillPoint(step, when, 1)), marks=marks)
        for step, when, marks in (
            (Step.JOURNAL, When.AFTER, ()),
            (Step.CHILDREN, When.BEFORE, pytest.mark.full),
            (Step.PAYLOAD, When.LOST_REPLY, pytest.mark.full),
            (Step.ITEMS, When.LOST_REPLY, pytest.mark.full),
            (Step.ACKNOWLEDGE, When.BEFORE, pytest.mark.full),
        )
    ],
)
def test_so_does_one_without_a_reactor(make_crawls, point):
    crawls = make_crawls(settings=REACTORLESS)
    worker = crawls.worker(start_items=2)
    worker.start(point).die()
    finish(worker)
    crawls.check(start_items=2)
