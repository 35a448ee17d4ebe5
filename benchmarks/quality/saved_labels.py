"""Saved pages and their labels: a folder for each of :data:`KINDS`, with an ``index.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: Folders, with the kind of item that is extracted from their pages.
KINDS: Final = {
    "products": "productList",
    "articles": "articleList",
    "next": "articleNavigation",
    "jobs": "jobPosting",
    "serp": "serp",
    "forum": "forumThread",
}
AS_IT_IS: Final = "as it is"
MARKUP_OFF: Final = "markup off"

#: Addresses of results pages whose own is not known: they distinguish links within the site.
_ENGINE_URLS: Final = {
    "google": "https://www.google.com/search",
    "bing": "https://www.bing.com/search",
    "yandex": "https://yandex.ru/search/",
    "yahoo": "https://search.yahoo.com/search",
    "ecosia": "https://www.ecosia.org/search",
    "duckduckgo": "https://html.duckduckgo.com/html/",
    "baidu": "https://www.baidu.com/s",
    "startpage": "https://www.startpage.com/do/search",
}


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """One page: its files by variant, and what is known of it."""

    name: str
    kind: str
    site: str
    #: ``tune`` or ``held-out``.
    split: str
    url: str
    #: Whether the page shows the value of a label, by field, with its markup off.
    visible: dict[str, Any]
    labels: dict[str, Any]
    files: dict[str, str]
    #: Whether the labels are those of the markup, rather than written by hand.
    of_markup: bool


def labelled_pages(folder: Path, kind: str) -> Iterator[LabelledPage]:
    """Yield the pages of a folder in the order of its index."""
    for entry in json.loads((folder / "index.json").read_text("utf-8")):
        plain = entry.get("plain_file")
        yield LabelledPage(
            name=entry["file"],
            kind=kind,
            site=entry.get("engine") or entry["site"],
            split=entry["split"],
            url=entry["url"] or _ENGINE_URLS.get(entry.get("engine", ""), "https://site.example/page"),
            visible=entry.get("visible_in_plain") or {},
            labels=entry["labels"],
            files={MARKUP_OFF: plain, AS_IT_IS: entry["file"]} if plain else {MARKUP_OFF: entry["file"]},
            of_markup=plain is not None,
        )
