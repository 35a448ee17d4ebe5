"""What elements with prices are called, what is written beside prices, and how much that says for and against them."""

from __future__ import annotations

import re
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.money import Money
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("products")
PRICE = _VOCABULARY.pattern("price_name")
_CURRENT = _VOCABULARY.pattern("current_price")
REGULAR = _VOCABULARY.pattern("regular_price")
_NOT_THE_PRICE = _VOCABULARY.pattern("not_the_price")
_LABEL_OF_ANOTHER = _VOCABULARY.pattern("label_of_another", re.IGNORECASE)
_PER = re.compile(r"/\s*(?:\d+\s*)?(?:[a-zа-я]{1,7}|100)\b|\bx\s*\d|\d\s*x\b|\bper \w+|\(.*\d.*\)", re.IGNORECASE)
#: What is called both price and discount is the reduced price, not what is saved.
_DISCOUNTED = _VOCABULARY.pattern("discounted")
NO_LETTERS = re.compile(r"[\W\d_]+")
_BIG = re.compile(r"large|big|xl|huge|main|bold|strong|fs[23]\d|h[1-3]\b")
_BIG_TAGS: Final = frozenset({"strong", "b", "h2", "h3", "h4", "em"})


def score_of_names(node: HtmlElement, own: str, names: str, *, named: bool) -> float:
    """The score of what an element (``own``) and its surroundings (``names``) are called."""
    score = 2.5 if PRICE.search(own) else 1.5 if named else 0.0
    score += 2.0 if node.get("itemprop") in {"price", "lowPrice"} else 0.0
    if _DISCOUNTED.search(own):
        own, names = (_DISCOUNTED.sub("price-now", text) for text in (own, names))
    score += 0.7 if _CURRENT.search(own) else 0.0
    score += 0.5 if node.tag in _BIG_TAGS or _BIG.search(own) else 0.0
    score -= 2.5 if _NOT_THE_PRICE.search(own) else 0.0
    score -= 1.5 if _NOT_THE_PRICE.search(names) else 0.0
    return score - (1.0 if REGULAR.search(names) else 0.0)


def score_of_words(text: str, money: Money) -> float:
    """The score of what is written with an amount."""
    score = 2.0 if money.currency_raw else -1.0
    words = len(NO_LETTERS.sub("", text))
    score -= 0.0 if words <= 6 else 0.5 if words <= 15 else 1.5
    score -= 2.5 if _LABEL_OF_ANOTHER.search(text) else 0.0
    return score - (1.5 if _PER.search(text) else 0.0)
