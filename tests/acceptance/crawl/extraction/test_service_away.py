"""A service that is away, from the start, for a while or for good."""

from __future__ import annotations

import pytest

from tests.support.crash.lives import until
from tests.support.faulty_service import NEVER, PAGE, Answer, held, page, problem
from tests.support.planned_crawls import IMPATIENT, pages

PATIENT = {**IMPATIENT, "no-connection": {"attempts": 1000, "wait": 0.05, "longest": 0.1}}
HASTY = {**IMPATIENT, "no-connection": {"attempts": 3, "wait": 0.05, "longest": 0.05}}


@pytest.mark.long
def test_connections_that_end_before_anything_is_read_are_made_again(plan, service):
    service.refuse(2)
    crawls = plan(EXTRACT_API_RETRY_POLICY=IMPATIENT)
    crawl = crawls.crawl(["https://a.example/"])
    assert (crawl.returncode, crawls.delivered()) == (0, ["https://a.example/"])
    assert len(service.posts) == 1


@pytest.mark.long
def test_a_service_that_is_away_for_a_while_costs_nothing_but_time(plan, service):
    service.plays("site.example", Answer(after=0.01))
    wave = pages("site.example", 100)
    crawls = plan(EXTRACT_API_RETRY_POLICY=PATIENT)
    running = crawls.start(wave)
    until(lambda: service.answered("site.example") >= 20, "some pages were answered")
    service.go_away()
    until(lambda: "Trying again" in running.log.read_text(), "it was missed")
    service.come_back()
    crawl = running.end()
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert crawls.delivered() == sorted(wave)
    assert len(service.posts) <= len(wave) + 8, "only those that were on their way were sent again"


def test_a_service_that_stays_away_closes_the_crawl_which_keeps_the_rest(plan, service):
    wave = pages("site.example", 100)
    crawls = plan(EXTRACT_API_RETRY_POLICY=HASTY, JOBDIR="job")
    # Scrapy does not keep what start() yields after the scheduler was closed.
    service.plays("site.example", held(Answer(after=0.01), lambda: crawls.start_is_over))
    running = crawls.start(wave)
    until(lambda: service.answered("site.example") >= 20, "some pages were answered")
    service.go_away()
    crawl = running.end()
    assert (crawl.returncode, crawl.reason) == (1, "extract_api_unavailable")
    (error,) = crawl.errors
    assert "EXTRACT_API_URL" in error
    service.come_back()
    assert crawls.crawl(wave).reason == "finished"
    assert crawls.delivered() == sorted(wave), "each request once, over both runs"
    assert all(outcome.error is None for outcome in crawls.outcomes)


@pytest.mark.long
def test_one_request_that_may_not_wait_for_the_service_does_not_close_the_crawl(plan, service):
    service.plays("first.example", Answer(leaves=True))
    crawls = plan(EXTRACT_API_RETRY_POLICY=PATIENT)
    hasty = {"url": "https://hasty.example/", "meta": {"dont_retry": True}}
    running = crawls.start(["https://first.example/"], [hasty], pages("site.example", 10))
    until(lambda: len(crawls.outcomes) == 2, "the request without retries failed")
    service.come_back()
    assert (running.end().reason, len(crawls.delivered())) == ("finished", 11)
    assert crawls.outcome("https://hasty.example/").error == "UnreachableServiceError"


@pytest.mark.long
@pytest.mark.parametrize("first", [problem("/website/domain-unreachable"), page(httpResponseBody=None)])
def test_a_service_that_has_answered_anything_of_its_own_is_there(plan, service, first):
    service.plays("first.example", first)
    service.plays("slow.example", NEVER)
    crawls = plan(EXTRACT_API_RETRY_POLICY=IMPATIENT)
    slow = {"url": "https://slow.example/", "meta": {"download_timeout": 0.5, "dont_retry": True}}
    crawl = crawls.crawl(["https://first.example/"], [slow], pages("site.example", 10))
    assert (crawl.reason, len(crawls.delivered())) == ("finished", 10)


@pytest.mark.long
def test_a_request_that_was_begun_before_the_first_answer_waits_for_a_service_that_ends_with_it(plan, service):
    """503 with Retry-After, as a server answers that is being restarted."""
    service.plays("site.example", problem("/limits/over-global-limit", 0, leaves=True), PAGE)
    crawls = plan(EXTRACT_API_RETRY_POLICY=PATIENT)
    running = crawls.start(["https://site.example/"])
    until(lambda: running.log.read_text().count("cannot connect") >= 4, "it was missed more often than at first")
    service.come_back()
    crawl = running.end()
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert crawls.delivered() == ["https://site.example/"]
