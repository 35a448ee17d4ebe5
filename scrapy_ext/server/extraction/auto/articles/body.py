"""The text of an article, and its HTML.

The box that holds most of the prose of the page is read line by line. Where it has hardly any of what a coarse look at
the page finds, and the page does not call it its article, a library is asked; and where the page's markup has the whole
text, and the page itself less than half of it, as when a script is yet to write it, that of the markup is taken.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles import boilerplate
from scrapy_ext.server.extraction.auto.articles.body_lines import text_runs
from scrapy_ext.server.extraction.auto.articles.libraries import MAX_ELEMENTS, Body, careful_text, coarse_text
from scrapy_ext.server.extraction.auto.articles.prose import Prose
from scrapy_ext.server.extraction.auto.articles.runs import Run, runs_of, text_of
from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: With less than this part of what the coarse look finds, the box was not that of the article.
TOO_LITTLE: Final = 0.3
#: With less than this part of a text in the markup that is at least so long, in characters, the page does not show it.
HALF: Final = 0.5
MIN_STATED: Final = 500

_MEDIA: Final = frozenset(("img", "picture", "video", "audio", "iframe", "figure", "embed", "svg", "source", "track"))
_EMPTY: Final = _MEDIA | {"br", "hr", "td", "th"}
_PICTURED = re.compile(r"caption|image|photo|picture|media|figure")

#: The lines before the text: headline, byline, date.
MAX_HEAD_LINES: Final = 3
MAX_BYLINE_LENGTH: Final = 160
_VOCABULARY: Final = load_vocabulary("article_lines")
_BYLINE_WORDS = _VOCABULARY.pattern("byline_words")
_WORD = re.compile(r"[^\W_]")
_LETTER = re.compile(r"[^\W\d_]")


def article_body(
    page: Page, focus: Focus, headline: str | None, known: Iterable[str] = (), stated: Thing | None = None
) -> Body:
    """The text of an article: rather a sentence too few than a menu too many.

    Lines at its beginning that say nothing but the headline, or what is ``known`` from elsewhere (who wrote it,
    when), are not part of it. ``stated`` is the article of the markup.
    """
    prose = Prose(page, focus)
    runs = text_runs(runs_of(page, prose.box, prose.noise), focus.heading, headline or "")
    runs = runs[_head_lines([run.text for run in runs], headline or "", known) :]
    body = Body(text_of(runs), prose.box, _kept_part(prose, runs) if runs else None)
    if not prose.marked:
        body = _wider(page, body, headline or "", known)
    whole = (stated.text("articleBody") if stated else None) or ""
    return Body(whole) if len(whole) >= MIN_STATED and len(body.text) < HALF * len(whole) else body


def _wider(page: Page, body: Body, headline: str, known: Iterable[str]) -> Body:
    """The body, or what a library finds where that is much more."""
    coarse = coarse_text(page)
    if len(body.text) >= TOO_LITTLE * len(coarse):
        return body
    text = careful_text(page, copy.deepcopy(page.tree))
    text = text if len(text) >= TOO_LITTLE * len(coarse) else coarse
    lines = text.splitlines()
    return Body("\n".join(lines[_head_lines(lines, headline, known) :]).lstrip())


def _head_lines(lines: list[str], headline: str, known: Iterable[str]) -> int:
    """How many of the first lines say only what is told elsewhere; never all."""
    told = sorted({part.casefold() for part in known if part}, key=len, reverse=True)
    for position, line in enumerate(lines[:MAX_HEAD_LINES]):
        is_headline = bool(headline) and line.casefold() == headline.casefold()
        if not is_headline and not _says_only(line, told):
            return position
    return min(MAX_HEAD_LINES, max(0, len(lines) - 1))


def _says_only(line: str, told: list[str]) -> bool:
    """Whether a line says nothing, or nothing but what is told already, as bylines do."""
    if not _WORD.search(line):
        return True
    if len(line) > MAX_BYLINE_LENGTH:
        return False
    rest = line.casefold()
    for part in told:
        rest = rest.replace(part, " ")
    # Without any of it, the line is something else, however short.
    return rest != line.casefold() and not _LETTER.search(_BYLINE_WORDS.sub(" ", rest))


def _kept_part(prose: Prose, runs: list[Run]) -> HtmlElement | None:
    """A copy of the box with the text of the runs only. Pictures and the like stay, with their captions."""
    box = prose.box
    if sum(1 for _ in zip(range(MAX_ELEMENTS + 1), box.iter(), strict=False)) > MAX_ELEMENTS:
        return None
    kept = {piece for run in runs for piece in run.pieces}
    part = copy.deepcopy(box)
    part.tail = None
    gone: list[HtmlElement] = []
    shown: set[HtmlElement] = set()
    for node, twin in zip(box.iter(), part.iter(), strict=True):
        parent = node.getparent()
        if parent in shown or (node in prose.noise and _is_shown(node)):
            shown.add(node)
            if node in prose.noise:
                twin.tail = twin.tail if (node, True) in kept else None
            continue
        if node in prose.noise:
            gone.append(twin)
        if (node, False) not in kept:
            twin.text = None
        if node is not box and (node, True) not in kept:
            twin.tail = None
    for twin in gone:
        if twin.getparent() is not None:
            twin.drop_tree()
    _prune(part)
    return part


def _is_shown(node: HtmlElement) -> bool:
    """Whether what is no text is a picture, or something else to look at or to hear."""
    if node.tag in _MEDIA:
        return True
    names = f"{node.get('class', '')} {node.get('id', '')}".lower()
    return (
        bool(_PICTURED.search(names))
        and not boilerplate.OTHER_THINGS.search(names)
        and next(node.iter("img", "video", "audio", "iframe"), None) is not None
    )


def _prune(part: HtmlElement) -> None:
    """Take out elements without anything in them."""
    for node in reversed(list(part.iterdescendants())):
        if node.tag not in _EMPTY and not len(node) and not (node.text or "").strip():
            if node.text and not node.tail:
                node.tail = " "
            node.drop_tree()
