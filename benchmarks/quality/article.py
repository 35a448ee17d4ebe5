"""``article``: body, headline, authors and date against the labels, and the body against that of the pages' markup."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data import page, timed, trafilatura_text
from scores import count, mean, median_ms, scored, text_scores, word_f1, words

from scrapy_ext.server.extraction.auto.articles.article import ARTICLE_TYPES
from scrapy_ext.server.extraction.auto.page.page import Page

#: Articles of the usual size, in characters of HTML.
USUAL_SIZE = range(60_000, 160_000)
#: A shorter text in markup is an abstract, and one with such an ending is cut off.
MIN_STATED = 1000
_CUT = re.compile(r"(?:…|\.\.\.|\[…\])\s*$")
_STATED = re.compile(r'"articleBody"\s*:\s*"(?:[^"\\]|\\.)*"\s*,?')


def measure_article(folder: Path, labels: dict[str, Any], unlabelled: Path) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {name: Counter(right=0, wrong=0, missing=0) for name in FIELDS}
    bodies, peers = [], []
    times: dict[bool, list[float]] = defaultdict(list)
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        item, spent = timed("article", html, label["url"])
        times[len(html) in USUAL_SIZE].append(spent)
        bodies.append((item.get("articleBody"), label["main_content"]))
        peers.append((trafilatura_text(html, precise=True), label["main_content"]))
        count(counts["headline"], {words(label["title"])} - {()}, words(item.get("headline")) or None)
        date = (item.get("datePublished") or "")[:10] or None
        count(counts["date"], {label["publish_date"]} - {None}, date)
        count(counts["author"], {words(label["author"])} - {()}, author_of(item, label["author"]))
    return {
        "kind": "article",
        "pages": len(labels),
        "body": text_scores(bodies),
        "trafilatura_precision_body": text_scores(peers),
        "body_word_f1": mean([word_f1(*pair) for pair in bodies]),
        "trafilatura_precision_body_word_f1": mean([word_f1(*pair) for pair in peers]),
        **{name: scored(found) for name, found in counts.items()},
        "body_of_markup": measure_stated([*labelled_pages(folder, labels), *unlabelled_pages(unlabelled)]),
        "ms": median_ms([*times[True], *times[False]]),
        "ms_60_to_160_kb": median_ms(times[True]) | {"pages": len(times[True])},
    }


FIELDS = ("headline", "date", "author")


def measure_stated(pages: list[tuple[str, str]]) -> dict[str, Any]:
    """Compare extracted bodies with complete ones of the markup, which is removed before."""
    found, peers = [], []
    for html, url in pages:
        stated = stated_body(html, url)
        if stated is not None:
            bare = _STATED.sub("", html)
            found.append((timed("article", bare, url)[0].get("articleBody"), stated))
            peers.append((trafilatura_text(bare, precise=True), stated))
    if not found:
        return {"pages": 0}
    return {"pages": len(found), **text_scores(found), "trafilatura_precision": text_scores(peers)}


def stated_body(html: str, url: str) -> str | None:
    """Return the article's text in the JSON-LD of a page, if it is long, plain and complete."""
    if not _STATED.search(html):
        return None
    texts = (text for thing in Page(html, url).markup.all(*ARTICLE_TYPES) if (text := thing.text("articleBody")))
    return next((text for text in texts if len(text) >= MIN_STATED and not _CUT.search(text)), None)


def labelled_pages(folder: Path, labels: dict[str, Any]) -> Iterator[tuple[str, str]]:
    return ((page(folder, name), label["url"]) for name, label in labels.items())


def unlabelled_pages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pages of a folder with an ``index.json`` of their URLs; none without it."""
    index = folder / "index.json"
    for name, url in json.loads(index.read_text()).items() if index.exists() else ():
        yield gzip.decompress((folder / name).read_bytes()).decode("utf-8", "replace"), url


def author_of(item: dict[str, Any], label: str | None) -> tuple[str, ...] | None:
    """Return the authors as one text, or only the first where the label has one."""
    names = [author["name"] for author in item.get("authors", ())]
    if not names:
        return None
    candidates = [words(" and ".join(names)), words(" ".join(names)), words(names[0])]
    return next((candidate for candidate in candidates if candidate == words(label)), candidates[0])
