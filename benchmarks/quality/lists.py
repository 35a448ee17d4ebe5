"""``productList`` and ``articleList``: frequency of lists on pages of their type, and correctness of their entries.

The truth is what pages say of the things they list (JSON-LD, microdata), which is taken off before; such pages list
some of what they show as often as all of it, so what is found beside it counts as wrong only where the page says of
at least as many things as it shows entries.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from data import page, timed
from scores import count, mean, median_ms, scored, words

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.articles.article import ARTICLE_TYPES
from scrapy_ext.server.extraction.auto.lists.listing import address_of_thing, things_of
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.urls import bare
from scrapy_ext.server.extraction.auto.products.offers import PRODUCT_TYPES

TYPES = {"productList": PRODUCT_TYPES, "articleList": ARTICLE_TYPES}
FEWEST_STATED = 3
_JSON = re.compile(r"<script[^<>]*application/ld\+json[^<>]*>.*?</script\s*>", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(
    r"""\s(?:itemscope|itemtype|itemprop|itemid|typeof|property|vocab)(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+))?(?=[^<>]*>)""",
    re.IGNORECASE,
)


def measure_list(folder: Path, kind: str, member: str, name: str, labels: dict[str, Any]) -> dict[str, Any]:
    found, shares, times = 0, [], []
    counts: dict[str, Counter[str]] = {"items": Counter(), name: Counter(), "price": Counter()}
    stated = 0
    for page_name, label in sorted(labels.items()):
        html = page(folder, page_name)
        item, spent = timed(kind, html, label["url"])
        times.append(spent)
        items = item.get(member, ())
        found += bool(items)
        content = " ".join(words(label["main_content"]))
        if items and content:
            shares.append(statistics.fmean(" ".join(words(item.get(name))) in content for item in items))
        truth = said(kind, html, label["url"])
        if len(truth) >= FEWEST_STATED:
            stated += 1
            blind = extract(kind, without_markup(html), label["url"]).get(member, ())
            compare(counts, name, truth, {bare(entry["url"]): entry for entry in blind})
    return {
        "kind": kind,
        "pages": len(labels),
        "with_a_list": found,
        "names_in_labelled_content": {"mean": mean(shares), "median": round(statistics.median(shares), 4)},
        "pages_that_say_it": stated,
        **{field: {**scored(counter), **counter} for field, counter in counts.items() if counter},
        "ms": median_ms(times),
    }


def said(kind: str, html: str, url: str) -> dict[str, dict[str, str | None]]:
    """Return the markup's description of the listed things, by URL."""
    read = Page(html, url)
    found = {}
    for thing in things_of(read, *TYPES[kind]).values():
        address = address_of_thing(read, thing)
        offers = [offer for offer in thing.things("offers") if offer.text("price", "lowPrice")]
        price = offers[0].text("price", "lowPrice") if offers else None
        if address:
            found[bare(address)] = {"name": thing.text("name", "headline"), "price": price}
    return found


def without_markup(html: str) -> str:
    return _MARKUP.sub(" ", _JSON.sub("", html))


def compare(counts: dict[str, Counter[str]], name: str, truth: dict[str, Any], found: dict[str, Any]) -> None:
    both = truth.keys() & found.keys()
    counts["items"]["right"] += len(both)
    counts["items"]["missing"] += len(truth.keys() - both)
    if len(truth) >= len(found):
        counts["items"]["wrong"] += len(found.keys() - both)
    for address in both:
        said_name, said_price = truth[address]["name"], _number(truth[address]["price"])
        entry = found[address]
        if said_name:
            count(counts[name], {words(said_name)}, words(entry[name]) if entry.get(name) else None)
        if said_price is not None:
            count(counts["price"], {said_price}, _number(entry.get("price")))


def _number(text: str | None) -> float | None:
    try:
        return round(float(text), 2) if text else None
    except ValueError:
        return None
