"""Scores of items of saved pages against their labels, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any, Final

import dateparser
from saved_labels import AS_IT_IS, LabelledPage
from scores import word_f1, words
from tallies import Table

from scrapy_ext.server.extraction.auto.page.urls import bare

#: Share of the runs of six words of a description that the page has to show for the description to count.
SHOWN: Final = 0.8
#: Word F1 from which two texts are of the same post.
SAME_POST: Final = 0.5
#: Word F1 from which two places are the same: markup adds countries and postcodes that pages do not show.
SAME_PLACE: Final = 0.5
#: Engines whose results have redirects that cannot be read.
HIDDEN_TARGETS: Final = frozenset({"baidu", "sogou", "mailru"})

_TYPES: Final = {
    "full": r"full|vollzeit|plný úvazek|plný|heltid|temps plein|kokoaikai",
    "part": r"part|teilzeit|zkrácený úvazek|deltid|temps partiel",
    "permanent": r"permanent|unbefristet|festanstellung|regular|vast|cdi\b",
    "temporary": r"tempor|befristet|seasonal|fixed[- ]term|cdd\b",
    "contract": r"contract|freelance|ind[ée]pendant|b2b",
    "intern": r"intern(?:ship)?\b|praktikum|trainee",
}


def score_job(table: Table, page: LabelledPage, item: dict[str, Any], variant: str) -> None:
    """Score a job; with the markup off, only the fields that the page shows."""
    labels, group = page.labels, page.site

    def counts(field: str) -> bool:
        seen = page.visible.get(field, page.visible.get(f"{field} (any part)", not page.of_markup))
        return field in labels and (variant == AS_IT_IS or seen is True)

    if counts("jobTitle"):
        found = item.get("jobTitle")
        table.judged("jobTitle", group, found, words(found) == words(labels["jobTitle"]))
    for field, key in (("hiringOrganization", "name"), ("jobLocation", "raw")):
        found = (item.get(field) or {}).get(key)
        if counts(field):
            same = _same_place if field == "jobLocation" else _same_words
            table.judged(field, group, found, any(same(found, each) for each in _listed(labels[field])))
    if counts("employmentType"):
        found = item.get("employmentType")
        true = _types(" ".join(_listed(labels["employmentType"])))
        if true:
            table.judged("employmentType", group, found, _types(found or "") == true)
    for field in ("datePublished", "validThrough"):
        if counts(field):
            found = item.get(field) or item.get(f"{field}Raw")
            table.judged(field, group, found, _same_day(labels[field], item.get(field), item.get(f"{field}Raw")))
    if "baseSalary" in labels and (variant == AS_IT_IS or not page.of_markup):
        found = item.get("baseSalary")
        table.judged("baseSalary", group, found, _same_salary(found or {}, labels["baseSalary"]))
    shown = page.visible.get("descriptionText", 1.0)
    if labels.get("descriptionText") and (variant == AS_IT_IS or shown >= SHOWN):
        table.score("description, word F1", group, word_f1(item.get("description"), labels["descriptionText"]))


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _same_words(found: str | None, true: str) -> bool:
    return words(found) == words(true)


def _same_place(found: str | None, true: str) -> bool:
    city = words((found or "").partition(",")[0])
    return bool(city) and (word_f1(found, true) >= SAME_PLACE or set(city) <= set(words(true)))


def _types(text: str) -> frozenset[str]:
    text = text.casefold().replace("_", " ")
    return frozenset(name for name, pattern in _TYPES.items() if re.search(pattern, text))


def _same_salary(found: dict[str, Any], true: dict[str, Any]) -> bool:
    ends = [found.get("valueMin"), found.get("valueMax")]
    wanted = [true.get("valueMin") or true.get("value"), true.get("valueMax") or true.get("value")]
    pairs = [(_number(end), _number(want)) for end, want in zip(ends, wanted, strict=True) if want]
    return bool(pairs) and all(end == want for end, want in pairs)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


# ── dates ──


def _days(label: str) -> set[str]:
    """Return the days that a label may mean: that of UTC too where it has a zone, both where the order is unclear."""
    label = label.strip()
    if match := re.match(r"(\d{4}-\d\d-\d\d)", label):
        days = {match.group(1)}
        try:
            moment = datetime.fromisoformat(re.sub(r" UTC$|(?<=\d)Z$", "+00:00", label))
        except ValueError:
            return days
        if moment.tzinfo:
            days.add(moment.astimezone(timezone.utc).date().isoformat())
        return days
    days = set()
    cut = re.sub(r"\b(?:at|à|um)\b|[|@»]", " ", label)[:60]
    for text in (cut, " ".join(cut.split()[:6]), " ".join(cut.split()[:4]), " ".join(cut.split()[:3])):
        for order in ("DMY", "MDY"):
            moment = dateparser.parse(
                text,
                settings={"DATE_ORDER": order, "STRICT_PARSING": True, "PARSERS": ["absolute-time"]},
            )
            if moment:
                days.add(moment.date().isoformat())
        if days:
            return days
    return days


def _same_day(label: str, found: str | None, raw: str | None) -> bool:
    days = _days(label)
    if days:
        return bool(found) and found[:10] in days
    return bool(raw) and words(raw) == words(label)


# ── results of searches ──


def score_serp(table: Table, page: LabelledPage, item: dict[str, Any], variant: str) -> None:
    """Score the organic results: found ones by URL, else by title."""
    del variant
    group, true = page.name, page.labels["results"]
    found = item.get("organicResults") or []
    by_url = page.site not in HIDDEN_TARGETS
    pairs = _paired(true, found)
    table.count("results", group, right=len(pairs), wrong=len(found) - len(pairs), missing=len(true) - len(pairs))
    for label, result in pairs:
        name = result.get("name")
        table.judged("title", group, name, words(name) == words(label["name"]))
        if by_url:
            url = result.get("url")
            table.judged("url", group, url, _same_url(url, label))
        if label.get("description"):
            table.score("description, word F1", group, word_f1(result.get("description"), label["description"]))
    if true:
        table.score("rank and order", group, _in_order(pairs, true, found))


def _paired(true: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    left = list(found)
    pairs = []
    for label in true:
        twin = next((each for each in left if _same_url(each.get("url"), label)), None)
        twin = twin or next((each for each in left if words(each.get("name")) == words(label["name"])), None)
        if twin is not None:
            left = [each for each in left if each is not twin]
            pairs.append((label, twin))
    return pairs


def _same_url(url: str | None, label: dict[str, Any]) -> bool:
    return bool(url) and any(label.get(key) and bare(str(url)) == bare(label[key]) for key in ("url", "href"))


def _in_order(pairs: list[Any], true: list[dict[str, Any]], found: list[dict[str, Any]]) -> float:
    """Return the share of labels that are found in the order of the page."""
    places = [found.index(result) for _, result in pairs]
    falls = sum(later < earlier for earlier, later in pairwise(places))
    return max(0, len(places) - falls) / len(true)


# ── threads ──


def score_thread(table: Table, page: LabelledPage, item: dict[str, Any], variant: str) -> None:
    """Score the posts: each label takes the found post with the most words in common."""
    del variant
    group, true, found = page.site, page.labels["posts"], item.get("posts") or []
    left = list(enumerate(found))
    pairs = 0
    topic = (item.get("topic") or {}).get("name")
    label = (page.labels.get("topic") or {}).get("name")
    if label:
        table.judged("topic", group, topic, words(topic) == words(label))
    for post in true:
        best = max(left, key=lambda each: word_f1(each[1].get("text"), post["text"]), default=None)
        score = word_f1(best[1].get("text"), post["text"]) if best else 0.0
        if best is None or score < SAME_POST:
            continue
        left.remove(best)
        pairs += 1
        table.score("text, word F1", group, score)
        twin = best[1]
        if post.get("author"):
            name = (twin.get("author") or {}).get("name")
            table.judged("author", group, name, words(name) == words(post["author"]))
        # The item has no date for one like "2 hours ago", which is of the day of a download that is not known.
        if post.get("datePublished") and _days(post["datePublished"]):
            date = twin.get("datePublished")
            table.judged("datePublished", group, date, _same_day(post["datePublished"], date, date))
    table.count("posts", group, right=pairs, wrong=len(found) - pairs, missing=len(true) - pairs)


# ── lists ──


def score_list(table: Table, page: LabelledPage, item: dict[str, Any], variant: str) -> None:
    """Score the entries of a list: found ones by URL; their prices and days where the label has them."""
    del variant
    group, true = page.site, page.labels.get("items")
    if true is None:
        return
    found = {bare(entry["url"]): entry for entry in item.get("products") or item.get("articles") or []}
    pairs = [(label, found[bare(label["url"])]) for label in true if bare(label["url"]) in found]
    table.count("entries", group, right=len(pairs), wrong=len(found) - len(pairs), missing=len(true) - len(pairs))
    table.judged("list", group, found or None, bool(pairs), labelled=bool(true))
    for label, entry in pairs:
        if label.get("name"):
            name = entry.get("name") or entry.get("headline")
            table.judged("title", group, name, words(name) == words(label["name"]))
        if label.get("prices"):
            _judge_prices(table, group, label["prices"], entry)
        if label.get("date"):
            date = entry.get("datePublished")
            table.judged("datePublished", group, date, bool(date) and _same_day(label["date"], date, date))
        if label.get("author"):
            name = next((author.get("name") for author in entry.get("authors") or []), None)
            table.judged("author", group, name, words(name) == words(label["author"]))
        if page.kind == "products":
            table.judged("image", group, entry.get("mainImage"), True)


def _judge_prices(table: Table, group: str, shown: list[float], entry: dict[str, Any]) -> None:
    """Judge the price by the only amount of an entry, or the lower of two; the higher one is the regular price."""
    price, regular = (_number(entry.get(name)) for name in ("price", "regularPrice"))
    table.judged("price", group, price, price == min(shown))
    if len(shown) > 1 or regular is not None:
        table.judged("regularPrice", group, regular, regular == max(shown), labelled=len(shown) > 1)


def score_next_page(table: Table, page: LabelledPage, item: dict[str, Any], variant: str) -> None:
    """Score the URL of the next page; a page without one counts where one is found."""
    del variant
    true, found = page.labels["next"], (item.get("nextPage") or {}).get("url")
    right = found is not None and bare(found) in {bare(url) for url in true}
    table.judged("next page", page.site, found, right, labelled=bool(true))


SCORES: Final = {
    "products": score_list,
    "articles": score_list,
    "next": score_next_page,
    "jobs": score_job,
    "serp": score_serp,
    "forum": score_thread,
}


def fields_in_order(names: Iterable[str]) -> list[str]:
    """Return the names of fields in the order in which tables show them."""
    order = [
        "list", "entries", "next page", "price", "regularPrice", "image", "jobTitle", "hiringOrganization",
        "jobLocation", "description, word F1", "datePublished", "validThrough",
        "employmentType", "baseSalary", "results", "title", "url", "rank and order", "posts", "text, word F1", "author",
        "topic",
    ]  # fmt: skip
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))
