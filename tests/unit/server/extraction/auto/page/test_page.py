"""Pages are read as a browser reads them, whatever their HTML is like."""

import pytest
from lxml import etree

from scrapy_ext.server.extraction.auto.page.page import Page

URL = "https://example.com/a"
START = "<html><head><title>t</title></head><body><p>a</p>"


@pytest.mark.parametrize(
    ("html", "body"),
    [
        (f"{START}</body></html><p>b</p>c", "<p>a</p><p>b</p>c"),
        (f"{START}</body>b<p>c</p></html>d<p>e</p>", "<p>a</p>b<p>c</p>d<p>e</p>"),
        (f"{START}</body></html><!-- --><html><body class=x>b<p>c</p></body></html>d", "<p>a</p>b<p>c</p>d"),
        (f"{START}</html><p>b</p></html><p>c</p></html>", "<p>a</p><p>b</p><p>c</p>"),
        ("<html></html><p>a</p>", "<p>a</p>"),
    ],
)
def test_what_follows_the_end_of_a_page_is_of_its_body(html: str, body: str) -> None:
    page = Page(html, URL)
    shown = page.tree.find("body")
    assert etree.tostring(shown).decode().strip() == f"<body>{body}</body>"
    assert page.tree.getroottree().getpath(shown) == "/html/body"
    assert set(shown.iter()) < set(page.elements)


def test_the_texts_of_an_element_come_in_their_order_from_the_outline() -> None:
    page = Page("<p>a<b>b<i>c</i>d<u><s>e</s></u>f</b>g<br>h</p>i", URL)
    paragraph = page.tree.find(".//p")
    assert list(page.outline.texts_in(page.order[paragraph])) == list("abcdefgh") == list(paragraph.itertext())


def test_markup_and_metadata_after_the_end_of_a_page_count() -> None:
    page = Page(
        f"""{START}</body></html><meta name="author" content="Ann"><link rel="canonical" href="/b">
        <script type="application/ld+json">{{"@type": "Product", "name": "Lamp"}}</script>""",
        URL,
    )
    assert page.meta("author") == "Ann"
    assert page.canonical_url == "https://example.com/b"
    assert [thing.text("name") for thing in page.markup.things("Product")] == ["Lamp"]


def test_a_page_of_frames_has_no_body() -> None:
    assert Page("<frameset><frame src=x></frameset>", URL).tree.find("body") is None
