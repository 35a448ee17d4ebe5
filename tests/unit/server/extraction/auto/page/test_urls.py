"""Absolute URLs of the links of a page."""

from __future__ import annotations

import re

import pytest

from scrapy_ext.server.extraction.auto.page import urls
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.urls import MAX_URL_LENGTH, absolute, same_page, site_of

BASE = "https://example.com/a/b?c=1"


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("d", "https://example.com/a/d"),
        ("/d", "https://example.com/d"),
        ("//cdn.example.com/d", "https://cdn.example.com/d"),
        ("?e=2", "https://example.com/a/b?e=2"),
        ("  /a b.jpg \n", "https://example.com/a%20b.jpg"),
        ("http://other.example/x", "http://other.example/x"),
    ],
)
def test_references_become_absolute_as_browsers_make_them(reference: str, url: str) -> None:
    assert absolute(BASE, reference) == url


@pytest.mark.parametrize(
    "reference",
    [
        *(None, "", "  ", "data:image/gif;base64,R0", "javascript:void(0)", "mailto:a@example.com"),
        *("file:///etc/passwd", "http://[::1", "http://:80/", "/" + "a" * MAX_URL_LENGTH),
    ],
)
def test_what_no_web_server_answers_is_no_url(reference: str | None) -> None:
    assert absolute(BASE, reference) is None


@pytest.mark.parametrize(
    ("base", "reference"),
    [
        (base, reference)
        for base in (BASE, "http://u:p@Example.com:8080/a/", "HTTPS://example.com", "ftp://example.com/a", "", "//x/a")
        for reference in (
            "/", "/a", "/a/b.html?c=d&e=%20", "/a/../b", "/a/./b", "/.b", "/a//b", "//b/c", "/a?", "/a;p", "/a#b", "/é",
            "https://example.org/a", "https://example.org", "https://example.org?a", "HTTPS://Example.org/a",
            "https://example.org/../a", "https:///a", "https://u@example.org/a", "http://example.org:80/", "/a\n",
        )
    ],
)  # fmt: skip
def test_plain_references_have_the_urls_that_joining_makes(
    base: str, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quickly = absolute(base, reference)
    monkeypatch.setattr(urls, "_PLAIN", re.compile("(?!)"))
    assert quickly == absolute(base, reference)


def test_the_base_of_a_page_counts_unless_it_is_no_web_address() -> None:
    assert Page('<base href="/shop/"><p>x', BASE).link("lamp") == "https://example.com/shop/lamp"
    assert Page('<base href="data:x"><p>x', BASE).link("lamp") == "https://example.com/a/lamp"


def test_pages_that_differ_in_scheme_www_fragment_or_last_slash_are_the_same() -> None:
    assert same_page("http://www.example.com/a/#x", "https://example.com/a")
    assert not same_page("https://example.com/a?b=1", "https://example.com/a?b=2")


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://www.example.com/a", "example.com"),
        ("https://r.search.example.de/", "example.de"),
        ("https://www.ntv.de/", "ntv.de"),
        ("https://www.shop.co.uk/", "shop.co.uk"),
        ("https://loja.com.br/", "loja.com.br"),
        ("https://localhost/", "localhost"),
        ("nothing", ""),
    ],
)
def test_a_site_is_known_by_its_name_whatever_comes_before_it(url: str, site: str) -> None:
    assert site_of(url) == site
