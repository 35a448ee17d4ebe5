"""Ratings of the seller of a product beside those of the product."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://shop.example/p/oak-chair"
FRAME = """<html lang=en><title>Oak chair – Works</title><header><a href=/>Works</a></header><main>
<h1>Oak chair</h1><p class=price>€ 89,00</p>{}<button>Add to cart</button></main>"""
STARS = "<p>★ 4.9 (1,234)</p>"


def rating(html: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = extract("product", html, URL).get("aggregateRating")
    return found


@pytest.mark.parametrize(
    "before",
    [
        "<p>Sold by <a href=/s/acme>Acme Ltd</a></p>",
        "<p>Dispatched from and sold by Acme.</p>",
        "<p>Sold by Acme</p><a href=/s/acme>Visit the store</a>",
        "<p>Shop: Acme</p>",
        "<h3>Seller</h3><p>Acme Ltd</p>",
        "<dl><dt>Seller</dt><dd>Acme Ltd</dd></dl>",
        "<table><tr><td>Sold by</td><td>Acme Ltd</td></tr></table>",
        "<p>Verkauf durch Holzwelt</p>",
        "<p>Verkäufer: Holzwelt</p>",
        "<p>Vendu par Bois SA</p>",
        "<p>Vendido por Maderas</p>",
        "<p>Sprzedawca: Drewno</p>",
        "<p>Продавец: Дерево</p>",
        "<p>販売元：木の店</p>",
        "<p>판매자: 나무</p>",
        "<p>Satıcı: Ahşap</p>",
        "<p>Säljs av Trä AB</p>",
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        STARS,
        "<p>4.9 out of 5 (1,234 ratings)</p>",
        "<div class=rating>★ 4.9 (1,234)</div>",
        "<span aria-label='4.9 out of 5 stars'></span>",
    ],
)
def test_a_rating_below_a_line_that_names_the_seller_is_his(before: str, line: str) -> None:
    assert rating(FRAME.format(before + line)) is None


def test_a_rating_in_a_part_that_is_named_after_the_seller_is_his() -> None:
    assert rating(FRAME.format(f"<div class=seller><a href=/s/acme>Acme</a>{STARS}</div>")) is None


@pytest.mark.parametrize(
    "before",
    [
        "",
        "<p>by Acme</p>",
        "<p>Best seller</p>",
        "<p>#1 Best Seller in Chairs</p>",
        "<p>Sold out</p>",
        "<p>1,000 sold</p>",
        "<p>Sold by the metre</p>",
        "<p>Shop the look</p>",
        "<p>Store</p><p>€ 79,00</p>",
        "<p>Verkauf ab 1. Mai</p>",
        "<p>Продаётся поштучно</p>",
        "<p>Sprzedajemy od 1990</p>",
        "<p>Sold by Acme</p><h2>Ratings</h2>",
        "<p>Sold by Acme</p><p>Brand: Oakly</p>",
        "<p>Store pickup: free</p>",
        "<p>Seller of the year 2025</p>",
        "<p>Anbieter wechseln</p>",
    ],
)
def test_a_rating_below_another_line_is_that_of_the_product(before: str) -> None:
    assert rating(FRAME.format(before + STARS)) == {"ratingValue": 4.9, "reviewCount": 1234}


def test_a_link_to_the_shop_above_the_heading_names_no_seller() -> None:
    page = f"<title>Oak chair</title><main><a href=/shop>Shop</a><h1>Oak chair</h1>{STARS}<p>€ 89,00</p></main>"
    assert rating(page) == {"ratingValue": 4.9, "reviewCount": 1234}


def test_of_the_ratings_of_product_and_seller_that_of_the_product_counts() -> None:
    seller = f"<p>Sold by Acme</p>{STARS}"
    own = "<p>★ 4.7 (12)</p>"
    for lines in (own + seller, seller + own):
        assert rating(FRAME.format(lines)) == {"ratingValue": 4.7, "reviewCount": 12}


@pytest.mark.parametrize(
    "line",
    [
        "<div class=product-rating>★ 4.7 (12 reviews)</div>",
        "<a href='#reviews'>★ 4.7 (12 reviews)</a>",
        "<p>★ 4.7 <a href='#reviews'>(12 reviews)</a></p>",
        "<p>★ 4.7 (12)</p><h2>Reviews (12)</h2>",
        "<p>★ 4.7 (12)</p><h2>12 Bewertungen</h2>",
    ],
)
def test_a_rating_below_the_seller_with_a_sign_of_the_product_is_that_of_the_product(line: str) -> None:
    assert rating(FRAME.format(f"<p>Sold by Acme</p>{line}")) == {"ratingValue": 4.7, "reviewCount": 12}


@pytest.mark.parametrize(
    "line",
    [
        "<p>★ 4.7 (12)</p><h2>Reviews (9)</h2>",
        "<a href='#seller'>★ 4.7 (12 reviews)</a>",
        "<a href=/s/acme/reviews>★ 4.7 (12 reviews)</a>",
    ],
)
def test_without_such_a_sign_it_is_his(line: str) -> None:
    assert rating(FRAME.format(f"<p>Sold by Acme</p>{line}")) is None
