"""A crawl may be killed as often as it likes, while it recovers too: it ends with exactly its items."""

from __future__ import annotations

import random

import pytest

from tests.support.crash.lives import survive
from tests.support.faults import KillPoint, Step, When

REACTORLESS = "TWISTED_REACTOR_ENABLED = False\n"
DEATHS = (When.BEFORE, When.LOST_REPLY, When.AFTER)

#: One after the other, each in the next life. Number 0 is where a life takes over from the one before it.
WHILE_IT_RECOVERS = [
    KillPoint(Step.ITEMS, When.BEFORE, 1),
    KillPoint(Step.LOOK, When.AFTER, 0),
    KillPoint(Step.JOURNAL, When.LOST_REPLY, 0),
    KillPoint(Step.JOURNAL, When.AFTER, 0),
    KillPoint(Step.ITEMS, When.LOST_REPLY, 0),
    KillPoint(Step.ACKNOWLEDGE, When.BEFORE, 0),
    KillPoint(Step.ACKNOWLEDGE, When.LOST_REPLY, 0),
]
#: A crawl that never gets further than one commit a life.
ONE_COMMIT_A_LIFE = [KillPoint(Step.JOURNAL, When.LOST_REPLY, 1)] * 4 + [KillPoint(Step.ITEMS, When.LOST_REPLY, 0)] * 3


def random_points(seed: int, lives: int) -> list[KillPoint]:
    """Anywhere, of any call: the calls of a life are some hundred."""
    randoms = random.Random(seed)
    return [KillPoint(Step.ANY, randoms.choice(DEATHS), randoms.randrange(4, 90)) for _ in range(lives)]


@pytest.mark.parametrize("settings", ["", pytest.param(REACTORLESS, marks=pytest.mark.full)], ids=["reactor", "none"])
def test_a_crawl_that_is_killed_whenever_it_recovers_ends_with_exactly_its_items(make_crawls, settings):
    crawls = make_crawls(settings=settings)
    survive({crawls.worker(start_items=2): WHILE_IT_RECOVERS})
    crawls.check(start_items=2)


@pytest.mark.full
def test_a_crawl_that_is_killed_at_each_commit_ends_with_exactly_its_items(crawls):
    survive({crawls.worker(start_items=2): ONE_COMMIT_A_LIFE})
    crawls.check(start_items=2)


SEEDS = [pytest.param(seed, id=f"seed-{seed}", marks=pytest.mark.full if seed else ()) for seed in range(30)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crawl_that_is_killed_anywhere_again_and_again_ends_with_exactly_its_items(crawls, seed):
    survive({crawls.worker(start_items=2): random_points(seed, lives=4)})
    crawls.check(start_items=2)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 106), ids="seed-{}".format)
def test_so_does_a_larger_crawl_with_slow_answers_of_the_platform(make_crawls, seed):
    crawls = make_crawls(pages=200)
    survive({crawls.worker(start_items=2): random_points(seed, lives=3)}, latency=0.02)
    crawls.check(start_items=2)
