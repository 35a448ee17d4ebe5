"""Labels of shops in many languages are read as people read them."""

from __future__ import annotations

import pytest

from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.server.extraction.auto.fields.price_notation import code_of, place_of
from scrapy_ext.server.extraction.auto.fields.prices import prices_in
from tests.outside.cases import FOLDER

LABELS: list[tuple[str, ...]] = [
    tuple(label) for label in tomllib.loads((FOLDER / "prices.toml").read_text("utf-8"))["labels"]
]


@pytest.mark.parametrize(("text", "language", "country", "price", "currency", "regular"), LABELS)
def test_a_label_is_its_price(text: str, language: str, country: str, price: str, currency: str, regular: str) -> None:
    place = place_of(f"https://shop.example.{country}/mug", language)
    prices = prices_in(text, place)
    assert (prices.price.amount if prices.price else "") == price
    assert (prices.regular.amount if prices.regular else "") == regular
    assert (code_of(prices.price.currency_raw, place) or "" if prices.price else "") == currency


def test_the_labels_are_of_many_languages_and_currencies() -> None:
    assert len(LABELS) >= 200
    assert len({label[1] for label in LABELS}) >= 25
    assert len({label[4] for label in LABELS} - {""}) >= 30
