from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_ext.crawl.extraction.redirects import Redirects

SHOP = "https://shop.example/a"
KEY = {"name": "X-Api-Key", "value": "secret"}
PLAIN = {"name": "Accept", "value": "text/html"}


def hop(url: str, asked: object) -> object:
    """Meta ``extract_api`` of the request that RedirectMiddleware makes."""
    request = Request(SHOP, meta={"extract_api": asked})
    redirected = request.replace(url=url)
    Redirects.keep_private(request, redirected)
    assert request.meta["extract_api"] == asked
    return redirected.meta["extract_api"]


@pytest.mark.parametrize("url", ["https://other.example/", "http://shop.example/a", "https://shop.example:8443/a"])
def test_headers_with_credentials_do_not_go_to_another_origin(url):
    asked = {"customHttpRequestHeaders": [KEY, PLAIN], "httpResponseBody": True}
    assert hop(url, asked) == {"customHttpRequestHeaders": [PLAIN], "httpResponseBody": True}
    assert hop(url, {"customHttpRequestHeaders": [KEY]}) is True


def test_they_go_on_to_the_same_origin():
    asked = {"customHttpRequestHeaders": [KEY]}
    assert hop("https://shop.example/b?c=1", asked) == asked


def test_what_has_none_is_left_alone():
    for asked in (True, False, {"geolocation": "US"}, {"customHttpRequestHeaders": [PLAIN]}):
        assert hop("https://other.example/", asked) == asked


def test_a_request_that_a_middleware_made_for_another_site_has_its_own():
    request = Request(SHOP, meta={"extract_api": {"customHttpRequestHeaders": [KEY]}})
    own = {"customHttpRequestHeaders": [{"name": "X-Api-Key", "value": "of the other"}]}
    made = Request("https://other.example/", meta={"extract_api": own})
    Redirects.keep_private(request, made)
    assert made.meta["extract_api"] == own
