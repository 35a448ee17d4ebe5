"""Parts of the text of a heading or a link that are the name of an entry: without badge, kicker, summary and facts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NAME_LENGTH: Final = 300
#: Pieces of text of a heading or a link that are read.
MAX_PIECES: Final = 12
#: Fewest words of a heading that is the name, rather than that of a section, above a heading of a lower level.
FEWEST_WORDS: Final = 3
#: How much longer than the heading above it a summary is.
LONGER: Final = 1.3
#: Badges before a name, each a text of its own.
BADGE = load_vocabulary("lists").pattern("badge", re.IGNORECASE)
#: The end of a sentence, or of a text that was cut; or the length of one.
SENTENCE = re.compile(r"[.。．।۔]$|[.!?。！？]\s.{20}|.{150}")
_CUT = re.compile(r"(?:\.{3}|…)$")
_KICKER = load_vocabulary("page_parts").pattern("heading_kicker")
_SEPARATORS: Final = " :：–—|·•/-"
#: Elements that stand in lines of their own.
_BLOCKS: Final = frozenset({"p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6"})


def name_in(node: HtmlElement) -> str:
    """Return the text of a node without the badge at its beginning (``New``, ``Sale``)."""
    pieces = _pieces(node)
    text = node_text(node, MAX_NAME_LENGTH)
    if len(pieces) > 1 and BADGE.fullmatch(pieces[0]):
        return text.removeprefix(one_line(pieces[0])).strip()
    return text


def headline_in(page: Page, heading: HtmlElement) -> str:
    """Return the text of a heading without the badge and the kicker at its beginning."""
    text = name_in(heading)
    for part in islice(heading.iterdescendants("*"), MAX_PIECES):
        if _KICKER.search(page.names(part)) and text.startswith(kicker := node_text(part, MAX_NAME_LENGTH)):
            text = text.removeprefix(kicker).lstrip(_SEPARATORS) or text
    return text


def main_first(headings: Sequence[HtmlElement]) -> list[HtmlElement]:
    """Return the headings of a link with the one first that has the name: the longest, as others are those of sections.

    A longer one of a lower level below a heading of several words is a summary.
    """
    ranked = sorted(headings, key=lambda node: -len(node_text(node, MAX_NAME_LENGTH)))
    for node in headings:
        if node is ranked[0]:
            break
        text, below = node_text(node, MAX_NAME_LENGTH), node_text(ranked[0], MAX_NAME_LENGTH)
        is_sentence = SENTENCE.search(below) or _CUT.search(below) or len(below) >= LONGER * len(text)
        if node.tag < ranked[0].tag and len(text.split()) >= FEWEST_WORDS and is_sentence:
            return [node, *(other for other in ranked if other is not node)]
    return ranked


def names_in_link(link: HtmlElement, titles: Sequence[HtmlElement], labels: frozenset[str]) -> list[str]:
    """Return the texts of a link that may be the name: all of it, of one with two lines each, of more none.

    Of two lines, the name is the one that is named as a title, or the one that no other entry has.
    """
    pieces = _pieces(link)
    if len(pieces) > 2:  # A link with more texts is a box rather than a line.
        return []
    parts = [node for node in islice(link.iterdescendants("*"), MAX_PIECES) if one_line(node.text) in pieces]
    if len(pieces) < 2 or len(parts) < 2 or BADGE.fullmatch(pieces[0]):
        return [name_in(link)]
    titled = [one_line(node.text) for node in parts if node in titles]
    if len(titled) == 1:
        return titled
    if not all(node.tag in _BLOCKS for node in parts):
        return [name_in(link)]
    return sorted(pieces, key=labels.__contains__)


def _pieces(node: HtmlElement) -> list[str]:
    return [piece for part in islice(node.itertext(), MAX_PIECES) if (piece := one_line(part))]
