"""Names and sentences that only a style sheet parts from what is behind them."""

from __future__ import annotations

import re

import pytest

from scrapy_ext.server.extraction.auto.page.page import Page


def text_of(html: str) -> str:
    body = Page(f"<body>{html}</body>", "https://example.com/a").tree.find("body")
    return "".join(body.itertext())


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<li><strong>Fast delivery</strong>We send it today", "Fast delivery We send it today"),
        ("<em class=title>Ada's rule</em>Never sail alone", "Ada's rule Never sail alone"),
        ("<b>Bo Lind</b><span>Reviewed in May</span>", "Bo Lind Reviewed in May"),
        ("It is signed.<em>Signature</em>The owner signs", "It is signed. Signature The owner signs"),
        ("<p>It ends.<b>Name</b>There are three</p>", "It ends. Name There are three"),
        ("<i>Schnelle Lieferung</i>Über Nacht", "Schnelle Lieferung Über Nacht"),
    ],
)
def test_names_are_parted_from_the_text_behind_them(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    "html",
    [
        "<b>Java</b>Script is a language",
        "un<em>believable</em>Things",
        "<b>Open source</b>s and more",
        "<span>O</span>nce upon a time",
        "<b>Windows NT</b>X Edition",
        "<b>Two words</b>, and more",
        "<b>Two words</b> More",
        "<b>Two words </b>More",
        "<strong>东京 大阪</strong>京都",
        "<b>Apple TV</b>App",
        f"<b>{'word ' * 60}end</b>More",
        "It is 5.<b>Mai</b> 2024",
    ],
)
def test_parts_of_words_and_texts_with_spaces_stay_as_they_are(html: str) -> None:
    assert text_of(html) == re.sub("<[^>]*>", "", html)
