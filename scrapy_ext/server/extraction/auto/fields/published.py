"""When a page was published and changed: by its markup, its metadata, or the dates that it shows by its heading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.dates import MAX_LINE_LENGTH, MAX_TEXT_LENGTH, Date, is_mostly_date, read
from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import node_text
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NODES: Final = 60
#: How far from the heading, in elements, a date that nothing names stands at most.
NEAR: Final = 40

_VOCABULARY: Final = load_vocabulary("dates")
_PUBLISHED_METAS: Final = _VOCABULARY.words("published_metas")
_MODIFIED_METAS: Final = _VOCABULARY.words("modified_metas")
_DATE_NAMES: Final = _VOCABULARY.words("date_names")
_PUBLISHED_NAME = _VOCABULARY.pattern("published_name")
_MODIFIED_NAME = _VOCABULARY.pattern("modified_name")
_MODIFIED_WORD = _VOCABULARY.pattern("modified_word", re.IGNORECASE)


def published_on(page: Page, article: Thing | None, focus: Focus) -> Date | None:
    """When a page was published: of its markup, its metadata, or the dates that are shown by its heading."""
    stated = article.texts("datePublished", "dateCreated", "uploadDate") if article else []
    return _first(page, [*stated, *_contents(page, _PUBLISHED_METAS)]) or _shown(page, focus, modified=False)


def modified_on(page: Page, article: Thing | None, focus: Focus) -> Date | None:
    """When a page was last changed."""
    stated = article.texts("dateModified") if article else []
    return _first(page, [*stated, *_contents(page, _MODIFIED_METAS)]) or _shown(page, focus, modified=True)


def _contents(page: Page, names: Iterable[str]) -> Iterator[str]:
    return (content for name in names for content in page.metas.get(name, ())[:1])


def _first(page: Page, texts: Iterable[str]) -> Date | None:
    return next((date for text in texts if (date := read(text, page))), None)


def _shown(page: Page, focus: Focus, *, modified: bool) -> Date | None:
    """The date that the page shows and names as wanted, the nearest to the heading first."""
    best: tuple[float, Date] | None = None
    for node in _nodes(page, focus):
        sure = _is_wanted(page, node, modified=modified)
        distance = abs(focus.distance(node))
        if sure is None or not (sure or distance <= NEAR):
            continue
        score = distance - (NEAR if sure else 0)
        date = _of_node(page, node)
        if date and (best is None or score < best[0]):
            best = (score, date)
    return best[1] if best else None


def _of_node(page: Page, node: HtmlElement) -> Date | None:
    return _first(page, (node.get("datetime") or "", node.get("content") or "", node_text(node, MAX_TEXT_LENGTH)))


def _nodes(page: Page, focus: Focus) -> Iterator[HtmlElement]:
    """The nodes that may show a date: those named so, and short lines that are hardly anything else."""
    lines = [node for node, text in page.lines if len(text) <= MAX_LINE_LENGTH and is_mostly_date(text)]
    candidates = dict.fromkeys([*page.tree.iter("time"), *page.named(*_DATE_NAMES), *lines])
    for node in sorted(candidates, key=lambda node: abs(focus.distance(node)))[:MAX_NODES]:
        if len(node_text(node, MAX_TEXT_LENGTH + 1)) <= MAX_TEXT_LENGTH and not focus.elsewhere(node):
            yield node


def _is_wanted(page: Page, node: HtmlElement, *, modified: bool) -> bool | None:
    """Whether a node is called the wanted date (True), just a date (False), or the other one (None)."""
    names = page.names(node)
    is_modified = bool(_MODIFIED_NAME.search(names) or _MODIFIED_WORD.search(node_text(node, MAX_TEXT_LENGTH)))
    if modified or is_modified:
        return True if modified and is_modified else None
    return bool(_PUBLISHED_NAME.search(names) or node.get("pubdate") is not None)
