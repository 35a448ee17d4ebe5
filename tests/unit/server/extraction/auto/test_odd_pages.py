"""Pages with nothing in the usual places: every kind has an item, and Markdown a text."""

from __future__ import annotations

import random

import pytest

from scrapy_ext.server.extraction.auto import KINDS, extract_more
from tests.support.odd_pages import odd_page

URL = "https://a.example/b/c?page=2"
PAGES = [
    "<title>-</title><h1>Blue mug</h1><h3>×</h3>",
    '<meta property="og:title" content="-"><h1>—</h1>',
    "<title></title><h1></h1>",
    "<title>🎉</title><h2>×</h2><h3>×</h3>",
    "<x-a><template shadowrootmode=open><slot></slot><slot></slot></template><slot></slot></x-a>",
    "",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("html", PAGES)
def test_a_page_without_letters_where_they_are_expected_has_an_item(kind: str, html: str) -> None:
    assert extract_more(kind, html, URL, markdown={}).item["url"] == URL


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 200))])
def test_a_page_of_odd_parts_has_an_item(seed: int) -> None:
    chance = random.Random(seed)
    html = odd_page(chance.randbytes(chance.choice((10, 40, 150))))
    for kind in KINDS:
        assert extract_more(kind, html, URL, markdown={"content": "all"}).item["url"] == URL
