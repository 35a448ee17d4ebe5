"""Requests for the same extraction that are on their way together share one request to the service."""

from __future__ import annotations

import pytest

from tests.support.faulty_service import held, page, problem
from tests.support.planned_crawls import pages

TWINS = 8


def twin(url: str, own: int, **more) -> dict:
    return {"url": url, "dont_filter": True, "priority": 1, **more, "meta": {"own": own, **more.get("meta", {})}}


def test_they_are_posted_once_and_each_gets_a_response_of_its_own(plan, service):
    """The answer waits until a request that was made after all of them has arrived."""
    service.plays("twins.example", held(page(b"<p>twin"), lambda: service.count("last.example")))
    crawls = plan(CONCURRENT_REQUESTS=32, CONCURRENT_REQUESTS_PER_DOMAIN=32)
    wave = [twin("https://twins.example/", own) for own in range(TWINS)]
    crawl = crawls.crawl([*wave, "https://last.example/"])
    assert service.count("twins.example") == 1
    delivered = [outcome for outcome in crawls.outcomes if "twins" in outcome.planned]
    assert sorted(outcome.own for outcome in delivered) == list(range(TWINS)), "each with its own meta"
    assert {outcome.text for outcome in delivered} == {"<p>twin"}
    assert all(outcome.latency for outcome in delivered)
    assert crawl.stat("extract_api/attempts") == 2


@pytest.mark.long
def test_what_differs_is_posted_by_itself(plan, service):
    waits = held(page(b"<p>"), lambda: service.count("last.example"))
    service.plays("site.example", waits)
    crawls = plan(CONCURRENT_REQUESTS=32, CONCURRENT_REQUESTS_PER_DOMAIN=32)
    url = "https://site.example/"
    wave = [
        twin(url, 0),
        twin(url, 1, headers={"X-A": "1"}),
        twin(url, 2, method="POST", body="a"),
        twin(url, 3, meta={"extract_api": {"browserHtml": True}}),
        twin(url, 4, meta={"extract_api": {"tags": {"a": "b"}}}),
        twin(url + "?a", 5),
    ]
    crawls.crawl([*wave, "https://last.example/"])
    assert len(service.posts) == len(wave) + 1
    assert len(crawls.delivered()) == len(wave) + 1


@pytest.mark.long
def test_they_share_a_failure_as_well(plan, service):
    failure = problem("/website/domain-unreachable")
    service.plays("twins.example", held(failure, lambda: service.count("last.example")))
    crawls = plan(CONCURRENT_REQUESTS=32, CONCURRENT_REQUESTS_PER_DOMAIN=32)
    crawls.crawl([*(twin("https://twins.example/", own) for own in range(TWINS)), "https://last.example/"])
    failed = [outcome for outcome in crawls.outcomes if outcome.error]
    assert sorted(outcome.own for outcome in failed) == list(range(TWINS))
    assert {outcome.error for outcome in failed} == {"DomainUnreachableError"}
    assert service.count("twins.example") == 1


@pytest.mark.long
def test_one_after_the_other_they_are_extracted_anew(plan, service):
    url = "https://twins.example/"
    crawls = plan()
    crawls.crawl([twin(url, 0)], [twin(url, 1)])
    assert len(service.posts) == 2


def test_they_cost_the_budget_one_request(plan, service):
    service.plays("twins.example", held(page(b"<p>"), lambda: service.count("last.example")))
    crawls = plan(EXTRACT_API_MAX_REQUESTS=3, CONCURRENT_REQUESTS=32, CONCURRENT_REQUESTS_PER_DOMAIN=32)
    wave = [*(twin("https://twins.example/", own) for own in range(TWINS)), "https://last.example/"]
    crawl = crawls.crawl(wave, pages("later.example", 1))
    assert (crawl.reason, len(service.posts)) == ("finished", 3)
    assert len(crawls.delivered()) == TWINS + 2
