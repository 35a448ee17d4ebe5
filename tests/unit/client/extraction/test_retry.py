from __future__ import annotations

import msgspec
import pytest

from scrapy_ext.api.extraction import PROBLEM_TYPES, Problem
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction.errors import (
    AccountSuspendedError,
    BanError,
    DomainForbiddenError,
    DomainUnreachableError,
    DownloadError,
    ExtractError,
    InvalidRequestError,
    KeyRefusedError,
    LimitError,
    OverloadError,
    ServiceError,
    UnexpectedAnswerError,
    UnprocessableError,
    UnreachableServiceError,
    error_of,
)
from scrapy_ext.client.extraction.retry_policy import DEFAULT_RULES, RetryPolicy

ONCE = [
    "/request/invalid",
    "/request/invalid-json",
    "/request/too-large",
    "/auth/not-valid",
    "/auth/key-not-found",
    "/auth/account-suspended",
    "/website/domain-unreachable",
    "/request/unprocessable",
    "/download/domain-forbidden",
    "/download/internal-error",
    "/problem/session-expired",
    "/problem/over-session-limit",
]


def problem(type: str, retry_after: str | None = None) -> ExtractError:
    body = msgspec.json.encode(Problem.of(type, "because", blocked_domain="blocked.example"))
    headers = {"Content-Type": "application/problem+json"}
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return error_of(PROBLEM_TYPES[type].status, headers, body, {"url": "https://books.example/"})


def attempts(error: ExtractError, policy: RetryPolicy | None = None) -> int:
    policy = policy or RetryPolicy()
    return next(n for n in range(1, 1000) if policy.wait(error, n) is None)


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("/request/invalid", InvalidRequestError),
        ("/request/too-large", InvalidRequestError),
        ("/auth/not-valid", KeyRefusedError),
        ("/auth/account-suspended", AccountSuspendedError),
        ("/website/domain-unreachable", DomainUnreachableError),
        ("/request/unprocessable", UnprocessableError),
        ("/limits/over-user-limit", LimitError),
        ("/limits/over-global-limit", OverloadError),
        ("/download/domain-forbidden", DomainForbiddenError),
        ("/server/timed-out", ServiceError),
        ("/download/temporary-error", BanError),
        ("/download/internal-error", DownloadError),
    ],
)
def test_each_problem_has_its_error_with_everything_that_was_said(type, kind):
    error = problem(type, "7")
    row = PROBLEM_TYPES[type]
    assert isinstance(error, kind)
    assert (error.status, error.type, error.title, error.detail) == (row.status, type, row.title, "because")
    assert (error.blocked_domain, error.retry_after, error.scope) == ("blocked.example", 7, row.scope)
    assert "https://books.example/" in str(error)
    assert type in str(error)


def test_a_wrong_key_names_the_setting():
    assert "EXTRACT_API_KEY" in str(problem("/auth/key-not-found"))


@pytest.mark.parametrize("type", ONCE)
def test_what_must_fail_again_is_attempted_once(type):
    assert attempts(problem(type)) == 1
    assert attempts(problem(type, retry_after="1")) == 1


@pytest.mark.parametrize("type", sorted(set(PROBLEM_TYPES) - set(ONCE)))
def test_what_may_pass_is_attempted_again_but_not_for_ever(type):
    assert 2 <= attempts(problem(type)) <= 30


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 421, 422, 451, 521])
@pytest.mark.parametrize("body", [b"", b"<html></html>", b"[]", b"null", b'{"type": 3, "status": "x"}'])
def test_a_status_without_a_problem_is_taken_for_what_it_is(status, body):
    error = error_of(status, {}, body)
    assert error.status == status
    assert attempts(error) == 1


@pytest.mark.parametrize(("status", "same"), [(429, 30), (503, 30), (500, 3), (520, 4), (502, 3), (599, 3)])
def test_a_status_without_a_problem_is_repeated_as_its_problem_would_be(status, same):
    assert attempts(error_of(status, {}, b"")) == same


def test_what_the_service_says_is_waited_exactly_with_a_little_on_top():
    for failures in (1, 3):
        wait = RetryPolicy().wait(problem("/download/temporary-error", "120"), failures)
        assert 120 <= wait <= 120.25


def test_a_day_is_not_waited_for():
    assert attempts(problem("/limits/over-user-limit", "86400")) == 1


def test_without_a_word_of_the_service_waits_grow():
    policy, error = RetryPolicy(), problem("/limits/over-domain-limit")
    assert 1 <= policy.wait(error, 1) <= 2
    assert 4 <= policy.wait(error, 3) <= 8
    assert policy.wait(error, 20) <= 60


def test_failures_that_may_have_been_billed_are_few():
    assert attempts(UnreachableServiceError("x", ambiguous=True)) == 3
    assert attempts(UnexpectedAnswerError("x")) == 3


def test_attempts_can_be_set_by_problem_type():
    policy = RetryPolicy.merged({"/download/temporary-error": 6, "network": 1, "/download/internal-error": 2})
    assert attempts(problem("/download/temporary-error"), policy) == 6
    assert attempts(problem("/download/internal-error"), policy) == 2
    assert attempts(UnreachableServiceError("x", ambiguous=True), policy) == 1
    assert attempts(problem("/server/internal"), policy) == 3


def test_waits_can_be_set_too_and_the_rest_of_a_row_stays():
    policy = RetryPolicy.merged({"/server/internal": {"wait": 0.5}})
    assert attempts(problem("/server/internal"), policy) == 3
    assert policy.wait(problem("/server/internal"), 1) <= 0.5


def test_overrides_of_a_request_leave_the_crawls_policy_as_it_is():
    policy = RetryPolicy()
    assert attempts(problem("/server/internal"), policy.with_overrides({"/server/internal": 1}, "meta")) == 1
    assert attempts(problem("/server/internal"), policy) == 3
    assert DEFAULT_RULES["/server/internal"].attempts == 3


@pytest.mark.parametrize(
    "row", [0, -1, True, None, "3", 2.5, {"attempts": 0}, {"wait": -1}, {"tries": 3}, {"attempts": "3"}]
)
def test_a_row_that_cannot_be_used_names_the_setting_and_the_form(row):
    with pytest.raises(ContractError, match=r"EXTRACT_API_RETRY_POLICY\['/server/internal'\].*at least 1"):
        RetryPolicy.merged({"/server/internal": row})


def test_a_row_that_does_not_exist_is_reported():
    with pytest.raises(ContractError, match="is not a problem type"):
        RetryPolicy.merged({"/server/interna": 3})


def test_a_redirect_is_reported():
    error = error_of(301, {"Location": "https://elsewhere.example/"}, b"")
    assert isinstance(error, UnexpectedAnswerError)
    assert "a redirect to https://elsewhere.example/" in str(error)


def test_the_page_of_a_load_balancer_is_named_and_not_quoted():
    assert "an HTML page" in str(error_of(502, {"Content-Type": "text/html"}, b"<html>"))
