"""Prices on terms, by a label with nothing else, such as "With the club card": in the text of a price or above it.

A price with something else that is sold with the product is one too, where its label stands beside it: "With case".
So is that for some visitors: "Children".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.price_notation import Place
from scrapy_ext.server.extraction.auto.fields.prices import amounts_in
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Most elements between a label and the price below it, and lines that are read: some are around both.
MAX_DISTANCE: Final = 3
MAX_LINES: Final = 3
MAX_LABEL_LENGTH: Final = 40

_LABEL, _EXTRA, _CONCESSION = load_vocabulary("money").patterns(
    "terms_label", "extra_label", "concession_in_list", flags=re.IGNORECASE
)
_ROWS: Final = frozenset({"td", "li", "dd"})
_AROUND: Final = " :：-–—()[]*"


def is_on_terms(page: Page, node: HtmlElement, text: str, before: str, place: Place) -> bool:
    """Return whether the only amount of a text is labelled as one on terms: in the text, before it or above it."""
    amounts = amounts_in(text, place)
    if len(amounts) != 1:
        return False
    own = f"{text[: amounts[0].start]} {text[amounts[0].end :]}".strip(_AROUND)
    if own or before.strip(_AROUND):
        is_listed = any(part.tag in _ROWS for part in (node, *islice(node.iterancestors(), 2)))
        return _is_label(own or before, _LABEL, _EXTRA, *([_CONCESSION] if is_listed else []))
    # The last line of a name is above a price as well: "With arms".
    return _is_label(_line_above(page, node), _LABEL)


def _is_label(text: str, *labels: re.Pattern[str]) -> bool:
    text = text.strip(_AROUND)
    return 0 < len(text) <= MAX_LABEL_LENGTH and any(label.fullmatch(text) for label in labels)


def _line_above(page: Page, node: HtmlElement) -> str:
    """Return the last line before an element, if it is right before it."""
    at = page.order[node]
    behind = bisect_left(page.line_positions, at)
    for line, text in reversed(page.lines[max(0, behind - MAX_LINES) : behind]):
        position = page.order[line]
        if page.outline.ends[position] <= at:
            return text if at - position <= MAX_DISTANCE else ""
    return ""
