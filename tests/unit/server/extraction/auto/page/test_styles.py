"""Extraction with the computed styles of a page that was loaded in the browser."""

from __future__ import annotations

from typing import Any

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.page.page import Page

URL = "https://shop.example.com/lamp"
WORDS = '<p data-look="0 2000 90 20 14 400 0">words</p>' * 5
TITLE = "<head><title>Lamp</title></head>"


def look(y: int = 100, letters: int = 14, flags: int = 0) -> str:
    return f'data-look="10 {y} 200 {2 * letters} {letters} 400 {flags}"'


HEADING = f"<h1 {look(80, 30)}>Lamp</h1>"


def product(body: str, *, styles: bool = True) -> dict[str, Any]:
    return extract("product", f"<html data-look=styled>{TITLE}<body>{body}{WORDS}</body></html>", URL, styles=styles)


def test_a_price_that_is_struck_out_by_a_style_is_the_former_one() -> None:
    html = f"{HEADING}<p><b {look(120, 14, 1)}>$79.00</b></p><p>now</p><p class=price><i {look(140)}>$59.90</i></p>"
    item = product(html)
    assert (item["price"], item["regularPrice"]) == ("59.90", "79.00")


def test_of_prices_alike_the_one_in_large_letters_is_the_products() -> None:
    small, large = f"<div class=price {look(300)}>$12.00</div>", f"<div class=price {look(300, 28)}>$59.90</div>"
    assert product(HEADING + small + "<p>and</p>" + large)["price"] == "59.90"
    assert product(HEADING + small + "<p>and</p>" + large, styles=False)["price"] == "12.00"


def test_words_that_are_hidden_by_a_style_say_nothing_of_the_product() -> None:
    html = f'{HEADING}<p class="price" {look(120)}>$59.90</p><p class="stock" {look(0, 14, 2)}>Sold out</p>'
    assert product(html)["availability"] == "InStock"
    assert product(html, styles=False)["availability"] == "OutOfStock"


def test_of_images_that_nothing_names_the_large_one_at_the_heading_is_the_main_one() -> None:
    html = f"""
    <img src="/sign.png" data-look="0 0 60 60 14 400 0"><img src="/banner.jpg" data-look="0 3000 1200 900 14 400 0">
    {HEADING}<img src="/lamp.jpg" data-look="10 150 600 600 14 400 0">
    <img src="/x.jpg" data-look="10 150 600 600 14 400 2">
    """
    assert product(html)["mainImage"] == {"url": "https://shop.example.com/lamp.jpg"}
    assert "mainImage" not in product(html, styles=False)


def test_looks_that_a_page_invents_or_garbles_are_harmless() -> None:
    for value in ("", "x", "1 2 3", "9" * 5000, "1 2 3 4 5 6 7", "-1 -1 -1 -1 -1 -1 -1", "\u0661 2 3 4 5 6 1"):
        html = f'{HEADING}<p class="price" data-look="{value}">$59.90</p>'
        assert product(html)["price"] == "59.90", value


def test_looks_are_in_nothing_that_is_handed_out() -> None:
    html = f"""{HEADING}<div class="description" {look()}><p {look()}>A lamp for long evenings, with three levels
    of light, a wooden foot and a cord of two metres.</p></div>"""
    item = product(html)
    assert "long evenings" in item["descriptionHtml"]
    assert "data-look" not in str(item)
    page = Page(html, URL, styles=True)
    assert not page.tree.xpath("//@data-look")
