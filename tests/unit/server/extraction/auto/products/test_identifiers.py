"""Global numbers of products."""

from __future__ import annotations

import pytest
from stdnum import ean

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
