"""``product``: price, sku, availability and brand against the labels."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from data import page, timed
from scores import count, median_ms, scored

PRODUCT_FIELDS = ("price", "sku", "availability", "brand")


def measure_product(folder: Path) -> dict[str, Any]:
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    times = []
    for name, label in sorted(labels.items()):
        item, spent = timed("product", page(folder, name), label["url"])
        times.append(spent)
        for field in PRODUCT_FIELDS:
            true = {comparable(field, value) for value in label.get(field, ())}
            count(counts[field], true, comparable(field, value_of(item, field)))
    scores = {field: scored(counts[field]) for field in PRODUCT_FIELDS}
    return {"kind": "product", "pages": len(labels), **scores, "ms": median_ms(times)}


def value_of(item: dict[str, Any], field: str) -> str | None:
    value = item.get(field)
    return value["name"] if isinstance(value, dict) else value


def comparable(field: str, value: str | None) -> object:
    if value is None:
        return None
    if field == "price":
        try:
            return Decimal(value.strip())
        except InvalidOperation:
            return value
    return value.strip().casefold() if field == "brand" else value.strip()
