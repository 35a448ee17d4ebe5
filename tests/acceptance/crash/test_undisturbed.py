"""Crawls without faults: the results that the other crash tests compare with."""

from __future__ import annotations

import pytest

from tests.support.crash.lives import same, survive

REACTORLESS = "TWISTED_REACTOR_ENABLED = False\n"


@pytest.mark.parametrize("settings", ["", REACTORLESS], ids=["reactor", "reactorless"])
def test_a_crawl_stores_every_item_once_and_fetches_nothing_twice(make_crawls, settings):
    crawls = make_crawls(settings=settings)
    crawls.worker(start_items=2).finish()
    crawls.check(start_items=2)
    same(crawls.maze.hits, crawls.expected().hits, "hits of the site")


def test_three_workers_store_every_item_once_and_fetch_nothing_twice(crawls):
    survive(dict.fromkeys(crawls.workers(3), ()))
    crawls.check()
    same(crawls.maze.hits, crawls.expected().hits, "hits of the site")
