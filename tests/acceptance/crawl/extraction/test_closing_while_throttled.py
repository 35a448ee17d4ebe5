"""A crawl closes promptly whatever the service says, and the next run goes on with what had to wait.

The service asks to wait ten minutes each time, far more than a test has: a crawl that waited would not end.
"""

from __future__ import annotations

import signal

import pytest

from tests.support.crash.lives import until
from tests.support.crawls import Crawl, Running
from tests.support.faulty_service import PAGE, FaultyService, held, problem
from tests.support.planned_crawls import ALONE, KEY, WITH_FRONTIER, Plan, pages, setting

#: Seconds, for each answer that says when to come back.
LONG = 600
#: Seconds in which a crawl must have closed: nothing is on its way any more.
TIMEOUT = 180
WAITING = ["limited.example", "limited-org.example", "banned.example"]
TYPES = ["/limits/over-domain-limit", "/limits/over-org-domain-limit", "/download/temporary-error"]


def throttle(service: FaultyService) -> list[str]:
    """Domains that are to be left alone, beside one that is not; the pages of all."""
    for domain, limit in zip(WAITING, TYPES, strict=True):
        service.plays(domain, problem(limit, retry_after=LONG))
    return [url for domain in (*WAITING, "healthy.example") for url in pages(domain, 6)]


def relent(service: FaultyService) -> None:
    for domain in WAITING:
        service.plays(domain, PAGE)


def all_were_throttled(service: FaultyService) -> bool:
    """Return True once every other domain was throttled and the healthy one has answered everything."""
    return service.answered("healthy.example") == 6 and all(service.answered(domain) for domain in WAITING)


def terminated(crawl: Running, service: FaultyService) -> Crawl:
    """The crawl, ended by one SIGTERM when nothing is left to do but to wait."""
    until(lambda: all_were_throttled(service), "each domain was asked")
    crawl.process.send_signal(signal.SIGTERM)
    return crawl.end(TIMEOUT)


def check_each_once(plan: Plan, wave: list[str]) -> None:
    assert plan.delivered() == sorted(wave), "each request once, over both runs"
    assert all(outcome.error is None for outcome in plan.outcomes)


def test_a_crawl_with_a_jobdir_closes_at_its_timeout_and_the_next_run_delivers_the_rest(plan, service):
    crawls, wave = plan(JOBDIR="job"), throttle(service)
    crawl = crawls.crawl(wave, options=setting("CLOSESPIDER_TIMEOUT", 1), timeout=TIMEOUT)
    assert (crawl.returncode, crawl.reason) == (0, "closespider_timeout")
    assert not set(crawls.delivered()) - set(pages("healthy.example", 6))
    assert all(outcome.error is None for outcome in crawls.outcomes), "what waits is no error"
    written = [path.read_bytes() for path in (crawls.folder / "job").rglob("*") if path.is_file()]
    assert written
    assert not any(KEY.encode() in content for content in written)
    relent(service)
    crawl = crawls.crawl(wave, timeout=TIMEOUT)
    assert crawl.reason == "finished"
    check_each_once(crawls, wave)


@pytest.mark.long
def test_a_crawl_with_the_frontier_closes_at_sigterm_and_the_next_run_delivers_the_rest(tmp_path, service):
    crawls, wave = Plan(tmp_path, service, source=WITH_FRONTIER), throttle(service)
    crawl = terminated(crawls.start(wave), service)
    assert crawl.reason == "shutdown"
    relent(service)
    crawl = crawls.crawl(wave, options=setting("PLATFORM_JOB", "1/1/1"), timeout=TIMEOUT)
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    check_each_once(crawls, wave)


@pytest.mark.long
@pytest.mark.parametrize(
    "type", [pytest.param("/limits/over-user-limit", marks=pytest.mark.full), "/limits/over-global-limit"]
)
def test_a_crawl_that_is_held_back_altogether_closes_as_promptly(plan, service, type):
    wave = pages("limited.example", 12)
    service.plays("limited.example", problem(type, retry_after=LONG))
    crawls = plan(JOBDIR="job")
    running = crawls.start(wave)
    until(lambda: service.answered("limited.example"), "the limit was answered")
    running.process.send_signal(signal.SIGTERM)
    assert running.end(TIMEOUT).reason == "shutdown"
    service.plays("limited.example", PAGE)
    crawls.crawl(wave, timeout=TIMEOUT)
    check_each_once(crawls, wave)


@pytest.mark.long
def test_a_crawl_without_a_place_to_keep_requests_closes_as_promptly(plan, service):
    crawls, wave = plan(), throttle(service)
    crawl = terminated(crawls.start(wave), service)
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "shutdown", [])


@pytest.mark.long
def test_a_crawl_in_reactorless_mode_closes_as_promptly(tmp_path, service):
    crawls = Plan(tmp_path, service, {"JOBDIR": "job"}, ALONE + "TWISTED_REACTOR_ENABLED = False\n")
    wave = throttle(service)
    crawl = crawls.crawl(wave, options=setting("CLOSESPIDER_TIMEOUT", 1), timeout=TIMEOUT)
    assert crawl.reason == "closespider_timeout"
    relent(service)
    crawls.crawl(wave, timeout=TIMEOUT)
    check_each_once(crawls, wave)


def test_what_is_on_its_way_is_waited_for_and_delivered(plan, service):
    """It may have been billed: its answer is not thrown away."""
    closing = [False]
    service.plays("slow.example", problem("/limits/over-domain-limit", retry_after=LONG))
    service.plays("slow.example/0", held(PAGE, lambda: closing[0]))
    crawls = plan(JOBDIR="job")
    running = crawls.start(pages("slow.example", 4))
    until(lambda: service.answered("slow.example") == 3, "the others were throttled")
    running.process.send_signal(signal.SIGTERM)
    until(lambda: "Received SIGTERM" in running.log.read_text(), "the crawl closes")
    closing[0] = True
    assert running.end(TIMEOUT).reason == "shutdown"
    assert crawls.delivered() == ["https://slow.example/0"]
