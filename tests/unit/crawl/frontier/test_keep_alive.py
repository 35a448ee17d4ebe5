"""The wait of a crawl for requests that others push: its polls, and its end."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform.feeding import Feed
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.client.platform.errors import NotFound, Unreachable
from scrapy_ext.crawl.frontier.keep_alive import KeepAlive, PushedFrontier

JOB = JobKey(1, 2, 3)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Platform:
    """The calls of a client that a wait makes; ``error`` is raised by them."""

    def __init__(self) -> None:
        self.stamps: dict[str, int] = {}
        self.declared: list[bool] = []
        self.reported: list[Any] = []
        self.error: Exception | None = None
        self.frontier = self.jobs = self

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    async def declare(self, project: int, name: str, feed: Feed) -> None:
        self._fail()
        assert (project, name, feed.slots) == (1, "job-2-3", 8)
        self.declared.append(feed.open)

    async def feed(self, project: int, name: str) -> Feed:
        self._fail()
        return Feed(8, stamps=dict(self.stamps))

    async def update(self, key: JobKey, fields: dict[str, Any]) -> None:
        self._fail()
        self.reported.append(fields["waits_since"] is not None)


@pytest.fixture
def platform() -> Platform:
    return Platform()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def wait_of(platform: Any, clock: Clock, seconds: float | None, *, is_own: bool = True) -> KeepAlive:
    frontier = PushedFrontier(platform, JOB, "job-2-3", Feed(8), is_own=is_own)
    return KeepAlive(frontier, seconds, 1.0, lambda _: None, clock)


async def test_only_slots_that_have_changed_are_read(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, None)
    platform.stamps = {"0": 1, "3": 5}
    assert await wait.poll() == {0, 3}
    assert await wait.poll() == set()
    platform.stamps |= {"3": 6, "7": 1}
    assert await wait.poll() == {3, 7}


async def test_polls_of_an_idle_crawl_become_rarer_down_to_a_fifth_until_something_comes(
    platform: Platform, clock: Clock
) -> None:
    wait = wait_of(platform, clock, None)
    wait.waits()
    pauses = []
    for _ in range(8):
        await wait.poll()
        pauses.append(wait.pause)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (1.5, 5.0)
    platform.stamps = {"0": 1}
    await wait.poll()
    assert wait.pause == 1.0


async def test_a_crawl_with_work_polls_as_often_as_workers_do(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, None)
    for _ in range(8):
        await wait.poll()
    assert wait.pause == 1.0


async def test_an_own_frontier_is_closed_and_read_once_more_before_the_end(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, 10)
    assert not await wait.is_over()
    clock.now += 9
    assert not await wait.is_over()
    assert platform.declared == []
    clock.now += 1
    assert not await wait.is_over()
    assert (platform.declared, wait.is_closed) == ([False], True)
    assert await wait.is_over()


async def test_what_came_before_the_frontier_was_closed_opens_it_again(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, 10)
    wait.waits()
    clock.now += 10
    assert not await wait.is_over()
    await wait.begin_work()
    assert (platform.declared, wait.is_closed) == ([False, True], False)
    clock.now += 5
    assert not await wait.is_over(), "the wait begins anew"
    assert not wait.is_due


async def test_the_frontier_of_a_user_stays_open(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, 10, is_own=False)
    wait.waits()
    clock.now += 10
    assert await wait.is_over()
    await wait.close()
    assert platform.declared == []


async def test_a_crawl_that_waits_for_ever_is_never_over(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, None)
    wait.waits()
    clock.now += 10**9
    assert not await wait.is_over()
    assert not wait.is_due


async def test_the_last_poll_is_not_later_than_the_end_of_the_wait(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, 10)
    wait.waits()
    for _ in range(8):
        await wait.poll()
    clock.now += 8
    assert wait.pause == 2.0
    clock.now += 2
    assert wait.is_due
    assert wait.pause > 0


async def test_the_job_says_whether_it_waits_once_for_each_change(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, None)
    for step in (wait.works, wait.works, wait.waits, wait.waits, wait.works):
        step()
        await wait.report()
    assert platform.reported == [False, True, False]


async def test_the_job_says_since_when_it_waits_after_work_that_no_report_has_seen(
    platform: Platform, clock: Clock
) -> None:
    wait = wait_of(platform, clock, None)
    wait.waits()
    await wait.report()
    clock.now += 60
    wait.works()
    wait.waits()
    await wait.report()
    await wait.report()
    assert platform.reported == [True, True]


async def test_an_outage_of_the_platform_ends_nothing(platform: Platform, clock: Clock) -> None:
    wait = wait_of(platform, clock, None)
    platform.error = Unreachable("away")
    wait.waits()
    assert await wait.poll() == set()
    await wait.report()
    await wait.close()
    platform.error = None
    await wait.report()
    assert platform.reported == [False]


async def test_a_platform_without_pushes_is_polled_by_reads_of_all_slots(platform: Platform, clock: Clock) -> None:
    frontier: Any = PushedFrontier(platform, JOB, "job-2-3", Feed(8), is_own=True)  # type: ignore[arg-type]
    platform.error = NotFound("no such path")
    await frontier.declare()
    wait = KeepAlive(frontier, 10, 1.0, lambda _: None, clock)
    wait.waits()
    assert [await wait.poll() for _ in range(8)] == [None] * 8
    assert wait.pause == 5.0
