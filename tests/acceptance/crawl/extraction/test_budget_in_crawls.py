"""A budget is never exceeded: retries count, what is on its way counts, what may have been billed counts."""

from __future__ import annotations

import pytest

from tests.support.faulty_service import DROPPED, PAGE, Answer, problem
from tests.support.planned_crawls import IMPATIENT, KEY, pages, routed, setting

BUDGET = 8


def test_retries_count_and_what_is_left_over_is_done_by_the_next_run(plan, service):
    """Every page is refused twice, so that eight requests to the service deliver few pages."""
    for url in (wave := pages("site.example", 12)):
        service.plays(url.removeprefix("https://"), *2 * [problem("/server/internal")], PAGE)
    crawls = plan(JOBDIR="job", EXTRACT_API_RETRY_POLICY=IMPATIENT, CONCURRENT_REQUESTS=16)
    crawl = crawls.crawl(wave, options=setting("EXTRACT_API_MAX_REQUESTS", BUDGET))
    assert (crawl.returncode, crawl.reason) == (0, "extract_api_max_requests")
    assert 1 <= len(service.posts) <= BUDGET
    assert crawl.stat("extract_api/attempts") == len(service.posts)
    assert all(outcome.error is None for outcome in crawls.outcomes), "what could not be paid for is no error"
    crawl = crawls.crawl(wave, options=setting("EXTRACT_API_MAX_REQUESTS", 2 * BUDGET))
    assert (crawl.reason, len(service.posts)) == ("extract_api_max_requests", 2 * BUDGET), "what was spent counts"
    crawl = crawls.crawl(wave)
    assert crawl.reason == "finished"
    assert crawls.delivered() == sorted(wave), "each request once, over all runs"


@pytest.mark.long
def test_what_is_on_its_way_counts(plan, service):
    """None is answered before as many as the budget allows are on their way."""
    service.plays("site.example", Answer(when=lambda: len(service.posts) >= BUDGET))
    crawls = plan(EXTRACT_API_MAX_REQUESTS=BUDGET, CONCURRENT_REQUESTS=32, CONCURRENT_REQUESTS_PER_DOMAIN=32)
    crawl = crawls.crawl(pages("site.example", 30))
    assert crawl.reason == "extract_api_max_requests"
    assert len(service.posts) == BUDGET
    assert len(crawls.delivered()) == BUDGET, "what was paid for is delivered"


@pytest.mark.long
def test_a_crawl_that_needs_just_its_budget_is_finished(plan, service):
    crawls = plan(EXTRACT_API_MAX_REQUESTS=BUDGET)
    crawl = crawls.crawl(pages("site.example", BUDGET))
    assert (crawl.reason, len(crawls.delivered())) == ("finished", BUDGET)


@pytest.mark.long
def test_cached_and_direct_pages_are_free(plan, service, site):
    """With a warm cache a crawl of six pages needs no request to the service, whatever its budget."""
    crawls, wave = plan(HTTPCACHE_ENABLED=True), pages("site.example", 6)
    assert crawls.crawl(wave).reason == "finished"
    asked = len(service.posts)
    straight = [{"url": f"{site.url}/page/{n}", "meta": {"extract_api": False}} for n in range(6)]
    crawl = crawls.crawl([*wave, *straight], options=setting("EXTRACT_API_MAX_REQUESTS", 3))
    assert crawl.reason == "finished"
    assert len(service.posts) == asked == 6
    assert crawls.delivered() == sorted([*wave, *wave, *(row["url"] for row in straight)])
    cached = [outcome for outcome in crawls.outcomes[6:] if outcome.planned in wave]
    assert all({"extract-api", "cached"} <= set(outcome.flags) for outcome in cached)
    assert [outcome.text for outcome in cached] == [outcome.text for outcome in crawls.outcomes[:6]]


def test_a_cost_is_never_exceeded_whatever_is_asked_for(plan, service):
    """A page by HTTP costs 1, one by browser 4, its screenshot 2 more."""
    service.plays("site.example", Answer(after=0.02))
    prices = {"http": 1, "browser": 4, "screenshot": 2}
    wave = [
        url if number % 3 else routed(url, browserHtml=True, screenshot=number % 2 == 0)
        for number, url in enumerate(pages("site.example", 30))
    ]
    crawls = plan(EXTRACT_API_MAX_COST=20, EXTRACT_API_PRICES=prices, JOBDIR="job")
    crawl = crawls.crawl(wave)
    assert crawl.reason == "extract_api_max_cost"
    spent = sum(cost(post.fields) for post in service.posts)
    assert 15 <= spent <= 20, "nothing cost more than six"
    crawls.crawl(wave, options=setting("EXTRACT_API_MAX_COST", 0))
    assert len(crawls.delivered()) == len(set(crawls.delivered())) == 30


def cost(fields: dict) -> int:
    return 4 + 2 * bool(fields.get("screenshot")) if fields.get("browserHtml") else 1


@pytest.mark.long
def test_what_may_have_been_billed_counts_as_billed(plan, service):
    service.plays("site.example", DROPPED)
    policy = {"network": {"attempts": 30, "wait": 0.01, "longest": 0.01}}
    crawls = plan(EXTRACT_API_MAX_COST=5, EXTRACT_API_PRICES={"http": 1, "browser": 2}, EXTRACT_API_RETRY_POLICY=policy)
    crawl = crawls.crawl(["https://there.example/"], pages("site.example", 3))
    assert crawl.reason == "extract_api_max_cost"
    assert len(service.posts) == 5


@pytest.mark.long
def test_what_was_refused_costs_nothing(plan, service):
    """The service bills what it has delivered: a limit or an error of its own is not that."""
    service.plays("site.example", *3 * [problem("/limits/over-domain-limit", retry_after=0)], PAGE)
    crawls = plan(EXTRACT_API_MAX_COST=5, EXTRACT_API_PRICES={"http": 1, "browser": 2})
    crawl = crawls.crawl(pages("site.example", 5))
    assert (crawl.reason, len(crawls.delivered())) == ("finished", 5)


@pytest.mark.long
def test_a_budget_that_is_nearly_spent_is_reported_once(plan, service):
    crawls = plan(EXTRACT_API_MAX_REQUESTS=10)
    crawl = crawls.crawl(pages("site.example", 9))
    warnings = [line for line in crawl.log.splitlines() if " WARNING: " in line and "EXTRACT_API_MAX_REQUESTS" in line]
    assert len(warnings) == 1
    assert KEY not in crawl.log
