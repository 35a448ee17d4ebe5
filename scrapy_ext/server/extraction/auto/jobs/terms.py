"""Terms of a job: type of employment, remote work, salary."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, Protocol

from scrapy_ext.server.extraction.auto.fields.money import currency_in, from_markup, from_text, iso_code
from scrapy_ext.server.extraction.auto.items import BaseSalary
from scrapy_ext.server.extraction.auto.page import Page, Thing, one_line
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("jobs")


_PAGE = _VOCABULARY.pattern("page", re.IGNORECASE)
_TYPES: Final = tuple(_VOCABULARY.table("types").items())
_TYPE_WORDS: Final = tuple((name, re.compile(rf"\b(?:{words})\b|^(?:{words})$", re.I)) for name, words in _TYPES)
_REMOTE: Final = tuple(_VOCABULARY.table("remote").items())
_REMOTE_WORDS: Final = tuple((name, re.compile(rf"\b(?:{words})\b|^(?:{words})$", re.I)) for name, words in _REMOTE)
_NOT = _VOCABULARY.pattern("not", re.IGNORECASE)


def is_of_jobs(page: Page) -> bool:
    """Return whether the title or the URL of a page is about jobs."""
    return _PAGE.search(f"{page.title or ''} {page.url.replace('-', ' ')[:500]}") is not None


class TextReader(Protocol):
    """Function that reads a value from a text; with ``whole``, from one with hardly anything else."""

    def __call__(self, text: str, *, whole: bool = False) -> str | None:
        """Return the value, if there is one."""


def employment_type(text: str, *, whole: bool = False) -> str | None:
    """Return the types of employment in a text, joined; with ``whole``, of a text with hardly anything else."""
    found = [(name, match) for name, words in _TYPE_WORDS if (match := words.search(text))]
    if whole and sum(len(match.group()) for _, match in found) < 0.6 * len(text):
        return None
    return ", ".join(name for name, _ in found) or None


def remote_status(text: str, *, whole: bool = False) -> str | None:
    """Return ``remote``, ``hybrid`` or ``on-site`` as a text has it; None where it denies it."""
    for name, words in _REMOTE_WORDS:
        match = words.search(text)
        if match and not _NOT.search(text) and (not whole or len(match.group()) >= 0.6 * len(text)):
            return name
    return None


def stated_type(job: Thing | None) -> str | None:
    """Return the type of employment of structured data: in words for constants of schema.org, else as written."""
    texts = [one_line(text) for text in job.texts("employmentType")][:5] if job else []
    types = [employment_type(text.rpartition("/")[2]) or text for text in texts]
    return ", ".join(dict.fromkeys(types)) or None


def stated_remote(job: Thing | None) -> str | None:
    """Return ``remote`` where the structured data of a job says so."""
    stated = job.text("jobLocationType") if job else None
    return "remote" if stated and "TELECOMMUTE" in stated.upper() else remote_status(stated or "")


MAX_SALARY_LENGTH: Final = 200
#: Signs without a width, which pages put around the dash of a range.
_ZERO_WIDTH: Final = re.compile("[\u200b-\u200d\u2060\ufeff]")

#: A number with thousands separators, or with a word for thousands.
_AMOUNT: Final = (
    r"(?:\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?|\d{1,9}(?:[.,]\d{1,2})?)(?![\d%])(?:\s?(?:k|tsd|mil)\b)?"
)
_SIGN: Final = _VOCABULARY.text("sign")
_DASH: Final = _VOCABULARY.text("dash")
#: An amount, or two that are a range.
_MONEY = re.compile(
    rf"(?P<s1>{_SIGN})?\s?(?<![\d.,])(?P<low>{_AMOUNT})\s?(?P<s2>{_SIGN})?"
    rf"(?:[^\d.,;()]{{0,12}}?{_DASH}\s?(?P<s3>{_SIGN})?\s?(?P<high>{_AMOUNT})\s?(?P<s4>{_SIGN})?)?",
    re.IGNORECASE,
)
#: Words that make a lone amount the end of a range.
_AT_LEAST = _VOCABULARY.pattern("at_least", re.IGNORECASE)
_AT_MOST = _VOCABULARY.pattern("at_most", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s?(?:k|tsd|mil)\b", re.IGNORECASE)
_RATES: Final = tuple(_VOCABULARY.table("rates").items())
_RATE_WORDS: Final = tuple(
    (name, re.compile(rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])", re.IGNORECASE)) for name, words in _RATES
)
_OF_UNIT: Final = {"HOUR": "hourly", "DAY": "daily", "WEEK": "weekly", "MONTH": "monthly", "YEAR": "annual"}


def salary_of_markup(thing: Thing | None, url: str) -> BaseSalary | None:
    """Return the salary in the structured data of a job; amounts of zero are none."""
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
    """Return the salary in a short text, a range before a lone amount; None without an amount with a currency."""
    raw = one_line(_ZERO_WIDTH.sub("", text or ""))
    if not raw or len(raw) > MAX_SALARY_LENGTH:
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
        valueMin=None if lone and _AT_MOST.search(before) else _formatted(min(values)),
        valueMax=None if lone and _AT_LEAST.search(before) else _formatted(max(values)),
        currency=iso_code(currency, url),
        currencyRaw=currency,
        rateType=rate_in(raw),
    )


def rate_in(text: str) -> str | None:
    """Return the time that an amount is for."""
    return next((name for name, words in _RATE_WORDS if words.search(text)), None)


def has_money(text: str) -> bool:
    """Return whether the beginning of a text has an amount with a currency."""
    return any(_currency(match) for match in _MONEY.finditer(text[:MAX_SALARY_LENGTH]))


def _currency(match: re.Match[str]) -> str | None:
    if not any(match[name] for name in ("s1", "s2", "s3", "s4")):
        return None
    return currency_in(_THOUSANDS.sub("", match.group()))


def _value(text: str | None) -> Decimal | None:
    money = from_text(_THOUSANDS.sub("", text)) if text else None
    if text is None or money is None:
        return None
    return money.value * (1000 if _THOUSANDS.search(text) else 1)


def _formatted(value: Decimal) -> str:
    return f"{value.normalize():f}"
