"""``product``: fields against the labels, beside markup alone (extruct), and by rules alone (markup taken off).

The second line, ``productByRules``, is of pages that have no labels: what their markup says is the truth, and it is
taken off before, which shows the quality of the rules on pages that they were not tuned on.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from data import page, timed, type_of
from lxml import html as lxml_html
from scores import count, median_ms, scored

PRODUCT_FIELDS = ("price", "sku", "availability", "brand", "gtin", "mpn")
#: Pages judged by their own markup.
STATED_FIELDS = ("price", "sku", "availability", "brand")
_THOUSANDS = re.compile(r",(?=\d{3})")
_OF_PRODUCTS = re.compile(r"product:|og:(?:price|brand|avail)|brand|availability")

Counts = dict[str, Counter[str]]


def measure_product(folder: Path) -> dict[str, Any]:
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    own, peer, rules = (defaultdict[str, Counter[str]](Counter) for _ in range(3))
    times = []
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        item, spent = timed("product", html, label["url"])
        times.append((len(html), spent))
        compare(own, label, item, PRODUCT_FIELDS)
        compare(peer, label, of_markup_alone(html, label["url"]), PRODUCT_FIELDS)
        compare(rules, label, timed("product", without_markup(html), label["url"])[0], PRODUCT_FIELDS)
    middling = [spent for size, spent in times if 60_000 <= size <= 160_000]
    return {
        "kind": "product",
        "pages": len(labels),
        **table(own),
        "extruct": table(peer),
        "without_markup": table(rules),
        "ms": median_ms([spent for _, spent in times]),
        "ms_60_to_160_kb": median_ms(middling) if middling else None,
    }


def measure_product_by_rules(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts = defaultdict[str, Counter[str]](Counter)
    pages = 0
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        stated = of_markup_alone(html, label["url"])
        truth = {field: [stated[field]] for field in STATED_FIELDS if stated.get(field)}
        pages += bool(truth)
        item, _ = timed("product", without_markup(html), label["url"])
        compare(counts, truth, item, truth)
    return {"kind": "productByRules", "pages": pages, **table(counts)}


def products_of(labels: dict[str, Any]) -> dict[str, Any]:
    return {name: label for name, label in labels.items() if type_of(label) == "product"}


def compare(counts: Counts, label: dict[str, Any], item: dict[str, Any], fields: Iterable[str]) -> None:
    for field in fields:
        true = {comparable(field, value_of({field: value}, field)) for value in label.get(field, ())}
        count(counts[field], true, comparable(field, value_of(item, field)))


def table(counts: Counts) -> dict[str, Any]:
    return {
        field: {**scored(found), **{key: found[key] for key in ("right", "wrong", "missing")}}
        for field, found in counts.items()
    }


def value_of(item: dict[str, Any], field: str) -> str | None:
    value = item.get(field)
    if field == "gtin" and isinstance(value, list):
        value = value[0]["value"] if value else None
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


def without_markup(html: str) -> str:
    """Return a page without JSON-LD, microdata and ``<meta>`` elements about products."""
    tree = lxml_html.document_fromstring(html.encode("utf-8", "replace"), parser=lxml_html.HTMLParser(encoding="utf-8"))
    for node in tree.xpath('//script[contains(@type, "ld+json")]'):
        node.getparent().remove(node)
    for value in tree.xpath("//@itemprop|//@itemscope|//@itemtype"):
        del value.getparent().attrib[value.attrname]
    for node in tree.xpath("//meta[@property or @name]"):
        if _OF_PRODUCTS.match((node.get("property") or node.get("name")).lower()):
            node.getparent().remove(node)
    return str(lxml_html.tostring(tree, encoding="unicode"))


def of_markup_alone(html: str, url: str) -> dict[str, Any]:
    """Return the first product of a page's markup, as extruct reads it."""
    import extruct

    try:
        found = extruct.extract(
            html, base_url=url, syntaxes=["json-ld", "microdata", "opengraph"], errors="ignore", uniform=True
        )
    # extruct's parsers fail on some broken pages.
    except Exception:
        return {}
    things = [thing for syntax in ("json-ld", "microdata") for thing in _flat(found.get(syntax, []))]
    product = next((thing for thing in things if "Product" in _texts(thing.get("@type"))), {})
    offers = [offer for offer in _listed(product.get("offers")) if isinstance(offer, dict)]
    graph = next(iter(found.get("opengraph", [])), {})
    offer = offers[0] if offers else {}
    availability = _text(offer.get("availability")).rpartition("/")[2]
    price = _text(offer.get("price") or offer.get("lowPrice") or graph.get("product:price:amount"))
    item = {
        "price": _THOUSANDS.sub("", price),
        "sku": _text(product.get("sku")),
        "mpn": _text(product.get("mpn")),
        "brand": _text(product.get("brand")),
        "availability": availability if availability in {"InStock", "OutOfStock"} else "",
    }
    gtin = next(
        (_text(product[name]) for name in ("gtin13", "gtin12", "gtin14", "gtin8", "gtin") if name in product), ""
    )
    return {key: value for key, value in {**item, "gtin": [{"value": gtin}] if gtin else ""}.items() if value}


def _flat(things: list[Any]) -> Iterable[dict[str, Any]]:
    for thing in things:
        if isinstance(thing, dict):
            yield thing
            yield from _flat(_listed(thing.get("@graph")))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _texts(value: Any) -> list[str]:
    return [str(text) for text in _listed(value)]


def _text(value: Any) -> str:
    first = next(iter(_listed(value)), "")
    return _text(first.get("name")) if isinstance(first, dict) else str(first or "").strip()
