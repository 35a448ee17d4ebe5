"""Content of product pages of few words: a heading, a price, a paragraph, a specification and a question."""

from __future__ import annotations

import pytest

from scrapy_ext.markdown import markdown_of
from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-chair"
PAGE = """<html lang=en><head><title>Oak chair – Works</title></head><body>
<header><a href=/>Works</a><nav><a href=/chairs>Chairs</a><a href=/tables>Tables</a></nav></header>{}
<footer><a href=/terms>Terms</a> © Works</footer></body></html>"""
PRODUCT = """<h1>Oak chair</h1><p class=price>€ 89,00</p><p>A chair of solid oak for the kitchen.</p>
<button>Add to cart</button>"""
ANSWER = "It ships flat in one box, and two people build it in an hour."
SPECIFICATIONS = [
    "<table><tr><th>Width</th><td>45 cm</td></tr><tr><th>Height</th><td>90 cm</td></tr></table>",
    "<dl><dt>Width</dt><dd>45 cm</dd><dt>Height</dt><dd>90 cm</dd></dl>",
    "<ul><li>Width: 45 cm</li><li>Height: 90 cm</li><li>Depth: 47 cm</li></ul>",
    "<h2>Specifications</h2><table><tr><td>Width</td><td>45 cm</td></tr><tr><td>Height</td><td>90 cm</td></tr></table>",
]
QUESTIONS = [
    "<h3>Is it hard to build?</h3><p>{}</p>",
    "<div class=faq><h2>Frequently asked questions</h2><details><summary>Is it hard to build?</summary><p>{}</p>"
    "</details></div>",
    "<dl><dt>Is it hard to build?</dt><dd>{}</dd></dl>",
    "<div class=accordion><button aria-expanded=false>Is it hard to build?</button><div><p>{}</p></div></div>",
    "<button>Is it hard to build?</button><div>{}</div>",
]
PARTS = ["Oak chair", "89,00", "A chair of solid oak", "Width", "45 cm", "Height", "hard to build?", ANSWER]


@pytest.mark.parametrize("frame", ["<main>{}</main>", "<div class=product>{}</div>", "{}"])
@pytest.mark.parametrize("specification", SPECIFICATIONS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_content_has_the_specification_and_the_question(frame: str, specification: str, question: str) -> None:
    html = PAGE.format(frame.format(PRODUCT + specification + question.format(ANSWER)))
    text = extract("pageContent", html, URL)["itemMain"]
    assert [part for part in PARTS if part not in text] == []
    assert [part for part in ("Chairs", "Tables", "Terms") if part in text] == []
    if not question.startswith("<button"):
        assert [part for part in PARTS if part not in markdown_of(html, URL)] == []


def test_hours_and_delivery_are_no_specification() -> None:
    more = "<h2>Delivery</h2><table><tr><td>Standard</td><td>3 days</td></tr><tr><td>Express</td><td>1 day</td></tr>"
    text = extract("pageContent", PAGE.format(f"<main>{PRODUCT}{more}</table></main>"), URL)["itemMain"]
    assert "A chair of solid oak" in text
    assert "89,00" in text


def test_the_price_of_a_small_page_is_content_behind_a_former_one() -> None:
    prices = "<p class=price><del>1.500,00&nbsp;€</del> <ins>1.200,00&nbsp;€</ins></p>"
    tab = "<div class=woocommerce-tabs><h2>Description</h2><p>Oiled with linseed oil and made by two joiners.</p></div>"
    html = PAGE.format(f"<div class=product><h1>Oak chair</h1>{prices}<button>Add to cart</button>{tab}</div>")
    assert "1.200,00" in extract("pageContent", html, URL)["itemMain"]
