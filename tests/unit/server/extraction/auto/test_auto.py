"""Interface of automatic extraction."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from zyte_common_items import (
    Article,
    ArticleList,
    ArticleNavigation,
    ForumThread,
    Item,
    JobPosting,
    JobPostingNavigation,
    Product,
    ProductList,
    ProductNavigation,
    Serp,
)

from scrapy_ext.compatibility.items import PageContent
from scrapy_ext.server.extraction.auto import KINDS, UnsupportedKindError, extract, preload
from scrapy_ext.server.extraction.auto.page import Page

URL = "https://example.com/a"
CLASSES: dict[str, type[Item]] = {
    "product": Product,
    "productList": ProductList,
    "productNavigation": ProductNavigation,
    "article": Article,
    "articleList": ArticleList,
    "articleNavigation": ArticleNavigation,
    "forumThread": ForumThread,
    "jobPosting": JobPosting,
    "serp": Serp,
    "jobPostingNavigation": JobPostingNavigation,
    "pageContent": PageContent,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_an_item_of_its_class_in_the_schema(kind: str) -> None:
    html = """<html lang=en><head><title>Lamp</title><link rel=canonical href=/a></head><body><h1>Lamp</h1>
    <p class=price>$5.00</p><p>By Ada Berg</p><img src=/a.jpg alt=Lamp><nav><a href=/b>B</a></nav></body></html>"""
    item: Any = CLASSES[kind].from_dict(extract(kind, html, URL))
    assert item.url == URL
    # What the class does not know stands apart.
    assert item._unknown_fields_dict == {}
    assert item.metadata._unknown_fields_dict == {}
    # Metadata of lists have no probability: that is with each of their items.
    assert 0 <= getattr(item.metadata, "probability", 0) <= 1
    assert item.metadata.get_date_downloaded_parsed() is not None


def test_a_kind_that_does_not_exist_is_refused_by_name_with_those_that_do() -> None:
    with pytest.raises(UnsupportedKindError) as refused:
        extract("poem", "", URL)
    assert refused.value.kind == "poem"
    for kind in ("poem", *KINDS):
        assert kind in str(refused.value)


def test_the_same_page_gives_the_same_item() -> None:
    html = "<title>Lamp</title><h1>Lamp</h1><p class=price>$5.00</p>"
    first, second = (extract("product", html, URL) for _ in range(2))
    first["metadata"].pop("dateDownloaded")
    second["metadata"].pop("dateDownloaded")
    assert first == second


def test_preload_may_be_called_again() -> None:
    preload()
    preload()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_freed_once_it_is_extracted_without_a_garbage_collection(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[weakref.ref[Page]] = []

    class Recorded(Page):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            pages.append(weakref.ref(self))

    monkeypatch.setattr("scrapy_ext.server.extraction.auto.page.page.Page", Recorded)
    entries = "".join(f'<li><h2><a href="/{n}">Entry {n} of the list</a></h2><p>Some text.</p></li>' for n in range(9))
    text = "<p>A paragraph of the text, long enough to be taken for prose by all that reads it.</p>" * 5
    gc.disable()
    try:
        extract(kind, f"<title>Heading</title><main><h1>Heading</h1>{text}<ul>{entries}</ul></main>", URL)
        assert [page() for page in pages] == [None]
    finally:
        gc.enable()
