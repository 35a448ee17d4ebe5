"""robots.txt, where the operator has said that it is obeyed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from scrapy_ext.server.extraction.http import robots
from scrapy_ext.server.extraction.http.fetch import HttpResult
from scrapy_ext.server.extraction.plan import HttpPlan
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

BODY = {"httpResponseBody": True}
RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: trusted\nDisallow:\n"


@pytest.fixture
def site() -> Iterator[Target]:
    site = Target().start()
    site.page("/robots.txt", RULES, Content_Type="text/plain")
    for path in ("/public", "/private/page", "/private/open"):
        site.page(path, "ok")
    yield site
    site.stop()


@pytest.fixture
def service(site: Target) -> Iterator[Service]:
    with Service(allow_hosts=(site.host,), obey_robots=True) as running:
        yield running


def test_what_robots_txt_refuses_is_521_and_not_requested(service: Service, site: Target) -> None:
    detail = service.problem(521, "/download/internal-error", url=site.url("/private/page"), **BODY)
    assert "robots.txt of localhost" in detail
    assert not site.calls_of("/private/page")
    for path in ("/public", "/private/open"):
        assert service.result(url=site.url(path), **BODY)["statusCode"] == 200


def test_a_redirect_to_what_is_refused_is_521(service: Service, site: Target) -> None:
    url = site.page("/moved", "", 302, Location="/private/page")
    service.problem(521, "/download/internal-error", url=url, **BODY)
    assert not site.calls_of("/private/page")


def test_the_rules_are_those_for_the_callers_user_agent(service: Service, site: Target) -> None:
    headers = [{"name": "user-agent", "value": "trusted/1.0"}]
    service.result(url=site.url("/private/page"), customHttpRequestHeaders=headers, **BODY)


def test_the_rules_of_a_site_are_read_once_for_all_who_ask_at_the_same_time(service: Service, site: Target) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: service.extract(url=site.url("/public"), **BODY), range(16)))
    assert [answer.status for answer in answers] == [200] * 16
    assert len(site.calls_of("/robots.txt")) == 1


def test_a_site_without_rules_may_be_fetched(service: Service, site: Target) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /", 404)
    service.result(url=site.url("/private/page"), **BODY)


def test_a_site_that_cannot_send_its_rules_now_is_520_and_requested_again(service: Service, site: Target) -> None:
    site.page("/robots.txt", "", 503)
    service.problem(520, "/download/temporary-error", url=site.url("/public"), **BODY)
    assert not site.calls_of("/public")
    site.page("/robots.txt", RULES)
    service.result(url=site.url("/public"), **BODY)


def test_a_site_that_is_not_there_is_the_same_problem_as_ever(service: Service) -> None:
    service.problem(421, "/website/domain-unreachable", url="http://nowhere.invalid/", **BODY)


def test_nobody_is_asked_unless_the_operator_says_so(site: Target) -> None:
    with Service(allow_hosts=(site.host,)) as running:
        running.result(url=site.url("/private/page"), **BODY)
    assert not site.calls_of("/robots.txt")


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots, "KEPT_SITES", 2)
    asked: list[str] = []

    async def fetch(plan: HttpPlan) -> HttpResult:
        asked.append(plan.url)
        return HttpResult(url=plan.url, status=200, headers=[], body=b"\xff" * 10_000_000)

    rules = robots.Robots(fetch)
    for name in ("a", "b", "a", "c", "a", "b"):
        await rules.check(f"http://{name}.example/x", "*")
    assert asked == [f"http://{name}.example/robots.txt" for name in ("a", "b", "c", "b")]
