"""What a job pays: an amount or a range of amounts, its currency, and the time that it is for."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from zyte_common_items import BaseSalary

from scrapy_ext.server.extraction.auto.fields.money import currency_in, from_markup, from_text, iso_code
from scrapy_ext.server.extraction.auto.page.markup import Thing, text_of
from scrapy_ext.server.extraction.auto.page.text import one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_TEXT_LENGTH: Final = 200

#: A number with its signs of thousands, and what makes it one of thousands.
_AMOUNT: Final = (
    r"(?:\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?|\d{1,9}(?:[.,]\d{1,2})?)(?![\d%])(?:\s?(?:k|tsd|mil)\b)?"
)
_SIGN: Final = r"(?:[A-Z]{0,3}[$€£¥₹₽₴₺₩₪₫฿₱₦]|\b[A-Z]{3}\b|kr\b|zł|euros?\b|руб\.?|Kč|Ft\b)"
_DASH: Final = r"(?:-|–|—|\bto\b|\bbis\b|\bà\b|\ba\b|\bor\b|\band\b|\bdo\b|\bдо\b)"
#: An amount, or two that are a range.
_MONEY = re.compile(
    rf"(?P<s1>{_SIGN})?\s?(?<![\d.,])(?P<low>{_AMOUNT})\s?(?P<s2>{_SIGN})?"
    rf"(?:[^\d.,;()]{{0,12}}?{_DASH}\s?(?P<s3>{_SIGN})?\s?(?P<high>{_AMOUNT})\s?(?P<s4>{_SIGN})?)?",
    re.IGNORECASE,
)
_VOCABULARY: Final = load_vocabulary("jobs")
#: What makes a lone amount the end of a range.
_AT_LEAST = _VOCABULARY.pattern("at_least", re.IGNORECASE)
_AT_MOST = _VOCABULARY.pattern("at_most", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s?(?:k|tsd|mil)\b", re.IGNORECASE)
_RATES: Final = tuple(_VOCABULARY.table("rates").items())
_RATE_WORDS: Final = tuple(
    (name, re.compile(rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])", re.IGNORECASE)) for name, words in _RATES
)
_OF_UNIT: Final = {"HOUR": "hourly", "DAY": "daily", "WEEK": "weekly", "MONTH": "monthly", "YEAR": "annual"}


def salary_of_markup(thing: Thing | None, url: str) -> BaseSalary | None:
    """The salary that the markup of a job tells; numbers of nought are none."""
    for value in thing.values("baseSalary", "estimatedSalary", "salary") if thing else ():
        if isinstance(value, str):
            found = salary_in(value, url) or _bare(value, thing, url)
        else:
            found = _of_amount(value, thing, url)
        if found is not None:
            return found
    return None


def _of_amount(amount: Thing, job: Thing | None, url: str) -> BaseSalary | None:
    inner = next(iter(amount.things("value")), amount)
    low, high = (from_markup(inner.text(name)) for name in ("minValue", "maxValue"))
    one = from_markup(inner.text("value", "@value", "median", "price"))
    if not (low or high or one):
        return salary_in(text_of(amount), url)
    raw_currency = amount.text("currency", "priceCurrency") or (job.text("salaryCurrency") if job else None)
    unit = (inner.text("unitText", "unitCode") or amount.text("unitText", "duration") or "").upper()
    low, high = low or (one if not high else None), high or (one if not low else None)
    return BaseSalary(
        valueMin=low.amount if low else None,
        valueMax=high.amount if high else None,
        currency=iso_code(raw_currency, url),
        currencyRaw=raw_currency,
        rateType=_OF_UNIT.get(unit) or rate_in(unit),
    )


def _bare(text: str, job: Thing | None, url: str) -> BaseSalary | None:
    """A number without a currency, which stands in a property of its own."""
    amount, currency = from_markup(text), job.text("salaryCurrency") if job else None
    if amount is None:
        return None
    return BaseSalary(
        raw=one_line(text),
        valueMin=amount.amount,
        valueMax=amount.amount,
        currency=iso_code(currency, url),
        currencyRaw=currency,
    )


def salary_in(text: str | None, url: str) -> BaseSalary | None:
    """The salary in a short text, a range before a lone amount; None without an amount that has a currency."""
    raw = one_line(text)
    if not raw or len(raw) > MAX_TEXT_LENGTH:
        return None
    found = [(match, currency) for match in _MONEY.finditer(raw) if (currency := _currency(match)) is not None]
    match, currency = next((pair for pair in found if pair[0]["high"]), found[0] if found else (None, None))
    if match is None:
        return None
    low, high = _value(match["low"]), _value(match["high"])
    if low is not None and high is not None and _THOUSANDS.search(match["high"]) and low < 1000:
        # 80-120k
        low *= 1 if _THOUSANDS.search(match["low"]) else 1000
    values = [value for value in (low, high) if value]
    if not values:
        return None
    lone = len(values) == 1
    before = raw[: match.start()]
    return BaseSalary(
        raw=raw,
        valueMin=None if lone and _AT_MOST.search(before) else _written(min(values)),
        valueMax=None if lone and _AT_LEAST.search(before) else _written(max(values)),
        currency=iso_code(currency, url),
        currencyRaw=currency,
        rateType=rate_in(raw),
    )


def rate_in(text: str) -> str | None:
    """The time that an amount is for, as a text tells it."""
    return next((name for name, words in _RATE_WORDS if words.search(text)), None)


def has_money(text: str) -> bool:
    """Whether an amount with a currency stands in the beginning of a text."""
    return any(_currency(match) for match in _MONEY.finditer(text[:MAX_TEXT_LENGTH]))


def _currency(match: re.Match[str]) -> str | None:
    """The currency of an amount, where a sign or code stands by it."""
    if not any(match[name] for name in ("s1", "s2", "s3", "s4")):
        return None
    return currency_in(_THOUSANDS.sub("", match.group()))


def _value(text: str | None) -> Decimal | None:
    money = from_text(_THOUSANDS.sub("", text)) if text else None
    if text is None or money is None:
        return None
    return money.value * (1000 if _THOUSANDS.search(text) else 1)


def _written(value: Decimal) -> str:
    return f"{value.normalize():f}"
