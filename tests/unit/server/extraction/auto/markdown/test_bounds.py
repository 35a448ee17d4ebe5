"""Bounds of Markdown: of its size, its nesting, and the time that a page made for it takes."""

from __future__ import annotations

import time

import pytest

from scrapy_ext.server.extraction.auto import extract_more
from scrapy_ext.server.extraction.auto.markdown import MAX_LENGTH, MarkdownOptions, document_of, reading
from scrapy_ext.server.extraction.auto.markdown.writing import written
from scrapy_ext.server.extraction.auto.page import Page
from tests.support.markdown import assert_read_as

PAGES = {
    "lists": "<ul><li>a" * 3000,
    "numbered lists": "<ol start=99999999><li>a" * 3000,
    "quotes": "<blockquote>a" * 3000,
    "definitions": "<dl><dt>a<dd>b" * 3000,
    "tables": "<table><tr><td>a<td>b<tr><td>c<td>" * 1000,
    "marks": "x<b>a</b>" * 20_000,
    "marks that are not read": 'a<b>"</b>b' * 20_000,
    "spans": "<table>" + ("<tr>" + "<td rowspan=9999 colspan=9999>x" * 3) * 5000,
    "stars": "*" * 2_500_000,
    "code": "<ul><li>" * 50 + "<pre>" + "a\n" * 1_500_000,
    "ticks": "<code>" + "`" * 2_500_000,
    "empty lines": "<pre>" + "\n" * 3_000_000 + "x",
    "long addresses": "".join(f"<a href='/{'x' * 8000}{number}'>a</a> " for number in range(500)),
    "breaks": "<br>" * 30_000 + "a<br>" * 10_000,
    "spaces": "<p>a" + " " * 3_000_000 + "b",
    "references": "&amp;" * 600_000 + "amp;",
    "signs of headings": "<h1>" + "# " * 1_000_000,
}


@pytest.mark.parametrize("name", PAGES)
def test_no_page_takes_long_or_becomes_long(name: str) -> None:
    start = time.process_time()
    found = extract_more(None, PAGES[name], "https://e.example/", markdown={"content": "all"}).markdown or ""
    # It takes up to a second; what has no bound takes minutes.
    assert time.process_time() - start < 30
    assert len(found) <= 4 * MAX_LENGTH


@pytest.mark.parametrize("name", ["lists", "numbered lists", "quotes", "definitions", "tables", "breaks"])
def test_what_is_nested_too_deep_is_read_as_it_was_written(name: str) -> None:
    document = document_of(Page(PAGES[name], "https://e.example/"), MarkdownOptions("all"))
    assert_read_as(document, written(document))


def test_a_long_page_ends_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LENGTH", 50_000)
    html = "<p>" + "<p>".join(f"{number} " + "word " * 200 for number in range(60))
    document = document_of(Page(html, "https://e.example/"), MarkdownOptions("all"))
    found = written(document)
    assert 0.9 * 50_000 < len(found) < 1.1 * 50_000
    assert_read_as(document, found)
