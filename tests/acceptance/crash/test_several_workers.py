"""Workers of one frontier, each with a job of its own: together they store exactly the items of one crawl."""

from __future__ import annotations

import random
import signal

import pytest

from tests.support.crash.lives import finished, survive, until
from tests.support.faults import KillPoint, Step, When

DEATHS = (When.BEFORE, When.LOST_REPLY, When.AFTER)
#: Seconds: long enough that a busy machine does not take a live worker for a dead one.
LEASE = "FRONTIER_LEASE_TIME = 6\n"


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(KillPoint(step, when, 1), id=str(KillPoint(step, when, 1)), marks=marks)
        for step, when, marks in (
            (Step.JOURNAL, When.LOST_REPLY, ()),
            (Step.CHILDREN, When.LOST_REPLY, pytest.mark.full),
            (Step.PAYLOAD, When.AFTER, pytest.mark.full),
            (Step.JOURNAL, When.BEFORE, pytest.mark.full),
            (Step.ITEMS, When.LOST_REPLY, pytest.mark.full),
            (Step.ACKNOWLEDGE, When.LOST_REPLY, pytest.mark.full),
            (Step.READ, When.AFTER, pytest.mark.full),
        )
    ],
)
def test_a_worker_that_is_killed_and_resumed_while_the_others_go_on_loses_and_doubles_nothing(crawls, point):
    first, second, third = crawls.workers(3)
    survive({first: [], second: [point, point], third: []})
    assert len(second.lives) > 1
    crawls.check()


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed-{seed}", marks=pytest.mark.full) for seed in range(12)])
def test_workers_that_are_killed_anywhere_each_at_its_time_lose_and_double_nothing(make_crawls, seed):
    crawls = make_crawls(pages=36)
    randoms = random.Random(seed)
    survive(
        {
            worker: [KillPoint(Step.ANY, randoms.choice(DEATHS), randoms.randrange(4, 60)) for _ in range(2)]
            for worker in crawls.workers(3)
        }
    )
    crawls.check()


@pytest.mark.full
def test_workers_wait_for_one_that_is_not_there_yet(crawls):
    first, second, third = crawls.workers(3)
    early = [first.start(), second.start()]
    until(lambda: crawls.maze.hits.total() > 5, "two workers are at work", *early)
    late = third.start()
    for life in [*early, late]:
        finished(life)
    crawls.check()


@pytest.mark.full
def test_one_worker_goes_on_where_three_were_killed(make_crawls):
    crawls = make_crawls(gate=25)
    several = crawls.workers(3)
    lives = [worker.start() for worker in several]
    until(lambda: crawls.maze.is_at_gate, "the three are in the middle of it", *lives)
    for worker, life in zip(several, lives, strict=True):
        life.kill()
        worker.is_given_up = True
    crawls.maze.open_gate()
    crawls.worker("0/1").finish()
    crawls.check()
    assert {crawls.state_of(worker.job) for worker in several} == {("finished", "frontier_lease_lost")}


@pytest.mark.full
def test_three_workers_go_on_where_one_was_killed(make_crawls):
    crawls = make_crawls(gate=25)
    alone = crawls.worker("0/1", in_shared=True)
    life = alone.start()
    until(lambda: crawls.maze.is_at_gate, "it is in the middle of it", life)
    life.kill()
    alone.is_given_up = True
    crawls.maze.open_gate()
    survive({worker: [] for worker in crawls.workers(3)})
    crawls.check()


# ── leases ──


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(KillPoint(step, when, 2), id=str(KillPoint(step, when, 2)), marks=marks)
        for step, when, marks in (
            (Step.JOURNAL, When.LOST_REPLY, ()),
            (Step.CHILDREN, When.BEFORE, pytest.mark.full),
            (Step.PAYLOAD, When.AFTER, pytest.mark.full),
            (Step.JOURNAL, When.AFTER, pytest.mark.full),
            (Step.ITEMS, When.LOST_REPLY, pytest.mark.full),
            (Step.ACKNOWLEDGE, When.BEFORE, pytest.mark.full),
        )
    ],
)
def test_the_slots_of_a_worker_that_never_comes_back_are_taken_over_by_the_others(make_crawls, point):
    # Many small commits: the second of them must come before the gate.
    crawls = make_crawls(pages=48, settings=LEASE + "PLATFORM_FLUSH_INTERVAL = 0.01\n", gate=40)
    first, second, third = crawls.workers(3, "auto")
    dead = second.start(point)
    until(lambda: dead.is_over, "the first of them is killed")
    second.is_given_up = True
    crawls.maze.open_gate()
    lives = [first.start(), third.start()]
    for life in lives:
        finished(life)
    crawls.check()


def test_workers_with_leases_share_a_crawl_that_one_of_them_began(make_crawls):
    crawls = make_crawls(pages=48, settings=LEASE, gate=20)
    first, second, third = crawls.workers(3, "auto")
    lives = [first.start()]
    until(lambda: crawls.maze.is_at_gate, "the first is in the middle of it", *lives)
    lives += [second.start(), third.start()]
    until(lambda: all(life.proxy.steps[Step.JOURNAL] for life in lives), "the others are there", *lives)
    crawls.maze.open_gate()
    for life in lives:
        finished(life)
    crawls.check()


@pytest.mark.full
def test_a_worker_whose_lease_lapsed_while_it_slept_stops_and_doubles_nothing(make_crawls):
    crawls = make_crawls(pages=48, settings=LEASE, gate=30)
    first, second = crawls.workers(2, "auto")
    lives = [first.start()]
    until(lambda: crawls.maze.is_at_gate, "the first is in the middle of it", *lives)
    lives[0].send(signal.SIGSTOP)
    lives.append(second.start())
    first.is_given_up = True
    crawls.maze.open_gate()
    finished(lives[1])
    lives[0].send(signal.SIGCONT)
    crawl = lives[0].end()
    assert crawl.returncode != 0
    assert crawl.reason == "frontier_lease_lost"
    crawls.check()
    assert crawls.state_of(first.job) == ("finished", "frontier_lease_lost")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6), ids="seed-{}".format)
def test_workers_with_leases_that_are_killed_anywhere_and_resumed_lose_and_double_nothing(make_crawls, seed):
    crawls = make_crawls(pages=36, settings=LEASE)
    randoms = random.Random(seed)
    survive(
        {
            worker: [KillPoint(Step.ANY, randoms.choice(DEATHS), randoms.randrange(4, 60))]
            for worker in crawls.workers(3, "auto")
        }
    )
    crawls.check()
