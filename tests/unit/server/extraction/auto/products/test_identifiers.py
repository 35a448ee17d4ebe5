"""Numbers of products: global ones, and those of shops."""

from __future__ import annotations

import pytest
from stdnum import ean

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.products.identifiers import gtin_of


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("4006381333931", "gtin13", "4006381333931"),
        ("EAN13: 4006381333931", "gtin13", "4006381333931"),
        ("GTIN-8 96385074", "gtin8", "96385074"),
        ("gtin14:10614141000415", "gtin14", "10614141000415"),
        ("0 99482 46799 9", "upc", "099482467999"),
        ("ISBN 978-3-16-148410-0", "isbn13", "9783161484100"),
        ("ISBN10 0306406152", "isbn10", "0306406152"),
        ("0-8044-2957-X", "isbn10", "080442957X"),
        ("ISSN 0317-8471", "issn", "03178471"),
        ("979-0-2306-7118-7", "ismn", "9790230671187"),
    ],
)
def test_a_number_with_a_valid_check_digit_is_named(text: str, kind: str, value: str) -> None:
    found = gtin_of(text)
    assert found is not None
    assert (found.type, found.value) == (kind, value)


@pytest.mark.parametrize("text", ["", "4006381333930", "TSF8UP-R407-26A44", "316148410", "12345", "no number"])
def test_other_codes_are_none(text: str) -> None:
    assert gtin_of(text) is None


@pytest.mark.parametrize(
    "text",
    ["2012345678903", "0212345000007", "212345000007", "412345678903", "9812345678902", "9912345678909", "20123451"],
)
def test_numbers_that_shops_and_companies_assign_themselves_are_none(text: str) -> None:
    assert ean.is_valid(text)
    assert gtin_of(text) is None


@pytest.mark.parametrize(
    ("line", "sku"),
    [
        ("SKU: A1", "A1"),
        ("Item no. 7", "7"),
        ("Réf : 12B", "12B"),
        ("Réf. 302", "302"),
        ("(Cód. 123)", "123"),
        ("Арт. 991", "991"),
        ("品番：A7", "A7"),
        ("Symbol: AB-12", "AB-12"),
        ("Artikel 100.234.55", "100.234.55"),
        ("كود المنتج: LM-45", "LM-45"),
        ("رقم المنتج: 45", "45"),
        ("Artikel 3", None),
        ("Artikel: 12", None),
        ("Item 3 of 5", None),
        ("SKU 3 for 2", None),
        ("Číslo: 42", None),
        ("SKU: 0", None),
        ("SKU: XL", None),
    ],
)
def test_a_short_code_counts_behind_a_label_and_a_sign(line: str, sku: str | None) -> None:
    page = f"<title>Lamp</title><main><h1>Lamp</h1><p>{line}</p><p>$20.00</p></main>"
    assert extract("product", page, "https://shop.example.com/lamp").get("sku") == sku


def test_a_short_code_in_a_row_is_the_shops_and_a_size_in_a_row_is_not() -> None:
    def sku(label: str, value: str) -> str | None:
        row = f"<table><tr><th>{label}</th><td>{value}</td></tr></table>"
        return extract("product", f"<main><h1>Lamp</h1>{row}</main>", "https://shop.example.com/lamp").get("sku")

    assert sku("SKU", "9B") == "9B"
    assert sku("Číslo", "42") is None
    assert sku("Artikel", "12") is None
