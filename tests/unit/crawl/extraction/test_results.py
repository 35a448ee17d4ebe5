from __future__ import annotations

import base64
import copy
import json
import tracemalloc

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

from scrapy_ext.api.extraction import ExtractResult, Header
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError
from scrapy_ext.crawl.extraction.response import to_response
from tests.support.crawlers import get_crawler

URL = "https://books.example/page?a=1"


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def response_of(result: dict, **request) -> Response:
    return to_response(Request(URL, **request), result)


def page(body: bytes, *headers: tuple[str, str], **more) -> dict:
    listed = [{"name": name, "value": value} for name, value in headers]
    return {"httpResponseBody": base64_of(body), "httpResponseHeaders": listed, **more}


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html; charset=utf-8", b"<p>", HtmlResponse),
        ("application/xhtml+xml", b"<p/>", HtmlResponse),
        ("application/xml", b"<a/>", XmlResponse),
        ("application/rss+xml", b"<a/>", XmlResponse),
        ("application/json", b"{}", JsonResponse),
        ("text/plain", b"a", TextResponse),
        ("image/png", b"\x89PNG\r\n\x1a\n", Response),
        ("application/pdf", b"%PDF-1.7\n\x01", Response),
        ("text/html", b"", HtmlResponse),
    ],
)
def test_the_class_follows_the_content_type(content_type, body, kind):
    response = response_of(page(body, ("content-type", content_type)))
    assert isinstance(response, kind)
    assert isinstance(response, TextResponse) is (kind is not Response)
    assert response.body == body


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'<!DOCTYPE HTML PUBLIC "x"><title>', HtmlResponse),
        (b'<html lang="en"><body>', HtmlResponse),
        (b"\n  <body class=x>", HtmlResponse),
        (b"<?xml version='1.0'?><a/>", XmlResponse),
        (b"<?xml version='1.0'?><feed><body text='x'/></feed>", XmlResponse),
        (b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>", HtmlResponse),
        (b"plain words", TextResponse),
        (b"", HtmlResponse),
        (b"\x89PNG\x00\x01", Response),
    ],
)
def test_without_headers_the_class_follows_the_content(body, kind):
    response = response_of({"httpResponseBody": base64_of(body), "url": "https://books.example/x"})
    assert isinstance(response, kind)
    assert isinstance(response, TextResponse) is (kind is not Response)


def test_text_is_found_under_a_content_type_that_says_nothing():
    response = response_of(page(b"plain words", ("Content-Type", "application/octet-stream")))
    assert response.text == "plain words"


def test_text_is_decoded_by_the_charset_of_its_headers():
    response = response_of(page("ä€".encode("cp1252"), ("Content-Type", "text/html; charset=cp1252")))
    assert response.text == "ä€"


def test_an_empty_page_has_empty_text():
    assert response_of(page(b"", ("Content-Type", "text/html"))).text == ""


@pytest.mark.parametrize("status", [100, 600, 999])
def test_a_status_of_three_digits_is_kept(status):
    assert response_of({"browserHtml": "", "statusCode": status}).status == status


def test_status_and_final_url_are_those_of_the_result():
    response = response_of({"browserHtml": "", "statusCode": 404, "url": "https://books.example/end"})
    assert (response.status, response.url) == (404, "https://books.example/end")


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"statusCode": None, "url": None},
        {"statusCode": "x", "url": 3},
        {"statusCode": True, "url": ""},
        {"statusCode": [404], "url": {}},
        {"statusCode": 10**30, "url": True},
        {"statusCode": 404.5},
    ],
)
def test_a_result_without_status_and_url_has_those_of_the_request(result):
    response = response_of({"browserHtml": "", **result})
    assert (response.status, response.url) == (200, URL)


def test_duplicate_headers_are_kept_and_encodings_that_no_longer_hold_are_not():
    response = response_of(
        page(
            b"",
            ("Set-Cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("Content-Encoding", "gzip"),
            ("transfer-encoding", "chunked"),
            ("Connection", "close"),
            ("Upgrade", "h2,h2c"),
            ("X-Ünicode", "ä"),
        )
    )
    assert response.headers.getlist("Set-Cookie") == [b"a=1", b"b=2"]
    assert b"Content-Encoding" not in response.headers
    assert not {b"Transfer-Encoding", b"Connection", b"Upgrade"} & response.headers.keys()
    assert {"name": "Content-Encoding", "value": "gzip"} in response.extract_result["httpResponseHeaders"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (["identity"], [b"identity"]),
        (["utf-8"], [b"utf-8"]),
        (["gzip"], []),
        (["gzip, BR"], []),
        (["exi, gzip"], [b"exi"]),
        (["gzip", "exi"], [b"gzip", b"exi"]),
    ],
)
def test_content_codings_that_nobody_undoes_stay_in_the_headers(sent, kept):
    response = response_of(page(b"<html>", *(("Content-Encoding", value) for value in sent)))
    assert response.headers.getlist("Content-Encoding") == kept
    assert b"Content-Encoding" not in response_of({"browserHtml": "", **page(b"", ("Content-Encoding", "exi"))}).headers


def test_the_compression_middleware_keeps_the_result_of_a_body_that_it_cannot_unpack():
    sent = page(b"<html><p>1</p></html>", ("Content-Encoding", "identity"), ("Content-Type", "text/html"))
    response = response_of(sent)
    again = HttpCompressionMiddleware.from_crawler(get_crawler()).process_response(response.request, response)
    assert isinstance(again, HtmlResponse)
    assert again.extract_result == response.extract_result


def test_rendered_html_is_utf_8_whatever_it_declares():
    html = '<meta charset="latin-1"><p>ä€</p>'
    response = response_of({"browserHtml": html, "httpResponseHeaders": [{"name": "Content-Type", "value": "x/y"}]})
    assert isinstance(response, HtmlResponse)
    assert (response.encoding, response.text) == ("utf-8", html)
    assert response.css("p::text").get() == "ä€"


def test_rendered_html_comes_before_other_content():
    response = response_of({"browserHtml": "<p>", "screenshot": base64_of(b"\x89PNG")})
    assert response.body == b"<p>"
    assert response.screenshot == b"\x89PNG"


def test_the_text_of_rendered_html_is_what_came_and_not_decoded_again():
    html = "".join(["<p>", "ä€"])
    response = response_of({"browserHtml": html})
    assert response.text is response.extract_result["browserHtml"] is html


def test_what_no_encoding_can_hold_is_replaced_in_rendered_html():
    response = response_of({"browserHtml": "<p>\ud800</p>"})
    assert (response.body, response.text) == (b"<p>?</p>", "<p>?</p>")
    assert response.css("p::text").get() == "?"


def test_a_byte_order_mark_is_no_part_of_the_text():
    response = response_of({"browserHtml": "\ufeff<p>a</p>"})
    assert response.text == "<p>a</p>"


def test_a_screenshot_alone_is_the_body():
    response = response_of({"screenshot": base64_of(b"\x89PNG\x00")})
    assert response.body == response.screenshot == b"\x89PNG\x00"
    assert not isinstance(response, TextResponse)


def test_automatic_extraction_alone_has_an_empty_body():
    response = response_of({"product": {"name": "x"}, "screenshot": base64_of(b"\x89")})
    assert isinstance(response, HtmlResponse)
    assert (response.body, response.text, response.css("p")) == (b"", "", [])
    assert response.extract_result["product"] == {"name": "x"}
    assert response_of({"product": {}}).screenshot is None


def test_headers_alone_have_an_empty_body():
    response = response_of({"httpResponseHeaders": [{"name": "X-A", "value": "1"}]})
    assert (response.body, response.headers["X-A"]) == (b"", b"1")


def test_the_whole_result_is_at_the_response_with_a_flag_and_the_request():
    result = page(b"x", ("Content-Type", "text/html"), echoData={"a": [1]}, jobId="1/2/3", unknown=True)
    response = response_of(result, cb_kwargs={"a": 1})
    assert response.extract_result == {**result, "httpResponseBody": b"x"}
    assert response.flags == ["extract-api"]
    assert response.cb_kwargs == {"a": 1}


@pytest.mark.parametrize(
    "result",
    [
        page(b"\x89", screenshot="iQ=="),
        {"browserHtml": "<p>\ud800</p>", "screenshot": "iQ=="},
        {"product": {"name": "x"}, "screenshot": None},
    ],
)
def test_a_result_that_requests_share_is_not_changed(result):
    before = copy.deepcopy(result)
    first, second = response_of(result), response_of(result)
    assert result == before
    assert first.extract_result == second.extract_result
    assert first.extract_result is not second.extract_result


def test_the_body_is_held_once_and_its_base64_not_at_all():
    response = response_of(page(b"\x89PNG", screenshot=base64_of(b"shot")))
    assert response.extract_result["httpResponseBody"] is response.body
    assert response.extract_result["screenshot"] == response.screenshot == b"shot"
    alone = response_of({"screenshot": base64_of(b"shot")})
    assert alone.extract_result["screenshot"] is alone.body


@pytest.mark.parametrize("kind", ["httpResponseBody", "screenshot", "browserHtml with screenshot"])
def test_a_response_takes_no_more_memory_than_its_contents(kind):
    size = 3_000_000
    contents = {
        "httpResponseBody": ({"httpResponseBody": size}, size),
        "screenshot": ({"screenshot": size}, size),
        # The text and its encoding.
        "browserHtml with screenshot": ({"browserHtml": "x" * size, "screenshot": size}, 3 * size),
    }
    fields, held = contents[kind]
    tracemalloc.start()
    try:
        answer = {name: base64_of(bytes(value)) if value == size else value * 1 for name, value in fields.items()}
        response = response_of(json.loads(json.dumps(answer)))
        del answer, fields, contents
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.status == 200
    assert taken < held + size / 10


def test_a_typed_result_is_taken_too():
    result = ExtractResult(http_response_body=base64_of(b"<p>"), http_response_headers=[Header("Content-Type", "a/b")])
    response = to_response(Request(URL), result)
    assert response.body == b"<p>"
    assert response.extract_result["httpResponseHeaders"] == [{"name": "Content-Type", "value": "a/b"}]


@pytest.mark.parametrize("field", ["httpResponseBody", "screenshot"])
@pytest.mark.parametrize("value", ["not base64!", "YQ", "YQ==YQ==", "YQ==\n", 7, True, ["YQ=="], "ä", b"YQ=="])
@pytest.mark.parametrize("more", [{}, {"browserHtml": "<p>"}])
def test_a_result_that_does_not_hold_what_it_says_is_an_error(field, value, more):
    with pytest.raises(UnexpectedAnswerError, match=f"{field} of the answer is not Base64") as caught:
        response_of({field: value, **more})
    assert caught.value.sent == {"url": URL}


@pytest.mark.parametrize("html", [7, True, ["<p>"], {}])
def test_rendered_html_that_is_no_text_is_an_error(html):
    with pytest.raises(UnexpectedAnswerError, match="browserHtml of the answer is not text"):
        response_of({"browserHtml": html})


@pytest.mark.parametrize("url", ["javascript:alert(1)//", "shop.example/page", "file:///etc/passwd", "//shop.example/"])
def test_a_final_url_that_is_none_of_a_page_is_an_error(url):
    with pytest.raises(UnexpectedAnswerError, match="url of the answer must be an http or https URL"):
        response_of({"browserHtml": "<p>", "url": url})


@pytest.mark.parametrize("headers", [None, {}, "x", [1, {"name": "a"}, {"name": 1, "value": "b"}, {"value": "c"}]])
def test_headers_of_another_shape_are_passed_over(headers):
    assert response_of({"browserHtml": "", "httpResponseHeaders": headers}).headers == {}


def test_headers_that_no_encoding_can_hold_do_not_fail():
    headers = [{"name": "X-\ud800", "value": "\udfff"}]
    assert response_of({"browserHtml": "", "httpResponseHeaders": headers}).headers == {b"X-?": [b"?"]}


@pytest.mark.scrapy(oldest="2.15", why="slots of responses")
def test_a_response_has_no_dict_of_its_own():
    assert not hasattr(response_of({"browserHtml": ""}), "__dict__")


def test_a_final_url_that_no_parser_takes_is_an_error_of_the_answer():
    with pytest.raises(UnexpectedAnswerError, match=r"url of the answer must be a URL, got 'http://\[#'"):
        response_of({"url": "http://[#", "browserHtml": ""})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": "<b>1</b>"}', JsonResponse),
        ("\ufeff [1, 2]", JsonResponse),
        ("{not json}", TextResponse),
        ("some text", TextResponse),
        ("<?xml version='1.0'?><rss></rss>", XmlResponse),
        ("<html><body>{}</body></html>", HtmlResponse),
        ("<!-- {} --><html></html>", HtmlResponse),
        ("", HtmlResponse),
    ],
)
def test_a_file_that_the_browser_showed_in_a_viewer_has_its_own_class(text: str, kind: type[Response]) -> None:
    response = response_of({"url": "https://a.example/", "statusCode": 200, "browserHtml": text})
    assert isinstance(response, kind)
    assert not (kind is TextResponse and isinstance(response, HtmlResponse | XmlResponse | JsonResponse))
    if kind is JsonResponse:
        assert response.json() == json.loads(text.strip("\ufeff"))
