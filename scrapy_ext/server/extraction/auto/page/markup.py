"""Structured data of a page: JSON-LD, microdata and RDFa in one form, within bounds.

A :class:`Thing` is an entity of schema.org, whichever syntax it was written in. References between entities
(``{"@id": …}``) are resolved one step at a time when a property is read, so that circular references do no harm.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy_ext.server.extraction.auto.page.lenient_json import JsonValue, loads
from scrapy_ext.server.extraction.auto.page.microdata import microdata_of
from scrapy_ext.server.extraction.auto.page.rdfa import rdfa_of
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, plain

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.page import Page

#: Bounds. Of several hundred real pages, the largest block of JSON-LD has 130 thousand characters.
MAX_BLOCK_LENGTH: Final = 1_000_000
MAX_THINGS: Final = 5_000
MAX_THING_DEPTH: Final = 30
MAX_VALUES: Final = 500

#: Properties that lead to entities that the page is not about.
_ELSEWHERE: Final = frozenset(
    {"isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "itemReviewed", "relatedLink", "mentions", "citation"}
    | {"itemListElement", "hasOfferCatalog", "makesOffer", "review", "reviews", "comment", "publisher", "author"}
)

JSON_LD: Final = "application/ld+json"
_DECODER: Final = json.JSONDecoder()
_PUSH = re.compile(r"__next_s\b[^;\[]{0,80}\[[^;\[]{0,80}\.push\(\[|__next_s\.push\(\[")
#: Parts of the name of a person, in their order.
_NAME_PARTS: Final = ("givenName", "additionalName", "familyName")
#: The beginning of JSON that was escaped as HTML.
_ESCAPED_JSON = re.compile(r"[\s\ufeff]*[{\[][\s{\[]*&(?:amp;)?(?:quot|apos|#0*3[49]|#x2[27]);", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Thing:
    """An entity of schema.org: the names of its types (``"Product"``), and its properties."""

    types: frozenset[str]
    properties: dict[str, list[str | Thing]] = field(default_factory=dict)
    id: str | None = None
    by_id: Mapping[str, Thing] = field(default_factory=dict, repr=False)
    #: ``json-ld``, ``microdata`` or ``rdfa``.
    syntax: str = "json-ld"

    def values(self, *names: str) -> list[str | Thing]:
        """Return the values of the first of these properties that has any, with references resolved."""
        for name in names:
            if found := self.properties.get(name):
                return [self._resolved(value) for value in found]
        return []

    def things(self, *names: str) -> list[Thing]:
        """Return the entities among the values of these properties."""
        return [value for name in names for value in self.values(name) if isinstance(value, Thing)]

    def texts(self, *names: str) -> list[str]:
        """Return the values of these properties as text; an entity as its name, value or URL."""
        found = (text_of(value) for name in names for value in self.values(name))
        return [text for text in found if text]

    def text(self, *names: str) -> str | None:
        """Return the first text among the values of these properties, in the order of the names."""
        return next(iter(self.texts(*names)), None)

    def _resolved(self, value: str | Thing) -> str | Thing:
        if isinstance(value, Thing) and value.id and not value.properties:
            return self.by_id.get(value.id, value)
        return value


def text_of(value: str | Thing, depth: int = 3) -> str:
    """Return a value as text: an entity as its name, value or URL, where the name may itself be an entity."""
    if isinstance(value, str):
        return plain(value)
    for name in ("name", "@value", "value", "text", "url", "contentUrl"):
        for inner in value.values(name):
            if (isinstance(inner, str) or (name == "name" and depth)) and (text := text_of(inner, depth - 1)):
                return text
        if name == "name" and (parts := [found for part in _NAME_PARTS if (found := value.text(part))]):
            return " ".join(parts)
    return ""


class Markup:
    """All entities of a page, those of JSON-LD before those of microdata and RDFa, in the order of the page."""

    def __init__(self, roots: list[Thing]) -> None:
        self.roots = roots

    @classmethod
    def of(cls, page: Page) -> Markup:
        """Read the structured data of a page, and skip what is broken in it."""
        by_id: dict[str, Thing] = {}
        build = _Builder(by_id, page.language)
        roots: list[Thing] = []
        for script in page.scripts:
            if len(script.source) > MAX_BLOCK_LENGTH:
                continue
            if script.type == JSON_LD:
                roots += build.roots(_json_ld(script.source))
            for pushed in _pushed(script.source):
                roots += build.roots(_json_ld(pushed))
        build.syntax = "microdata"
        roots += build.roots(microdata_of(page))
        build.syntax = "rdfa"
        roots += build.roots(rdfa_of(page))
        return cls(roots)

    def things(self, *types: str) -> list[Thing]:
        """Return the entities of any of these types that the page itself is about, outer ones before inner ones.

        Items of a list and related, reviewed or commented entities are left out.
        """
        return [thing for thing in self._walk(skip=_ELSEWHERE) if not thing.types.isdisjoint(types)]

    def all(self, *types: str) -> list[Thing]:
        """Return all entities of any of these types (without a type, all entities)."""
        return [thing for thing in self._walk(skip=frozenset()) if not types or not thing.types.isdisjoint(types)]

    def _walk(self, skip: frozenset[str]) -> Iterator[Thing]:
        level = list(self.roots)
        while level:
            yield from level
            level = [
                value
                for thing in level
                for name, values in thing.properties.items()
                if name not in skip
                for value in values
                if isinstance(value, Thing)
            ]


class _Builder:
    def __init__(self, by_id: dict[str, Thing], language: str | None) -> None:
        self._by_id = by_id
        self._language = language
        self._left = MAX_THINGS
        self.syntax = "json-ld"

    def roots(self, values: list[JsonValue]) -> list[Thing]:
        roots: list[Thing] = []
        # Lists and graphs may hold lists and graphs.
        level = values
        for _ in range(4):
            deeper: list[JsonValue] = []
            for value in level[:MAX_THINGS]:
                if isinstance(value, list):
                    deeper += value
                elif isinstance(value, dict):
                    graph = value.get("@graph")
                    deeper += graph if isinstance(graph, list) else [graph]
                    if thing := self._thing(value, 0):
                        roots.append(thing)
            level = deeper
        return [root for root in roots if root.properties]

    def _thing(self, members: dict[str, JsonValue], depth: int) -> Thing | None:
        if depth > MAX_THING_DEPTH or self._left <= 0:
            return None
        self._left -= 1
        identity = members.get("@id")
        thing = Thing(
            types=_types(members.get("@type")),
            id=identity if isinstance(identity, str) else None,
            by_id=self._by_id,
            syntax=self.syntax,
        )
        for name, value in members.items():
            if name != "@graph" and (name == "@value" or not name.startswith("@")):
                values = self._values(value if isinstance(value, list) else [value], depth)
                if values:
                    thing.properties[_short(name)] = values
        if thing.id and thing.properties:
            self._by_id.setdefault(thing.id, thing)
        return thing

    def _is_of_another_language(self, value: JsonValue) -> bool:
        """Return whether a value is in a language that the page is not in."""
        return self._language is not None and _language_of(value) not in {None, self._language}

    def _values(self, values: list[JsonValue], depth: int) -> list[str | Thing]:
        found: list[str | Thing] = []
        for value in sorted(values[:MAX_VALUES], key=self._is_of_another_language):
            if isinstance(value, dict):
                if thing := self._thing(value, depth + 1):
                    found.append(thing)
            elif isinstance(value, list):
                found += self._values(value, depth + 1) if depth < MAX_THING_DEPTH else []
            elif isinstance(value, bool):
                found.append(str(value).lower())
            elif value is not None and (text := str(value)[:MAX_VALUE_LENGTH]).strip():
                found.append(text)
        return found


def _language_of(value: JsonValue) -> str | None:
    """Return the language of a value that names one, without its region."""
    named = value.get("@language") if isinstance(value, dict) else None
    return named.lower().partition("-")[0] if isinstance(named, str) else None


def _types(value: JsonValue) -> frozenset[str]:
    values = value if isinstance(value, list) else [value]
    return frozenset(_short(name) for name in values if isinstance(name, str))


def _short(name: str) -> str:
    """Return ``Product`` of ``http://schema.org/Product`` and ``schema:Product``."""
    return re.split(r"[/#:]", name.strip()[-200:])[-1]


def _pushed(source: str) -> Iterator[str]:
    """Yield the JSON-LD of scripts that Next.js adds when the page is shown: ``self.__next_s.push([0, {...}])``."""
    for match in _PUSH.finditer(source) if JSON_LD in source else ():
        try:
            parts, _ = _DECODER.raw_decode(source, match.end() - 1)
        except (ValueError, RecursionError):
            continue
        for part in parts:
            if isinstance(part, dict) and part.get("type") == JSON_LD:
                inner = part.get("dangerouslySetInnerHTML")
                text = part.get("children") or (inner.get("__html") if isinstance(inner, dict) else None)
                if isinstance(text, str):
                    yield text


def _json_ld(source: str) -> list[JsonValue]:
    if _ESCAPED_JSON.match(source) or ("&quot;" in source and '"' not in source):
        source = html.unescape(source)
    return loads(source)
