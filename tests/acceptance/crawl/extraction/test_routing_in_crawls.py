"""Routed and direct requests in each mode of Scrapy, and reasons that stop a crawl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import sites
from tests.support.faulty_service import PAGE, Answer, problem
from tests.support.planned_crawls import ALONE, IMPATIENT, KEY, WITH_FRONTIER, Plan, pages, routed, setting
from tests.support.sites import Site

NO_BODY = Answer(401, b"", type=None, headers=(("WWW-Authenticate", "Basic"),))
LIMITS = {"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("answer", "reason", "message", "named"),
    [
        (problem("/auth/not-valid"), "extract_api_bad_key", "KeyRefusedError", "EXTRACT_API_KEY"),
        (NO_BODY, "extract_api_bad_key", "KeyRefusedError", "EXTRACT_API_KEY"),
        (problem("/auth/account-suspended"), "extract_api_suspended_account", "AccountSuspendedError", "account"),
    ],
)
def test_a_key_that_is_refused_closes_the_spider_once_before_more_is_sent(
    plan, service, answer, reason, message, named
):
    service.plays("site.example", answer)
    crawls = plan(**LIMITS)
    crawl = crawls.crawl(pages("site.example", 40))
    assert (crawl.returncode, crawl.reason) == (1, reason)
    assert 1 <= len(service.posts) <= LIMITS["CONCURRENT_REQUESTS"]
    (error,) = crawl.errors
    assert named in error
    assert KEY not in crawl.log
    assert [outcome.error for outcome in crawls.outcomes] == [message], (
        "one request fails; the others stay in the queue"
    )


@pytest.mark.long
def test_with_another_key_the_next_run_delivers_everything(plan, service):
    service.plays("site.example", problem("/auth/key-not-found"))
    crawls = plan(JOBDIR="job", **LIMITS)
    assert crawls.crawl(wave := pages("site.example", 40)).reason == "extract_api_bad_key"
    service.plays("site.example", PAGE)
    assert crawls.crawl(wave).reason == "finished"
    assert crawls.delivered() == sorted(wave)


@pytest.mark.long
def test_an_account_that_is_suspended_while_a_crawl_runs_closes_it_as_well(plan, service):
    service.plays(
        "site.example", lambda post: Answer() if len(service.posts) <= 10 else problem("/auth/account-suspended")
    )
    crawls = plan(**LIMITS)
    crawl = crawls.crawl(pages("site.example", 40))
    assert (crawl.returncode, crawl.reason) == (1, "extract_api_suspended_account")
    assert len(service.posts) <= 10 + LIMITS["CONCURRENT_REQUESTS"]


def test_a_crawl_without_a_key_stops_at_its_start_and_says_what_to_set(tmp_path, service):
    crawls = Plan(tmp_path, None, {"EXTRACT_API_URL": service.url})
    crawl = crawls.crawl(pages("site.example", 3))
    assert crawl.returncode != 0
    (error,) = crawl.errors
    assert "EXTRACT_API_KEY is not set" in error
    assert "Set it" in error
    assert (service.posts, crawls.outcomes) == ([], [])


@pytest.mark.long
def test_the_address_may_end_in_a_slash(plan, service):
    crawls = plan()
    crawls.crawl(["https://a.example/"], options=setting("EXTRACT_API_URL", service.url + "/"))
    assert [post.path for post in service.posts] == ["/v1/extract"]
    assert crawls.delivered() == ["https://a.example/"]


@pytest.mark.long
def test_a_service_that_answers_everything_with_a_page_of_its_own_stops_the_crawl_at_its_start(plan, service):
    service.plays("site.example", Answer(body=b"<html>Sign in</html>", type="text/html"))
    crawls = plan(EXTRACT_API_RETRY_POLICY=IMPATIENT, JOBDIR="job", **LIMITS)
    crawl = crawls.crawl(pages("site.example", 40))
    assert (crawl.returncode, crawl.reason) == (1, "extract_api_unavailable")
    assert len(service.posts) <= 3 * LIMITS["CONCURRENT_REQUESTS"]
    assert crawls.outcomes == []


@pytest.mark.scrapy(oldest="2.19", why="a download handler of aiohttp, for direct requests without a reactor")
def test_reactorless_mode_routes_and_goes_direct_as_the_other(tmp_path, service, site):
    crawls = Plan(tmp_path, service, {}, ALONE + "TWISTED_REACTOR_ENABLED = False\n")
    straight = [{"url": f"{site.url}/page/{n}", "meta": {"extract_api": False}} for n in range(5)]
    crawl = crawls.crawl([*pages("a.example", 10), *straight, "data:text/html,<p>"])
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert len(crawls.delivered()) == 16
    assert len(service.posts) == 10
    assert [outcome.flags for outcome in crawls.outcomes if "localhost" in outcome.planned] == [[]] * 5


def test_switched_off_everything_goes_direct(plan, service, site):
    crawls = plan(EXTRACT_API_ENABLED=False)
    wave = [{"url": f"{site.url}/page/{n}"} for n in range(5)]
    crawl = crawls.crawl([*wave, routed(f"{site.url}/page/6", browserHtml=True)])
    assert (crawl.returncode, crawl.reason, len(crawls.delivered())) == (0, "finished", 6)
    assert service.posts == []
    assert sum(site.hits.values()) == 6


class RuledSite(Site):
    """Has a robots.txt."""

    def respond(self, path: str, seen: int, body: bytes) -> sites.Answer:
        if path == "/robots.txt":
            return sites.Answer(200, b"User-agent: *\nDisallow: /private/\n")
        return super().respond(path, seen, body)


@pytest.fixture
def ruled() -> Iterator[RuledSite]:
    site = RuledSite()
    yield site
    site.close()


def test_robots_txt_is_fetched_directly_and_obeyed(plan, service, ruled):
    crawls = plan(ROBOTSTXT_OBEY=True)
    allowed, forbidden = f"{ruled.url}/page/1", f"{ruled.url}/private/1"
    crawl = crawls.crawl([allowed, forbidden])
    assert [post.url for post in service.posts] == [allowed]
    assert dict(ruled.hits) == {"/robots.txt": 1}
    assert crawls.outcome(forbidden).error == "IgnoreRequest"
    assert crawl.reason == "finished"


def test_without_transparent_mode_only_what_asks_for_it_is_routed(plan, service, site):
    crawls = plan(EXTRACT_API_TRANSPARENT_MODE=False)
    crawls.crawl([f"{site.url}/page/1", routed("https://a.example/1"), routed("https://a.example/2", browserHtml=True)])
    assert sorted(post.place for post in service.posts) == ["a.example/1", "a.example/2"]
    assert len(crawls.delivered()) == 3


@pytest.mark.long
def test_a_running_job_is_named_to_the_service_but_not_with_serp(tmp_path, service):
    crawls = Plan(tmp_path, service, source=WITH_FRONTIER)
    crawl = crawls.crawl(["https://a.example/"], [routed("https://serp.example/", serp=True)])
    assert crawl.reason == "finished"
    page, serp = service.posts
    assert page.fields["jobId"] == "1/1/1"
    assert serp.fields == {"url": "https://serp.example/", "serp": True}


@pytest.mark.long
def test_where_nobody_keeps_the_queue_the_first_request_hears_of_a_refused_key(plan, service):
    """Scrapy's shell waits for its response before it does anything else, closing included."""
    service.plays("site.example", problem("/auth/key-not-found"))
    message = plan().project.run(
        "-m", "scrapy", "shell", typed="fetch('https://site.example/')\nprint('still', 'here')\n"
    )
    assert "still here" in message
    assert len(service.posts) == 1


@pytest.mark.long
def test_a_reactor_without_asyncio_is_refused_by_its_setting(plan, service):
    crawls = plan(TWISTED_REACTOR="twisted.internet.selectreactor.SelectReactor")
    crawl = crawls.crawl(pages("site.example", 2))
    assert any("TWISTED_REACTOR must be the one of asyncio" in error for error in crawl.errors)
    assert (crawls.outcomes, service.posts) == ([], [])
