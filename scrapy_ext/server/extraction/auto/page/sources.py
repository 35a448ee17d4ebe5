"""Choice among the candidates for a field, and the sources of the fields of items (``fieldSources``).

An extractor that tries several rules for a field names each of them, and the rule that had the value is recorded.
For other fields the places of the page are searched afterwards, the most reliable first, for exactly their value.

Nothing is recorded, and no candidate after the chosen one is tried, where sources are not requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from lxml.html import HtmlElement

from scrapy_ext.api.extraction.records import FieldSource, SourceCandidate
from scrapy_ext.server.extraction.auto.items import Item, as_dict
from scrapy_ext.server.extraction.auto.page.places import OURS, Places, Shown, type_names
from scrapy_ext.server.extraction.auto.page.text import node_text, one_line

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.markup import Thing
    from scrapy_ext.server.extraction.auto.page.page import Page


def now() -> str:
    """Return the current time in UTC, in the format of metadata."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


T = TypeVar("T")


def lowest(scored: Iterable[tuple[float, T]]) -> T | None:
    """Return the candidate with the lowest score, such as the distance from the heading; the first of equals."""
    return min(scored, key=itemgetter(0), default=(0.0, None))[1]


def highest(scored: Iterable[tuple[float, T]]) -> T | None:
    """Return the candidate with the highest score; the first of equals."""
    return max(scored, key=itemgetter(0), default=(0.0, None))[1]


#: Candidates of a field that are reported beside the chosen one.
MAX_OTHERS: Final = 3
#: Characters of a text and entries of a list in the value of such a candidate.
MAX_TEXT: Final = 500
MAX_ENTRIES: Final = 20
#: Characters of the text of an element.
MAX_ELEMENT_TEXT: Final = 200
#: Rule of a value that only an element shows, in other words.
_ON_PAGE: Final = "text on the page"
#: Fields whose value no element shows.
_NOT_SHOWN: Final = frozenset({"url", "canonicalUrl", "inLanguage"})


class _Other(NamedTuple):
    value: Any
    rule: str
    node: HtmlElement | None
    #: The value as the rule found it, which has the text of the page.
    found: Any


class _Noted(NamedTuple):
    """The rule of a field, its element where the extractor knows it, and the candidates after it."""

    rule: str
    node: HtmlElement | None = None
    others: tuple[_Other, ...] = ()


class Sources:
    """The sources of the fields of one item, by field; nothing where they are not ``wanted``."""

    def __init__(self, *, wanted: bool = False) -> None:
        self._wanted = wanted
        self._noted: dict[str, _Noted] = {}

    def first(
        self,
        field: str,
        *candidates: tuple[str, Callable[[], T | None]],
        form: Callable[[T], Any] | None = None,
        node: Callable[[T], HtmlElement | None] | None = None,
    ) -> T | None:
        """Return the first value that is not empty, and record its rule and the values of the rules after it.

        ``form`` makes the value of the field of that of a candidate, ``node`` finds its element.
        """
        for index, (_, value_of) in enumerate(candidates):
            value = value_of()
            if value:
                if self._wanted:
                    self._note(field, value, candidates[index:], form, node)
                return value
        return None

    def chosen(
        self,
        field: str,
        value: T | None,
        *candidates: tuple[str, Callable[[], T | None]],
        form: Callable[[T], Any] | None = None,
        node: Callable[[T], HtmlElement | None] | None = None,
    ) -> T | None:
        """Return a value that was chosen among the candidates otherwise than in their order, and record the same."""
        if value and self._wanted:
            own = next((each for each in candidates if each[1]() == value), None)
            if own is not None:
                rest = (each for each in candidates if each is not own)
                self._note(field, value, (own, *rest), form, node)
        return value

    def note(self, field: str, rule: str, node: HtmlElement | None = None) -> None:
        """Record the rule of a field that has one candidate only, and its element."""
        if self._wanted:
            self._noted[field] = _Noted(rule, node)

    def _note(
        self,
        field: str,
        value: T,
        candidates: tuple[tuple[str, Callable[[], T | None]], ...],
        form: Callable[[T], Any] | None,
        node: Callable[[T], HtmlElement | None] | None,
    ) -> None:
        (rule, _), *later = candidates
        known = [plain_value(form(value) if form else value)]
        others: list[_Other] = []
        noted = dict(self._noted)
        for name, value_of in later:
            other = value_of()
            plain = plain_value(form(other) if form else other) if other else None
            if other and plain not in known:
                known.append(plain)
                others.append(_Other(plain, name, node(other) if node else None, other))
                if len(others) == MAX_OTHERS:
                    break
        # A rule that was tried in vain may have recorded its own.
        self._noted = noted | {field: _Noted(rule, node(value) if node else None, tuple(others))}

    def of_item(self, page: Page, item: dict[str, Any]) -> dict[str, FieldSource]:
        """Return the known sources of the fields of an item that have a value."""
        reader = _Reader(page)
        found = {}
        for field, value in item.items():
            if field in OURS:
                continue
            raw = item.get(f"{field}Raw")
            noted = self._noted.get(field)
            if noted is None and (parsed := self._noted.get(field.removesuffix("Raw"))) is not None:
                noted = parsed._replace(others=())
            source = reader.source(noted, value, raw, is_shown=field not in _NOT_SHOWN)
            if source is not None:
                found[field] = source
        return found


class _Reader:
    """Describes what was noted, with the places of a page."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._places, self._shown = Places(page), Shown(page)

    def source(self, noted: _Noted | None, value: Any, raw: Any, *, is_shown: bool) -> FieldSource | None:
        # The source of a parsed value is that of its raw text.
        place = self._places.of(raw) or self._places.of(value)
        element = self._element(noted.node if noted else None, raw, value) if is_shown else SourceElement()
        rule = _exact(noted.rule, place) if noted else place or (_ON_PAGE if element.xpath else None)
        if not rule:
            return None
        others = [self._other(other) for other in noted.others] if noted else []
        return FieldSource(rule, element.xpath, element.text, element.box, others)

    def _other(self, other: _Other) -> SourceCandidate:
        element = self._element(other.node, other.found, other.value)
        return SourceCandidate(
            other.value, _exact(other.rule, self._places.of(other.value)), element.xpath, element.text, element.box
        )

    def _element(self, node: HtmlElement | None, *values: Any) -> SourceElement:
        candidates = (node, *map(self._shown.element, values)) if node is None else (node,)
        for each in candidates:
            if each is not None and self._shown.is_visible(each):
                paths, boxes = self._page.paths, self._page.boxes
                return SourceElement(
                    paths.of(each) if paths else None,
                    node_text(each, MAX_ELEMENT_TEXT) or None,
                    boxes.get(each) if boxes else None,
                )
        return SourceElement()


class SourceElement(NamedTuple):
    """The place of an element, and the beginning of its text."""

    xpath: str | None = None
    text: str | None = None
    box: tuple[int, int, int, int] | None = None


def _exact(rule: str, place: str | None) -> str:
    """Return the place of a value where that is what a rule says, more exactly."""
    return place if place and place.startswith((f"{rule}.", f"{rule} ")) else rule


def plain_value(value: Any) -> Any:
    """Return a value as data, within bounds."""
    if isinstance(value, Item):
        value = as_dict(value)
    if isinstance(value, str):
        text = one_line(value[: 4 * MAX_TEXT])
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
    if isinstance(value, dict):
        return {name: plain_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in islice(value, MAX_ENTRIES)]
    return value


def origin(thing: Thing | None, *names: str) -> str:
    """Return the name of a property of structured data as a source: ``json-ld Product.offers``."""
    if thing is None:
        return "markup"
    name = next((name for name in names if thing.properties.get(name)), names[0])
    return f"{thing.syntax} {type_names(thing)}.{name}"
