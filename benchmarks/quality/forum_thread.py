"""``forumThread``: posts found with the markup off against those of the markup, and texts against labels."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from data import page, timed
from markup_off import without_markup
from scores import count, mean, median_ms, scored, word_f1

from scrapy_ext.server.extraction.auto.forum.forum_thread import posts_in, thread_of
from scrapy_ext.server.extraction.auto.page.page import Page


def measure_thread(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    texts, with_markup, times, truths = [], [], [], 0
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        item, spent = timed("forumThread", without_markup(html), label["url"])
        times.append(spent)
        texts.append(word_f1(_joined(item), label["main_content"]))
        with_markup.append(word_f1(_joined(timed("forumThread", html, label["url"])[0]), label["main_content"]))
        whole = Page(html, label["url"])
        true = posts_in(whole, thread_of(whole))
        # Many pages of a long thread mark up one post only.
        if len(true) > 1:
            truths += 1
            _compare(counts, item, true)
    return {
        "kind": "forumThread",
        "pages": len(labels),
        "rules_text_word_f1": mean(texts),
        "text_word_f1": mean(with_markup),
        "text_word_f1_median": round(statistics.median(with_markup), 4),
        "pages_with_posts_in_markup": truths,
        **{field: scored(each) for field, each in sorted(counts.items())},
        "ms": median_ms(times),
    }


def _compare(counts: dict[str, Counter[str]], item: dict[str, Any], true: list[Any]) -> None:
    by_key = {_key(post.text): post for post in true}
    found = {_key(post.get("text", "")): post for post in item.get("posts", ())}
    for key, post in found.items():
        twin = by_key.get(key)
        right = twin is not None and word_f1(post.get("text"), twin.text) > 0.8
        counts["post"]["right" if right else "wrong"] += 1
        if twin is not None:
            day = {twin.date[:10]} if twin.date else set()
            count(counts["datePublished"], day, (post.get("datePublished") or "")[:10] or None)
            likes = {twin.likes} if twin.likes is not None else set()
            if likes:
                count(counts["likes"], likes, post.get("reactions", {}).get("likes"))
    counts["post"]["missing"] += len(by_key.keys() - found.keys())


def _joined(item: dict[str, Any]) -> str:
    return "\n".join(post.get("text", "") for post in item.get("posts", ()))


def _key(text: str) -> str:
    return re.sub(r"\W+", "", text.casefold())[:40]
