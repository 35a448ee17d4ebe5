"""Marks of the rules for articles on the blocks of a page."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks
from scrapy_ext.server.extraction.auto.page.page import Page

PROSE = "The rope is laid from three strands of polyester, does not float, and keeps its strength when it is wet."


def marked(body: str) -> tuple[ArticleMarks, dict[str, int]]:
    """The marks of a page, and the places of its blocks by the first word of their text."""
    source = Page(f"<html><head><title>Rope</title></head><body>{body}</body></html>", "https://www.example.org/rope")
    blocks = Blocks(source)
    return ArticleMarks(source, blocks), {block.text.split()[0]: at for at, block in enumerate(blocks)}


def test_paragraphs_are_of_the_article_and_what_is_around_them_is_not() -> None:
    prose = "".join(f"<p>Step{n} {PROSE} <a href='/x'>And more.</a></p>" for n in range(5))
    marks, places = marked(
        f"""<nav><ul><li><a href="/a">Sails</a></li></ul></nav><article><h1>Rope</h1>{prose}
        <div class="newsletter-signup"><p>Subscribe to our newsletter and get ten per cent off your order.</p></div>
        </article><footer><p>Copyright 2024</p></footer>"""
    )
    assert marks.is_marked
    assert [marks.shares[places[f"Step{n}"]] for n in range(5)] == [1.0] * 5
    others = [places[word] for word in ("Sails", "Subscribe", "Copyright")]
    assert [marks.shares[at] for at in others] == [0.0] * 3
    assert [marks.inside[at] for at in others] == [False, True, False]
    assert [marks.noise[at] for at in others] == [True, True, True]
    assert not marks.noise[places["Step0"]]


def test_a_page_without_a_named_article_has_its_box_of_prose() -> None:
    marks, places = marked(f"<div>{''.join(f'<p>Step{n} {PROSE}</p>' for n in range(3))}</div>")
    assert not marks.is_marked
    assert marks.inside[places["Step1"]]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "text alone",
        "<p>•</p>",
        "<div>" * 300 + "deep",
        "<a href=x>" * 200 + "linked",
        "<article></article>" * 500 + "<p>word</p>",
        "<nav>" + PROSE * 50,
        "<p>one<!-- two --><script>3</script><br>four<p hidden>five",
        "\ufdd0<p>\ufdd0</p>word",
    ],
)
def test_hostile_and_empty_pages_have_a_mark_for_each_block(body: str) -> None:
    source = Page(body, "https://www.example.org/")
    blocks = Blocks(source)
    marks = ArticleMarks(source, blocks)
    assert len(marks.shares) == len(marks.inside) == len(marks.noise) == len(blocks)
    assert all(0.0 <= share <= 1.0 for share in marks.shares)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("<span>4</span><span class='sr-only'>Rated 4 stars out of 5</span> (508)", "4 (508)"),
        ("<span class='visually-hidden'>Regular price</span> <s>$ 20</s>", "$ 20"),
        ("<a><i></i><span class='sr-only'>Three <b>of</b> five</span></a>", "Three of five"),
        ("<span class='screen-reader-text'>Original price was 20.</span>", "Original price was 20."),
        ("<span class='sr-only sm:not-sr-only'>Sea</span> rope", "Sea rope"),
        ("<a id='screen-reader-text'>Screen</a> readers", "Screen readers"),
        (
            "<del aria-hidden=true>30 €</del> <span class=screen-reader-text>Original price was: 30 €.</span> <ins "
            "aria-hidden=true>20 €</ins> <span class=screen-reader-text>Current price is: 20 €.</span> Sale",
            "Original price was: 30 €. Current price is: 20 €. Sale",
        ),
        ("<ins aria-hidden=true>20 €</ins> <span class=screen-reader-text>Reduced.</span> Sale", "Sale"),
        ("<b aria-hidden=true>Map of Oslo</b> <i class=screen-reader-text>Map of Oslo</i> Oslo", "Oslo"),
    ],
)
def test_text_for_screen_readers_is_left_out_beside_text_for_all(line: str, text: str) -> None:
    source = Page(f"<body><h1>Ropes</h1><p>{line}</p></body>", "https://www.example.org/ropes")
    assert [block.text for block in Blocks(source)] == ["Ropes", text]
