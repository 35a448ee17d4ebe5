"""Probabilities of items: bounds, order, and the signs that they are of (extraction-api.rst, Probability)."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract, probability
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.signs import page_signs

URL = "https://www.example.org/"
PROSE = "<p>" + "The house by the river has stood empty for years, and nobody in the village says why. " * 12 + "</p>"
ARTICLE = f"""<html><head><meta property="og:type" content="article"><meta name="author" content="Ann Lee">
<meta property="og:image" content="/house.jpg"><script type="application/ld+json">{{"@type": "NewsArticle",
"headline": "The house by the river", "author": {{"name": "Ann Lee"}}, "datePublished": "2024-05-06"}}</script></head>
<body><article><h1>The house by the river</h1>{PROSE}</article></body></html>"""
OFFER = """<html><body><h1>Lamp One</h1><img src="/lamp.jpg"><script type="application/ld+json">{"@type": "Product",
"name": "Lamp One", "sku": "L1", "image": "/lamp.jpg", "brand": {"name": "Acme"}, "offers": {"price": "12.99",
"priceCurrency": "EUR"}}</script></body></html>"""
CONTACT = "<html><body><h1>Contact</h1><p>Call us, or write to us.</p></body></html>"
#: Pages without anything in them, and a page whose parts are all empty.
EMPTY = ("", "<html></html>", "<html><body><article><h1></h1><p> </p></article></body></html>")


def sure_of(kind: str, html: str, url: str = URL) -> float:
    found = extract(kind, html, url)["metadata"]["probability"]
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("html", EMPTY)
@pytest.mark.parametrize("kind", ["product", "article", "pageContent"])
def test_an_empty_item_has_the_least_probability(kind: str, html: str) -> None:
    assert sure_of(kind, html, f"{URL}shop/products/blog/1") == probability.LEAST


def test_pages_are_in_the_order_of_their_signs() -> None:
    assert sure_of("article", ARTICLE, f"{URL}news/1") > 0.9
    assert sure_of("article", f"<h1>The house</h1>{PROSE}", URL) < 0.2
    assert sure_of("article", CONTACT) < 0.1
    assert sure_of("product", OFFER, f"{URL}products/lamp") > 0.9
    assert sure_of("product", ARTICLE) < 0.1


def listed(kind: str, entries: int, url: str = URL, before: str = "") -> float:
    shelf = "".join(
        f'<li class="product"><a href="/p/{n}"><img src="{n}.jpg"><h3>Lamp {n}</h3></a>{n},99 EUR</li>'
        for n in range(1, entries + 1)
    )
    news = "".join(
        f'<article><h2><a href="/news/{n}">The house by the river is sold, part {n}</a></h2><time>2024-05-01</time>'
        "<p>Nobody in the village says why it has stood empty.</p></article>"
        for n in range(1, entries + 1)
    )
    body = f"<ul>{shelf}</ul>" if kind == "products" else news
    found = extract(f"{kind[:-1]}List", f"<html>{before}<body><main>{body}</main></body></html>", url)[kind]
    (sure,) = {entry["metadata"]["probability"] for entry in found}
    assert isinstance(sure, float)
    return sure


def short(
    markup: str = "", text: str = "The bridge is closed on Monday, and a ferry takes all who want to cross."
) -> float:
    return sure_of(
        "article", f"<html><head>{markup}</head><body><article><h1>Bridge</h1><p>{text}</p></article></body>"
    )


def test_a_short_text_is_an_article_where_structured_data_says_so() -> None:
    data = ARTICLE[ARTICLE.index("<script") : ARTICLE.index("</head>")].replace("The house by the river", "Bridge")

    assert short() == 0.05
    assert short(data) > 0.8
    assert short(data, "Accept our cookies.") == 0.05


def test_a_sign_of_a_dense_script_counts_as_several_letters() -> None:
    text = "市政府将关闭老桥三个月，以修复被洪水损坏的桥墩，施工期间所有车辆必须绕行新桥。" * 4

    assert len(text) < 200
    assert short(text=text) != 0.05


@pytest.mark.parametrize("kind", ["products", "articles"])
def test_a_long_list_is_surer_than_a_few_entries_which_other_pages_have_beside_their_text(kind: str) -> None:
    assert listed(kind, 4) < listed(kind, 12) < listed(kind, 60)
    assert listed(kind, 60) > 0.8


def test_the_page_of_a_product_is_no_list_of_those_that_it_shows_beside_it() -> None:
    offer = OFFER[OFFER.index("<script") : OFFER.index("</body>")]
    assert listed("products", 12, f"{URL}products/lamp", f"<head>{offer}</head>") < 0.2
    assert listed("products", 12) > 0.7


def test_the_url_counts() -> None:
    forum, news = (sure_of("article", ARTICLE, f"{URL}{path}/1") for path in ("forum", "news"))
    assert forum < news


def test_no_value_is_surer_than_the_labelled_pages_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(CONTACT, URL)
    for weight, value in ((50.0, probability.MOST), (-50.0, probability.LEAST), (1e9, probability.MOST)):
        monkeypatch.setattr(
            probability, "weights_of_kinds", lambda weight=weight: {"product": {"": 0.0, "mark": weight}}
        )
        assert probability.of("product", page, {"mark": 1.0}) == value


def test_the_weights_are_of_signs_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    used: dict[str, set[str]] = {}

    def record(kind: str, page: Page, found: dict[str, Any]) -> float:
        used[kind] = {"", *page_signs(page), *found}
        return 0.5

    monkeypatch.setattr(probability, "of", record)
    thread = "".join(f'<div class="post"><b class="author">A{n}</b><p>Text of post {n}.</p></div>' for n in range(3))
    for kind, html in (
        ("product", OFFER), ("article", ARTICLE), ("pageContent", ARTICLE), ("forumThread", thread),
    ):  # fmt: skip
        extract(kind, f"<html><body><main>{html}</main></body></html>", f"{URL}forum/thread/1")
    listed("products", 6)
    listed("articles", 6)
    weights = probability.weights_of_kinds()
    assert used.keys() == weights.keys()
    for kind, signs in weights.items():
        assert signs.keys() <= used[kind]
