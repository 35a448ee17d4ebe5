"""Codes of vouchers, with labels that numbers of products have as well: ``Save 10% today``, ``Code: AUTUMN10``."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Elements around a code that may be named after vouchers.
MAX_AROUND: Final = 4
#: Lines before a code in which an offer is searched, and the longest of them, in characters.
LINES_BEFORE: Final = 3
MAX_OFFER_LENGTH: Final = 100
#: Codes of so many characters may be parts of others.
SHORTEST: Final = 3

_VOCABULARY: Final = load_vocabulary("products")
_BARE_CODE, _VOUCHER_CODE, _WORDED_CODE, _OFFER = _VOCABULARY.patterns(
    "bare_code", "voucher_code", "worded_code", "voucher", flags=re.IGNORECASE
)
_PART = _VOCABULARY.pattern("voucher_part")
_SIGNS: Final = " :：#."


def is_voucher(page: Page, node: HtmlElement, label: str, code: str) -> bool:
    """Return whether a code is that of a voucher: behind a word for codes of any kind, and in a part about vouchers, or
    below an offer and with a word in it. The shortest with the number of percent need no offer.
    """
    code = code.strip(_SIGNS)
    if not _BARE_CODE.fullmatch(label.strip(_SIGNS)):
        return False
    has_percent = _VOUCHER_CODE.fullmatch(code) is not None
    if (has_percent and len(code) <= SHORTEST) or any(
        _PART.search(page.names(part)) for part in (node, *islice(node.iterancestors(), MAX_AROUND))
    ):
        return True
    # Whole words with the number of percent are rare as numbers of products, so that the offer may be farther away.
    lines = LINES_BEFORE if has_percent else 1
    return (has_percent or _WORDED_CODE.fullmatch(code) is not None) and _is_below_offer(page, node, lines)


def _is_below_offer(page: Page, node: HtmlElement, lines: int) -> bool:
    """Return whether the line with a code, or one of the nearest before it, speaks of a discount."""
    behind = bisect_left(page.line_positions, page.order[node])
    before = reversed(page.lines[max(0, behind - lines) : behind])
    # What stands above the name of a product is about the product: "On sale".
    near = takewhile(lambda line: line[0].tag != "h1", before)
    texts = [node_text(node, MAX_OFFER_LENGTH + 1), *(text for _, text in near)]
    return any(len(text) <= MAX_OFFER_LENGTH and _OFFER.search(text) for text in texts)
