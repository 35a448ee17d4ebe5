"""A crawl that is asked to stop leaves its work so that the next run repeats nothing."""

from __future__ import annotations

import signal

import pytest

from tests.support.crash.lives import survive, until

REACTORLESS = "TWISTED_REACTOR_ENABLED = False\n"


@pytest.mark.parametrize(
    ("settings", "gate"),
    [
        ("", 30),
        pytest.param("", 5, marks=pytest.mark.full),
        pytest.param("", 45, marks=pytest.mark.full),
        pytest.param(REACTORLESS, 30, marks=pytest.mark.full),
    ],
    ids=["half", "early", "late", "reactorless"],
)
def test_a_crawl_that_was_asked_to_stop_fetches_nothing_twice_when_it_goes_on(make_crawls, settings, gate):
    crawls = make_crawls(settings=settings, gate=gate)
    worker = crawls.worker(start_items=2)
    life = worker.start()
    until(lambda: crawls.maze.is_at_gate, "the crawl is in the middle of it", life)
    life.send(signal.SIGTERM)
    until(lambda: "Closing spider (shutdown)" in life.log, "the crawl stops")
    crawls.maze.open_gate()
    stopped = life.end()
    assert stopped.reason == "shutdown"
    worker.finish()
    crawls.check(start_items=2)
    crawls.check_hits()


@pytest.mark.full
def test_workers_that_were_asked_to_stop_fetch_nothing_twice_when_they_go_on(make_crawls):
    crawls = make_crawls(pages=48, gate=30)
    workers = crawls.workers(3)
    lives = [worker.start() for worker in workers]
    until(lambda: crawls.maze.is_at_gate, "the three are in the middle of it", *lives)
    for life in lives:
        life.send(signal.SIGTERM)
    for life in lives:
        until(lambda life=life: "Closing spider (shutdown)" in life.log, "the crawl stops")
    crawls.maze.open_gate()
    assert {life.end().reason for life in lives} == {"shutdown"}
    survive({worker: [] for worker in workers})
    crawls.check()
    crawls.check_hits()
