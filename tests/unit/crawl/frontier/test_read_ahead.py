"""As many requests are read ahead as the crawl takes while a read is under way, within limits."""

from __future__ import annotations

from functools import partial

import pytest

from scrapy_ext.crawl.frontier.reading import ReadAhead


class Crawl:
    """A crawl on a clock of its own, whose reads take ``seconds``."""

    def __init__(self, least: int, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.ahead = ReadAhead(least, lambda: self.now)

    def read(self, taken: int) -> None:
        """A read, during which requests are taken."""
        began = self.ahead.now()
        self.now += self.seconds
        for _ in range(taken):
            self.ahead.taken()
        self.ahead.has_read(began)


@pytest.mark.parametrize(
    ("rate", "seconds", "requests"),
    [
        pytest.param(300, 0.001, 300, id="near"),
        pytest.param(1000, 0.05, 300, id="50 ms are covered by the setting"),
        pytest.param(1000, 0.2, 800, id="far"),
        pytest.param(5000, 1.0, 3000, id="the limit"),
        pytest.param(1, 10.0, 300, id="far, and slow"),
    ],
)
def test_the_number_follows_the_rate_and_the_time_of_a_read(rate: float, seconds: float, requests: int) -> None:
    crawl = Crawl(300, seconds)
    for _ in range(20):
        crawl.read(round(rate * seconds))
    assert crawl.ahead.requests == pytest.approx(requests, rel=0.05)
    assert crawl.ahead.most_of(100) == crawl.ahead.requests // 3


def test_a_crawl_that_waits_for_each_read_reads_more_until_it_takes_what_it_can() -> None:
    crawl = Crawl(300, 0.25)
    could_take = 1000 * crawl.seconds
    got: list[int] = []
    for _ in range(30):
        got.append(min(round(could_take), crawl.ahead.most_of(100)))
        crawl.read(got[-1])
    assert got[0] == 100
    assert got[-1] == could_take


def test_a_round_is_due_when_half_of_what_waits_will_have_been_taken() -> None:
    crawl = Crawl(300, 0.1)
    pace = partial(crawl.ahead.pace, starved=False, shared=True)
    assert pace(0) < pace(50)
    for _ in range(20):
        crawl.read(50)  # 500 a second
    assert pace(200) == pytest.approx(0.2, rel=0.05)
    assert pace(0) < pace(10) < pace(200) < pace(10_000) < 0.5


def test_a_round_is_due_sooner_in_a_crawl_by_one_worker_and_for_a_downloader_that_can_take_nothing() -> None:
    crawl = Crawl(300, 0.1)
    for _ in range(2):
        crawl.read(1)
    assert crawl.ahead.pace(0, starved=False, shared=False) < crawl.ahead.pace(0, starved=False, shared=True)
    assert crawl.ahead.pace(500, starved=True, shared=True) < crawl.ahead.pace(500, starved=False, shared=True)


def test_it_is_the_setting_again_when_the_crawl_is_slow() -> None:
    crawl = Crawl(300, 0.5)
    for _ in range(20):
        crawl.read(500)
    assert crawl.ahead.requests > 900
    for _ in range(20):
        crawl.read(1)
    assert crawl.ahead.requests == 300
