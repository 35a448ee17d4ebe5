from __future__ import annotations

import logging
from itertools import pairwise, product
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, JsonResponse, Response, XmlResponse

from scrapy_ext.api.extraction import check
from scrapy_ext.api.extraction.fields import kind_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.crawl.extraction.escalation import WALLS, BrowserHosts, Escalation, as_browser_fields
from scrapy_ext.crawl.extraction.response_classes import ExtractHtmlResponse

URL = "https://books.example/"
PAGE = {"url": URL, "httpResponseBody": True, "httpResponseHeaders": True}
BOOK = b"<html><h1>A book</h1><p class=price>3</p></html>"


class BookSpider(Spider):
    name = "books"
    limit = 7

    def is_wall(self, response: Response) -> bool:
        return b"Please wait" in response.body

    async def is_slow(self, response: Response) -> bool:
        return True


SPIDER = BookSpider()


def page(body: bytes = BOOK, status: int = 200, cls: type[Response] = HtmlResponse) -> Response:
    return cls(URL, body=body, status=status)


def parsed(value: Any, spider: Spider | None = SPIDER) -> Escalation:
    escalation = Escalation.parse(value, spider)
    assert escalation is not None
    return escalation


def reason(value: Any, response: Response) -> str | None:
    return parsed(value).reason(response, SPIDER)


# ── what the meta says ──


@pytest.mark.parametrize("value", [None, False])
def test_nothing_is_escalated_that_does_not_ask_for_it(value):
    assert Escalation.of(Request(URL, meta={"extract_api_escalate": value})) is None
    assert Escalation.of(Request(URL)) is None


@pytest.mark.parametrize("value", [True, {}, {"to": {"screenshot": True}}, {"css": []}, {"css": None}])
def test_without_a_rule_the_walls_and_empty_pages_go_to_the_browser(value):
    empty = ExtractHtmlResponse(URL, body=b" \n", extract_result={"httpResponseBody": b" \n"})
    assert {status for status in range(200, 600) if reason(value, page(status=status)) == "status"} == WALLS
    assert reason(value, empty) == "empty"
    assert reason(value, page()) is None


def test_a_page_that_was_not_asked_for_is_not_an_empty_one():
    extracted = ExtractHtmlResponse(URL, body=b"", extract_result={"product": {"name": "A book"}})
    assert reason(True, extracted) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("h1", None),
        ("h2", "selector"),
        ("h1::text", None),
        ({"css": "h1"}, None),
        ({"css": ["h1", ".price"]}, None),
        ({"css": ["h1", ".stock"]}, "selector"),
        ({"xpath": "//h1[contains(., 'book')]"}, None),
        ({"xpath": "//h1[contains(., 'film')]"}, "selector"),
        ({"xpath": "re:test(//h1, 'b.ok')"}, None),
        ({"xpath": "re:test(//h1, 'f.lm')"}, "selector"),
        ({"xpath": "count(//h2)"}, "selector"),
        ({"xpath": "string(//h2)"}, "selector"),
        ({"css": "h1", "xpath": ["//p", "//ul"]}, "selector"),
        ({"css": "h2", "status": 200}, "status"),
        ({"status": [201, 202]}, None),
    ],
)
def test_a_page_without_a_match_goes_to_the_browser(value, expected):
    assert reason(value, page()) == expected


@pytest.mark.parametrize(
    "response",
    [
        page(b""),
        page(b"\0\1", cls=Response),
        page(b"{}", cls=JsonResponse),
        page(b"<feed/>", cls=XmlResponse),
        page(b"<p>Forbidden", status=403),
        page(b"<p>Sorry", status=500),
    ],
    ids=lambda response: f"{type(response).__name__}-{response.status}",
)
def test_what_is_no_page_has_no_match(response):
    assert reason("h1", response) == "selector"


@pytest.mark.parametrize("status", [301, 302, 404, 410])
def test_selectors_are_not_looked_for_where_there_is_no_page(status):
    response = page(b"", status=status)
    assert reason("h1", response) is None
    assert reason({"css": "h1", "status": status}, response) == "status"


def test_a_function_or_a_method_of_the_spider_decides():
    assert reason({"check": SPIDER.is_wall}, page(b"Please wait")) == "check"
    assert reason({"check": "is_wall"}, page(b"Please wait")) == "check"
    assert reason({"check": "is_wall"}, page()) is None
    assert reason({"check": "is_wall", "css": "h2"}, page(b"Please wait")) == "selector"
    assert parsed({"check": "is_wall"}, None).reason(page(b"Please wait"), SPIDER) == "check"


def test_the_error_of_a_check_is_the_callers_to_see():
    with pytest.raises(ZeroDivisionError):
        reason({"check": lambda response: 1 / 0}, page())


# ── errors are reported before anything is sent ──


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, 'meta["extract_api_escalate"]: must be True, a CSS selector or a dict, got int. Write True, a CSS'),
        (["h1"], "must be True, a CSS selector or a dict, got list"),
        ("h1[", "meta[\"extract_api_escalate\"]['css']: has the selector 'h1[', which cannot be read: Expected"),
        ("", "['css']: has the selector '', which cannot be read"),
        ("p::nothing", "'p::nothing', which cannot be read: The pseudo-element ::nothing is unknown"),
        ({"css": ["h1", "div >"]}, "'div >', which cannot be read"),
        ({"css": 3}, "['css']: must be a selector or a list of selectors. Write"),
        ({"xpath": "//h1["}, "['xpath']: has the selector '//h1[', which cannot be read"),
        ({"xpath": "//x:h1"}, "Undefined namespace prefix"),
        ({"xpath": "sole(//h1)"}, "Unregistered function"),
        ({"status": "403"}, "['status']: must be a status or a list of statuses, from 100 to 999. Write [403, 503]."),
        ({"status": [403, True]}, "must be a status or a list of statuses"),
        ({"status": 99}, "must be a status or a list of statuses"),
        ({"check": "is_book"}, "['check']: names 'is_book', which is no method of the spider. Give a function"),
        ({"check": "limit"}, "names 'limit', which is no method of the spider"),
        ({"check": 7}, "['check']: cannot be called. Give a function"),
        ({"check": "is_slow"}, "['check']: is a coroutine function. Write it with def"),
        ({"check": SPIDER.is_slow}, "is a coroutine function"),
        ({"to": ["screenshot"]}, "['to']: must be a dict of fields. Write"),
        ({"to": {1: True}}, "must be a dict of fields"),
        ({"selector": "h1"}, "['selector']: is not known. Use css, xpath, status, check and to."),
    ],
)
def test_what_cannot_be_read_is_reported(value, message):
    with pytest.raises(ContractError) as raised:
        Escalation.parse(value, SPIDER)
    assert message in str(raised.value)


def test_all_faults_are_reported_at_once():
    with pytest.raises(ContractError) as raised:
        Escalation.parse({"css": "h1[", "xpath": "//[", "status": 7, "check": "no", "to": 1, "x": 1}, SPIDER)
    assert len(raised.value.violations) == 6


def test_a_method_that_is_not_there_is_reported_also_where_no_spider_was_known():
    with pytest.raises(ContractError, match="names 'is_book', which is no method of the spider"):
        parsed({"check": "is_book"}, None).reason(page(), SPIDER)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"httpRequestMethod": "POST"}, "which cannot send a POST request"),
        ({"httpRequestMethod": "HEAD"}, "which cannot send a HEAD request"),
        ({"httpRequestBody": "YQ=="}, "which cannot send a request body (httpRequestBody)"),
        ({"httpRequestText": "a"}, "which cannot send a request body (httpRequestText)"),
    ],
)
def test_what_no_browser_can_send_is_reported(fields, message):
    with pytest.raises(ContractError) as raised:
        parsed(True).browser_fields({**PAGE, **fields})
    assert message in str(raised.value)
    assert str(raised.value).startswith('meta["extract_api_escalate"]: ')


def test_a_selector_without_the_page_is_reported():
    fields = {"url": URL, "product": True, "extractFrom": "httpResponseBody"}
    with pytest.raises(ContractError, match=r'has a selector, and the page is not asked for. Add "httpResponseBody"'):
        parsed("h1").browser_fields(fields)
    assert parsed(True).browser_fields(fields) == {"url": URL, "product": True}


def test_a_browser_request_that_breaks_a_rule_is_reported():
    with pytest.raises(ContractError) as raised:
        parsed({"to": {"screenshots": True, "httpResponseBody": True}}).browser_fields(PAGE)
    message = str(raised.value)
    assert 'meta["extract_api_escalate"]["to"]: screenshots: is not a field of an extraction request' in message
    assert "cannot be combined with httpResponseBody" in message
    assert parsed({"to": {"new": 1}}).browser_fields(PAGE, extra_fields=["new"])


# ── the browser request ──


def test_the_page_is_asked_for_as_the_browser_has_it():
    assert parsed(True).browser_fields(PAGE) == {"url": URL, "browserHtml": True, "httpResponseHeaders": True}


def test_fields_for_the_browser_are_merged_and_none_removes():
    to = {"screenshot": True, "httpResponseHeaders": None}
    escalated = parsed({"to": to}).browser_fields({**PAGE, "geolocation": "DE"})
    assert escalated == {"url": URL, "browserHtml": True, "geolocation": "DE", "screenshot": True}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"httpResponseBody": True}, {"browserHtml": True}),
        ({"httpResponseHeaders": True}, {"browserHtml": True, "httpResponseHeaders": True}),
        ({"httpRequestMethod": "GET", **PAGE}, {"browserHtml": True, "httpResponseHeaders": True}),
        ({"product": True, "extractFrom": "httpResponseBody"}, {"product": True}),
        (
            {"product": True, "extractFrom": "httpResponseBody", "httpResponseBody": True},
            {"product": True, "browserHtml": True},
        ),
        ({"serp": True}, {"serp": True, "serpOptions": {"extractFrom": "browserHtml"}}),
        (
            {"product": True, "productOptions": {"extractFrom": "httpResponseBody", "model": "1"}},
            {"product": True, "productOptions": {"extractFrom": "browserHtml", "model": "1"}},
        ),
    ],
)
def test_the_browser_is_asked_for_the_same(fields, expected):
    assert as_browser_fields({"url": URL, **fields}) == {"url": URL, **expected}


def test_headers_that_a_browser_takes_go_along_and_others_are_reported_once(caplog):
    headers = [{"name": "referer", "value": "https://a.example/"}, {"name": "X-Left-Out", "value": "1"}]
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            escalated = as_browser_fields({**PAGE, "customHttpRequestHeaders": headers})
    assert escalated["requestHeaders"] == {"referer": "https://a.example/"}
    assert "customHttpRequestHeaders" not in escalated
    assert caplog.messages == ["The header X-Left-Out is not sent when a request goes to the browser"]


def test_every_http_request_that_keeps_the_rules_has_a_browser_request_that_does():
    parts: list[list[dict[str, Any]]] = [
        [{"httpResponseBody": True}, {"httpResponseHeaders": True}, {}],
        [{"product": True, "extractFrom": "httpResponseBody"}, {"serp": True}, {}],
        [{"customAttributes": {"a": {"type": "string"}}}, {}],
        [{"customHttpRequestHeaders": [{"name": "User-Agent", "value": "x"}]}, {"requestHeaders": {"a": "b"}}, {}],
        [{"requestCookies": [{"name": "a", "value": "b"}], "geolocation": "DE", "ipType": "residential"}, {}],
        [{"tags": {"a": None}, "echoData": None, "jobId": "1/2/3"}, {"serpOptions": {}}, {}],
    ]
    tried = 0
    for combination in product(*parts):
        fields: dict[str, Any] = {"url": URL}
        for part in combination:
            fields.update(part)
        if not check(fields):
            tried += 1
            escalated = parsed(True).browser_fields(fields)
            assert check(escalated) == []
            assert kind_of(escalated) == "browser"
    assert tried > 50


@pytest.mark.parametrize("fields", [{"customHttpRequestHeaders": [7]}, {"requestHeaders": 7}, {"serpOptions": 7}])
def test_malformed_fields_are_left_to_the_rules(fields):
    as_browser_fields({**PAGE, **fields})
    as_browser_fields({"url": URL, "serp": True, **fields})


# ── what is remembered ──

SHOP = "shop.example"


def cheap_tries(memory: BrowserHosts, requests: int, *, escalated: bool = True) -> list[int]:
    """The numbers of the requests that tried the cheap way."""
    tries = []
    for number in range(1, requests + 1):
        if not memory.prefers_browser(SHOP):
            tries.append(number)
            memory.learn(SHOP, escalated=escalated)
    return tries


def test_a_domain_that_needed_the_browser_goes_there_and_tries_the_cheap_way_ever_less_often():
    tries = cheap_tries(BrowserHosts(), 6000)
    gaps = [later - earlier - 1 for earlier, later in pairwise(tries)]
    assert gaps == [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000]


def test_other_domains_are_not_concerned():
    memory = BrowserHosts()
    memory.learn(SHOP, escalated=True)
    assert memory.prefers_browser(SHOP)
    assert not memory.prefers_browser("books.example")


def test_where_the_cheap_way_works_again_it_is_taken_again():
    memory = BrowserHosts()
    cheap_tries(memory, 5)
    assert len(cheap_tries(memory, 100, escalated=False)) == 100 - 6


def test_while_one_request_tries_the_cheap_way_the_others_take_the_browser():
    memory = BrowserHosts()
    for _ in range(16):
        memory.learn(SHOP, escalated=True)
    assert [memory.prefers_browser(SHOP) for _ in range(31)] == [True] * 10 + [False] + [True] * 20


def test_what_is_remembered_is_bounded():
    memory = BrowserHosts()
    memory.learn(SHOP, escalated=True)
    for number in range(2 * memory.HOSTS):
        memory.learn(f"{number}.example", escalated=True)
        if number == memory.HOSTS // 2:
            assert memory.prefers_browser(SHOP)
    assert len(memory) == memory.HOSTS
    assert not memory.prefers_browser(SHOP)
    assert memory.prefers_browser(f"{2 * memory.HOSTS - 1}.example")
