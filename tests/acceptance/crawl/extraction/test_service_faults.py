"""Every request ends after a bounded number of attempts with its reason, whatever the service answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_ext.api.extraction import PROBLEM_TYPES
from tests.support import faulty_service
from tests.support.crawls import Crawl
from tests.support.faulty_service import DROPPED, HALF, PAGE, SIGN_IN, Answer, FaultyService, page, problem
from tests.support.planned_crawls import IMPATIENT, Plan

#: What no repeating mends, and the class of its error.
ONCE = {
    "/request/invalid": "InvalidRequestError",
    "/request/invalid-json": "InvalidRequestError",
    "/request/too-large": "InvalidRequestError",
    "/request/unprocessable": "UnprocessableError",
    "/website/domain-unreachable": "DomainUnreachableError",
    "/download/domain-forbidden": "DomainForbiddenError",
    "/download/internal-error": "DownloadError",
}
#: The same by the status alone: an error may come without a body.
BARE_ONCE = {
    400: "InvalidRequestError",
    418: "InvalidRequestError",
    421: "DomainUnreachableError",
    451: "DomainForbiddenError",
}
#: What is given up after three attempts: the answer, its error, and whether it may have been billed.
THREE_TIMES = {
    "sign-in": (SIGN_IN, "UnexpectedAnswerError", True),
    "empty": (Answer(body=b""), "UnexpectedAnswerError", True),
    "array": (Answer(body=b"[1]"), "UnexpectedAnswerError", True),
    "redirect": (Answer(302, b"", headers=(("Location", "https://sign-in.example/"),)), "UnexpectedAnswerError", True),
    "dropped": (DROPPED, "UnreachableServiceError", True),
    "half": (HALF, "UnreachableServiceError", True),
    "bad-gateway": (Answer(502, b"<html>Bad gateway</html>", type="text/html"), "ServiceError", False),
    "internal": (problem("/server/internal"), "ServiceError", False),
    "timed-out": (problem("/server/timed-out"), "ServiceError", False),
}
#: What passes, so that the page is delivered at the third attempt.
PASSES = {
    **{name: answer for name, (answer, _, _) in THREE_TIMES.items()},
    "banned": problem("/download/temporary-error", retry_after=0),
    "banned-bare": Answer(520, b"", type=None),
    "limited": problem("/limits/over-domain-limit", retry_after=0),
    "limited-org": problem("/limits/over-org-domain-limit", retry_after=0),
    "limited-bare": Answer(429, b"", type=None, headers=(("Retry-After", "0"),)),
}
#: Meta of a request, what is answered to it for ever, and how often it is tried.
OF_ITS_OWN = {
    "one": ({"extract_api_retry_policy": {"/server/internal": 1}}, problem("/server/internal"), 1),
    "five": ({"extract_api_retry_policy": {"/server/internal": 5}}, problem("/server/internal"), 5),
    "fast": (
        {"extract_api_retry_policy": {"network": {"attempts": 4, "wait": 0, "longest": 0}}},
        DROPPED,
        4,
    ),
    "max-internal": ({"max_retry_times": 0}, problem("/server/internal"), 1),
    "max-dropped": ({"max_retry_times": 0}, DROPPED, 1),
    "max-five": (
        {"max_retry_times": 0, "extract_api_retry_policy": {"/server/internal": 5}},
        problem("/server/internal"),
        5,
    ),
    "dont-internal": ({"dont_retry": True}, problem("/server/internal"), 1),
    "dont-banned": ({"dont_retry": True}, problem("/download/temporary-error", retry_after=0), 1),
    "dont-dropped": ({"dont_retry": True}, DROPPED, 1),
    "dont-limited": ({"dont_retry": True}, problem("/limits/over-domain-limit", retry_after=0), 1),
}


def host(name: str) -> str:
    """A domain for a problem type or a name."""
    return f"{name.strip('/').replace('/', '-')}.example"


def url(name: object) -> str:
    return f"https://{host(str(name))}/"


@pytest.fixture(scope="module")
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


@pytest.fixture(scope="module")
def ended(service, tmp_path_factory) -> tuple[Plan, Crawl]:
    """All faults in one crawl, behind a page that shows that the service is there."""
    for once in ONCE:
        service.plays(host(once), problem(once, retry_after=0))
    for status in BARE_ONCE:
        service.plays(host(str(status)), Answer(status, b"", type=None))
    for name, (answer, _, _) in THREE_TIMES.items():
        service.plays(host(name), answer)
    for name, answer in PASSES.items():
        service.plays(host(f"passes-{name}"), answer, answer, PAGE)
    for name, (_, answer, _) in OF_ITS_OWN.items():
        service.plays(host(name), answer)
    service.plays("site-busy.example", page(b"busy", status=503), page(b"<p>there"))
    wave = [
        *map(url, ONCE),
        *map(url, BARE_ONCE),
        *map(url, THREE_TIMES),
        *(url(f"passes-{name}") for name in PASSES),
        *({"url": url(name), "meta": meta} for name, (meta, _, _) in OF_ITS_OWN.items()),
        {"url": url("no-policy"), "meta": {"extract_api_retry_policy": {"/server/internals": 1}}},
        url("site-busy"),
    ]
    policy = {**IMPATIENT, "/download/temporary-error": {"wait": 0.01, "longest": 0.01}}
    plan = Plan(tmp_path_factory.mktemp("faults"), service, {"EXTRACT_API_RETRY_POLICY": policy})
    return plan, plan.crawl([url("there")], wave)


def test_a_crawl_of_all_faults_ends_well_and_reports_each_request(ended):
    plan, crawl = ended
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    planned_names = [outcome.planned for outcome in plan.outcomes]
    assert len(planned_names) == len(set(planned_names))


@pytest.mark.parametrize("type", ONCE)
def test_a_failure_that_is_final_is_posted_once_and_reported_with_the_message_of_the_service(ended, service, type):
    failed = ended[0].outcome(url(type))
    assert service.count(host(type)) == 1
    assert (failed.error, failed.type, failed.status) == (ONCE[type], type, PROBLEM_TYPES[type].status)
    assert "ExtractError" in failed.kinds
    assert PROBLEM_TYPES[type].title in failed.message
    assert "because" in failed.message
    assert failed.blocked_domain == ("blocked.example" if "forbidden" in type else None)


@pytest.mark.parametrize("status", BARE_ONCE)
def test_an_error_without_a_body_is_taken_by_its_status(ended, service, status):
    failed = ended[0].outcome(url(status))
    assert service.count(host(str(status))) == 1
    assert (failed.error, failed.type, failed.status) == (BARE_ONCE[status], "", status)


@pytest.mark.parametrize("name", THREE_TIMES)
def test_what_does_not_pass_is_given_up_after_three_attempts(ended, service, name):
    _, error, ambiguous = THREE_TIMES[name]
    failed = ended[0].outcome(url(name))
    assert service.count(host(name)) == 3
    assert (failed.error, failed.ambiguous) == (error, ambiguous)


def test_a_page_that_is_none_of_the_service_is_shown_with_the_setting_to_check(ended):
    message = ended[0].outcome(url("sign-in")).message
    assert "Sign in" in message
    assert "EXTRACT_API_URL" in message


@pytest.mark.parametrize("name", PASSES)
def test_what_passes_is_delivered_at_the_attempt_that_succeeds(ended, service, name):
    assert ended[0].outcome(url(f"passes-{name}")).status == 200
    assert service.count(host(f"passes-{name}")) == 3


@pytest.mark.parametrize("name", OF_ITS_OWN)
def test_a_request_may_say_how_often_it_is_tried(ended, service, name):
    assert ended[0].outcome(url(name)).error is not None
    assert service.count(host(name)) == OF_ITS_OWN[name][2]


def test_a_policy_that_cannot_be_read_fails_the_request_and_nothing_is_sent(ended, service):
    failed = ended[0].outcome(url("no-policy"))
    assert failed.error == "ContractError"
    assert "extract_api_retry_policy" in failed.message
    assert "/server/internals" in failed.message
    assert service.count("no-policy.example") == 0


def test_a_site_that_is_busy_is_tried_again_by_scrapy_as_ever(ended, service):
    crawl = ended[1]
    assert ended[0].outcome(url("site-busy")).text == "<p>there"
    assert service.count("site-busy.example") == 2
    assert crawl.stat("retry/count") == 1


def test_attempts_that_may_have_been_billed_are_counted(ended, service):
    may_have_been = [host(name) for name, (_, _, ambiguous) in THREE_TIMES.items() if ambiguous]
    failed = sum(
        service.count(domain) for domain in (*may_have_been, *map(host, ("fast", "dont-dropped", "max-dropped")))
    )
    passed = sum(service.count(f"passes-{domain}") - 1 for domain in may_have_been)
    assert ended[1].stat("extract_api/ambiguous") == failed + passed


def test_attempts_are_all_counted(ended, service):
    assert ended[1].stat("extract_api/attempts") == len(service.posts)
