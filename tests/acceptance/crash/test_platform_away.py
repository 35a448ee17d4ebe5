"""A platform that is killed, or that nobody can reach for a while: the crawl waits, goes on, and is exact."""

from __future__ import annotations

import itertools
import random
import signal
import time

import pytest

from tests.support.crash.lives import finished, until
from tests.support.faults import KillPoint, Step, When

WRITES = (Step.CHILDREN, Step.PAYLOAD, Step.JOURNAL, Step.ITEMS, Step.ACKNOWLEDGE)
QUICK = KillPoint(Step.JOURNAL, When.LOST_REPLY, 1)
POINTS = [
    pytest.param(point, id=str(point), marks=() if point == QUICK else pytest.mark.full)
    for point in itertools.starmap(KillPoint, itertools.product(WRITES, [When.LOST_REPLY], (0, 1)))
]


def test_a_crawl_goes_on_when_its_platform_was_killed_and_is_back(make_crawls, platform):
    crawls = make_crawls(pages=48, gate=30)
    life = crawls.worker(start_items=2).start(proxied=False)
    until(lambda: crawls.maze.is_at_gate, "the crawl is in the middle of it", life)
    platform.kill()
    crawls.maze.open_gate()
    time.sleep(1)
    platform.start_again()
    finished(life)
    crawls.check(start_items=2)


@pytest.mark.parametrize("point", POINTS)
def test_a_platform_that_is_killed_at_a_step_receives_it_again(crawls, platform, point):
    life = crawls.worker(start_items=2).start(point, victim=platform.pid)
    until(lambda: life.proxy.struck, "the platform is killed", life)
    platform.kill()
    platform.start_again()
    life.proxy.mend()
    finished(life)
    crawls.check(start_items=2)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6), ids="seed-{}".format)
def test_crawl_and_platform_may_both_be_killed_at_any_time(make_crawls, platform, seed):
    crawls = make_crawls(pages=48)
    randoms = random.Random(seed)
    worker = crawls.worker(start_items=2)
    for _ in range(3):
        life = worker.start(KillPoint(Step.ANY, When.LOST_REPLY, randoms.randrange(10, 90)), victim=platform.pid)
        until(lambda life=life: life.proxy.struck or life.is_over, "the platform is killed")
        life.kill()
        if life.proxy.struck:
            platform.kill()
            platform.start_again()
    if not worker.is_done:
        worker.finish()
    crawls.check(start_items=2)


def test_a_black_out_loses_and_doubles_nothing(make_crawls):
    crawls = make_crawls(pages=48, gate=30)
    life = crawls.worker(start_items=2).start(latency=0.01)
    until(lambda: crawls.maze.is_at_gate, "the crawl is in the middle of it", life)
    life.proxy.black_out(3)
    crawls.maze.open_gate()
    finished(life)
    crawls.check(start_items=2)


@pytest.mark.full
def test_a_crawl_that_is_killed_in_a_black_out_loses_and_doubles_nothing(make_crawls):
    crawls = make_crawls(pages=48, gate=30)
    worker = crawls.worker(start_items=2)
    life = worker.start(latency=0.01)
    until(lambda: crawls.maze.is_at_gate, "the crawl is in the middle of it", life)
    life.proxy.black_out(3)
    crawls.maze.open_gate()
    time.sleep(1.5)
    life.send(signal.SIGKILL)
    worker.finish()
    crawls.check(start_items=2)


@pytest.mark.full
def test_a_platform_far_away_gets_every_item_once(crawls):
    finished(crawls.worker(start_items=2).start(latency=0.1))
    crawls.check(start_items=2)
