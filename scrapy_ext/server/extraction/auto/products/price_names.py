"""What elements with prices are called, what is written beside prices, and how much that says for and against them."""

from __future__ import annotations

import re
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.money import Money

PRICE = re.compile(r"pri[cs]e|prijs|preis|precio|prezzo|preco|prix|cena|cost(?!omer)|amount|(?:^|[\s_-])(?:deal|bid)")
_CURRENT = re.compile(
    r"sale|special|current|final|offer|actual|now|our|buy|main|reduced|discounted|promo|live|product|pdp|sell|brutto|incl|new"
)
REGULAR = re.compile(
    r"(?:^|[\s_-])(?:old|was|before|list|regular|crossed|original|rrp|msrp|uvp|previous|retail|compare|comp-?(?:value|price)|standard|full|former"
    r"|initial|vorher|ancien|statt)(?:$|[\s_-])|(?:old|list|regular|was)-?price|price-?(?:old|was|list|before)|strike"
    r"|line-?through"
)
_NOT_THE_PRICE = re.compile(
    r"shipping|delivery|versand|livraison|saving|(?:^|[\s_-])sav(?:e|ed)|discount(?!ed)|rabat|percent|install?ment|per-?unit"
    r"|unit-?price|per-?month|monthly|parcel|cuotas?(?:$|[\s_-])|raten?(?:$|[\s_-])|tasso|mensil|mensual|financ|total|cart|basket|points|bonus|cash-?back|rating|review|count|quantity"
    r"|filter|swatch|variant|variation|option|warranty|insurance|(?:^|[\s_-])(?:no)?(?:tax|vat)|deposit|coupon|voucher"
    r"|gift|exclu|without|netto|subscri"
)
_LABEL_OF_ANOTHER = re.compile(
    r"\b(?:save|saving|was|rrp|msrp|uvp|list price|reg\.|statt|instead|before|from only|shipping|delivery|versand"
    r"|free|over|up to|off|deposit|month|mois|monat|mes|mese|mtl|vat|excl|zzgl|points|economize|risparmi|ahorr|avant"
    r"|reviews?)(?:\b|$)",
    re.IGNORECASE,
)
_PER = re.compile(r"/\s*(?:\d+\s*)?(?:[a-zа-я]{1,7}|100)\b|\bx\s*\d|\d\s*x\b|\bper \w+|\(.*\d.*\)", re.IGNORECASE)
#: What is called both price and discount is the reduced price, not what is saved.
_DISCOUNTED = re.compile(
    r"pri[cs]e[\w-]{0,12}discount(?!s?[-_]*(?:amount|value|percent|label|badge))|discount[\w-]{0,8}pri[cs]e"
)
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
