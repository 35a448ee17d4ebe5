"""Small product pages of many shop builders, languages and kinds of sale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.server.extraction.auto import extract

PAGES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "shops.toml").read_text("utf-8"))["page"]


def value_of(item: dict[str, Any], field: str) -> Any:
    if field == "variants":
        return [each.get("size") or each.get("color") for each in item.get(field, ())] or ""
    if field == "brand":
        return item.get(field, {}).get("name", "")
    if field == "rating":
        return item.get("aggregateRating", {}).get("ratingValue", "")
    return item.get(field, "")


@pytest.mark.parametrize("page", PAGES, ids=[page["name"] for page in PAGES])
def test_the_values_of_a_small_shop_are_right(page: dict[str, Any]) -> None:
    item = extract("product", page["html"], "https://shop.example/p/x")
    assert {field: value_of(item, field) for field in page["right"]} == page["right"]
