"""How right automatic extraction is, on labelled real pages, beside trafilatura on the same pages.

``python benchmarks/extraction_quality.py DATA_DIR`` prints one JSON line a kind: scores, and milliseconds of processor
time a page. ``DATA_DIR`` holds ``products/`` (``labels.json``, ``html/*.html.gz``; as scrapinghub/product-extraction-
benchmark labels them) and ``wcxb-dev/`` (``labels.json.gz``, ``html/*.html.gz``; as the WCXB of Murrough Foley does),
or a folder ``labelled`` with both. Without a folder nothing is measured.

Fields are right when they equal a label (prices as numbers; brands, titles and authors without regard to case and
signs; dates by the day), and F1 counts a wrong value against precision and recall both, as that product benchmark
does. Texts have the F1 of their bags of words, averaged over pages, as WCXB does.

Lists have no labels of their own. What is measured of them: on how many pages of the types that hold lists one is
found, and which part of the names in it occurs in the labelled content. The truth for next pages is what pages say by
``rel=next``, which is taken off before; on articles, products and documentation, where that is the next article, any
next page counts as wrong.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from scrapy_ext.server.extraction.auto import extract, preload

LIST_TYPES = ("collection", "listing")
#: Tags with ``rel=next``.
NEXT = re.compile(r"""<(?:link|a)\b[^<>]*\brel\s*=\s*["']?[\w ]*\bnext\b[^<>]*>""", re.IGNORECASE)
REL = re.compile(r"""\brel\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)
PRODUCT_FIELDS = ("price", "sku", "availability", "brand")


def main() -> int:
    if len(sys.argv) != 2:
        print(
            json.dumps({"benchmark": "extraction_quality", "measured": False, "give": "the folder of labelled pages"})
        )
        return 0
    data = Path(sys.argv[1])
    data = data / "labelled" if (data / "labelled").is_dir() else data
    logging.disable(logging.CRITICAL)
    preload()
    for line in (measure_product(data / "products"), *measure_wcxb(data / "wcxb-dev")):
        print(json.dumps(line), flush=True)
    return 0


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


def measure_wcxb(folder: Path) -> Iterator[dict[str, Any]]:
    labels = json.loads(gzip.decompress((folder / "labels.json.gz").read_bytes()))
    articles = {name: label for name, label in labels.items() if type_of(label) == "article"}
    yield measure_article(folder, articles)
    yield measure_content(folder, labels)
    of_type = {kind: {n: label for n, label in labels.items() if type_of(label) == kind} for kind in LIST_TYPES}
    yield measure_list(folder, "productList", "products", "name", of_type["collection"])
    yield measure_list(folder, "articleList", "articles", "headline", of_type["listing"])
    yield measure_next_page(folder, labels)


def measure_article(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    bodies, peers, titles, times = [], [], [], []
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        item, spent = timed("article", html, label["url"])
        times.append(spent)
        bodies.append(word_f1(item.get("articleBody"), label["main_content"]))
        peers.append(word_f1(trafilatura_text(html, precise=True), label["main_content"]))
        titles.append(word_f1(item.get("headline"), label["title"]))
        date = (item.get("datePublished") or "")[:10] or None
        count(counts["date"], {label["publish_date"]} - {None}, date)
        count(counts["author"], {words(label["author"])} - {()}, author_of(item, label["author"]))
    return {
        "kind": "article",
        "pages": len(labels),
        "body_word_f1": mean(bodies),
        "trafilatura_precision_body_word_f1": mean(peers),
        "title_word_f1": mean(titles),
        "author": scored(counts["author"]),
        "date": scored(counts["date"]),
        "ms": median_ms(times),
    }


def measure_content(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    by_type: dict[str, list[float]] = defaultdict(list)
    peers, times = [], []
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        item, spent = timed("pageContent", html, label["url"])
        times.append(spent)
        by_type[type_of(label)].append(word_f1(item.get("itemMain"), label["main_content"]))
        peers.append(word_f1(trafilatura_text(html, precise=False), label["main_content"]))
    return {
        "kind": "pageContent",
        "pages": len(labels),
        "word_f1": mean([score for scores in by_type.values() for score in scores]),
        "trafilatura_word_f1": mean(peers),
        "word_f1_by_type": {kind: mean(scores) for kind, scores in sorted(by_type.items())},
        "ms": median_ms(times),
    }


def measure_list(folder: Path, kind: str, member: str, name: str, labels: dict[str, Any]) -> dict[str, Any]:
    found, shares, times = 0, [], []
    for page_name, label in sorted(labels.items()):
        item, spent = timed(kind, page(folder, page_name), label["url"])
        times.append(spent)
        items = item.get(member, ())
        found += bool(items)
        content = " ".join(words(label["main_content"]))
        if items and content:
            shares.append(statistics.fmean(" ".join(words(item.get(name))) in content for item in items))
    return {
        "kind": kind,
        "pages": len(labels),
        "with_a_list": found,
        "names_in_labelled_content": {"mean": mean(shares), "median": round(statistics.median(shares), 4)},
        "ms": median_ms(times),
    }


def measure_next_page(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for name, label in sorted(labels.items()):
        source = page(folder, name)
        html = NEXT.sub(lambda tag: REL.sub("", tag.group()), source)
        listed = type_of(label) not in {"article", "documentation", "product"}
        stated = (extract("productNavigation", source, label["url"]).get("nextPage") or {}).get("url")
        true = {stated} if listed and source != html and stated else set()
        item = extract("productNavigation", html, label["url"])
        blind = (item.get("nextPage") or {}).get("url")
        if not listed or true:
            count(counts, true, blind)
        counts["without"] += not listed and blind is None
    return {"kind": "nextPage", "pages": len(labels), **scored(counts), **counts}


def page(folder: Path, name: str) -> str:
    return gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode("utf-8", "replace")


def timed(kind: str, html: str, url: str) -> tuple[dict[str, Any], float]:
    start = time.process_time()
    item = extract(kind, html, url)
    return item, time.process_time() - start


def trafilatura_text(html: str, *, precise: bool) -> str | None:
    from trafilatura import extract as trafilatura_extract

    return trafilatura_extract(html, favor_precision=precise, include_comments=False)


def type_of(label: dict[str, Any]) -> str:
    kind = label["page_type"]
    return str(kind["primary"] if isinstance(kind, dict) else kind)


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


def author_of(item: dict[str, Any], label: str | None) -> tuple[str, ...] | None:
    """The authors as one text, or the first of them where the label has no more than one."""
    names = [author["name"] for author in item.get("authors", ())]
    if not names:
        return None
    candidates = [words(" and ".join(names)), words(" ".join(names)), words(names[0])]
    return next((candidate for candidate in candidates if candidate == words(label)), candidates[0])


def count(counts: Counter[str], true: set[Any], found: object) -> None:
    if found is None:
        counts["missing"] += bool(true)
    elif found in true:
        counts["right"] += 1
    else:
        counts["wrong"] += 1
        counts["missing"] += bool(true)


def scored(counts: Counter[str]) -> dict[str, float]:
    right, wrong, missing = counts["right"], counts["wrong"], counts["missing"]
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = right / (right + missing) if right + missing else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"f1": round(f1, 3), "precision": round(precision, 3), "recall": round(recall, 3)}


def words(text: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", (text or "").casefold()))


def word_f1(found: str | None, true: str | None) -> float:
    found_words, true_words = Counter(words(found)), Counter(words(true))
    both = (found_words & true_words).total()
    if not both:
        return float(not found_words and not true_words)
    return 2 * both / (found_words.total() + true_words.total())


def mean(values: list[float]) -> float:
    return round(statistics.fmean(values), 4)


def median_ms(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    middle, high = ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))]
    return {"median": round(1000 * middle, 1), "p95": round(1000 * high, 1)}


if __name__ == "__main__":
    sys.exit(main())
