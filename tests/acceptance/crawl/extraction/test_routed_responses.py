"""Response of a callback for each kind of answer, and body that is sent for each kind of request."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from tests.support import faulty_service
from tests.support.crawls import Crawl
from tests.support.faulty_service import FaultyService, page
from tests.support.planned_crawls import KEY, Plan, routed

SITE = "https://site.example"
PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
HUGE = b"<html>" + b"x" * 3_000_000
HEADERS_TWICE = [
    {"name": "Content-Type", "value": "text/html; charset=utf-8"},
    {"name": "Set-Cookie", "value": "a=1"},
    {"name": "Link", "value": "</1>; rel=next"},
    {"name": "Set-Cookie", "value": "b=2"},
    {"name": "Link", "value": "</2>; rel=last"},
    {"name": "Content-Encoding", "value": "br"},
    {"name": "Transfer-Encoding", "value": "chunked"},
]
PLAYS = {
    "twice": page(b"<p>", httpResponseHeaders=HEADERS_TWICE),
    "empty": page(b""),
    "no-url": page(b"<p>", url=None, statusCode=None),
    "xml": page(b"<?xml version='1.0'?><a/>", type="application/xml"),
    "json": page(b'{"a": [1]}', type="application/json"),
    "png": page(PNG, type="image/png"),
    "latin": page("<p>é".encode("latin-1"), type="text/html; charset=latin-1"),
    "bare-html": page(b"<html><body><p>Hi", httpResponseHeaders=None),
    "bare-text": page(b"plain words", httpResponseHeaders=None),
    "bare-png": page(PNG, httpResponseHeaders=None),
    "huge": page(HUGE),
    "moved": page(b"<p>", url=f"{SITE}/final"),
    "gone": page(b"<p>gone", status=404),
    "gone-too": page(b"<p>gone", status=404),
    "odd-status": page(b"<p>", statusCode="many"),
    "browser": page(browserHtml="<p>ä</p>", httpResponseHeaders=None),
    "not-base64": page(httpResponseBody="???"),
}


def asked(name: str, **more) -> dict:
    return {"url": f"{SITE}/{name}", **more}


PLAN = [
    *(asked(name) for name in PLAYS if name not in ("twice", "gone-too", "browser", "latin")),
    asked("twice", meta={"dont_merge_cookies": True}),
    asked("latin", headers={"X-A": "1"}, raw_headers={"X-Coffee": "caf\xe9"}),
    asked("gone-too", meta={"handle_httpstatus_list": [404]}),
    routed(f"{SITE}/browser", browserHtml=True),
    routed(f"{SITE}/shot", screenshot=True, screenshotOptions={"format": "png"}),
    routed(f"{SITE}/product", product=True),
    routed(f"{SITE}/content", pageContent=True),
    routed(f"{SITE}/serp", serp=True, serpOptions={"extractFrom": "httpResponseBody"}),
    routed(f"{SITE}/tags", tags={"a": "b", "c": None}, echoData={"n": [1]}),
    routed(f"{SITE}/new", device="mobile"),
    asked("form", method="POST", body="q=1", headers={"Content-Type": "text/plain"}),
    asked("headers", headers={"X-A": ["1", "2"], "User-Agent": "mine"}, cookies={"id": "hush-hush"}),
]
SETTINGS = {
    "EXTRACT_API_EXTRA_FIELDS": ["device"],
    "EXTRACT_API_PARAMS": {"geolocation": "DE", "jobId": "nightly"},
    "EXTRACT_API_RETRY_POLICY": {"unexpected-answer": 1},
    "EXTRACT_API_LOG_REQUESTS": True,
}


@pytest.fixture(scope="module")
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


@pytest.fixture(scope="module")
def ended(service, tmp_path_factory) -> tuple[Plan, Crawl]:
    """One crawl of all of them. The first request is alone, so that what follows does not find a silent service."""
    for name, play in PLAYS.items():
        service.plays(f"site.example/{name}", play)
    plan = Plan(tmp_path_factory.mktemp("responses"), service, SETTINGS)
    return plan, plan.crawl([asked("")], PLAN)


@pytest.fixture(scope="module")
def outcome(ended):
    return lambda name: ended[0].outcome(f"{SITE}/{name}")


@pytest.fixture(scope="module")
def sent(ended, service):
    """The fields of the one request that was sent."""

    def sent(name: str) -> dict:
        (post,) = service.of(f"site.example/{name}")
        return post.fields

    return sent


def test_a_crawl_of_all_kinds_of_answers_ends_well(ended):
    plan, crawl = ended
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert len(plan.outcomes) == len(PLAN) + 1
    assert crawl.errors == []


def test_requests_can_be_logged_without_what_is_secret(ended):
    log = ended[1].log
    assert f"{SITE}/headers" in log
    assert '"pageContent":true' in log
    assert KEY not in log
    assert "hush-hush" not in log
    assert base64.b64encode(f"{KEY}:".encode()).decode() not in log


def test_every_header_that_came_twice_is_there_twice(outcome):
    response = outcome("twice")
    assert response.header("Set-Cookie") == ["a=1", "b=2"]
    assert response.header("Link") == ["</1>; rel=next", "</2>; rel=last"]


def test_headers_that_no_longer_hold_for_the_body_are_left_out_and_stay_in_the_result(outcome):
    response = outcome("twice")
    assert response.header("Content-Encoding") == response.header("Transfer-Encoding") == []
    assert response.result["httpResponseHeaders"] == HEADERS_TWICE


def test_an_empty_page_is_an_empty_text(outcome):
    response = outcome("empty")
    assert (response.kind, response.text, response.size) == ("HtmlResponse", "", 0)


def test_an_answer_without_url_and_status_is_taken_for_the_page_that_was_asked_for(outcome):
    response = outcome("no-url")
    assert (response.url, response.status, response.text) == (f"{SITE}/no-url", 200, "<p>")


def test_a_page_that_was_moved_has_its_final_address(outcome):
    assert outcome("moved").url == f"{SITE}/final"


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("xml", "XmlResponse", "<?xml version='1.0'?><a/>"),
        ("json", "JsonResponse", '{"a": [1]}'),
        ("png", "Response", None),
        ("latin", "HtmlResponse", "<p>é"),
        ("bare-html", "HtmlResponse", "<html><body><p>Hi"),
        ("bare-text", "TextResponse", "plain words"),
        ("bare-png", "Response", None),
        ("browser", "HtmlResponse", "<p>ä</p>"),
    ],
)
def test_the_class_of_a_response_is_that_of_its_content(outcome, name, kind, text):
    response = outcome(name)
    assert (response.kind, response.text) == (kind, text)


def test_a_page_of_megabytes_comes_whole(outcome):
    assert outcome("huge").size == len(HUGE)


def test_every_routed_response_is_flagged_and_has_its_latency(ended):
    responses = [outcome for outcome in ended[0].outcomes if outcome.error is None]
    assert all(response.flags == ["extract-api"] for response in responses)
    assert all(response.latency is not None and response.latency > 0 for response in responses)


def test_the_status_of_the_site_is_treated_as_scrapy_treats_it(outcome):
    assert (outcome("gone").error, outcome("gone").status) == ("HttpError", 404)
    assert (outcome("gone-too").status, outcome("gone-too").text) == (404, "<p>gone")
    assert outcome("odd-status").status == 200


def test_a_body_that_is_not_base64_is_an_error_and_not_a_page(outcome):
    failed = outcome("not-base64")
    assert failed.error == "UnexpectedAnswerError"
    assert "httpResponseBody" in failed.message


def test_screenshots_are_bytes(outcome):
    response = outcome("shot")
    assert (response.kind, response.size) == ("Response", 4)
    assert response.result["screenshot"] == "bytes " + base64.b64encode(b"\x89PNG").decode()


def test_a_body_is_decoded_once_and_its_base64_is_not_kept(outcome):
    response = outcome("huge")
    assert response.holds_its_body_once
    assert response.result["httpResponseBody"] == "bytes " + base64.b64encode(HUGE).decode()


def test_what_was_extracted_is_in_the_result_beside_an_empty_body(outcome):
    response = outcome("product")
    assert (response.kind, response.size) == ("HtmlResponse", 0)
    assert response.result["product"]["name"] == "a product"


def test_page_content_is_asked_for_alone(sent, outcome):
    assert sent("content") == {
        "url": f"{SITE}/content",
        "pageContent": True,
        "geolocation": "DE",
        "jobId": "nightly",
    }
    assert outcome("content").result["pageContent"]["name"] == "a pageContent"


def test_serp_is_sent_with_its_options_and_nothing_else(sent, outcome):
    assert sent("serp") == {
        "url": f"{SITE}/serp",
        "serp": True,
        "serpOptions": {"extractFrom": "httpResponseBody"},
    }
    assert outcome("serp").error is None


def test_a_plain_page_is_body_and_headers_and_what_the_settings_add(sent):
    assert sent("empty") == {
        "url": f"{SITE}/empty",
        "httpResponseBody": True,
        "httpResponseHeaders": True,
        "geolocation": "DE",
        "jobId": "nightly",
    }


def test_null_is_sent_as_the_value_of_a_tag(sent, outcome):
    assert sent("tags")["tags"] == {"a": "b", "c": None}
    assert outcome("tags").result["echoData"] == {"n": [1]}


def test_fields_of_tomorrow_are_sent_when_a_setting_names_them(sent):
    assert sent("new")["device"] == "mobile"


def test_header_bytes_that_are_no_utf8_are_sent_as_they_are_read(sent):
    assert {"name": "X-Coffee", "value": "café"} in sent("latin")["customHttpRequestHeaders"]


def test_method_and_body_of_a_request_are_sent(sent):
    fields = sent("form")
    assert (fields["httpRequestMethod"], base64.b64decode(fields["httpRequestBody"])) == ("POST", b"q=1")
    assert fields["customHttpRequestHeaders"] == [{"name": "Content-Type", "value": "text/plain"}]


def test_headers_of_a_request_are_sent_joined_and_scrapy_adds_none(sent):
    assert sent("headers")["customHttpRequestHeaders"] == [
        {"name": "X-A", "value": "1,2"},
        {"name": "User-Agent", "value": "mine"},
    ]


def test_cookies_are_sent_as_cookies_and_never_as_a_header(sent):
    assert sent("headers")["requestCookies"] == [{"name": "id", "value": "hush-hush", "domain": "site.example"}]


def test_the_service_is_called_with_its_key_and_json(ended, service):
    post = service.posts[0]
    assert post.path == "/v1/extract"
    assert base64.b64decode(post.headers["authorization"].removeprefix("Basic ")).decode() == f"{KEY}:"
    assert post.headers["content-type"] == "application/json"
