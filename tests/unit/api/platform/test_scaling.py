"""Number of workers of simulated crawls, by the second."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from scrapy_ext.api.platform.scaling import NEW, Load, has_room, proposal
from scrapy_ext.api.platform.worker_bounds import Bounds

BUSY, IDLE = Load(0.0, 1.0), Load(0.9, 0.0)
#: Seconds between two reports of a worker.
INTERVAL = 2


@pytest.mark.parametrize(
    ("target", "loads", "unchanged", "expected"),
    [
        (1, [BUSY], 29, 1),
        (1, [BUSY], 30, 2),
        (2, [BUSY] * 2, 14, 2),
        (2, [BUSY] * 2, 15, 3),
        (8, [BUSY] * 8, 10, 10),
        (30, [BUSY] * 30, 10, 32),
        (4, [BUSY] * 3, 60, 4),
        (4, [*[BUSY] * 3, NEW], 60, 4),
        (4, [*[BUSY] * 3, Load(0.3, 1.0)], 60, 4),
        (4, [*[BUSY] * 3, Load(0.0, 0.3)], 60, 4),
        (4, [IDLE] * 4, 29, 4),
        (4, [IDLE] * 4, 30, 3),
        (8, [IDLE] * 3, 30, 2),
        (1, [IDLE], 3600, 1),
        (64, [BUSY] * 64, 0, 32),
    ],
)
def test_growth_and_shrinking(target: int, loads: Sequence[Load], unchanged: float, expected: int) -> None:
    assert proposal(target, Bounds(1, 32), loads, unchanged) == expected


def test_a_crawl_does_not_grow_when_the_sites_allow_no_more() -> None:
    assert proposal(2, Bounds(1, 32), [BUSY] * 2, 60, has_room=False) == 2


@pytest.mark.parametrize(
    ("allowed", "open_requests", "expected"),
    [
        (None, [900.0], True),
        (64, [4.0], True),
        (8, [7.5], False),
        (8, [5.0], True),
        (64, [16.0] * 3, False),
        (0, [0.0], False),
    ],
)
def test_the_sites_have_room_while_the_workers_use_less_than_they_allow(
    allowed: int | None, open_requests: Sequence[float], expected: bool
) -> None:
    assert has_room(allowed, [Load(0.0, 1.0, each) for each in open_requests]) is expected


def test_open_requests_are_a_mean_of_some_seconds() -> None:
    load = NEW
    for _ in range(20):
        load = load.after(0.0, 1.0, 2.0, 16)
    assert load.open == pytest.approx(16, rel=0.05)
    assert load.after(0.0, 1.0, 2.0, 0).open > 12


class Crawl:
    """A crawl that gets ``work`` each second, of which a worker does one. What is left waits, shared evenly. A new
    worker needs some seconds until it has some."""

    def __init__(self, bounds: Bounds, work: Callable[[int], float], warm_up: int = 6) -> None:
        self.bounds = bounds
        self.work = work
        self.warm_up = warm_up
        self.target = bounds.least
        self.waiting = 0.0
        self.changed = 0
        self.loads = [NEW] * self.target
        self.began = [0] * self.target
        #: Time and number of each change.
        self.changes: list[tuple[int, int]] = []

    def run(self, seconds: int, start: int = 0) -> None:
        for now in range(start, start + seconds, INTERVAL):
            ready = [now - began >= self.warm_up for began in self.began]
            can, wanted = INTERVAL * sum(ready), self.waiting + INTERVAL * self.work(now)
            idle = 1 - min(wanted / can, 1.0) if can else 1.0
            self.waiting = max(wanted - can, 0.0)
            self.loads = [
                load.after(idle, float(self.waiting > 0), INTERVAL) if is_ready else load.after(1.0, 0.0, INTERVAL)
                for load, is_ready in zip(self.loads, ready, strict=True)
            ]
            target = proposal(self.target, self.bounds, self.loads, now - self.changed)
            if target != self.target:
                self.changes.append((now, target))
                self.target, self.changed = target, now
                self.loads = [*self.loads, *[NEW] * target][:target]
                self.began = [*self.began, *[now] * target][:target]


def test_a_crawl_with_much_work_grows_to_its_bound_and_at_most_doubles_in_thirty_seconds() -> None:
    crawl = Crawl(Bounds(1, 64), lambda now: 1000.0)
    crawl.run(600)
    assert crawl.target == 64
    history = [(0, 1), *crawl.changes]
    for time, number in history:
        later = [target for when, target in history if time < when <= time + 30]
        assert all(target <= 2 * number for target in later)


@pytest.mark.parametrize("work", [0.5, 1.0, 2.5, 3.9, 4.0, 4.1, 7.7, 15.0, 31.9])
def test_a_steady_crawl_reaches_one_number_and_keeps_it(work: float) -> None:
    crawl = Crawl(Bounds(1, 32), lambda now: work)
    crawl.run(4 * 3600)
    assert crawl.target >= min(work, 32) * 0.8
    assert not [change for change in crawl.changes if change[0] > 1200], crawl.changes


def test_a_crawl_whose_work_comes_and_goes_each_few_seconds_changes_seldom() -> None:
    """At most once in five minutes, and it is never without the workers that it needs."""
    chance = random.Random(3)
    crawl = Crawl(Bounds(1, 32), lambda now: 6 + chance.uniform(-3, 3))
    crawl.run(6 * 3600)
    late = [target for time, target in crawl.changes if time > 1800]
    assert len(late) <= 5.5 * 12, late
    assert min(late) >= 6


def test_a_crawl_follows_a_day_of_work() -> None:
    hour = 3600
    crawl = Crawl(Bounds(2, 40), lambda now: 30.0 if (now // hour) % 4 == 1 else 0.5)
    crawl.run(hour)
    assert crawl.target == 2
    crawl.run(hour, hour)
    assert crawl.target >= 30
    crawl.run(hour, 2 * hour)
    assert crawl.target == 2
    assert len(crawl.changes) < 60
