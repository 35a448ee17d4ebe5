"""Parts of a job posting: type of employment, place of work, salary, description and requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple, Protocol

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.body import article_body, body_html
from scrapy_ext.server.extraction.auto.fields.money import currency_in, from_markup, from_text, iso_code
from scrapy_ext.server.extraction.auto.items import BaseSalary
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html
from scrapy_ext.server.extraction.auto.page.clean_html import text_of as clean_text
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.records import origin
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("jobs")


_PAGE = _VOCABULARY.pattern("page", re.IGNORECASE)
#: Headings of the requirements for candidates.
_REQUIREMENTS = _VOCABULARY.pattern("requirements", re.IGNORECASE)

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
    raw = one_line(text)
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


#: Shortest description, in characters.
MIN_LENGTH: Final = 120
MAX_NODES: Final = 60
MAX_REQUIREMENTS: Final = 50
MAX_REQUIREMENT_LENGTH: Final = 1_000
MAX_HEADINGS: Final = 2_000
MAX_HEADING_LENGTH: Final = 60

_DESCRIPTION_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION = _VOCABULARY.pattern("no_description")
_NO_TAGS: Final = frozenset({"meta", "a", "button", "form"})
_HEADING_TAGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "strong", "b", "dt", "summary", "p")


class JobDescription(NamedTuple):
    """A description as text and as clean HTML, and its source."""

    text: str | None
    html: str | None
    source: str


def description_of(page: Page, job: Thing | None, focus: Focus, headline: str | None) -> JobDescription:
    """Return the description of structured data, else of the part of the page named so, else its main text."""
    stated = job.text("description", "responsibilities") if job else None
    if job is not None and stated and len(stated) >= MIN_LENGTH:
        return JobDescription(stated, stated_html(job, stated, page.base_url), origin(job, "description"))
    node = _node(page, focus)
    if node is not None:
        clean = cleaned(node, page.base_url)
        text = clean_text(clean) if clean is not None else ""
        if clean is not None and len(text) >= MIN_LENGTH:
            return JobDescription(text, html_of(clean), "named part")
    body = article_body(page, focus, headline)
    return JobDescription(body.text or stated or None, body_html(page, body), "main text")


def _node(page: Page, focus: Focus) -> HtmlElement | None:
    """Return the named part with the most text that is not around the heading, too."""
    best: tuple[int, HtmlElement] | None = None
    for node in page.named(*_DESCRIPTION_NAMES)[:MAX_NODES]:
        if node in focus.path or node.tag in _NO_TAGS or _NO_DESCRIPTION.search(page.names(node)):
            continue
        length = len(node_text(node))
        if MIN_LENGTH <= length < MAX_VALUE_LENGTH and not focus.elsewhere(node):
            score = length * (4 if node.get("itemprop") == "description" else 1)
            if best is None or score > best[0]:
                best = (score, node)
    return best[1] if best else None


def requirements_of(page: Page, job: Thing | None, focus: Focus) -> list[str] | None:
    """Return the requirements: of structured data, else the items of a list below a heading that announces them."""
    names = ("qualifications", "skills", "experienceRequirements", "educationRequirements")
    stated = [line for text in (job.texts(*names) if job else ()) for line in _points(text)]
    if stated:
        page.sources.note("requirements", origin(job, *names))
        return list(dict.fromkeys(stated))[:MAX_REQUIREMENTS]
    for heading in _headings(page):
        if focus.elsewhere(heading):
            continue
        points = [text for item in _list_below(heading) if (text := node_text(item, MAX_REQUIREMENT_LENGTH))]
        if points:
            page.sources.note("requirements", f"list below {node_text(heading, MAX_HEADING_LENGTH)!r}")
            return points[:MAX_REQUIREMENTS]
    return None


def _points(text: str) -> Iterator[str]:
    for line in text.splitlines():
        point = one_line(line).lstrip("-•*· ")
        # Constants and lone numbers (months of experience) mean nothing to a reader.
        if len(point) > 3 and not point.isdigit():
            yield point[:MAX_REQUIREMENT_LENGTH]


def _headings(page: Page) -> Iterator[HtmlElement]:
    for node in islice(page.tree.iter(*_HEADING_TAGS), MAX_HEADINGS):
        text = node_text(node, MAX_HEADING_LENGTH + 1)
        if 3 < len(text) <= MAX_HEADING_LENGTH and _REQUIREMENTS.fullmatch(text):
            yield node


def _list_below(heading: HtmlElement) -> list[HtmlElement]:
    """Return the items of the list that follows a heading before any other text does."""
    node: HtmlElement | None = heading
    for _ in range(3):
        if node is None:
            return []
        following = node.getnext()
        if following is not None:
            found = following if following.tag in {"ul", "ol"} else next(following.iter("ul", "ol"), None)
            return [item for item in found if item.tag == "li"] if found is not None else []
        node = node.getparent()
    return []
