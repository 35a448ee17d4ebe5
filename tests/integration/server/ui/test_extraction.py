"""The page that tries the extraction service out, over HTTP."""

from __future__ import annotations

import base64
import json
import shlex
import struct
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from scrapy_ext.api.extraction import ExtractResult, Header
from scrapy_ext.api.extraction.records import FieldSource, SourceCandidate
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.ui import playground
from tests.support.eventually import eventually_async
from tests.support.handwritten_site import Target
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, page, rows, submit, texts
from tests.support.servers import ForkedServer, RunningServer

ARTICLE = """<html><head><title>A tale</title></head><body><h1>A tale &lt;script&gt;alert(1)&lt;/script&gt;</h1>
<p>Long ago, a lamp stood on a desk, and it gave light to all who came to read there in the night.</p></body></html>"""


@pytest.fixture(scope="module")
def site() -> Iterator[Target]:
    target = Target().start()
    target.page("/tale", ARTICLE)
    yield target
    target.stop()


@pytest.fixture(scope="module")
def extracting(site: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that may fetch the site."""
    options = ["--domain-rate", "50"]
    with ForkedServer(tmp_path_factory.mktemp("extract") / "data", allow_hosts=[site.host], options=options) as server:
        yield server


@pytest.fixture
async def http(extracting: RunningServer) -> AsyncIterator[Http]:
    async with Http(extracting.url, extracting.platform_key) as http:
        yield http


async def test_a_page_is_fetched_and_shown_as_text(http: Http, site: Target) -> None:
    url = f"http://{site.host}/tale"
    fields = {"url": url, "httpResponseBody": "on", "httpResponseHeaders": "on"}
    document = page(await submit(http, "/ui/extract", fields))
    sources = document.xpath("//pre[contains(@class, 'source')]")
    assert sources[0].text == ARTICLE
    assert "text/html" in document.text_content()
    curl, snippet = (each.text for each in sources[1:])
    assert shlex.split(curl.replace("\\\n", ""))[-1].endswith("/v1/extract")
    data = shlex.split(curl.replace("\\\n", ""))[6]
    assert json.loads(data) == {"url": url, "httpResponseBody": True, "httpResponseHeaders": True}
    made = eval(snippet, {"scrapy": __import__("scrapy")})
    assert made.url == url
    assert made.meta["extract_api"] == {"httpResponseBody": True, "httpResponseHeaders": True}


async def test_extracted_fields_are_a_table_and_no_markup(http: Http, site: Target) -> None:
    fields = {
        "url": f"http://{site.host}/tale",
        "kind": "article",
        "extractFrom": "httpResponseBody",
        "fieldSources": "on",
        "more": '{"tags": {"crawl": "playground"}}',
    }
    document = page(await submit(http, "/ui/extract", fields))
    table = dict(zip(texts(document, "//table//th[@scope='row']"), texts(document, "//table//td"), strict=True))
    headline = next(value for name, value in table.items() if name.startswith("headline"))
    assert "alert(1)" in headline
    statistics = page(await http.get("/ui/extract/statistics"))
    assert ["crawl", "playground", "1", "0"] in [row[:4] for row in rows(statistics)]
    assert ["http", "article", "200"] in [row[:3] for row in rows(statistics)]


async def test_markdown_is_shown_as_text(http: Http, site: Target) -> None:
    fields = {"url": f"http://{site.host}/tale", "markdown": "on", "extractFrom": "httpResponseBody"}
    document = page(await submit(http, "/ui/extract", fields))
    (shown,) = document.xpath("//pre[@aria-label='Markdown']")
    assert shown.text.strip()
    assert not len(shown)
    assert ["http", "markdown", "200"] in [row[:3] for row in rows(page(await http.get("/ui/extract/statistics")))]


async def test_what_the_service_refuses_is_reported(http: Http) -> None:
    document = page(await submit(http, "/ui/extract", {"url": "http://localhost:9/", "httpResponseBody": "on"}))
    assert document.xpath("//section[@aria-label='Problem']")
    text = " ".join(texts(document, "//section[@aria-label='Problem']"))
    assert "421" in text or "422" in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "", "browserHtml": "on"}, "url: "),
        ({"url": "https://a.example/"}, "at least one"),
        ({"url": "https://a.example/", "browserHtml": "on", "httpResponseBody": "on"}, "httpResponseBody"),
        ({"url": "https://a.example/", "browserHtml": "on", "more": "{"}, "more: is not JSON"),
        ({"url": "https://a.example/", "browserHtml": "on", "more": "[]"}, "must be a JSON object"),
        ({"url": "https://a.example/", "browserHtml": "on", "more": '{"nonsense": 1}'}, "nonsense"),
    ],
    ids=["no url", "no output", "both", "no JSON", "no object", "unknown"],
)
async def test_what_breaks_the_contract_is_reported_before_anything_is_sent(
    http: Http, fields: dict[str, str], message: str
) -> None:
    answer = await submit(http, "/ui/extract", fields)
    assert answer.status in (400, 422)
    document = page(answer, answer.status)
    assert message in " ".join(texts(document, "//*[@role='alert']"))
    assert document.xpath("//input[@name='url']/@value") == [fields["url"]]


async def test_a_key_that_is_not_for_extraction_tries_nothing(extracting: RunningServer, http: Http) -> None:
    made = page(
        await submit(http, "/ui/keys", {"action": "add", "name": "reader", "opens": "platform", "projects": "1"})
    )
    (key,) = texts(made, "//code[@class='secret']")
    async with Http(extracting.url, key) as other:
        answer = await eventually_async(lambda: other.get("/ui/extract"), lambda answer: answer.status != 401)
        document = page(answer)
        assert "no access to extraction" in document.text_content()
        assert not document.xpath("//input[@name='url']")
        token = document.xpath("//input[@name='token']/@value")[0]
        form = f"token={token}&url=https://a.example/&browserHtml=on".encode()
        refused = await other.post("/ui/extract", form, Content_Type="application/x-www-form-urlencoded")
        assert refused.status == 403
        assert (await other.get("/ui/extract/statistics")).status == 403


async def test_a_key_that_opens_extraction_tries_it_in_its_own_name(
    extracting: RunningServer, http: Http, site: Target
) -> None:
    made = page(await submit(http, "/ui/keys", {"action": "add", "name": "both", "opens": "both"}))
    (key,) = texts(made, "//code[@class='secret']")
    async with Http(extracting.url, key) as other:
        await eventually_async(lambda: other.get("/ui/extract"), lambda answer: answer.status != 401)
        document = page(
            await submit(other, "/ui/extract", {"url": f"http://{site.host}/tale", "httpResponseBody": "on"})
        )
        assert texts(document, "//h2") == ["Result"]
        assert ["both", "1"] in rows(page(await other.get("/ui/extract/statistics")))


async def test_requests_of_a_page_count_for_the_rate_of_their_key(
    site: Target, tmp_path_factory: pytest.TempPathFactory
) -> None:
    options = ["--extract-rate", "0.01"]
    data = tmp_path_factory.mktemp("rates") / "data"
    with ForkedServer(data, allow_hosts=[site.host], options=options) as server:
        async with Http(server.url, server.platform_key) as http:
            fields = {"url": f"http://{site.host}/tale", "httpResponseBody": "on"}
            problems: list[Any] = []
            for _ in range(5):
                document = page(await submit(http, "/ui/extract", fields))
                problems += texts(document, "//section[@aria-label='Problem']//h2")
            assert problems
            assert all(problem.startswith("429") for problem in problems)


def test_the_snippets_hold_hostile_text() -> None:
    form = Form(
        (("url", f"https://a.example/?{HOSTILE}"), ("browserHtml", "on"), ("more", json.dumps({"echoData": HOSTILE})))
    )
    body = playground.fields_of(form)
    words = shlex.split(playground.as_curl(body, "http://h:1").replace("\\\n", ""))
    assert json.loads(words[words.index("--data") + 1]) == body
    made = eval(playground.as_request(body), {"scrapy": __import__("scrapy")})
    assert made.meta["extract_api"] == {"browserHtml": True, "echoData": HOSTILE}


@pytest.mark.parametrize(("depth", "width"), [(90, 4000), (500, 1)])
def test_the_code_of_a_long_or_deep_request_is_one_line(depth: int, width: int) -> None:
    # In lines, 4 MiB took 37 seconds of the server's event loop.
    value: Any = ["x"] * width
    for _ in range(depth):
        value = [value]
    code = playground.as_request({"url": "https://a.example/", "browserHtml": True, "echoData": value})
    assert len(code.splitlines()) == 7
    assert code.count("[") == depth + 1


def test_a_result_is_cut_to_what_a_page_shows() -> None:
    long = "x" * 500_000
    result = ExtractResult(
        url="u",
        browser_html=long,
        screenshot="/9j/",
        http_response_headers=[Header("a", "b")],
        product={"a": {"b": {"c": 1}, "empty": {}}, "list": [1, 2]},
        field_sources={"a": FieldSource("markup")},
    )
    shown = playground.shown(result)
    ((_, text, length),) = shown.texts
    assert (len(text), length) == (200_000, len(long))
    assert shown.screenshot == "data:image/jpeg;base64,/9j/"
    assert shown.fields == [
        playground.FieldRow("a.b.c", 1, playground.Place(1, "markup"), []),
        playground.FieldRow("a.empty", {}),
        playground.FieldRow("list", [1, 2]),
    ]
    assert playground.shown(ExtractResult(screenshot="x" * 20_000_000)).screenshot == ""


def test_boxes_are_drawn_once_within_the_size_of_the_screenshot() -> None:
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 800, 600)
    outside = SourceCandidate("b", "heading", "/html/body/h2", "b", (0, 600, 10, 10))
    near = SourceCandidate("c", "title", "/html/body/h3", "c", (-5, 590, 10, 100))
    result = ExtractResult(
        screenshot=base64.b64encode(png).decode(),
        product={"name": "a", "headline": "a", "sku": "1"},
        field_sources={
            "name": FieldSource("heading", "/html/body/h1", "a", (10, 4, 200, 30), [outside, near]),
            "headline": FieldSource("heading", "/html/body/h1", "a and more", (10, 4, 200, 30)),
            "sku": FieldSource("script"),
        },
    )
    shown = playground.shown(result)
    assert shown.drawing is not None
    assert shown.drawing[:3] == (800, 600, 16)
    assert [box[:6] for box in shown.drawing.boxes] == [
        (1, "name, headline", 10, 4, 200, 30),
        (2, "name", -5, 590, 10, 100),
    ]
    assert [row.place.box if row.place else None for row in shown.fields] == [1, 1, 0]
    assert [other.box for other in shown.fields[0].others] == [0, 2]
    assert [row.place.text if row.place else None for row in shown.fields] == ["", "a and more", ""]


@pytest.mark.parametrize(
    ("image", "size"),
    [
        (b"\xff\xd8\xff\xe0\x00\x06JFIF\xff\xc0\x00\x11\x08\x02\x58\x03\x20\x03", (800, 600)),
        (b"\xff\xd8\xff\xe0\x00\x00", None),
        (b"\xff\xd8\xff\xc0\x00\x11\x08\x00\x00\x03\x20\x03", None),
        (b"\xff\xd8", None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"GIF89a", None),
    ],
)
def test_the_size_of_an_image_is_that_of_its_header(image: bytes, size: tuple[int, int] | None) -> None:
    assert playground.image_size(base64.b64encode(image).decode()) == size


def test_an_image_that_is_no_base64_has_no_size() -> None:
    assert playground.image_size("ä") is None
    assert playground.image_size("x" * 5) is None
