"""Rules that correct automatic extraction on the pages of a site: the field ``extractRules``, an extension.

A rule replaces the value of one field of the requested kind, by a value that a selector finds in the page, by a
constant, or by nothing. Values have the types of the schema, in which the server converts the text that was found. A
rule that finds nothing, or no value of the type, leaves the automatic value; the answer says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from math import comb
from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import Violation

#: The field of requests and of results.
EXTRACT_RULES: Final = "extractRules"
MAX_RULES: Final = 50
MAX_VALUE_LENGTH: Final = 1_000
#: Characters of the selectors and patterns of all rules of a request: a thousand are parsed in some 10 ms.
MAX_SELECTORS_LENGTH: Final = 5_000
#: Patterns: their length, the longest text that they search, their repetitions, and choices (``?`` and ``|``), of which
#: each repetition costs two.
MAX_PATTERN_LENGTH: Final = 200
MAX_SEARCHED: Final = 200
MAX_REPETITIONS: Final = 2
MAX_CHOICES: Final = 7


class ValueType(str, Enum):
    """Type of the value of a field, to which the text of a page is converted."""

    TEXT = "text"
    LINES = "text with line breaks"
    PRICE = "price"
    CURRENCY = "currency"
    AVAILABILITY = "InStock, OutOfStock, PreOrder or BackOrder"
    DATE = "date"
    NUMBER = "whole number"
    RATING = "rating"
    URL = "URL"
    LINK = "link"
    LINKS = "links"
    IMAGE = "image"
    IMAGES = "images"
    MEDIA = "audio or video files"
    TEXTS = "list of texts"
    NAMED = "name"
    AUTHORS = "authors"
    BREADCRUMBS = "breadcrumbs"
    GTIN = "GTIN"
    PLACE = "place"
    ORGANIZATION = "organization"
    SALARY = "salary"


#: Types of which a value has several parts, one for each element that is found.
LISTS: Final = frozenset({
    ValueType.LINKS, ValueType.IMAGES, ValueType.MEDIA, ValueType.TEXTS, ValueType.AUTHORS, ValueType.BREADCRUMBS,
    ValueType.GTIN,
})  # fmt: skip
AVAILABILITIES: Final = ("InStock", "OutOfStock", "PreOrder", "BackOrder")

_T = ValueType
_ARTICLE: Final = {
    "headline": _T.TEXT, "datePublished": _T.DATE, "dateModified": _T.DATE, "authors": _T.AUTHORS,
    "inLanguage": _T.TEXT, "breadcrumbs": _T.BREADCRUMBS, "mainImage": _T.IMAGE, "images": _T.IMAGES,
    "description": _T.TEXT, "articleBody": _T.LINES, "videos": _T.MEDIA, "audios": _T.MEDIA, "canonicalUrl": _T.URL,
}  # fmt: skip
_PRODUCT: Final = {
    "name": _T.TEXT, "price": _T.PRICE, "regularPrice": _T.PRICE, "currency": _T.CURRENCY,
    "availability": _T.AVAILABILITY, "brand": _T.NAMED, "sku": _T.TEXT, "mpn": _T.TEXT, "productId": _T.TEXT,
    "gtin": _T.GTIN, "color": _T.TEXT, "size": _T.TEXT, "style": _T.TEXT, "description": _T.LINES,
    "features": _T.TEXTS, "mainImage": _T.IMAGE, "images": _T.IMAGES, "aggregateRating": _T.RATING,
    "breadcrumbs": _T.BREADCRUMBS, "canonicalUrl": _T.URL,
}  # fmt: skip
_JOB: Final = {
    "jobPostingId": _T.TEXT, "jobTitle": _T.TEXT, "headline": _T.TEXT, "datePublished": _T.DATE,
    "dateModified": _T.DATE, "validThrough": _T.DATE, "jobStartDate": _T.DATE, "jobLocation": _T.PLACE,
    "description": _T.LINES, "employmentType": _T.TEXT, "baseSalary": _T.SALARY, "requirements": _T.TEXTS,
    "hiringOrganization": _T.ORGANIZATION, "remoteStatus": _T.TEXT,
}  # fmt: skip
_LISTING: Final = {"breadcrumbs": _T.BREADCRUMBS, "canonicalUrl": _T.URL}
_NAVIGATION: Final = {"items": _T.LINKS, "nextPage": _T.LINK, "pageNumber": _T.NUMBER}
_SECTION: Final = {**_NAVIGATION, "categoryName": _T.TEXT, "subCategories": _T.LINKS}
#: The fields that rules can set, by kind.
RULE_FIELDS: Final[Mapping[str, Mapping[str, ValueType]]] = {
    "product": _PRODUCT,
    "productList": {**_LISTING, "categoryName": _T.TEXT, "pageNumber": _T.NUMBER},
    "productNavigation": _SECTION,
    "article": _ARTICLE,
    "articleList": _LISTING,
    "articleNavigation": _SECTION,
    "forumThread": {"topic": _T.NAMED, "threadId": _T.TEXT},
    "jobPosting": _JOB,
    "jobPostingNavigation": _NAVIGATION,
    "pageContent": {
        **_LISTING, "headline": _T.TEXT, "title": _T.TEXT, "itemMain": _T.LINES, "nextPage": _T.LINK,
    },
}  # fmt: skip

#: Fields that hold what another one was read from: a rule of that one sets or removes them as well.
BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "price": ("currency", "currencyRaw"),
    "currency": ("currencyRaw",),
    "datePublished": ("datePublishedRaw",),
    "dateModified": ("dateModifiedRaw",),
    "validThrough": ("validThroughRaw",),
    "jobStartDate": ("jobStartDateRaw",),
}


class ExtractRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rule of one field. It has one of ``css``, ``xpath``, ``example``, ``value`` and ``remove``."""

    css: str | None = None
    xpath: str | None = None
    #: The value on this page, for which a selector is searched.
    example: str | None = None
    #: The value on each page.
    value: str | None = None
    #: Whether the field is left out.
    remove: bool = False
    #: Attribute to read instead of the text of the element.
    attribute: str | None = None
    #: Whether each element counts, not the first alone.
    all: bool = False
    #: Pattern whose first group, or match, is the value.
    regex: str | None = None

    def __str__(self) -> str:
        """The rule in a few words, for messages and sources."""
        if self.remove:
            return "remove"
        for name in ("css", "xpath"):
            if (selector := getattr(self, name)) is not None:
                return f"{selector} @{self.attribute}" if self.attribute else str(selector)
        return f"example {self.example}" if self.example is not None else f"value {self.value}"

    @property
    def has_selector(self) -> bool:
        return self.css is not None or self.xpath is not None


_FORMS: Final = ("css", "xpath", "example", "value", "remove")
_OPTIONS: Final = ("attribute", "all", "regex")
#: The parts that are parsed.
_PARSED: Final = ("css", "xpath", "regex")
_ALL_FIELDS: Final = frozenset(field for fields in RULE_FIELDS.values() for field in fields)
_STRINGS: Final = ("css", "xpath", "example", "value", "attribute", "regex")
_EXAMPLE: Final = 'Write {"css": "h1.title"}, for example.'
_NAME: Final = re.compile(r"[A-Za-z_][\w.:-]{0,99}")
_SHOWN: Final = 60


def faults_of(rules: Mapping[str, Any], place: str = EXTRACT_RULES) -> Iterator[Violation]:
    """Yield the faults of the rules of some kind, by field, without those that depend on the kind."""
    if len(rules) > MAX_RULES:
        yield Violation(place, f"must have at most {MAX_RULES} rules, got {len(rules)}", "Leave some out.")
        return
    length = sum(_selectors_length(rule) for rule in rules.values() if isinstance(rule, dict))
    if length > MAX_SELECTORS_LENGTH:
        rule_of_it = f"must have at most {MAX_SELECTORS_LENGTH} characters of selectors and patterns, got {length}"
        yield Violation(place, rule_of_it, "Write shorter selectors.")
        return
    for field, rule in rules.items():
        yield from _of_rule(f"{place}.{str(field)[:_SHOWN]}", rule, is_known=field in _ALL_FIELDS)


def _selectors_length(rule: dict[str, Any]) -> int:
    return sum(len(rule[name]) for name in _PARSED if isinstance(rule.get(name), str))


def faults_of_kind(kind: str, rules: Mapping[str, Any], place: str = EXTRACT_RULES) -> Iterator[Violation]:
    """Yield the faults of well-formed rules that depend on the kind of item."""
    known = RULE_FIELDS.get(kind)
    if known is None:
        remedy = f"The kinds that rules correct are {', '.join(RULE_FIELDS)}."
        yield Violation(place, f"cannot correct {kind[:_SHOWN]}", remedy)
        return
    for field, rule in rules.items():
        where = f"{place}.{field[:_SHOWN]}"
        if field not in known:
            yield Violation(where, f"is not a field of {kind} that a rule can set", f"Use {', '.join(known)}.")
        elif known[field] is ValueType.AVAILABILITY and rule.get("value") not in (None, *AVAILABILITIES):
            yield Violation(f"{where}.value", "is not an availability", f"Use one of {', '.join(AVAILABILITIES)}.")
        elif rule.get("all") and known[field] not in (*LISTS, ValueType.TEXT, ValueType.LINES):
            remedy = "Leave out all: the first element counts."
            yield Violation(
                f"{where}.all", f"is for fields with several values, and this is a {known[field].value}", remedy
            )


def _of_rule(place: str, rule: object, *, is_known: bool) -> Iterator[Violation]:
    if not isinstance(rule, dict):
        yield Violation(place, "must be an object", _EXAMPLE)
        return
    unknown = [str(name)[:_SHOWN] for name in rule if name not in (*_FORMS, *_OPTIONS)]
    if unknown:
        yield Violation(
            f"{place}.{unknown[0]}", "is not a part of a rule", f"Its parts are {', '.join((*_FORMS, *_OPTIONS))}."
        )
        return
    wrong = [name for name in _STRINGS if name in rule and not _is_text(rule[name])]
    if wrong:
        rule_of_it = f"must be a string of 1 to {MAX_VALUE_LENGTH} characters"
        yield Violation(f"{place}.{wrong[0]}", rule_of_it, "Write text in quotes, or leave it out.")
        return
    for name in ("remove", "all"):
        if not isinstance(rule.get(name, False), bool):
            yield Violation(f"{place}.{name}", "must be true or false", "Write true or false, without quotes.")
            return
    yield from _combination(place, rule)
    if not is_known:
        # It is refused for its field, and nothing of it is parsed.
        return
    yield from _selectors(place, rule)
    if "regex" in rule and (fault := fault_of_pattern(rule["regex"])):
        yield Violation(f"{place}.regex", fault, 'Write a short pattern such as "Brand: (.+)".')


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_VALUE_LENGTH


def _combination(place: str, rule: dict[str, Any]) -> Iterator[Violation]:
    forms = [name for name in _FORMS if name in rule and rule[name] is not False]
    if len(forms) != 1:
        yield Violation(place, f"must have exactly one of {', '.join(_FORMS)}", _EXAMPLE)
    elif forms[0] not in ("css", "xpath"):
        found = [name for name in _OPTIONS if rule.get(name)]
        if found:
            yield Violation(f"{place}.{found[0]}", f"needs css or xpath, not {forms[0]}", "Leave it out.")
    if "attribute" in rule and not _NAME.fullmatch(rule["attribute"]):
        yield Violation(f"{place}.attribute", "must be the name of an attribute", 'Write "href", for example.')


def _selectors(place: str, rule: dict[str, Any]) -> Iterator[Violation]:
    # Imported with the first rules: most crawls, and their servers, have none.
    from scrapy_ext.api.extraction.xpath import XPathError, of_css, of_xpath

    for name, parse in (("css", of_css), ("xpath", of_xpath)):
        if name in rule:
            try:
                parse(rule[name])
            except XPathError as error:
                remedy = 'Write "h1.title", for example.' if name == "css" else "Write \"//h1[@class='title']\"."
                yield Violation(f"{place}.{name}", str(error), remedy)


# ── patterns ──
#
# Python's matcher takes time without bounds for some patterns. Without repeated groups and references it tries at most
# each start, each length of each repetition and each choice: see steps_of.

_PART: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:P<\w+>|:)|[*+?]\?|\{[\d,]+\}\??|.", re.DOTALL)
#: A number of repetitions that leaves nothing to try.
_EXACT: Final = re.compile(r"\{\d+\}\??")
#: Characters of a pattern whose comparison takes as long as the rest of a step.
_PER_STEP: Final = 50


def fault_of_pattern(pattern: str) -> str | None:
    """Return the rule that a regular expression breaks; None for one that can be searched in a bounded time."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"must have at most {MAX_PATTERN_LENGTH} characters"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression ({error})"
    before = ""
    for part in _PART.findall(pattern):
        if (before == "(" and part[0] == "?") or (part[0] == "\\" and part[1] in "123456789"):
            return "must not have lookaheads, lookbehinds, flags, conditions and references to groups"
        if part[0] in "*+{" and before == ")":
            return "must not repeat a group"
        before = part
    repetitions, choices = _counts(pattern)
    if repetitions > MAX_REPETITIONS or 2 * repetitions + choices > MAX_CHOICES:
        return f"must have at most {MAX_REPETITIONS} repetitions (* + {{}}), and fewer beside several ? and |"
    return None


def steps_of(pattern: str, length: int) -> int:
    """Return the steps that a search for a pattern takes at most in a text of ``length`` characters."""
    repetitions, choices = _counts(pattern)
    tries = comb(length + repetitions + 1, repetitions + 1) << choices
    return tries * (_PER_STEP + len(pattern)) // _PER_STEP


def _counts(pattern: str) -> tuple[int, int]:
    """Return the numbers of repetitions and of choices."""
    repetitions = choices = 0
    for part in _PART.findall(pattern):
        if part in ("?", "??", "|"):
            choices += 1
        elif part[0] in "*+{" and not _EXACT.fullmatch(part):
            repetitions += 1
    return repetitions, choices
