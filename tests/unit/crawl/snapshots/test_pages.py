"""Content of the snapshots of pages whose callbacks raised, and the reasons for what is missing."""

from __future__ import annotations

import functools
import gc
import json
import weakref
from typing import Any

import msgspec
import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.snapshots import Missing, Part, Snapshot
from scrapy_ext.crawl.extraction.response import to_response
from scrapy_ext.crawl.snapshots.pages import PageContent, content_of, taken

URL = "https://shop.example/lamp"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(10)
LATIN = [{"name": "Content-Type", "value": "text/html; charset=latin-1"}]
SECRET = "do-not-keep-this"


class Spider:
    def parse_lamp(self, response: Any) -> None:
        raise KeyError("price")

    def parse_later(self, response: Any) -> Any:
        yield self.helper()

    def helper(self) -> None:
        raise ValueError("https://me:pw@shop.example/?token=" + SECRET)

    def failed(self, failure: Any) -> None:
        raise IndexError("no item")


SPIDER = Spider()


def failure_of(call: Any) -> Failure:
    try:
        for _ in call() or ():
            pass
    except Exception:
        return Failure()
    raise AssertionError("it raised nothing")


def page(response: Any, callback: Any = SPIDER.parse_lamp) -> PageContent:
    if getattr(response, "request", None) is None:
        response.request = Request(response.url, callback=callback)
    found = taken(failure_of(lambda: callback(response)), response, 17)
    assert found is not None
    return content_of(found)


def result(callback: Any = SPIDER.parse_lamp, **fields: Any) -> Response:
    encoded = {
        name: snapshots.pybase64.b64encode_as_string(value) if isinstance(value, bytes) else value
        for name, value in fields.items()
    }
    return to_response(Request(URL, callback=callback), {"url": URL, "statusCode": 200, **encoded})


def test_a_page_of_the_browser_with_its_screenshot() -> None:
    snapshot, parts = page(result(browserHtml="<h1>Lämp</h1>", screenshot=PNG, statusCode=404))
    assert parts == {Part.PAGE: "<h1>Lämp</h1>".encode(), Part.SCREENSHOT: PNG}
    assert (snapshot.url, snapshot.status, snapshot.time, snapshot.format) == (URL, 404, 17, "html")
    assert (snapshot.error, snapshot.message, snapshot.callback) == ("KeyError", "'price'", "parse_lamp")
    assert snapshot.page == snapshots.Content(14)
    assert snapshot.screenshot == snapshots.Content(len(PNG))
    assert (snapshot.no_page, snapshot.no_screenshot) == ("", "")


@pytest.mark.parametrize(
    ("response", "text", "form", "missing"),
    [
        (lambda: result(httpResponseBody=b"<html>\xe4", httpResponseHeaders=LATIN), "<html>ä", "html", Missing.HTTP),
        (lambda: result(browserHtml="<p>a"), "<p>a", "html", Missing.NOT_REQUESTED),
        (lambda: result(browserHtml="<p>a", screenshot=b"<svg>"), "<p>a", "html", Missing.NO_IMAGE),
        (lambda: HtmlResponse(URL, body="ä", encoding="latin-1"), "ä", "html", Missing.DIRECT),
        (lambda: XmlResponse(URL, body=b"<a/>"), "<a/>", "xml", Missing.DIRECT),
        (lambda: JsonResponse(URL, body=b"[]"), "[]", "json", Missing.DIRECT),
        (lambda: TextResponse(URL, body=b"a"), "a", "txt", Missing.DIRECT),
    ],
)
def test_pages_of_every_way(response: Any, text: str, form: str, missing: Missing) -> None:
    snapshot, parts = page(response())
    assert parts == {Part.PAGE: text.encode()}
    assert (snapshot.format, snapshot.no_screenshot) == (form, missing)
    assert snapshots.REASONS[missing].endswith(".")


def test_of_automatic_extraction_alone_the_data_is_the_page_and_nothing_else_of_the_result() -> None:
    cookies = [{"name": "id", "value": SECRET}]
    snapshot, parts = page(result(product={"name": "Lamp"}, responseCookies=cookies, sessionContext=SECRET))
    assert json.loads(parts[Part.PAGE]) == {"product": {"name": "Lamp"}}
    assert snapshot.format == "json"


@pytest.mark.parametrize(
    ("response", "missing"),
    [(Response(URL, body=b"\x00\x01"), Missing.BINARY), (HtmlResponse(URL, body=b""), Missing.EMPTY)],
)
def test_a_body_that_is_no_text_is_not_kept(response: Response, missing: Missing) -> None:
    snapshot, parts = page(response)
    assert (parts, snapshot.page, snapshot.no_page) == ({}, None, missing)


def test_a_long_page_is_cut_at_a_character_and_a_large_screenshot_is_left_out() -> None:
    html = "a" + "ä" * snapshots.MAX_PAGE
    screenshot = PNG + bytes(snapshots.MAX_SCREENSHOT)
    snapshot, parts = page(result(browserHtml=html, screenshot=screenshot))
    kept = parts[Part.PAGE].decode()
    assert html.startswith(kept)
    assert len(parts[Part.PAGE]) == snapshots.MAX_PAGE - 1
    assert snapshot.page is not None
    assert snapshot.page.cut
    assert snapshot.no_screenshot == Missing.TOO_LARGE


def test_a_page_that_waits_keeps_nothing_but_the_content_of_its_snapshot() -> None:
    capture = [{"httpResponseBody": "x" * snapshots.MAX_PAGE}]
    found: list[Any] = []
    fields: dict[str, Any]
    for fields in (
        {"browserHtml": "<p>a", "screenshot": PNG + bytes(snapshots.MAX_SCREENSHOT)},
        {"product": {"name": "Lamp"}},
        {"browserHtml": "a" * 2 * snapshots.MAX_PAGE},
    ):
        response = result(**fields, networkCapture=capture)
        response.hold = Held()  # type: ignore[attr-defined]
        released = weakref.ref(response.hold)  # type: ignore[attr-defined]
        error = failure_of(lambda response=response: SPIDER.parse_lamp(response))
        error.cleanFailure()
        error.value.__traceback__ = None
        found.append(taken(error, response, 17))
        del response, error
        gc.collect()
        assert released() is None
    assert [page.size for page in found] == [
        4,
        len(b'{\n  "product": {\n    "name": "Lamp"\n  }\n}'),
        snapshots.MAX_PAGE,
    ]
    assert len(msgspec.json.encode([content_of(page).snapshot for page in found])) < 2000


class Held:
    """The memory that a response counts."""


def test_no_header_cookie_or_secret_of_a_url_is_kept() -> None:
    headers = {"Authorization": SECRET, "Cookie": f"id={SECRET}"}
    url = f"https://me:{SECRET}@shop.example/?api_key={SECRET}&page=2"
    response = HtmlResponse(url, body=b"<p>", headers={"Set-Cookie": f"id={SECRET}"})
    response.request = Request(
        url, SPIDER.parse_later, headers=headers, cookies={"id": SECRET}, body=SECRET, meta={"a": SECRET}
    )
    content = page(response, SPIDER.parse_later)
    assert SECRET not in repr(content)
    assert content.snapshot.url == "https://shop.example/?api_key=(hidden)&page=2"
    assert content.snapshot.message == "https://shop.example/?token=(hidden)"


def test_the_function_that_raised_is_named() -> None:
    response = HtmlResponse(URL, body=b"<p>")
    assert page(response, SPIDER.parse_later).snapshot.callback == "parse_later"
    # Of a response that the spider's middlewares refused, Scrapy calls the errback.
    response.request = Request(URL, SPIDER.parse_lamp, errback=SPIDER.failed)
    found = taken(failure_of(lambda: SPIDER.failed(None)), response, 1)
    assert found is not None
    assert found.snapshot.callback == "failed"
    assert page(HtmlResponse(URL, body=b"<p>"), functools.partial(SPIDER.parse_lamp)).snapshot.callback == "partial"


def test_of_a_failed_download_there_is_a_page_only_if_its_error_has_one() -> None:
    response = HtmlResponse(URL, body=b"<p>refused")
    response.request = Request(URL, errback=SPIDER.failed)
    refused = Failure(HttpError(response, "no"))
    refused.request = response.request  # type: ignore[attr-defined]
    error = failure_of(lambda: SPIDER.failed(refused))
    found = taken(error, refused, 1)
    assert found is not None
    assert content_of(found).parts == {Part.PAGE: b"<p>refused"}
    assert found.snapshot.callback == "failed"
    assert taken(error, Failure(OSError("no answer")), 1) is None


def test_an_exception_that_cannot_be_shown_is_kept_without_its_text() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def callback(_: Any) -> None:
        raise OddError

    snapshot: Snapshot = page(HtmlResponse(URL, body=b"<p>"), callback).snapshot
    assert (snapshot.error, snapshot.message) == ("OddError", "")


def test_long_urls_and_messages_are_cut() -> None:
    def callback(_: Any) -> None:
        raise ValueError("x" * 10_000)

    snapshot = page(HtmlResponse(URL + "?" + "a" * 10_000, body=b"<p>"), callback).snapshot
    assert (len(snapshot.url), len(snapshot.message)) == (snapshots.MAX_URL, snapshots.MAX_MESSAGE)
