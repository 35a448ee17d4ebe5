"""The bound of the values in a JSON text holds whatever its strings hold."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.json_decoder import values_in, weight

LONG = "a,b:[{" * 2000
VALUES = list(range(5000))


def number_of(value: Any) -> int:
    """Return the number of values and keys."""
    if isinstance(value, dict):
        return 1 + sum(1 + number_of(each) for each in value.values())
    if isinstance(value, list):
        return 1 + sum(map(number_of, value))
    return 1


@pytest.mark.parametrize(
    "value",
    [
        {"page": LONG, "values": VALUES},
        [VALUES, LONG, VALUES],
        ['"', VALUES, '"'],
        ["\\", VALUES, LONG, VALUES, '\\"'],
        [LONG, '"', VALUES, LONG],
        [LONG, LONG + '"', VALUES, '"' + LONG],
        ["\n", LONG, VALUES],
        [*[""] * 500, VALUES],
        "a" * 10_000,
    ],
    ids=range(9),
)
def test_no_value_is_left_out(value: Any) -> None:
    assert values_in(json.dumps(value).encode()) + 1 >= number_of(value)


def test_a_line_with_an_open_string_does_not_hide_the_values_of_the_next() -> None:
    text = b'["\n' + json.dumps(VALUES).encode() + b'\n["'

    assert values_in(text) >= len(VALUES)


def test_an_open_string_hides_no_values() -> None:
    text = json.dumps(VALUES).encode() + b',"' + LONG.encode()

    assert values_in(text) >= len(VALUES)


def test_a_page_counts_as_one_value() -> None:
    text = msgspec.json.encode({"url": "https://a.example", "httpResponseBody": LONG, "statusCode": 200})

    assert values_in(text) < 10
    assert weight(text) < 2 * len(text)
