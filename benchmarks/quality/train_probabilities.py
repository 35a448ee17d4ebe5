"""Training of the probabilities of items, and their test on unseen sites.

``python benchmarks/quality/train_probabilities.py DATA_DIR`` prints of each kind how many of the pages with a value are
right, by bins of values, with the Brier score (the mean of the squared errors) and the calibration error (the mean
distance of the values of a bin from the share that is right), in a five-fold cross-validation with the pages of a site
kept together. With ``--write`` it trains on all pages and writes the weights into the package. Needs lightgbm, for the
models of ``pageContent`` that saw no page of a site (see ``requirements.txt``); same data make the same weights.

Right is an article or a product on a page of this type, a post on one of the type forum, an entry of a list on a page
that is such a list, and a ``pageContent`` whose text has a word F1 of at least 0.5. The types are those of the labels;
which pages are lists of articles or of products, the types do not say: see :data:`LISTS`.

The weights of a kind are fitted in two steps: first those of what surely makes a page one of the kind, then, with a
higher penalty and the first ones fixed, those of what corrects them. Most pages with a sure sign have many others as
well, so that fitted in one step each would need all of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from content_samples import fold_of, read_samples, site_of
from data import page, page_of, type_of, wcxb_labels
from train_block_model import SEEDS, unseen_content

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.articles import article
from scrapy_ext.server.extraction.auto.content.page_content import MANY_WORDS
from scrapy_ext.server.extraction.auto.forum import forum_thread
from scrapy_ext.server.extraction.auto.lists import list_pages
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.signs import page_signs
from scrapy_ext.server.extraction.auto.products import product

FOLDS = 5
#: Penalties of the squares of the weights of the two steps.
PENALTIES = (0.3, 3.0)
BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.01)
RIGHT_F1 = 0.5
_URL = ("path", "url_forum", "url_docs", "url_product", "url_list", "url_article", "url_service")

_SHOPS = ("url_product", "url_article", "url_list")


class Signs(NamedTuple):
    """Names of the signs of the two steps."""

    first: tuple[str, ...]
    then: tuple[str, ...] = ()


SIGNS = {
    "article": Signs(
        ("marked", "dated"),
        ("authors", "image", "og_article", "markup_product", "markup_forum", "markup_list", *_URL),
    ),
    "product": Signs(
        ("offers", "many_offers", "price_and_stock", "price", "other"),
        ("sku", "brand", "image", "og_product", "og_article", "markup_article", *_SHOPS),
    ),
    "post": Signs(
        ("marked", "question", "dated", "undated"),
        ("several", "authors", "markup_product", "markup_article", "url_forum", "url_article"),
    ),
    "articles": Signs(
        ("entries",),
        ("path", "og_article", "markup_article", "markup_forum", "url_product", "url_docs"),
    ),
    "products": Signs(
        ("entries", "offers", "many_offers"),
        ("product", "path", "markup_list", "url_product", "url_article"),
    ),
    "pageContent": Signs(("chance", "words")),
}
TYPES = {"article": "article", "product": "product", "post": "forum"}

#: Names of pages that list articles or products, by hand, of those on which a list is found, and of pages whose list
#: may be called one of products as well as not (houses, courses, books without prices, kinds of goods). Beside these,
#: pages of the type collection list products, and no others list anything.
LISTS = {
    "articles": (
        *("0083", "0175", "0205", "0260", "0337", "0470", "0729", "0956", "1310", "2900", "2901", "2965", "2966"),
        *("2968", "2969", "2973", "3011", "3013", "3014", "3015", "3016", "3030", "4609", "4632"),
    ),
    "products": ("0590", "1371", "4054", "4112", "4204"),
}
UNCLEAR = ("1572", "2908", "4122", "4343")


class Row(NamedTuple):
    """Signs of one page, and whether what was found there is right. ``value``: that of a rule, without signs."""

    kind: str
    fold: int
    signs: dict[str, float]
    value: float | None
    right: bool


class Scores(NamedTuple):
    values: np.ndarray
    right: np.ndarray

    @property
    def brier(self) -> float:
        return float(((self.values - self.right) ** 2).mean())

    @property
    def error(self) -> float:
        return sum(count * abs(mean - share) for _, count, mean, share in self.bins()) / len(self.right)

    def bins(self) -> Iterator[tuple[str, int, float, float]]:
        """Yield of each bin its limits, the number of its pages, the mean of their values, and the share right."""
        for low, high in pairwise(BINS):
            inside = (self.values >= low) & (self.values < high)
            if inside.any():
                name = f"{low:g} to {min(high, 1):g}"
                yield name, int(inside.sum()), float(self.values[inside].mean()), float(self.right[inside].mean())


def main() -> int:
    options = _options()
    logging.disable(logging.CRITICAL)
    rows = [*rows_of_pages(options.data), *rows_of_content(options.data / "labelled" / "wcxb-dev")]
    for kind in SIGNS:
        of_kind = [row for row in rows if row.kind == kind]
        scores = cross_validated(kind, of_kind)
        print(f"{kind}: {len(of_kind)} pages, Brier {scores.brier:.3f}, calibration error {scores.error:.3f}")
        for name, count, mean, share in scores.bins():
            print(f"  {name:12} {count:4} pages  mean {mean:.2f}  right {share:.2f}")
        for least in (0.5, 0.9):
            kept = scores.right[scores.values >= least]
            print(f"  {least} keeps {len(kept)}, {kept.sum():.0f} of them right, of {scores.right.sum():.0f} in all")
    if options.write:
        weights = {kind: fitted(kind, [row for row in rows if row.kind == kind]) for kind in SIGNS}
        path = Path(probability.__file__).parent / probability.DATA
        path.write_text(json.dumps(weights, indent=1) + "\n", "utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with labelled/wcxb-dev, labelled/products and real-pages")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


# ── pages ──


def rows_of_pages(data: Path) -> Iterator[Row]:
    """Yield what is found on each labelled page."""
    for name, url, kind, html in _pages(data):
        source, fold = Page(html, url), fold_of(site_of(urlsplit(url).hostname or name))
        for found, signs, value in _found_on(source):
            is_list = found in LISTS
            if is_list and name in UNCLEAR:
                continue
            right = kind == TYPES.get(found)
            if is_list:
                right = name in LISTS[found] or (found == "products" and kind == "collection")
            yield Row(found, fold, signs, value, right)


def _pages(data: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, the URL, the type and the HTML of each page."""
    wcxb, products, real = data / "labelled" / "wcxb-dev", data / "labelled" / "products", data / "real-pages"
    for name, label in sorted(wcxb_labels(wcxb).items()):
        yield name, label["url"] or "https://www.example.org/", type_of(label), page(wcxb, name)
    for name, label in sorted(json.loads((products / "labels.json").read_text("utf-8")).items()):
        if (products / "html" / f"{name}.html.gz").exists():
            yield name, label["url"], "product", page(products, name)
    for name, url in sorted(json.loads((real / "index.json").read_text("utf-8")).items()):
        yield name, url, "article", page_of(real / name)


def _found_on(source: Page) -> Iterator[tuple[str, dict[str, float], float | None]]:
    """Yield the kinds that are found on a page with their signs, or with the value of a rule where these do not
    count."""
    for kind, extract in (("article", article.extract), ("product", product.extract)):
        seen, item = _recorded(extract, source)
        yield kind, seen.get(kind, {}), None if kind in seen else item.metadata.probability
    for kind, extract in (
        ("post", forum_thread.extract),
        ("articles", list_pages.articles_on),
        ("products", list_pages.products_on),
    ):
        seen, _ = _recorded(extract, source)
        if kind in seen:
            yield kind, seen[kind], None


def _recorded(extract: Any, source: Page) -> tuple[dict[str, dict[str, float]], Any]:
    """Return the signs by which an extraction computes probabilities, and its result."""
    seen: dict[str, dict[str, float]] = {}

    def record(kind: str, of_page: Page, found: dict[str, float]) -> float:
        seen[kind] = {name: float(value) for name, value in {**page_signs(of_page), **found}.items()}
        return 0.0

    original, probability.of = probability.of, record
    try:
        return seen, extract(source)
    finally:
        probability.of = original


def rows_of_content(folder: Path) -> Iterator[Row]:
    """Yield the content of each page, as models that saw no page of its site find it."""
    for sample, content in unseen_content(read_samples(folder), SEEDS[0]):
        signs = {"words": float(np.log10(max(1, min(content.words, MANY_WORDS)))), "chance": content.chance}
        value = None if content.words else probability.LEAST
        yield Row("pageContent", sample.fold, signs, value, content.f1 >= RIGHT_F1)


# ── weights ──


def cross_validated(kind: str, rows: list[Row]) -> Scores:
    """Return the values of all pages, each by weights that saw no page of its site."""
    values = np.array([row.value or 0.0 for row in rows])
    for fold in range(FOLDS):
        weights = fitted(kind, [row for row in rows if row.fold != fold])
        for at, row in enumerate(rows):
            if row.fold == fold and row.value is None:
                total = weights[""] + sum(weight * row.signs[name] for name, weight in weights.items() if name)
                values[at] = min(probability.MOST, max(probability.LEAST, 1 / (1 + np.exp(-total))))
    return Scores(values, np.array([float(row.right) for row in rows]))


def fitted(kind: str, rows: Iterable[Row]) -> dict[str, float]:
    """Return the weights of the signs of a kind, in two steps."""
    known = [row for row in rows if row.value is None]
    right = np.array([float(row.right) for row in known])
    weights, totals = {"": 0.0}, np.zeros(len(known))
    for names, penalty in zip(SIGNS[kind], PENALTIES, strict=True):
        table = np.array([[1.0, *(row.signs[name] for name in names)] for row in known])
        found = regression(table, right, totals, penalty)
        totals = totals + table @ found
        weights[""] += float(found[0])
        weights.update(zip(names, map(float, found[1:]), strict=True))
    return {name: round(weight, 2) for name, weight in weights.items()}


def regression(table: np.ndarray, right: np.ndarray, totals: np.ndarray, penalty: float) -> np.ndarray:
    """Return the weights of a logistic regression beside fixed totals, by Newton's method; the first has no penalty."""
    penalties = np.diag([0.0, *[penalty] * (table.shape[1] - 1)])
    weights = np.zeros(table.shape[1])
    for _ in range(50):
        chances = 1 / (1 + np.exp(-np.clip(totals + table @ weights, -30, 30)))
        slope = table.T @ (chances - right) + penalties @ weights
        curve = (table * (chances * (1 - chances))[:, None]).T @ table + penalties
        weights = weights - np.linalg.solve(curve, slope)
    return weights


if __name__ == "__main__":
    sys.exit(main())
