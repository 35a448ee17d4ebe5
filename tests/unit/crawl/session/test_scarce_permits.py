"""A domain with fewer permits than workers, in simulated time: workers and the decisions of the platform together."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.permits import Domain, Share, decide
from scrapy_ext.api.platform.workers import INTERVAL
from scrapy_ext.crawl.session.group_reports import soon
from scrapy_ext.crawl.session.permits import Demand, Permits, SiteLimits

SITE = "slow.example"
STEP, PAGE, DELAY = 0.01, 0.05, 0.5


class Site:
    """The clock, what the platform stores of the site, and the times at which requests were sent."""

    def __init__(self, limit: int) -> None:
        self.now = 1000.0
        self.limit = limit
        self.shares: dict[int, Share] = {}
        self.domain = Domain()
        self.sent: list[float] = []


class Worker:
    """A worker with some requests of the site, which its downloader gets one by one."""

    def __init__(self, site: Site, attempt: int, requests: int, workers: int) -> None:
        self.site, self.attempt, self.left, self.workers = site, attempt, requests, workers
        self.ends: list[float] = []
        self.waiting = 0
        self.report_at = site.now + STEP * attempt
        limits = SiteLimits(site.limit, DELAY)
        self.permits = Permits(lambda _domain: limits, self.hurry, lambda: site.now)
        self.permits.sources.append(lambda: [Demand(SITE, len(self.ends), self.waiting + self.left)])

    def hurry(self) -> None:
        self.report_at = self.site.now

    def step(self) -> None:
        site = self.site
        self.ends = [end for end in self.ends if end > site.now]
        if not self.waiting and self.left and self.permits.has_room(SITE, len(self.ends)):
            self.waiting, self.left = 1, self.left - 1
        if self.waiting and self.permits.take(SITE, len(self.ends)):
            self.waiting = 0
            self.ends.append(site.now + PAGE)
            site.sent.append(site.now)
        if site.now >= self.report_at:
            self.report()

    def report(self) -> None:
        site = self.site
        report = self.permits.reported().get(SITE)
        if report is not None:
            others = [share for attempt, share in site.shares.items() if attempt != self.attempt]
            decision = decide(self.attempt, report, others, site.domain, round(site.now * 1000))
            site.domain = decision.domain
            site.shares.pop(self.attempt, None)
            if decision.share is not None:
                site.shares[self.attempt] = decision.share
            self.permits.answered({SITE: decision.permit})
        self.report_at = site.now + (soon(self.workers) if self.permits.are_short else INTERVAL)


def crawled(limit: int, workers: int, requests: int) -> Site:
    site = Site(limit)
    team = [Worker(site, attempt, requests // workers, workers) for attempt in range(workers)]
    while len(site.sent) < requests:
        site.now += STEP
        for worker in team:
            worker.step()
        assert site.now < 1000 + 20 * requests * DELAY, "the crawl does not end"
    for worker in team:
        worker.permits.close()
    return site


@pytest.mark.parametrize(("limit", "workers"), [(1, 2), (1, 4), (1, 8), (2, 4)])
async def test_a_site_with_few_permits_is_crawled_nearly_as_fast_as_by_one_worker(limit: int, workers: int) -> None:
    one, several = crawled(limit, 1, 48), crawled(limit, workers, 48)
    assert several.sent[-1] - several.sent[0] < 1.5 * (one.sent[-1] - one.sent[0])
    gaps = [after - before for before, after in zip(several.sent, several.sent[1:], strict=False)]
    # A start may be up to a quarter of the delay late.
    assert min(gaps) >= 0.74 * DELAY
