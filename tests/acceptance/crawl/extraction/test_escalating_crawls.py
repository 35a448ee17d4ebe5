"""A page is requested by HTTP first, and by browser if its meta says that HTTP was not enough."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import faulty_service
from tests.support.crash.lives import until
from tests.support.crawls import Crawl
from tests.support.faulty_service import Answer, FaultyService, Post, page, problem
from tests.support.planned_crawls import IMPATIENT, Plan, pages, routed

TITLE = b"<html><h1 class='title'>There</h1></html>"
SHELL = b"<html><div id='app'></div></html>"
WAIT = b"<html>Please wait</html>"
BROWSER = "<html><h1 class='title'>By browser</h1></html>"


def by_http(answer: Answer) -> Any:
    """Answers by HTTP, beside a page that the browser has."""
    return lambda post: page(browserHtml=BROWSER) if post.fields.get("browserHtml") else answer


#: Name: meta, what is answered by HTTP, and whether a request by browser follows.
CASES: dict[str, tuple[Any, Answer, bool]] = {
    "there": ("h1.title", page(TITLE), False),
    "shell": ("h1.title", page(SHELL), True),
    "all-there": ({"css": ["h1.title"], "xpath": "//h1"}, page(TITLE), False),
    "xpath": ({"xpath": "//h1/text()"}, page(SHELL), True),
    "wall": (True, page(WAIT, status=403), True),
    "empty": (True, page(b""), True),
    "fine": (True, page(SHELL), False),
    "status": ({"status": [418]}, page(TITLE, status=418), True),
    "check": ({"check": "needs_browser"}, page(WAIT), True),
    "check-fine": ({"check": "needs_browser"}, page(TITLE), False),
    "banned": ("h1.title", problem("/download/temporary-error", retry_after=0), True),
}


def host(name: str) -> str:
    return f"{name}.example"


def asked(name: str, escalate: Any, **more: Any) -> dict[str, Any]:
    return {"url": f"https://{host(name)}/", **more, "meta": {"extract_api_escalate": escalate}}


@pytest.fixture(scope="module")
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


@pytest.fixture(scope="module")
def ended(service, tmp_path_factory) -> tuple[Plan, Crawl]:
    for name, (_, answer, _) in CASES.items():
        service.plays(host(name), by_http(answer))
    service.plays("refused.example", problem("/website/domain-unreachable"))
    service.plays("failing.example", problem("/server/internal"))
    wave = [
        *(asked(name, escalate) for name, (escalate, _, _) in CASES.items()),
        asked("refused", "h1"),
        asked("failing", True),
        asked("posted", True, method="POST", body="a"),
        asked("wrong", "h1["),
        {**asked("browser", "h1.title"), **routed("https://browser.example/", browserHtml=True)},
    ]
    plan = Plan(tmp_path_factory.mktemp("escalation"), service, {"EXTRACT_API_RETRY_POLICY": IMPATIENT})
    return plan, plan.crawl([{"url": "https://first.example/"}], wave)


def outcome(ended, name: str):
    return ended[0].outcome(f"https://{host(name)}/")


def kinds(posts: list[Post]) -> list[str]:
    return ["browser" if post.fields.get("browserHtml") else "http" for post in posts]


@pytest.mark.parametrize("name", [name for name, (_, _, escalates) in CASES.items() if not escalates])
def test_a_page_that_http_brings_costs_one_cheap_request(ended, service, name):
    assert kinds(service.of(host(name))) == ["http"]
    assert outcome(ended, name).error is None


@pytest.mark.parametrize("name", [name for name, (_, _, escalates) in CASES.items() if escalates])
def test_a_page_that_http_does_not_bring_comes_by_browser(ended, service, name):
    assert set(kinds(service.of(host(name))[:-1])) == {"http"}
    assert kinds(service.of(host(name)))[-1] == "browser"
    response = outcome(ended, name)
    assert (response.status, response.text, response.flags) == (200, BROWSER, ["extract-api"])


@pytest.mark.parametrize(("name", "error"), [("refused", "DomainUnreachableError"), ("failing", "ServiceError")])
def test_what_no_browser_mends_is_not_tried_by_one(ended, service, name, error):
    assert set(kinds(service.of(host(name)))) == {"http"}
    assert outcome(ended, name).error == error


@pytest.mark.parametrize("name", ["posted", "wrong"])
def test_what_cannot_be_escalated_is_reported_before_anything_is_sent(ended, service, name):
    failed = outcome(ended, name)
    assert failed.error == "ContractError"
    assert "extract_api_escalate" in failed.message
    assert service.count(host(name)) == 0


def test_what_is_asked_of_the_browser_already_is_asked_once(ended, service):
    assert kinds(service.of("browser.example")) == ["browser"]


def test_each_page_is_delivered_once_and_no_error_is_logged(ended):
    plan, crawl = ended
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    planned = [outcome.planned for outcome in plan.outcomes]
    assert len(planned) == len(set(planned)) == len(CASES) + 6


def test_a_domain_that_needs_the_browser_is_remembered(tmp_path):
    """Of forty pages few are tried by HTTP first, and a domain where that is enough is not concerned."""
    with FaultyService() as service:
        service.plays("shell.example", by_http(page(SHELL)))
        service.plays("fine.example", by_http(page(TITLE)))
        plan = Plan(tmp_path, service, {"CONCURRENT_REQUESTS": 1})
        wave = [
            {"url": url, "meta": {"extract_api_escalate": "h1.title"}}
            for pair in zip(pages("shell.example", 40), pages("fine.example", 40), strict=True)
            for url in pair
        ]
        plan.crawl(wave)
        assert {outcome.text for outcome in plan.outcomes if "shell" in outcome.planned} == {BROWSER}
        assert kinds(service.of("shell.example")).count("http") <= 5
        assert kinds(service.of("shell.example")).count("browser") == 40
        assert kinds(service.of("fine.example")) == ["http"] * 40
        assert len(plan.outcomes) == 80


@pytest.mark.long
def test_the_http_answer_of_a_page_that_waits_for_the_browser_is_kept_for_the_next_run(plan, service):
    def answer(post: Post) -> Answer:
        if not post.fields.get("browserHtml"):
            return page(SHELL)
        return page(browserHtml=BROWSER) if is_over else problem("/limits/over-domain-limit", retry_after=60)

    is_over = False
    service.plays("site.example", answer)
    crawls = plan(JOBDIR="job")
    wave = [{"url": "https://site.example/", "meta": {"extract_api_escalate": "h1.title"}}]
    running = crawls.start(wave)
    until(lambda: service.answered("site.example") == 2, "the browser was asked")
    running.process.send_signal(signal.SIGTERM)
    assert running.end().reason == "shutdown"
    is_over = True
    assert crawls.crawl(wave).reason == "finished"
    by_browser = [bool(post.fields.get("browserHtml")) for post in service.of("site.example")]
    assert by_browser == [False, True, True], "what HTTP brought was paid for once"
