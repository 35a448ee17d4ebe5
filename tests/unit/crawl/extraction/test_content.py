from __future__ import annotations

import base64
import logging
from datetime import date
from decimal import Decimal

import msgspec
import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ext.api.extraction import EXTRACT_TYPES, check
from scrapy_ext.api.extraction.fields import MAX_COOKIES
from scrapy_ext.api.violations import ContractError
from scrapy_ext.crawl.extraction import cookies as cookies_module
from scrapy_ext.crawl.extraction.content import (
    content_fields,
    content_of,
    is_routed,
    need,
    needed_of,
    warn_once,
)
from scrapy_ext.crawl.extraction.escalation import as_browser_fields
from scrapy_ext.crawl.extraction.headers import scrapy_default_headers
from scrapy_ext.crawl.extraction.plan import BodyOptions
from scrapy_ext.crawl.frontier.marks import note_headers
from scrapy_ext.server.extraction.outgoing import read_cookies
from tests.support.bodies import sent_body
from tests.support.crawlers import get_crawler

URL = "https://books.example/page?a=1"
PAGE = {"url": URL, "httpResponseBody": True, "httpResponseHeaders": True}


def body_of(fields=None, *, options: BodyOptions | None = None, meta=None, **request) -> dict:
    meta = {**({"extract_api": fields} if fields is not None else {}), **(meta or {})}
    return sent_body(Request(request.pop("url", URL), meta=meta, **request), options)


def rules_broken(body: dict) -> str:
    return "\n".join(map(str, check(body)))


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


# ── what is asked for ──


@pytest.mark.parametrize("fields", [None, True, {}])
def test_a_plain_request_asks_for_the_page_and_its_headers(fields):
    assert body_of(fields) == PAGE


def test_fields_of_the_request_are_merged_over_those_of_the_settings_and_none_removes():
    options = BodyOptions(params={"geolocation": "US", "tags": {"a": "b"}, "ipType": "datacenter"})
    assert body_of({"geolocation": "DE", "tags": None}, options=options) == {
        **PAGE,
        "geolocation": "DE",
        "ipType": "datacenter",
    }


def test_settings_are_not_changed_by_requests():
    params = {"geolocation": "US", "tags": {"a": "b"}}
    body_of({"geolocation": "DE", "tags": {"c": "d"}}, options=BodyOptions(params=params))
    assert params == {"geolocation": "US", "tags": {"a": "b"}}


def test_the_url_is_always_that_of_the_request_and_another_one_gives_a_warning(caplog):
    warn_once.cache_clear()
    assert body_of({"url": URL})["url"] == URL
    assert caplog.text == ""
    assert body_of({"url": "https://other.example/"})["url"] == URL
    assert "The field url of an extraction request has no effect" in caplog.text
    assert body_of({"url": "https://other.example/"}, meta={"extract_api_automap": False})["url"] == URL


@pytest.mark.parametrize("output", ["browserHtml", "screenshot", *sorted(set(EXTRACT_TYPES) - {"serp"})])
def test_another_output_comes_alone(output):
    assert body_of({output: True}) == {"url": URL, output: True}


def test_outputs_can_be_chosen():
    assert body_of({"httpResponseBody": False, "httpResponseHeaders": True}) == {
        "url": URL,
        "httpResponseBody": False,
        "httpResponseHeaders": True,
    }
    assert body_of({"httpResponseHeaders": False}) == {**PAGE, "httpResponseHeaders": False}
    assert body_of({"httpResponseHeaders": None}) == {"url": URL, "httpResponseBody": True}
    assert body_of({"browserHtml": True, "httpResponseHeaders": True}) == {
        "url": URL,
        "browserHtml": True,
        "httpResponseHeaders": True,
    }


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({"product": True, "productList": True}, "productList: cannot be combined with product"),
        ({"httpResponseBody": True, "browserHtml": True}, "browserHtml: cannot be combined with httpResponseBody"),
        ({"httpResponseBody": True, "screenshot": True}, "screenshot: cannot be combined with httpResponseBody"),
        ({"httpResponseBody": True, "actions": [{}]}, "actions: cannot be combined with httpResponseBody"),
        (
            {"httpResponseBody": True, "includeIframes": True},
            "includeIframes: cannot be combined with httpResponseBody",
        ),
        ({"browserHtlm": True}, "browserHtlm: is not a field of an extraction request. Did you mean browserHtml?"),
        ({"ipType": "mobile"}, "ipType: must be one of datacenter, residential"),
        ({"tags": {"a": 1}}, "tags.a: must be a string or null"),
        ({"httpRequestText": ""}, "httpRequestText: must be 1 to 400000 characters"),
        ({"httpRequestText": "x" * 400_001}, "httpRequestText: must be 1 to 400000 characters"),
    ],
)
def test_fields_that_break_a_rule_are_left_to_the_rules(fields, broken):
    assert broken in rules_broken(body_of(fields))


def test_a_null_in_a_tag_is_kept():
    assert body_of({"tags": {"a": None}})["tags"] == {"a": None}


def test_none_for_a_field_that_is_not_there_is_reported_once(caplog):
    options = BodyOptions(params={"ipType": "datacenter"})
    for _ in range(3):
        fields = {"screenshotOptions": None, "ipType": None, "customHttpRequestHeaders": None, "jobId": None}
        assert body_of(fields, options=options) == PAGE
    assert [record.getMessage().split()[0] for record in caplog.records] == ["screenshotOptions"]


@pytest.mark.parametrize("url", ["https://books.example/" + "a" * 8192, "http://127.0.0.1/", "data:,x"])
def test_a_url_that_the_service_does_not_take_is_left_to_the_rules(url):
    assert "url: must" in rules_broken(body_of(url=url))


def test_asking_for_nothing_is_left_to_the_rules():
    assert "at least one output" in rules_broken(body_of({"httpResponseBody": False}))


def test_without_automap_exactly_the_fields_are_sent():
    body = body_of(
        {"browserHtml": True, "geolocation": None},
        meta={"extract_api_automap": False},
        options=BodyOptions(params={"ipType": "datacenter"}, job_id="1/2/3"),
        method="POST",
        body=b"x",
        headers={"X-A": "1"},
        cookies={"a": "b"},
    )
    assert body == {"url": URL, "browserHtml": True}


@pytest.mark.parametrize("fields", ["browserHtml", ["browserHtml"], 1])
def test_meta_that_is_no_dict_is_reported(fields):
    with pytest.raises(ContractError, match='meta\\["extract_api"\\]: must be True, False or a dict'):
        body_of(fields)


@pytest.mark.parametrize("meta", [{}, {"extract_api": True}])
def test_fields_in_the_key_of_automap_are_refused_and_not_left_out(meta):
    request = Request(URL, meta={**meta, "extract_api_automap": {"product": True}})
    assert is_routed(request, transparent=False)
    with pytest.raises(
        ContractError, match=r'automap"\]: must be True or False, got a dict\. Write the fields into meta'
    ):
        content_of(request, {})


@pytest.mark.parametrize("name", [b"browserHtml", 1, None])
def test_names_of_fields_that_are_no_text_are_reported(name):
    with pytest.raises(ContractError, match="must have text as names of fields"):
        body_of({name: True})


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"echoData": b"x"}, "echoData"),
        ({"echoData": {"a": [{"b": b"x"}]}}, "echoData.a[0].b"),
        ({"browserHtml": True, "requestHeaders": {"referer": b"x"}}, "requestHeaders.referer"),
        ({"requestCookies": [{"name": b"x", "value": "y"}]}, "requestCookies[0].name"),
        ({"customHttpRequestHeaders": [{"name": "X-A", "value": b"y"}]}, "customHttpRequestHeaders[0].value"),
    ],
)
@pytest.mark.parametrize("by", ["meta", "settings"])
def test_bytes_in_fields_are_reported_and_not_sent_as_something_else(fields, place, by):
    with pytest.raises(ContractError, match="must not be bytes") as caught:
        body_of(**{"fields": fields} if by == "meta" else {"options": BodyOptions(params=fields)})
    assert [fault.field for fault in caught.value.violations] == [place]


@pytest.mark.parametrize(
    ("fields", "place", "rule"),
    [
        ({"echoData": float("nan")}, "echoData", "must be a finite number"),
        ({"echoData": {"a": [Decimal("1.10")]}}, "echoData.a[0]", "must be a value of JSON, got Decimal"),
        ({"echoData": [date(2026, 1, 2)]}, "echoData[0]", "must be a value of JSON, got date"),
        ({"echoData": {"a": {1}}}, "echoData.a", "must be a value of JSON, got set"),
        ({"echoData": {1: "a"}}, "echoData", "must have text as names, got int"),
        ({"echoData": "half \ud83d"}, "echoData", "half of a surrogate pair"),
        ({"tags": {"a": "\ud83d"}}, "tags.a", "half of a surrogate pair"),
        ({"actions": [{"action": "waitForTimeout", "timeout": float("inf")}]}, "actions[0].timeout", "finite"),
    ],
)
def test_values_that_json_would_change_are_reported_with_their_place(fields, place, rule):
    with pytest.raises(ContractError, match=rule) as caught:
        body_of({"httpResponseBody": True, **fields})
    assert [fault.field for fault in caught.value.violations] == [place]


@pytest.mark.parametrize("value", [None, True, 2**70, 1.5, "ü", [], ("a", {"b": [None]})])
def test_echoed_values_of_json_are_sent_as_they_are(value):
    assert body_of({"echoData": [value]})["echoData"] == [value]


@pytest.mark.parametrize("field", ["httpRequestText", "geolocation", "browserHtml", "jobId"])
def test_bytes_for_a_field_are_left_to_the_rules(field):
    assert f"{field}: must be" in rules_broken(body_of({field: b"x"}))


def test_a_field_that_contains_itself_does_no_harm():
    endless: list = []
    endless.append(endless)
    assert body_of({"echoData": endless})["echoData"] is endless


@pytest.mark.parametrize(
    ("meta", "transparent", "routed"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"extract_api": False}, True, False),
        ({"extract_api": True}, False, True),
        ({"extract_api": {}}, False, True),
        ({"extract_api": None}, True, True),
    ],
)
def test_meta_decides_whether_a_request_is_routed_before_the_setting(meta, transparent, routed):
    assert is_routed(Request(URL, meta=meta), transparent=transparent) is routed


def test_what_page_objects_need_is_sent_over_what_was_asked_for():
    request = Request(URL, meta={"extract_api": {"browserHtml": False, "geolocation": "DE"}})
    options = BodyOptions(params={"httpResponseBody": True})
    need(request, {"browserHtml": True, "httpResponseBody": None})
    assert sent_body(request, options) == {"url": URL, "browserHtml": True, "geolocation": "DE"}
    assert request.meta == {"extract_api": {"browserHtml": False, "geolocation": "DE"}}
    assert content_fields(request, {}) == {**PAGE, "browserHtml": False, "geolocation": "DE"}
    assert needed_of(request.copy()) == {}


def test_a_request_that_page_objects_need_is_routed_unless_it_is_to_go_direct():
    request, direct = Request(URL), Request(URL, meta={"extract_api": False})
    for each in (request, direct):
        need(each, {"product": True})
    assert is_routed(request, transparent=False)
    assert not is_routed(direct, transparent=True)


def test_the_job_is_named_in_every_request_but_one_that_names_its_own():
    options = BodyOptions(job_id="1/2/3")
    assert body_of(options=options)["jobId"] == "1/2/3"
    assert body_of({"jobId": "mine"}, options=options)["jobId"] == "mine"
    assert "jobId" not in body_of({"jobId": None}, options=options)


def test_serp_is_sent_with_its_options_and_nothing_else():
    options = BodyOptions(params={"geolocation": "US", "serpOptions": {}}, job_id="1/2/3")
    request = {"headers": {"X-A": "1"}, "cookies": {"a": "b"}, "options": options}
    assert body_of({"serp": True}, **request) == {"url": URL, "serp": True, "serpOptions": {}}
    settings_wide = BodyOptions(params={"serp": True, "geolocation": "US"})
    assert body_of(options=settings_wide) == {"url": URL, "serp": True}


def test_what_is_asked_for_beside_serp_is_left_to_the_rules():
    assert "cannot be combined with serp" in rules_broken(body_of({"serp": True, "screenshot": True}))
    assert "cannot be combined with serp" in rules_broken(body_of({"serp": True}, method="POST"))


def test_what_is_sent_with_every_request_is_withheld_from_serp():
    params = {"geolocation": "US", "tags": {"a": "b"}, "echoData": 1, "httpResponseBody": True, "ipType": "datacenter"}
    body = body_of({"serp": True}, options=BodyOptions(params=params, job_id="1/2/3"))
    assert body == {"url": URL, "serp": True}
    assert check(body) == []


# ── method and body ──


def test_method_and_body_are_sent_with_a_request_for_the_page():
    assert body_of(method="POST", body=b"\x00\xff") == {
        **PAGE,
        "httpRequestMethod": "POST",
        "httpRequestBody": base64_of(b"\x00\xff"),
    }


def test_a_form_goes_with_its_content_type():
    body = sent_body(FormRequest(URL, formdata={"q": "a b"}))
    assert body["httpRequestBody"] == base64_of(b"q=a+b")
    assert {"name": "Content-Type", "value": "application/x-www-form-urlencoded"} in body["customHttpRequestHeaders"]


def test_a_get_without_a_body_says_nothing_of_either():
    assert body_of(method="GET", body=b"") == PAGE
    assert "httpRequestMethod" not in body_of(body=b"x")


def test_a_method_given_as_a_field_wins_over_that_of_the_request():
    assert body_of({"httpRequestMethod": "PUT"}, method="POST")["httpRequestMethod"] == "PUT"


def test_a_body_that_is_too_long_is_left_to_the_rules():
    assert check(body_of(method="POST", body=b"x" * 300_000)) == []
    assert "httpRequestBody: must be at most 400000" in rules_broken(body_of(method="POST", body=b"x" * 300_001))


@pytest.mark.parametrize("output", ["browserHtml", "product"])
def test_a_method_that_a_browser_request_cannot_have_is_left_to_the_rules(output):
    broken = rules_broken(body_of({output: True}, method="POST", body=b"x"))
    assert "httpRequestMethod: is valid only together with httpResponseBody" in broken
    assert "httpRequestBody: is valid only together with httpResponseBody" in broken


@pytest.mark.parametrize("method", ["CONNECT", "FOO"])
def test_a_method_that_the_service_does_not_know_is_left_to_the_rules(method):
    assert "httpRequestMethod: must be one of" in rules_broken(body_of(method=method))


def test_a_body_given_as_a_field_wins_over_that_of_the_request(caplog):
    given = base64_of(b"other")
    assert body_of({"httpRequestBody": given}, method="POST", body=b"x")["httpRequestBody"] == given
    assert "the httpRequestBody of its meta is sent instead" in caplog.text


def test_text_and_a_different_body_are_left_to_the_rules():
    text = {"httpRequestText": "ä"}
    assert "cannot be combined with httpRequestBody" in rules_broken(body_of(text, method="POST", body=b"x"))
    assert "httpRequestBody" not in body_of(text, method="POST", body="ä".encode())


# ── headers ──


def test_headers_are_sent_with_a_request_for_the_page():
    assert body_of(headers={"X-A": "1", "X-Empty": "", "X-None": None, "X-Many": ["1", "2"]}) == {
        **PAGE,
        "customHttpRequestHeaders": [
            {"name": "X-A", "value": "1"},
            {"name": "X-Empty", "value": ""},
            {"name": "X-Many", "value": "1,2"},
        ],
    }


def test_headers_that_are_not_utf_8_do_not_fail():
    body = body_of(headers={"X-A": b"caf\xe9"})
    assert body["customHttpRequestHeaders"] == [{"name": "X-A", "value": "café"}]


@pytest.mark.parametrize(
    "name",
    [
        *("Cookie", "cookie", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Authorization"),
        *("Host", "host", "Keep-Alive", "TE", "Upgrade", "Trailer", "Expect"),
    ],
)
def test_headers_that_belong_to_a_connection_are_not_sent(name):
    assert "customHttpRequestHeaders" not in body_of(headers={name: "x"})


def test_headers_for_a_proxy_service_are_not_sent_to_the_site_instead(caplog):
    warn_once.cache_clear()
    headers = {"X-Crawlera-Client": "a/1", "Zyte-Geolocation": "DE", "X-A": "1"}
    through_proxy = {"proxy": "http://proxy.example:8011"}
    kept = [{"name": "X-A", "value": "1"}]
    for _ in range(2):
        assert body_of(headers=headers, meta=through_proxy)["customHttpRequestHeaders"] == kept
    reported = [record.getMessage().split()[2] for record in caplog.records if "The header" in record.getMessage()]
    assert reported == ["X-Crawlera-Client", "Zyte-Geolocation"]


def test_headers_with_the_names_of_a_proxy_service_are_sent_without_a_proxy():
    sent = body_of(headers={"Zyte-Geolocation": "DE"})["customHttpRequestHeaders"]
    assert sent == [{"name": "Zyte-Geolocation", "value": "DE"}]


def test_more_headers_than_the_service_takes_are_left_to_the_rules():
    assert check(body_of(headers={f"X-{number}": "1" for number in range(200)})) == []
    broken = rules_broken(body_of(headers={f"X-{number}": "1" for number in range(201)}))
    assert "customHttpRequestHeaders: must have at most 200 items" in broken


def test_headers_given_as_fields_win():
    given = [{"name": "X-B", "value": "2"}]
    body = body_of({"customHttpRequestHeaders": given}, headers={"X-A": "1"})
    assert body["customHttpRequestHeaders"] == given
    assert "customHttpRequestHeaders" not in body_of({"customHttpRequestHeaders": None}, headers={"X-A": "1"})


def test_an_explicit_cookie_header_is_left_to_the_rules():
    body = body_of({"customHttpRequestHeaders": [{"name": "cookie", "value": "a=b"}]})
    assert "cannot be Cookie" in rules_broken(body)


def test_a_browser_gets_the_headers_that_make_sense_for_it_and_others_are_reported_once(caplog):
    headers = {
        "Referer": "https://books.example/",
        "User-Agent": "mine",
        "Accept-Language": "de",
        "X-Reported-Once": "1",
        "Cookie": "a=b",
    }
    for _ in range(3):
        assert body_of({"browserHtml": True}, headers=headers)["requestHeaders"] == {
            "referer": "https://books.example/",
            "userAgent": "mine",
            "acceptLanguage": "de",
        }
    reported = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert ["X-Reported-Once" in record.getMessage() for record in reported] == [True]


def default_headers(**settings) -> set[str]:
    made = Settings(settings)
    return {name.decode() for name, _ in scrapy_default_headers(made)}


def test_headers_that_scrapy_adds_are_known_unless_the_user_set_them():
    assert default_headers() == {"Accept", "Accept-Language", "User-Agent", "Accept-Encoding"}
    assert default_headers(USER_AGENT="mine") == {"Accept", "Accept-Language", "Accept-Encoding"}
    assert default_headers(DEFAULT_REQUEST_HEADERS={"Accept": "x"}) == {"User-Agent", "Accept-Encoding"}


def test_default_headers_are_left_out_and_changed_ones_are_not():
    settings = Settings()
    defaults = {**settings.getdict("DEFAULT_REQUEST_HEADERS"), "User-Agent": settings["USER_AGENT"]}
    options = BodyOptions(default_headers=scrapy_default_headers(settings))
    assert body_of(headers=defaults, options=options) == PAGE
    changed = body_of(headers={**defaults, "User-Agent": "mine"}, options=options)
    assert changed["customHttpRequestHeaders"] == [{"name": "User-Agent", "value": "mine"}]


def test_a_header_that_the_user_set_on_the_request_is_sent_with_its_default_value_too():
    settings = Settings()
    options = BodyOptions(default_headers=scrapy_default_headers(settings))
    request = Request(URL, headers={"User-Agent": settings["USER_AGENT"]})
    note_headers(request, options.default_headers)
    body = sent_body(request, options)
    assert body["customHttpRequestHeaders"] == [{"name": "User-Agent", "value": settings["USER_AGENT"]}]


# ── cookies ──


def cookie(name: str, value: str, domain: str = "books.example") -> dict[str, str]:
    return {"name": name, "value": value, "domain": domain}


@pytest.mark.parametrize("fields", [None, {"browserHtml": True}, {"product": True}])
def test_cookies_are_sent_as_cookies_whatever_is_asked_for(fields):
    expected = [cookie("a", "1"), cookie("b", "x=y")]
    nameless = cookie("", "nonsense")
    assert body_of(fields, headers={"Cookie": "a=1; b=x=y; ; nonsense"})["requestCookies"] == [*expected, nameless]
    assert body_of(fields, headers={"Cookie": ["a=1", "b=x=y"]})["requestCookies"] == expected
    assert body_of(fields, cookies={"a": "1", "b": "x=y"})["requestCookies"] == expected


def test_oddly_named_cookies_are_sent():
    header = {"Cookie": 'cart[0]=1; a b="q"; \xe9=\xfc; a=2; a=3'}
    expected = [
        cookie("cart[0]", "1"),
        cookie("a b", '"q"'),
        cookie("\xe9", "\xfc"),
        cookie("a", "2"),
        cookie("a", "3"),
    ]
    assert body_of(headers=header)["requestCookies"] == expected


def test_cookies_without_a_name_are_sent_to_services_that_take_them():
    header = {"Cookie": "a=1; alone; =also"}
    cookies = [cookie("a", "1"), cookie("", "alone"), cookie("", "also")]
    assert body_of(headers=header)["requestCookies"] == cookies
    assert cookies_module.for_service(cookies, ["followRedirect"]) == cookies
    assert cookies_module.for_service(cookies, ()) == cookies[:1]


def test_cookies_that_cannot_be_sent_are_left_out_with_one_warning(caplog, monkeypatch):
    monkeypatch.setattr(cookies_module, "_reported", set())
    header = {"Cookie": "a\x01=1; b=\x7f; c=2"}
    for _ in range(2):
        assert body_of(headers=header)["requestCookies"] == [cookie("c", "2")]
    (message,) = caplog.messages
    assert "has a character that no Cookie header can have" in message


def test_cookies_that_browsers_refuse_are_left_out_with_one_warning(caplog, monkeypatch):
    monkeypatch.setattr(cookies_module, "_reported", set())
    header = {"Cookie": f"a={'x' * 4096}; b={'x' * 4095}"}
    for _ in range(2):
        assert [each["name"] for each in body_of(headers=header)["requestCookies"]] == ["a", "b"]
        assert [each["name"] for each in body_of({"browserHtml": True}, headers=header)["requestCookies"]] == ["b"]
        assert [each["name"] for each in as_browser_fields(body_of(headers=header))["requestCookies"]] == ["b"]
    (message,) = caplog.messages
    assert "browsers take no cookie of more than 4096 bytes" in message


def test_more_cookies_than_the_service_takes_are_left_out(caplog, monkeypatch):
    monkeypatch.setattr(cookies_module, "_reported", set())
    header = {"Cookie": "; ".join(f"c{number}=1" for number in range(MAX_COOKIES + 1))}
    sent = body_of(headers=header)["requestCookies"]
    assert len(sent) == MAX_COOKIES
    assert read_cookies(sent)[1] == []
    assert "more than 3000" in caplog.text


def test_line_breaks_in_headers_become_spaces():
    assert body_of(headers={"X-A": "a\r\n b"})["customHttpRequestHeaders"] == [{"name": "X-A", "value": "a  b"}]


def test_cookies_given_as_a_field_win():
    given = [{"name": "c", "value": "3"}]
    assert body_of({"requestCookies": given}, cookies={"a": "1"})["requestCookies"] == given


def test_cookies_keep_their_domain():
    cookies = [{"name": "a", "value": "1", "domain": "example.com", "path": "/"}, {"name": "b", "value": b"2"}]
    assert body_of(cookies=cookies)["requestCookies"] == [cookie("a", "1", "example.com"), cookie("b", "2")]


def test_cookies_are_text_whatever_they_were():
    cookies = {b"a": b"caf\xe9", "b": 1, "c": True, "d": ""}
    assert body_of(cookies=cookies)["requestCookies"] == [
        cookie("a", "café"),
        cookie("b", "1"),
        cookie("c", "True"),
        cookie("d", ""),
    ]


@pytest.mark.parametrize("cookies", [{"a": None}, [{"name": "a"}], [{"value": "1"}], [{"name": None, "value": "1"}]])
def test_cookies_without_a_name_or_a_value_are_not_sent(cookies):
    assert "requestCookies" not in body_of(cookies=cookies)


def test_cookies_that_scrapy_would_not_send_are_not_sent():
    assert "requestCookies" not in body_of(cookies={"a": "1"}, meta={"dont_merge_cookies": True})
    assert "requestCookies" not in body_of(cookies={"a": "1"}, options=BodyOptions(cookies=False))
    assert "requestCookies" not in body_of({"requestCookies": None}, cookies={"a": "1"})


def test_a_cookie_header_of_the_user_is_sent_where_scrapy_sends_it():
    header = {"Cookie": "a=1"}
    assert body_of(headers=header, meta={"dont_merge_cookies": True})["requestCookies"] == [cookie("a", "1")]
    assert body_of(headers=header, options=BodyOptions(cookies=False))["requestCookies"] == [cookie("a", "1")]


def through_middleware(middleware: CookiesMiddleware, **request) -> list[dict[str, str]]:
    """The cookies that are sent for a request that went through Scrapy's middleware."""
    made = Request(request.pop("url", URL), **request)
    middleware.process_request(made)
    return sent_body(made).get("requestCookies", [])


def cookies_middleware() -> CookiesMiddleware:
    return CookiesMiddleware.from_crawler(get_crawler(Spider))


def test_cookies_of_the_jar_are_sent_each_to_its_session():
    middleware = cookies_middleware()
    for jar, value in (("a", "1"), ("b", "2")):
        request = Request(URL, meta={"cookiejar": jar})
        middleware.process_response(request, Response(URL, headers={"Set-Cookie": f"session={value}"}))
    for jar, value in (("a", "1"), ("b", "2")):
        assert through_middleware(middleware, meta={"cookiejar": jar}) == [cookie("session", value)]
    assert through_middleware(middleware) == []
    assert through_middleware(middleware, url="https://other.example/", meta={"cookiejar": "a"}) == []


def test_cookies_of_the_request_join_those_of_the_jar_and_keep_their_domains():
    middleware = cookies_middleware()
    url = "https://shop.books.com/"
    middleware.process_response(Request(url), Response(url, headers={"Set-Cookie": "session=1"}))
    own = [
        {"name": "a", "value": "2", "domain": "books.com"},
        {"name": "b", "value": "3", "domain": ".books.com"},
        {"name": "c", "value": "4"},
    ]
    sent = through_middleware(middleware, url=url, cookies=own)
    assert sorted(sent, key=lambda each: each["value"]) == [
        cookie("session", "1", "shop.books.com"),
        cookie("a", "2", "books.com"),
        cookie("b", "3", ".books.com"),
        cookie("c", "4", "shop.books.com"),
    ]


def test_what_is_made_of_a_request_keeps_the_rules():
    body = body_of(
        method="POST",
        body=b"x",
        headers={"X-A": ["1", "2"], "Referer": URL},
        cookies={"a": "b"},
        options=BodyOptions(params={"tags": {"a": None}}, job_id="1/2/3"),
    )
    assert check(body) == []
    assert msgspec.json.decode(msgspec.json.encode(body)) == body
