from __future__ import annotations

import base64
import copy
import json
import sys
from pathlib import Path

import pytest
from scrapy import Request, Spider
from scrapy.extensions.httpcache import DbmCacheStorage, FilesystemCacheStorage
from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse
from scrapy.settings import Settings
from zyte_common_items import Article, Product, Serp

from scrapy_ext.api.extraction import EXTRACT_TYPES
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError
from scrapy_ext.crawl.extraction.response import restored, to_response
from tests.support.crawlers import get_crawler

URL = "https://books.example/"
RESULTS = [
    {"browserHtml": "<p>ä</p>", "statusCode": 404},
    {"browserHtml": "<p>ä</p>", "screenshot": "iQ=="},
    {"browserHtml": "\ufeff<p>ä</p>"},
    {"browserHtml": ""},
    {"httpResponseBody": base64.b64encode(b'{"a":1}').decode(), "url": URL + "data.json"},
    {"httpResponseBody": base64.b64encode(b"\x89\x01").decode()},
    {"httpResponseBody": ""},
    {"screenshot": "iQ=="},
    {"product": {"name": "x", "price": "3.5"}, "screenshot": "iQ=="},
]


def made(result: dict) -> Response:
    return to_response(Request(URL), result)


def text_of(response: Response) -> str | None:
    return response.text if isinstance(response, TextResponse) else None


# ── copies ──


@pytest.mark.parametrize("result", RESULTS)
def test_copies_keep_the_result(result):
    response = made(result)
    for again in (response.copy(), response.replace(status=500), copy.copy(response)):
        assert type(again) is type(response)
        assert again.extract_result == response.extract_result
        assert again.body is response.body
        assert text_of(again) == text_of(response)
        assert again.flags == ["extract-api"]
    assert response.replace(status=500).status == 500


def test_the_result_can_be_replaced():
    assert made(RESULTS[0]).replace(extract_result={"a": 1}).extract_result == {"a": 1}


@pytest.mark.parametrize("result", RESULTS)
def test_another_body_has_its_own_text_and_leaves_the_result_as_it_was_answered(result):
    response = made(result)
    again = response.replace(body=b"<p>other</p>")
    assert again.body == b"<p>other</p>"
    assert text_of(again) in ("<p>other</p>", None)
    assert again.extract_result == response.extract_result


@pytest.mark.scrapy(oldest="2.19", why="Response.to_dict")
@pytest.mark.parametrize("result", RESULTS)
def test_another_body_is_kept_with_the_result(result):
    from scrapy.utils.response import response_from_dict  # 2.19

    again = made(result).replace(body=b"<p>other</p>")
    assert response_from_dict(again.to_dict()).extract_result == made(result).extract_result
    assert response_from_dict(again.to_dict()).body == b"<p>other</p>"


def test_another_encoding_is_another_text():
    response = made({"browserHtml": "ä"}).replace(encoding="latin-1")
    assert response.text == "Ã¤"


@pytest.mark.parametrize("kind", [HtmlResponse, XmlResponse, TextResponse, Response])
def test_a_response_can_be_made_into_one_of_scrapys_own_classes(kind):
    response = made(RESULTS[0]).replace(cls=kind)
    assert type(response) is kind
    assert (response.body, response.status) == ("<p>ä</p>".encode(), 404)


# ── Scrapy's HTTP cache ──


def cached(storage, response: Response, folder: Path) -> Response:
    """Response that a cache returns for a stored one."""
    # Not that of SQLite, which Python 3.13 prefers.
    settings = {"HTTPCACHE_DIR": str(folder), "HTTPCACHE_EXPIRATION_SECS": 0, "HTTPCACHE_DBM_MODULE": "dbm.dumb"}
    cache = storage(Settings(settings))
    crawler = get_crawler(Spider)
    spider = crawler.spider = Spider.from_crawler(crawler, "books")
    request = Request(URL)
    cache.open_spider(spider)
    cache.store_response(spider, request, response)
    again = cache.retrieve_response(spider, request)
    cache.close_spider(spider)
    assert again is not None
    return again


CACHE_KEEPS_RESULTS = pytest.mark.scrapy(oldest="2.19", why="the HTTP cache stores a response's own attributes")


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"browserHtml": True}, "browserHtml", "<p>ä</p>"),
        ({"httpResponseBody": True, "httpResponseHeaders": True}, "httpResponseBody", "<p>ä</p>".encode()),
    ],
)
def test_a_cached_page_that_is_all_of_its_result_has_it_again(fields, name, value):
    page = HtmlResponse(URL, status=404, headers={"X-A": "1"}, body="<p>ä</p>".encode(), encoding="utf-8")
    again = restored(page, {"url": URL, **fields})
    assert (again.text, again.status, again.url, type(again).__name__) == ("<p>ä</p>", 404, URL, "ExtractHtmlResponse")
    assert again.extract_result[name] == value
    assert again.screenshot is None


@pytest.mark.parametrize(
    "fields", [{"product": True}, {"browserHtml": True, "screenshot": True}, {"browserHtml": True, "actions": [{}]}, {}]
)
def test_a_cached_page_that_is_less_than_its_result_does_not_have_it(fields):
    assert restored(HtmlResponse(URL, body=b"<p>"), {"url": URL, **fields}) is None


@CACHE_KEEPS_RESULTS
@pytest.mark.parametrize("storage", [FilesystemCacheStorage, DbmCacheStorage])
@pytest.mark.parametrize("result", RESULTS)
async def test_the_http_cache_of_scrapy_keeps_class_body_and_result(storage, result, tmp_path):
    response = made(result)
    before = copy.deepcopy(response.extract_result)
    again = cached(storage, response, tmp_path)
    assert type(again) is type(response)
    assert (again.body, again.status, again.url) == (response.body, response.status, response.url)
    assert text_of(again) == text_of(response)
    assert again.extract_result == response.extract_result == before
    assert list(again.extract_result) == list(before)
    assert again.flags == ["extract-api"]


@CACHE_KEEPS_RESULTS
@pytest.mark.parametrize("storage", [FilesystemCacheStorage, DbmCacheStorage])
async def test_what_comes_out_of_the_cache_holds_the_body_once(storage, tmp_path):
    page = cached(storage, made(RESULTS[5]), tmp_path / "1")
    assert page.extract_result["httpResponseBody"] is page.body
    shot = cached(storage, made(RESULTS[7]), tmp_path / "2")
    assert shot.screenshot is shot.body
    rendered = cached(storage, made(RESULTS[0]), tmp_path / "3")
    assert rendered.text is rendered.extract_result["browserHtml"]


@pytest.mark.parametrize("storage", [FilesystemCacheStorage, DbmCacheStorage])
@pytest.mark.parametrize("output", ["httpResponseBody", "browserHtml", "screenshot"])
async def test_the_cache_stores_the_body_once(storage, output, tmp_path):
    size = 500_000
    contents = "x" * size if output == "browserHtml" else base64.b64encode(bytes(size)).decode()
    cached(storage, made({output: contents}), tmp_path)
    stored = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert stored < 1.2 * size


# ── automatic extraction as an item ──


def test_automatic_extraction_is_there_as_an_item():
    fields = {"url": URL, "name": "x", "brand": {"name": "y"}, "unknown": 1}
    item = made({"product": fields}).extract_item
    assert isinstance(item, Product)
    assert (item.name, item.brand.name, item.url) == ("x", "y", URL)
    assert made({"serp": {"url": URL, "organicResults": []}, "product": None}).extract_item == Serp(
        url=URL, organicResults=[]
    )


def test_markdown_is_that_of_the_answer_or_made_of_the_page_here():
    page = "<h1>A</h1><p>b <a href='/c'>c</a></p>"
    assert made({"markdown": "# From the service\n", "browserHtml": page}).markdown() == "# From the service\n"
    assert made({"browserHtml": page}).markdown(content="all") == f"# A\n\nb [c]({URL}c)\n"
    by_http = {"httpResponseBody": base64.b64encode(page.encode()).decode()}
    assert made(by_http).markdown(content="all", links=False) == "# A\n\nb c\n"


def test_an_answer_of_markdown_alone_is_a_page_without_a_body():
    response = made({"markdown": "# A\n", "url": URL})
    assert (response.body, response.markdown()) == (b"", "# A\n")
    assert isinstance(response, HtmlResponse)


@pytest.mark.parametrize("result", [{"screenshot": "iQ=="}, {"product": {"name": "x"}}])
def test_an_answer_without_html_has_no_markdown(result):
    with pytest.raises(ValueError, match="has no HTML to make Markdown of"):
        made(result).markdown()


def test_wrong_options_of_markdown_are_refused_by_name():
    with pytest.raises(ContractError, match=r"markdownOptions\.content"):
        made({"browserHtml": "<p>a"}).markdown(content="text")


@pytest.mark.parametrize("kind", EXTRACT_TYPES)
def test_every_kind_has_its_item(kind):
    item = made({kind: {"url": URL}}).extract_item
    assert type(item).__name__.lower() == kind.lower()


def test_the_item_is_made_once():
    response = made({"article": {"headline": "x"}})
    assert response.extract_item is response.extract_item


@pytest.mark.parametrize("url", [{}, {"url": None}])
def test_an_item_without_a_url_has_that_of_its_page(url):
    item = made({"article": {"headline": "x", **url}, "url": URL + "end"}).extract_item
    assert isinstance(item, Article)
    assert (item.headline, item.url) == ("x", URL + "end")


@pytest.mark.parametrize("result", [{}, {"browserHtml": "<p>"}, {"httpResponseBody": ""}, {"product": None}])
def test_an_answer_without_automatic_extraction_has_no_item(result):
    assert made(result).extract_item is None


@pytest.mark.parametrize("fields", ["x", 7, [], ["x"], True, {"brand": "x"}, {"images": [None, 5]}])
def test_fields_that_make_no_item_are_an_error(fields):
    response = made({"product": fields})
    with pytest.raises(UnexpectedAnswerError, match="product of the answer is no Product"):
        _ = response.extract_item
    assert response.extract_result == {"product": fields}


@CACHE_KEEPS_RESULTS
@pytest.mark.parametrize("storage", [FilesystemCacheStorage, DbmCacheStorage])
async def test_the_item_is_there_after_the_cache_and_in_copies(storage, tmp_path):
    response = made({"product": {"url": URL, "name": "x"}, "screenshot": "iQ=="})
    item = response.extract_item
    assert cached(storage, response, tmp_path).extract_item == response.copy().extract_item == item


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "zyte_common_items", None)
    monkeypatch.delitem(sys.modules, "scrapy_ext.compatibility.items", raising=False)
    response = made({"product": {"url": URL}})
    with pytest.raises(ImportError, match=r'pip install "scrapy-ext\[poet\]"'):
        _ = response.extract_item
    assert made({"browserHtml": ""}).extract_item is None


def test_what_is_no_base64_in_a_result_can_be_written_as_json():
    response = made({"product": {"name": "x"}, "browserHtml": "<p>", "echoData": [1]})
    assert json.loads(json.dumps(response.extract_result)) == response.extract_result
