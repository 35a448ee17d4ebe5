from __future__ import annotations

import base64
import logging

import msgspec
import pytest
from scrapy import FormRequest, Request
from scrapy.settings import Settings

from scrapy_ext.api.extraction import EXTRACT_TYPES, check
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction.translate import (
    BodyOptions,
    is_routed,
    scrapy_default_headers,
    to_body,
)

URL = "https://books.example/page?a=1"
PAGE = {"url": URL, "httpResponseBody": True, "httpResponseHeaders": True}


def body_of(fields=None, *, options: BodyOptions | None = None, meta=None, **request) -> dict:
    meta = {**({"extract_api": fields} if fields is not None else {}), **(meta or {})}
    return to_body(Request(request.pop("url", URL), meta=meta, **request), options)


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


def test_the_url_is_always_that_of_the_request():
    assert body_of({"url": "https://other.example/"})["url"] == URL
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
def test_meta_that_is_no_dict_is_told(fields):
    with pytest.raises(ContractError, match='meta\\["extract_api"\\]: must be True, False or a dict'):
        body_of(fields)


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


# ── method and body ──


def test_method_and_body_are_sent_with_a_request_for_the_page():
    assert body_of(method="POST", body=b"\x00\xff") == {
        **PAGE,
        "httpRequestMethod": "POST",
        "httpRequestBody": base64_of(b"\x00\xff"),
    }


def test_a_form_goes_with_its_content_type():
    body = to_body(FormRequest(URL, formdata={"q": "a b"}))
    assert body["httpRequestBody"] == base64_of(b"q=a+b")
    assert {"name": "Content-Type", "value": "application/x-www-form-urlencoded"} in body["customHttpRequestHeaders"]


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
    "name", ["Cookie", "cookie", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Authorization"]
)
def test_headers_that_belong_to_a_connection_are_not_sent(name):
    assert "customHttpRequestHeaders" not in body_of(headers={name: "x"})


def test_headers_given_as_fields_win():
    given = [{"name": "X-B", "value": "2"}]
    body = body_of({"customHttpRequestHeaders": given}, headers={"X-A": "1"})
    assert body["customHttpRequestHeaders"] == given
    assert "customHttpRequestHeaders" not in body_of({"customHttpRequestHeaders": None}, headers={"X-A": "1"})


def test_an_explicit_cookie_header_is_left_to_the_rules():
    body = body_of({"customHttpRequestHeaders": [{"name": "cookie", "value": "a=b"}]})
    assert "the Cookie header cannot be set" in rules_broken(body)


def test_a_browser_gets_the_headers_that_make_sense_for_it_and_others_are_told_once(caplog):
    headers = {
        "Referer": "https://books.example/",
        "User-Agent": "mine",
        "Accept-Language": "de",
        "X-Told-Once": "1",
        "Cookie": "a=b",
    }
    for _ in range(3):
        assert body_of({"browserHtml": True}, headers=headers)["requestHeaders"] == {
            "referer": "https://books.example/",
            "userAgent": "mine",
            "acceptLanguage": "de",
        }
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert ["X-Told-Once" in record.getMessage() for record in told] == [True]


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
    body = to_body(request, options, own_headers=[b"User-Agent"])
    assert body["customHttpRequestHeaders"] == [{"name": "User-Agent", "value": settings["USER_AGENT"]}]


# ── cookies ──


@pytest.mark.parametrize("fields", [None, {"browserHtml": True}])
def test_cookies_are_sent_as_cookies_whatever_is_asked_for(fields):
    expected = [
        {"name": "a", "value": "1", "domain": "books.example"},
        {"name": "b", "value": "x=y", "domain": "books.example"},
    ]
    assert body_of(fields, headers={"Cookie": "a=1; b=x=y; ; nonsense"})["requestCookies"] == expected
    assert body_of(fields, cookies={"a": "1", "b": "x=y"})["requestCookies"] == expected


def test_cookies_keep_their_domain():
    cookies = [{"name": "a", "value": "1", "domain": "example.com", "path": "/"}]
    assert body_of(cookies=cookies)["requestCookies"] == [{"name": "a", "value": "1", "domain": "example.com"}]


def test_cookies_that_scrapy_would_not_send_are_not_sent():
    assert "requestCookies" not in body_of(cookies={"a": "1"}, meta={"dont_merge_cookies": True})
    assert "requestCookies" not in body_of({"requestCookies": None}, cookies={"a": "1"})


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
