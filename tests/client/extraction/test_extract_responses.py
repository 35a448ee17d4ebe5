from __future__ import annotations

import base64
import copy

import pytest
from scrapy import Request, Spider
from scrapy.extensions.httpcache import DbmCacheStorage, FilesystemCacheStorage
from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from scrapy_ext.client.extraction.results import to_response

URL = "https://books.example/"
RESULTS = [
    {"browserHtml": "<p>ä</p>", "statusCode": 404},
    {"httpResponseBody": base64.b64encode(b'{"a":1}').decode(), "url": URL + "data.json"},
    {"httpResponseBody": base64.b64encode(b"\x89\x00").decode()},
    {"product": {"name": "x", "price": 3.5}, "screenshot": "iQ=="},
]


def made(result: dict) -> Response:
    return to_response(Request(URL), result)


@pytest.mark.parametrize("result", RESULTS)
def test_copies_keep_the_result(result):
    response = made(result)
    for again in (response.copy(), response.replace(status=500), copy.copy(response)):
        assert type(again) is type(response)
        assert again.extract_result == result
        assert again.body == response.body
        assert again.flags == ["extract-api"]
    assert response.replace(status=500).status == 500


def test_the_result_can_be_replaced():
    assert made(RESULTS[0]).replace(extract_result={"a": 1}).extract_result == {"a": 1}


@pytest.mark.parametrize("kind", [HtmlResponse, XmlResponse, TextResponse, Response])
def test_a_response_can_be_made_into_one_of_scrapys_own_classes(kind):
    response = made(RESULTS[0]).replace(cls=kind)
    assert type(response) is kind
    assert (response.body, response.status) == ("<p>ä</p>".encode(), 404)


@pytest.mark.parametrize("storage", [FilesystemCacheStorage, DbmCacheStorage])
@pytest.mark.parametrize("result", RESULTS)
async def test_the_http_cache_of_scrapy_keeps_class_body_and_result(storage, result, tmp_path):
    cache = storage(Settings({"HTTPCACHE_DIR": str(tmp_path), "HTTPCACHE_EXPIRATION_SECS": 0}))
    crawler = get_crawler(Spider)
    spider = crawler.spider = Spider.from_crawler(crawler, "books")
    request, response = Request(URL), made(result)
    cache.open_spider(spider)
    cache.store_response(spider, request, response)
    cached = cache.retrieve_response(spider, request)
    cache.close_spider(spider)
    assert type(cached) is type(response)
    assert (cached.body, cached.status, cached.url) == (response.body, response.status, response.url)
    assert cached.extract_result == result
    assert cached.flags == ["extract-api"]
