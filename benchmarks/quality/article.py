"""``article``: body, headline, authors and date against the labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from data import page, timed, trafilatura_text
from scores import count, mean, median_ms, scored, word_f1, words


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


def author_of(item: dict[str, Any], label: str | None) -> tuple[str, ...] | None:
    """The authors as one text, or the first of them where the label has no more than one."""
    names = [author["name"] for author in item.get("authors", ())]
    if not names:
        return None
    candidates = [words(" and ".join(names)), words(" ".join(names)), words(names[0])]
    return next((candidate for candidate in candidates if candidate == words(label)), candidates[0])
