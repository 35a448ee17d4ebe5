"""Formats of numbers in the pages."""

from __future__ import annotations

import pytest

from scrapy_ext.server.ui import shapes


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (4_548_190, "4\u202f548\u202f190"),
        (0.6515475329997571, "0.652"),
        (151.81857039599709, "152"),
        (12.0, "12"),
        (12.345, "12.3"),
        (-0.05, "-0.05"),
        (0.0, "0"),
        (0.00000123456, "0.00000123"),
        (1e-6, "0.000001"),
        (9.99e-7, "9.99 × 10⁻⁷"),
        (1e-12, "1 × 10⁻¹²"),
        (-1.5e-12, "-1.5 × 10⁻¹²"),
        (5e-324, "4.94 × 10⁻³²⁴"),
        (4.54819e6, "4\u202f548\u202f190"),
        (float("nan"), "–"),
    ],
)
def test_a_quantity_has_three_digits_and_is_0_only_when_nothing_is_there(value: float, shown: str) -> None:
    assert shapes.quantity(value) == shown


def test_a_difference_has_its_sign() -> None:
    assert [shapes.difference(value) for value in (4_548_190, -18, 12.6515475, 0, -0.0, 1e-12)] == [
        "+4\u202f548\u202f190",
        "−18",
        "+12.7",
        "",
        "",
        "+1 × 10⁻¹²",
    ]


def test_a_change_is_in_per_cent_whatever_its_size() -> None:
    pairs = [(10, 10), (0, 5), (10, 300), (100, 97), (1000, 1001), (3, 10)]
    assert [shapes.change(*pair) for pair in pairs] == [
        "",
        "new",
        "+2\u202f900 %",
        "−3 %",
        "+under 1 %",
        "+233 %",
    ]


def test_no_share_of_some_is_0_and_none_without_all_is_100() -> None:
    assert [shapes.percent(share) for share in (0, 0.2, 50.4, 99.7, 100)] == [
        "0 %",
        "under 1 %",
        "50 %",
        "over 99 %",
        "100 %",
    ]


def test_an_address_becomes_a_link_unless_it_makes_a_page_large() -> None:
    address = "HTTPS://shop.example/?" + "a" * 8_170
    assert shapes.web_address(address) == address
    assert shapes.web_address(address + "a") is None
    assert shapes.web_address("javascript://http://a") is None
    assert shapes.web_address(None) is None
