"""Answers to ``customAttributes`` by rules: from the item, labelled values, structured data and metadata of the page.

A value is taken where its label matches the name of the attribute. Nothing is concluded from prose, with one exception:
where an attribute has few possible values, and the page names exactly one of them. A doubtful value is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from scrapy_ext.api.extraction.attributes import MAX_ITEMS, Attribute, answer_of
from scrapy_ext.server.extraction.auto.fields.prices import from_text
from scrapy_ext.server.extraction.auto.page import Focus, Page, one_line
from scrapy_ext.server.extraction.auto.page.labelled import Labels
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_THINGS: Final = 200
MAX_PAIRS: Final = 3_000
MAX_LINES: Final = 3_000
#: The least likeness of a label and the name of an attribute.
ENOUGH: Final = 0.75

_VOCABULARY: Final = load_vocabulary("attributes")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_NUMBER = re.compile(r"(?<![\w.,-])-?\d[\d.,'\u00a0\u202f ]*")
_YES, _NO = _VOCABULARY.patterns("yes", "no", flags=re.IGNORECASE)
_PARTS = re.compile(r"\s*(?:[;•|\n]|,(?!\d))\s*")
#: Words of names without a meaning of their own.
_EMPTY: Final = frozenset(_VOCABULARY.words("empty"))


class _LabelledValue(NamedTuple):
    """A label and its value, and the rank of their source: 0 is the most reliable."""

    words: frozenset[str]
    value: str
    place: int


class Attributes:
    """The answers of one page. ``item`` is the item that was extracted from it."""

    def __init__(self, page: Page, item: dict[str, Any]) -> None:
        self._page = page
        self._item = item
        self._known = list(_all_values(page, item))

    def values(self, asked: dict[str, Attribute]) -> dict[str, Any]:
        """Return the answer for each attribute; None where none is certain."""
        return {name: self._answer(name, attribute) for name, attribute in asked.items()}

    def _answer(self, name: str, attribute: Attribute) -> Any:
        if attribute.type == "object":
            found = self.values(attribute.properties or {})
            return found if any(value is not None for value in found.values()) else None
        for candidate in self._candidates(name, attribute):
            value = _converted(candidate.value, attribute)
            if value is not None:
                return value
        return self._named_choice(attribute)

    def _candidates(self, name: str, attribute: Attribute) -> list[_LabelledValue]:
        wanted = _words(name)
        described = wanted | _words(attribute.description)
        scored = [
            (score, each) for each in self._known if (score := _likeness(each.words, wanted, described)) >= ENOUGH
        ]
        scored.sort(key=lambda pair: (-pair[0], pair[1].place))
        return [each for _, each in scored[:10]]

    def _named_choice(self, attribute: Attribute) -> Any:
        """Return the only one of several possible values that the headings and short lines of the page name."""
        choices = [choice for choice in attribute.enum or () if isinstance(choice, str) and len(choice) > 2]
        if attribute.type != "string" or len(choices) < 2 or len(choices) != len(attribute.enum or ()):
            return None
        lines = "\n".join(text for _, text in self._page.lines[:MAX_LINES])
        text = f"{self._page.title or ''}\n{self._page.meta('description') or ''}\n{lines}".casefold()
        named = [each for each in choices if re.search(rf"(?<!\w){re.escape(each.casefold())}(?!\w)", text)]
        return named[0] if len(named) == 1 else None


def _all_values(page: Page, item: dict[str, Any]) -> Iterator[_LabelledValue]:
    yield from _of_data(item, 0, 2)
    focus = Focus(page, page.meta("og:title"), page.title)
    for pair in Labels(page, focus).pairs()[:MAX_PAIRS]:
        yield _LabelledValue(_words(pair.label), pair.value, 1)
    for thing in page.markup.all()[:MAX_THINGS]:
        for name in thing.properties:
            if text := thing.text(name):
                yield _LabelledValue(_words(name), text, 2)
        # {"@type": "PropertyValue", "name": "Wattage", "value": "40"}
        label, value = thing.text("name"), thing.text("value", "@value")
        if label and value:
            yield _LabelledValue(_words(label[:100]), value, 1)
    for name, contents in page.metas.items():
        yield _LabelledValue(_words(name.rpartition(":")[2]), contents[0], 3)


def _of_data(data: dict[str, Any], place: int, depth: int) -> Iterator[_LabelledValue]:
    """Yield the fields of the item, and its properties by their names."""
    for name, value in data.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield _LabelledValue(_words(name), str(value), place)
        elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            yield _LabelledValue(_words(name), "\n".join(value), place)
        elif isinstance(value, dict) and depth > 0 and name != "metadata":
            if isinstance(value.get("name"), str):
                yield _LabelledValue(_words(name), value["name"], place)
            yield from _of_data(value, place, depth - 1)


def _words(text: str) -> frozenset[str]:
    """Return the words of a name or label, singular and plural as one."""
    found = (word.casefold() for word in _WORD.findall(text[:500]))
    return frozenset(_stem(word) for word in found if word not in _EMPTY)


def _stem(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return {"colour": "color", "authour": "author"}.get(word, word)


def _likeness(label: frozenset[str], wanted: frozenset[str], described: frozenset[str]) -> float:
    """Return how much a label matches an attribute: 1 for the same words."""
    if not label or not wanted:
        return 0.0
    if label == wanted:
        return 1.0
    # "Battery capacity (mAh)" for batteryCapacity; "Weight" for itemWeightKg described as the weight in kg.
    if wanted <= label:
        return 0.9 if len(label) - len(wanted) <= 1 else 0.5
    if label <= described and label & wanted:
        return 0.6 + 0.3 * len(label & wanted) / len(wanted)
    return 0.0


def _converted(text: str, attribute: Attribute) -> Any:
    """Convert a text of the page to the type of an attribute."""
    text = text.strip()
    if attribute.enum is not None and attribute.type not in ("array", "object"):
        return _choice(text, attribute)
    if attribute.type == "array":
        inner = attribute.items or Attribute("string")
        parts = [one_line(part) for part in _PARTS.split(text) if one_line(part)][:MAX_ITEMS]
        found = [value for part in parts if (value := _converted(part, inner)) is not None]
        return found or None
    if attribute.type == "boolean":
        return True if _YES.fullmatch(text) else False if _NO.fullmatch(text) else None
    if attribute.type in ("integer", "number"):
        return answer_of(_number(text), attribute)
    return answer_of(text, attribute)


def _choice(text: str, attribute: Attribute) -> Any:
    """Return the possible value that a text is, or else the only one that it contains."""
    folded = one_line(text).casefold()
    choices = attribute.enum or []
    same = [choice for choice in choices if str(choice).casefold() == folded]
    named = same or [
        choice for choice in choices if re.search(rf"(?<!\w){re.escape(str(choice).casefold())}(?!\w)", folded)
    ]
    return answer_of(named[0], attribute) if len(named) == 1 else None


def _number(text: str) -> float | None:
    """Return the only number of a text; None for several."""
    found = _NUMBER.findall(text[:200])
    if len(found) != 1:
        return None
    digits = found[0].strip(" .,'")
    if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,10})?", digits) and not re.fullmatch(r"-?\d{1,3}\.\d{3}", digits):
        return float(digits)
    money = from_text(digits.lstrip("-"))
    if money is None:
        return None
    return -float(money.value) if digits.startswith("-") else float(money.value)
