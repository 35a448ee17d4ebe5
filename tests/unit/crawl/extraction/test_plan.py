"""From requests to exchanges with the service, and from their answers to responses: nothing is sent."""

from __future__ import annotations

from http.cookiejar import Cookie
from typing import Any

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction.errors import TooLargeError
from scrapy_ext.crawl.extraction.content import is_routed, need
from scrapy_ext.crawl.extraction.cookies import CrawlCookies
from scrapy_ext.crawl.extraction.plan import Exchange, Plan
from scrapy_ext.crawl.extraction.response import read
from scrapy_ext.crawl.frontier.identity import host_of
from tests.support.crawlers import get_crawler

URL = "https://shop.example/a"
#: Fields that the service of this package accepts besides those of the contract, and those that another one does.
OURS = frozenset({"followRedirect", "responseCookies", "omitHttpRequestHeaders"})
FOREIGN: frozenset[str] = frozenset()
PAGE = {"httpResponseBody": True, "httpResponseHeaders": True}


def plan_of(**settings: Any) -> Plan:
    crawler = get_crawler(settings_dict={"EXTRACT_API_TRANSPARENT_MODE": True, **settings})
    cookies = CookiesMiddleware.from_crawler(crawler)
    crawler.get_downloader_middleware = lambda kind: cookies if kind is CookiesMiddleware else None
    crawler.spider = crawler._create_spider("s")
    return Plan(crawler, CrawlCookies(crawler))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of()


def exchange_of(plan: Plan, request: Request, job_id: str | None = None) -> Exchange:
    return plan.exchange(request, host_of(request), job_id)


def sent(plan: Plan, request: Request, accepted: frozenset[str] = OURS) -> Any:
    return exchange_of(plan, request).fields_for(accepted)


def request_of(asked: Any = True, method: str = "GET", **meta: Any) -> Request:
    return Request(URL, method=method, meta={"extract_api": asked, **meta})


@pytest.mark.parametrize(
    ("request_", "host"),
    [
        (Request(URL), "shop.example"),
        (Request("http://[::1]:8000/a"), "::1"),
        (Request(URL, meta={"download_slot": "mine"}), "mine"),
        (Request(URL, meta={"extract_api": False}), None),
        (Request("data:,a"), None),
        (Request("file:///etc/hosts"), None),
    ],
)
def test_the_host_of_a_request_that_goes_to_the_service(request_: Request, host: str | None) -> None:
    assert (host_of(request_) if is_routed(request_, transparent=True) else None) == host


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (True, "http"),
        ({"browserHtml": True}, "browser"),
        ({"screenshot": True}, "browser"),
        ({"product": True}, "browser"),
        ({"product": True, "extractFrom": "httpResponseBody"}, "http"),
        ({"serp": True}, "http"),
        ({"serp": True, "serpOptions": {"extractFrom": "browserHtml"}}, "browser"),
    ],
)
def test_the_kind_is_that_of_the_fields_and_browsers_are_not_escalated(plan: Plan, asked: Any, kind: str) -> None:
    exchange = exchange_of(plan, request_of(asked, extract_api_escalate=True))
    assert exchange.kind == kind
    second = exchange.by_browser
    if kind == "browser":
        assert second is None
    else:
        assert second is not None
        assert (second.kind, second.by_browser) == ("browser", None)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"browserHtml": True}, True),
        ({"browserHtml": True, "httpResponseHeaders": True}, True),
        ({"product": True, "extractFrom": "httpResponseBody"}, True),
        ({"httpResponseBody": True, "httpResponseHeaders": False}, True),
        ({"httpResponseBody": True, "followRedirect": True}, True),
        (PAGE, False),
        ({"serp": True}, False),
        ({"browserHtml": True, "responseCookies": False}, False),
    ],
)
def test_cookies_are_asked_for_where_headers_do_not_bring_them(plan: Plan, fields: Any, wanted: bool) -> None:
    assert sent(plan, request_of(fields)).get("responseCookies", False) is wanted
    own = fields.get("responseCookies")
    for meta in ({"dont_merge_cookies": True}, {"extract_api_automap": False}):
        assert sent(plan, request_of(fields, **meta)).get("responseCookies") == own
    assert sent(plan, request_of(fields), FOREIGN).get("responseCookies") == own


@pytest.mark.parametrize(
    ("fields", "meta", "leaves"),
    [
        (PAGE, {}, True),
        ({**PAGE, "followRedirect": True}, {}, False),
        ({"httpResponseBody": True, "httpResponseHeaders": False}, {}, False),
        ({"httpResponseBody": True, "httpResponseHeaders": False}, {"dont_redirect": True}, True),
        ({"browserHtml": True}, {"dont_redirect": True}, False),
        (PAGE, {"extract_api_automap": False}, False),
        ({"serp": True}, {}, False),
    ],
)
def test_scrapy_follows_redirects_where_it_can(plan: Plan, fields: Any, meta: Any, leaves: bool) -> None:
    assert (sent(plan, request_of(fields, **meta)).get("followRedirect") is False) is leaves
    assert sent(plan, request_of(fields, **meta), FOREIGN).get("followRedirect") is not False


@pytest.mark.parametrize(
    ("meta", "setting", "kept_by"),
    [
        ({}, {}, ""),
        ({"dont_redirect": True}, {}, "meta key dont_redirect"),
        ({"handle_httpstatus_list": [302]}, {}, "meta key handle_httpstatus_list"),
        ({"handle_httpstatus_all": True}, {}, "meta key handle_httpstatus_all"),
        ({}, {"REDIRECT_ENABLED": False}, "setting REDIRECT_ENABLED"),
    ],
)
def test_the_reason_not_to_follow_redirects_is_named(meta: Any, setting: Any, kept_by: str) -> None:
    assert exchange_of(plan_of(**setting), request_of(**meta)).redirects_kept_by == kept_by


@pytest.mark.parametrize(
    ("request_", "depends"),
    [
        (request_of(), False),
        (request_of(method="POST"), True),
        (request_of(dont_redirect=True), True),
        (request_of({"browserHtml": True}), True),
        (request_of({"browserHtml": True, "responseCookies": False}), False),
        (request_of({"browserHtml": True}, dont_merge_cookies=True), False),
        (request_of({"browserHtml": True}, extract_api_automap=False), False),
        (Request(URL, headers={"User-Agent": None}), True),
    ],
)
def test_some_requests_depend_on_the_fields_that_the_service_accepts(
    plan: Plan, request_: Request, depends: bool
) -> None:
    assert exchange_of(plan, request_).depends_on_service is depends


def test_fields_that_a_page_object_needs_make_a_request_one_by_browser(plan: Plan) -> None:
    request = request_of()
    need(request, {"browserHtml": True})
    exchange = exchange_of(plan, request)
    assert exchange.depends_on_service
    assert (exchange.kind, sent(plan, request)["responseCookies"]) == ("browser", True)


def test_the_fields_to_send_follow_what_is_known_of_the_service(plan: Plan) -> None:
    first = exchange_of(plan, request_of(extract_api_escalate=True))
    second = first.by_browser
    assert second is not None
    assert (first.fields_for(()), second.fields_for(())) == (first.fields, second.fields)
    assert first.fields_for(OURS) == {**first.fields, "followRedirect": False}
    assert second.fields_for(OURS) == {**second.fields, "responseCookies": True}


def test_headers_of_none_are_left_out_by_a_service_that_can(plan: Plan, caplog: Any) -> None:
    request = Request(URL, headers={"X-A": None}, meta={"extract_api_escalate": True})
    assert sent(plan, request)["omitHttpRequestHeaders"] == ["X-A"]
    assert caplog.messages == []
    assert "omitHttpRequestHeaders" not in sent(plan, request, FOREIGN)
    (message,) = caplog.messages
    assert message.startswith("The header X-A is None")
    by_browser = exchange_of(plan, request).by_browser
    assert by_browser is not None
    assert "omitHttpRequestHeaders" not in by_browser.fields_for(OURS)
    none = request.replace(meta={"extract_api": {"omitHttpRequestHeaders": None}})
    assert "omitHttpRequestHeaders" not in sent(plan, none)


@pytest.mark.parametrize(
    ("accepted", "cookies"),
    [
        (OURS, [{"name": "a", "value": "1", "path": "/x"}, {"name": "", "value": "b"}]),
        (FOREIGN, [{"name": "a", "value": "1"}]),
    ],
)
def test_cookies_of_scrapy_have_the_form_that_the_service_accepts(
    plan: Plan, accepted: frozenset[str], cookies: Any
) -> None:
    jar = plan._crawler.get_downloader_middleware(CookiesMiddleware).jars["of this test"].jar
    jar.set_cookie(
        Cookie(0, "a", "1", None, False, "shop.example", False, False, "/x", True, False, None, False, None, None, {})
    )
    request = Request("https://shop.example/x/y", headers={"Cookie": "a=1; b"}, meta={"cookiejar": "of this test"})
    expected = [{**cookie, "domain": "shop.example"} for cookie in cookies]
    assert sent(plan, request, accepted)["requestCookies"] == expected
    given = [{"name": "a", "value": "1", "domain": "shop.example", "path": "/y"}]
    own = request.replace(meta={"extract_api": {"requestCookies": given}})
    assert sent(plan, own, accepted)["requestCookies"] == given
    escalated = request.replace(meta={"extract_api_escalate": {"to": {"requestCookies": given}}})
    by_browser = exchange_of(plan, escalated).by_browser
    assert by_browser is not None
    assert by_browser.fields_for(accepted)["requestCookies"] == given


def test_the_job_goes_with_a_request(plan: Plan) -> None:
    assert exchange_of(plan, request_of(), "1/2/3").fields["jobId"] == "1/2/3"


@pytest.mark.parametrize(
    ("settings", "meta", "bounds"),
    [
        ({}, {}, (180.0, 2**30, 2**25)),
        ({"DOWNLOAD_TIMEOUT": 7, "DOWNLOAD_MAXSIZE": 10, "DOWNLOAD_WARNSIZE": 5}, {}, (7.0, 10, 5)),
        ({}, {"download_timeout": 3, "download_maxsize": 20, "download_warnsize": 0}, (3.0, 20, 0)),
        ({}, {"download_timeout": None}, (0.0, 2**30, 2**25)),
    ],
)
def test_bounds_are_those_of_the_settings_or_of_the_request(settings: Any, meta: Any, bounds: Any) -> None:
    exchange = exchange_of(plan_of(**settings), request_of(**meta))
    assert (exchange.bounds.timeout, exchange.bounds.max_size, exchange.warn_size) == bounds


def test_equal_requests_have_the_same_retry_policy_so_that_they_share_one_post(plan: Plan) -> None:
    policies = [exchange_of(plan, request_of(extract_api_retry_policy={"5xx": 3})).policy for _ in range(2)]
    assert policies[0] is policies[1]
    assert exchange_of(plan, request_of()).policy is exchange_of(plan, request_of()).policy
    assert exchange_of(plan, request_of()).policy is not policies[0]


@pytest.mark.parametrize(
    ("given", "first", "later"),
    [(None, 2, 20), ({"5xx": 3}, 2, 20), ({"no-connection": 7}, 7, 7)],
)
def test_there_are_few_attempts_to_connect_until_the_service_has_answered(
    plan: Plan, given: dict[str, int] | None, first: int, later: int
) -> None:
    policy = exchange_of(plan, request_of(extract_api_retry_policy=given)).policy
    assert (policy.attempts("no-connection"), policy.later.attempts("no-connection")) == (first, later)


@pytest.mark.parametrize("meta", [{"extract_api": "yes"}, {"extract_api_escalate": 7}])
def test_unreadable_meta_is_refused(plan: Plan, meta: Any) -> None:
    with pytest.raises(ContractError):
        exchange_of(plan, Request(URL, meta=meta))


def test_a_page_that_is_too_large_is_refused_and_a_large_one_reported(plan: Plan, caplog: Any) -> None:
    result = {"url": URL, "statusCode": 200, "httpResponseBody": "YWJj", "httpResponseHeaders": []}
    assert read(exchange_of(plan, request_of(download_warnsize=3)), result).body == b"abc"
    assert caplog.messages == []
    assert read(exchange_of(plan, request_of(download_warnsize=2)), result).body == b"abc"
    assert "3 bytes are more than DOWNLOAD_WARNSIZE (2)" in caplog.text
    with pytest.raises(TooLargeError, match="3 bytes are more than the 2"):
        read(exchange_of(plan, request_of(download_maxsize=2)), result)
