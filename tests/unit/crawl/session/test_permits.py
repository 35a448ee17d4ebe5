"""Permits of a worker: when it may send, and what it reports."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ext.api.platform.permits import MAX_DOMAIN, MOST_DOMAINS, DomainReport, Permit
from scrapy_ext.crawl.session.permits import Demand, Permits, SiteLimits

SITE = "a.example"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """Permits with a clock, and requests that a test names."""

    def __init__(self, delay: float = 0.0) -> None:
        self.clock = Clock()
        self.hurried = 0
        self.demands: list[Demand] = []
        self.room: list[str] = []
        self.pauses: list[tuple[str, float]] = []
        self.permits = Permits(lambda domain: SiteLimits(8, delay, randomize=True), self._hurry, self.clock)
        self.permits.sources.append(lambda: self.demands)
        self.permits.on_room.append(self.room.append)
        self.permits.on_pause.append(lambda domain, seconds: self.pauses.append((domain, seconds)))

    def _hurry(self) -> None:
        self.hurried += 1

    def report(self, active: int = 0, waiting: int = 0) -> DomainReport:
        self.demands = [Demand(SITE, active, waiting)]
        return self.permits.reported()[SITE]

    def given(self, concurrency: int, **fields: object) -> None:
        self.permits.answered({SITE: Permit(concurrency, **fields)})  # type: ignore[arg-type]

    def takes(self, active: int = 0) -> bool:
        return self.permits.take(SITE, active)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_a_request_waits_for_a_permit_which_is_reported_at_once(worker: Worker) -> None:
    assert not worker.takes()
    assert not worker.takes()
    assert worker.hurried == 1
    worker.report(waiting=3)
    worker.given(2)
    assert worker.room == [SITE]
    assert [worker.takes(active) for active in range(3)] == [True, True, False]


def test_a_permit_lasts_from_the_sending_of_the_report(worker: Worker) -> None:
    worker.report(waiting=1)
    worker.clock.now += 2
    worker.given(2, seconds=6.0)
    worker.clock.now += 3.9
    assert worker.takes()
    worker.clock.now += 0.2
    assert not worker.takes()


def test_no_more_is_used_than_the_last_report_has(worker: Worker) -> None:
    worker.report(waiting=9)
    worker.given(8)
    assert worker.report(active=1, waiting=1).held == 2
    assert [worker.takes(active) for active in (1, 2)] == [True, False]


def test_open_requests_are_held_after_the_permit(worker: Worker) -> None:
    worker.report(waiting=3)
    worker.given(3)
    worker.clock.now += 60
    assert worker.report(active=3).held == 3


def test_a_domain_without_requests_gives_its_permit_back(worker: Worker) -> None:
    worker.report(waiting=1)
    worker.given(8)
    worker.clock.now += 1
    assert (worker.report().want, worker.report().held) == (1, 1)
    worker.clock.now += 3
    found = worker.report()
    assert (found.want, found.held) == (0, 0)
    worker.given(0, seconds=0.0)
    assert worker.permits.reported() == {}


@pytest.mark.parametrize(("short", "seconds"), [(False, 2.5), (True, 0.7)])
def test_a_permit_that_another_worker_waits_for_is_given_back_sooner(short: bool, seconds: float) -> None:
    worker = Worker(0.2)
    worker.report(waiting=1)
    worker.given(1, delay=200, starts=(0, 200, 400), short=short)
    assert worker.takes()
    assert worker.permits.are_short == short
    worker.clock.now += seconds - 0.1
    assert worker.report().want == 1
    worker.clock.now += 0.2
    assert worker.report().want == 0


def test_a_worker_that_waits_for_a_permit_says_so(worker: Worker) -> None:
    worker.report(waiting=1)
    worker.given(0)
    assert worker.permits.are_short


def test_start_times_go_back_with_the_permit() -> None:
    worker = Worker(1.0)
    worker.report(waiting=3)
    worker.given(1, delay=1000, starts=(2000, 3000))
    worker.given(0, delay=1000)
    given_back = worker.report(waiting=3)
    assert (given_back.held, given_back.starts) == (0, 2)
    assert worker.report(waiting=3).starts == 0


async def test_start_times_are_used_in_time_or_lost() -> None:
    worker = Worker(delay=2.0)
    assert worker.report(waiting=9).delay == 2000
    worker.given(8, delay=2000, starts=(0, 100, 2000))
    assert [worker.takes(), worker.takes()] == [True, False]
    worker.clock.now += 0.7
    assert not worker.takes(), "the second one is more than a quarter of the delay ago"
    assert worker.report(waiting=9).starts == 1
    worker.clock.now += 1.4
    assert worker.takes()
    worker.permits.close()


async def test_a_request_is_sent_at_its_start_time() -> None:
    worker = Worker(delay=0.05)
    worker.report(waiting=1)
    worker.given(8, delay=50, starts=(20,))
    assert not worker.takes()
    worker.room.clear()
    while not worker.room:
        await asyncio.sleep(0)
    worker.permits.close()


def test_a_pause_is_reported_and_taken(worker: Worker) -> None:
    worker.permits.pause(SITE, 30.0)
    assert worker.report().pause == 30
    assert worker.report().pause == 30, "no answer yet"
    worker.given(1, pause=29.0)
    assert worker.pauses == [(SITE, 29.0)]
    assert not worker.report().pause
    worker.permits.pause(SITE, 60.0)
    worker.given(1)
    assert worker.report().pause == 60, "it came after the report that was answered"


@pytest.mark.parametrize("by", ["itself", "another", "itself, then fails"])
async def test_requests_that_wait_in_the_downloader_are_not_sent_in_a_pause(by: str) -> None:
    worker = Worker()
    worker.report(waiting=3)
    if by == "another":
        worker.given(8, pause=5.0)
    else:
        worker.given(8)
        worker.permits.pause(SITE, 5.0)
    if by == "itself, then fails":
        worker.permits.end()
    for seconds in (0.0, 4.9):
        worker.clock.now += seconds
        assert not worker.takes()
    worker.clock.now += 0.2
    assert worker.takes()
    worker.permits.close()


def test_a_report_has_the_domains_with_open_requests_when_there_are_too_many(worker: Worker) -> None:
    worker.demands = [Demand(f"{number}.example", int(number == 999), 1) for number in range(1000)]
    reported = worker.permits.reported()
    assert len(reported) == MOST_DOMAINS
    assert "999.example" in reported


class ManyDomains(Worker):
    """Permits of many domains, each with requests that wait."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.waiting = dict.fromkeys(map(str, range(number)), 3)
        self.active = dict.fromkeys(self.waiting, 0)

    def round(self) -> set[str]:
        """Send a report, which gives each of its domains a permit; return its domains."""
        self.demands = [Demand(domain, self.active[domain], number) for domain, number in self.waiting.items()]
        reported = set(self.permits.reported())
        assert len(reported) <= MOST_DOMAINS
        self.permits.answered({domain: Permit(1) for domain in reported})
        return reported

    def send(self) -> set[str]:
        """Send what may be sent; return the domains."""
        sent = {domain for domain in self.waiting if self.permits.take(domain, self.active[domain])}
        self.active.update((domain, self.active[domain] + 1) for domain in sent)
        return sent


def test_each_domain_gets_its_turn_when_there_are_too_many() -> None:
    worker, seen = ManyDomains(5 * MOST_DOMAINS), set[str]()
    for _ in range(5):
        seen |= worker.round()
        worker.clock.now += 4
    assert seen == worker.waiting.keys()


def test_a_domain_keeps_its_turn_until_its_start_times() -> None:
    worker = ManyDomains(2 * MOST_DOMAINS)
    reported = worker.round()
    for _ in range(14):
        worker.clock.now += 0.2
        assert worker.round() == reported
    worker.clock.now += 0.3
    assert worker.round().isdisjoint(reported)


def test_nothing_is_sent_to_a_domain_that_the_last_report_does_not_have() -> None:
    worker = ManyDomains(2 * MOST_DOMAINS)
    before = worker.round()
    worker.clock.now += 4
    assert worker.round().isdisjoint(before)
    assert not any(worker.permits.has_room(domain, 0) for domain in before)
    assert worker.send().isdisjoint(before)


def test_all_open_domains_are_in_each_report() -> None:
    worker = ManyDomains(3 * MOST_DOMAINS)
    for turn in range(12):
        worker.round()
        worker.send()
        is_open = [domain for domain, number in worker.active.items() if number]
        assert is_open
        worker.clock.now += 2
        assert worker.round() >= set(is_open)
        for domain in is_open[turn % 2 :: 2]:
            worker.active[domain] -= 1
        worker.clock.now += 2


def test_a_pause_is_reported_before_domains_that_wait() -> None:
    worker = ManyDomains(2 * MOST_DOMAINS)
    rest = worker.waiting.keys() - worker.round()
    worker.clock.now += 4
    worker.round()
    paused = min(worker.waiting.keys() - rest)
    worker.permits.pause(paused, 30.0)
    assert paused in worker.round()


def test_a_name_that_is_too_long_for_a_report_is_hashed(worker: Worker) -> None:
    long = "x" * 1000
    worker.demands = [Demand(long, 0, 1)]
    (name,) = worker.permits.reported()
    assert len(name) <= MAX_DOMAIN
    worker.permits.answered({name: Permit(1)})
    assert worker.permits.take(long, 0)


def test_a_lost_worker_sends_one_at_a_time(worker: Worker) -> None:
    worker.permits.has_room(SITE, 0)
    worker.permits.end()
    assert worker.room == [SITE]
    assert [worker.takes(active) for active in range(2)] == [True, False]


@pytest.mark.parametrize(("own", "of_all"), [(2.0, 0), (0.0, 2000), (1.0, 2000)])
async def test_a_lost_worker_keeps_the_delay(own: float, of_all: int) -> None:
    worker = Worker(delay=own)
    worker.report(waiting=3)
    worker.given(8, delay=of_all, starts=(0, 0, 0))
    worker.permits.end()
    assert not worker.takes(), "another worker may just have sent one"
    for _ in range(2):
        worker.clock.now += 1.9
        assert not worker.takes()
        worker.clock.now += 0.2
        assert [worker.takes(active) for active in (1, 0, 0)] == [False, True, False]
    worker.permits.close()


def test_requests_without_a_host_have_the_limit_of_one_worker(worker: Worker) -> None:
    assert [worker.permits.take("", active) for active in (7, 8)] == [True, False]
