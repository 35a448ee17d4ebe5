"""Main content as Markdown: the blocks of ``pageContent``, and the images among them."""

from __future__ import annotations

import re
from typing import Any

from scrapy_ext.server.extraction.auto import extract, extract_from_pdf, extract_more
from tests.support.markdown import text_of
from tests.support.pdfs import lines, pdf

URL = "https://www.example.org/guide"
STEP = "take the rope in the left hand, lay a loop over the post, pull until the boat lies still."
PAGE = f"""<html lang="en"><head><title>Knots | Harbour School</title></head><body>
<header><a href="/"><img src="/logo.png" alt="Harbour School"></a><nav><a href="/courses">Courses</a></nav></header>
<main><article><h1>Knots</h1>
<p>Step 1: <b>take</b> it, {STEP}</p>
<figure><img src="/knot.jpg" alt="A knot"></figure>
<ul><li>Step 2: {STEP}</li><li>Step 3: <a href="/post">the post</a>, {STEP}</li></ul>
<p>Step 4: {STEP}</p><pre class="language-sh">tie --fast</pre><p>Step 5: {STEP}</p>
</article></main>
<aside><h3>More</h3><a href="/shop"><img src="/shop.jpg" alt="Shop">Shop</a></aside>
<footer><a href="/imprint">Imprint</a></footer></body></html>"""


def markdown(html: str = PAGE, **options: Any) -> str:
    return extract_more(None, html, URL, markdown=options).markdown or ""


def test_the_main_content_is_without_what_is_around_it() -> None:
    assert markdown() == (
        f"# Knots\n\nStep 1: **take** it, {STEP}\n\n![A knot](https://www.example.org/knot.jpg)\n\n"
        f"- Step 2: {STEP}\n- Step 3: [the post](https://www.example.org/post), {STEP}\n\n"
        f"Step 4: {STEP}\n\n```sh\ntie --fast\n```\n\nStep 5: {STEP}\n"
    )


def test_all_of_a_page_has_its_menus_too() -> None:
    found = markdown(content="all")
    for part in ("[Courses](https://www.example.org/courses)", "![Shop]", "[Imprint]", "![Harbour School]"):
        assert part in found


def test_the_text_is_that_of_page_content() -> None:
    item = extract("pageContent", PAGE, URL)
    assert re.findall(r"\w+", text_of(markdown(images=False))) == re.findall(r"\w+", item["itemMain"])


def test_an_item_and_the_markdown_come_of_one_page() -> None:
    found = extract_more("article", PAGE, URL, markdown={})
    assert found.item["headline"] == "Knots"
    assert found.markdown == markdown()


def test_a_page_without_content_has_none() -> None:
    assert markdown("<html><body></body></html>") == ""


def test_a_pdf_has_its_text_with_headings_and_text_stays_text() -> None:
    file = pdf(
        [
            *lines(["A report on foxes"], size=20),
            *lines(["The *quick* brown fox jumps over the lazy dog and", "does so again and again."], top=110),
            *lines(["# of jumps"], top=170),
        ]
    )
    found = extract_from_pdf(None, file, URL, markdown={})
    assert found.item == {}
    assert found.markdown == (
        "# A report on foxes\n\nThe \\*quick\\* brown fox jumps over the lazy dog and does so again and again.\n\n"
        "\\# of jumps\n"
    )
