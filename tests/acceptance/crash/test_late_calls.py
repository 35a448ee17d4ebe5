"""Calls of a process that is dead or was replaced may arrive at any time later: they change nothing.

A call may sit in a buffer of the network when its process dies, and a process may sleep (its machine was suspended)
and wake up when another runs its job.
"""

from __future__ import annotations

import signal

import pytest

from tests.support.crash.lives import finished, until
from tests.support.faults import KillPoint, Step, When

WRITES = (Step.CHILDREN, Step.PAYLOAD, Step.JOURNAL, Step.ITEMS, Step.ACKNOWLEDGE)


def held(*quick: tuple[Step, int]) -> list:
    points = [KillPoint(step, When.HELD, number) for step in WRITES for number in (1, 3)]
    marks = {point: () if (point.step, point.number) in quick else pytest.mark.full for point in points}
    return [pytest.param(point, id=str(point), marks=marks[point]) for point in points]


@pytest.mark.parametrize("point", held((Step.JOURNAL, 1)))
def test_a_call_of_a_killed_process_that_arrives_in_the_middle_of_the_next_one_changes_nothing(crawls, point):
    worker = crawls.worker(start_items=2)
    dead = worker.start(point)
    dead.die()
    assert point.step in dead.proxy.held
    resumed = worker.start()
    until(lambda: resumed.proxy.steps[Step.ITEMS] > 1, "items of the next process are stored", resumed)
    dead.proxy.release()
    finished(resumed)
    crawls.check(start_items=2)


@pytest.mark.parametrize("point", held((Step.ITEMS, 1)))
def test_a_call_of_a_killed_process_that_arrives_when_the_crawl_is_over_changes_nothing(crawls, point):
    worker = crawls.worker(start_items=2)
    dead = worker.start(point)
    dead.die()
    worker.finish()
    assert dead.proxy.release()
    crawls.check(start_items=2)


@pytest.mark.parametrize("number", [0, pytest.param(4, marks=pytest.mark.full)])
def test_children_of_a_killed_process_that_arrive_just_before_those_of_the_next_one_are_followed(crawls, number):
    worker = crawls.worker(start_items=2)
    dead = worker.start(KillPoint(Step.CHILDREN, When.HELD, number))
    dead.die()
    resumed = worker.start(KillPoint(Step.CHILDREN, When.WAITS))
    until(lambda: resumed.proxy.waiting and resumed.proxy.steps[Step.READ] >= 8, "it has read all slots", resumed)
    dead.proxy.release()
    resumed.proxy.let_go()
    finished(resumed)
    crawls.check(start_items=2)


@pytest.mark.full
@pytest.mark.parametrize("point", held())
def test_late_calls_of_two_killed_processes_change_nothing_in_either_order(crawls, point):
    worker = crawls.worker(start_items=2)
    first = worker.start(point)
    first.die()
    second = worker.start(KillPoint(Step.ITEMS, When.HELD, 0))
    second.die()
    third = worker.start()
    until(lambda: third.proxy.steps[Step.JOURNAL] > 1, "the third process commits", third)
    second.proxy.release()
    first.proxy.release()
    finished(third)
    crawls.check(start_items=2)


@pytest.mark.parametrize(
    "step",
    [pytest.param(step, id=step.name.lower(), marks=() if step is Step.ITEMS else pytest.mark.full) for step in WRITES],
)
def test_a_process_that_sleeps_while_another_finishes_its_job_stops_when_it_wakes_up_and_doubles_nothing(crawls, step):
    worker = crawls.worker(start_items=2)
    asleep = worker.start(KillPoint(step, When.STOPPED, 1))
    until(lambda: asleep.proxy.struck, "the first process sleeps", asleep)
    worker.finish()
    asleep.proxy.mend()
    asleep.send(signal.SIGCONT)
    crawl = asleep.end()
    assert crawl.returncode != 0
    assert crawl.reason != "finished"
    crawls.check(start_items=2)


def test_of_two_processes_that_run_one_job_the_older_stops_and_nothing_is_doubled(make_crawls):
    crawls = make_crawls(gate=25)
    worker = crawls.worker(start_items=2)
    older = worker.start()
    until(lambda: crawls.maze.is_at_gate, "the first process is in the middle of it", older)
    newer = worker.start()
    until(lambda: newer.proxy.steps[Step.READ], "the second process works", newer)
    crawls.maze.open_gate()
    finished(newer)
    crawl = older.end()
    assert crawl.returncode != 0
    assert crawl.reason != "finished"
    crawls.check(start_items=2)


@pytest.mark.full
@pytest.mark.parametrize("attempt", range(3))
def test_of_two_processes_that_start_at_once_with_one_job_one_finishes_it_and_nothing_is_doubled(crawls, attempt):
    worker = crawls.worker(start_items=2)
    worker.start(KillPoint(Step.ITEMS, When.LOST_REPLY, 1)).die()
    both = [worker.start(), worker.start()]
    ends = [life.end() for life in both]
    assert "finished" in [crawl.reason for crawl in ends], [crawl.log[-2000:] for crawl in ends]
    crawls.check(start_items=2)
