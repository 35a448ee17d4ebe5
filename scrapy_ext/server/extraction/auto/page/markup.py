"""Structured data of a page: JSON-LD and microdata in one form, within bounds.

A :class:`Thing` is an entity of schema.org, whichever syntax it was written in. References between entities
(``{"@id": …}``) are resolved one step at a time when a property is read, so that circular references do no harm.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.lenient_json import JsonValue, loads
from scrapy_ext.server.extraction.auto.page.microdata import MicrodataReader
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, plain
from scrapy_ext.server.extraction.auto.page.urls import absolute, parts_of

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.page import Page

#: Bounds. Of several hundred real pages, the largest block of JSON-LD has 130 thousand characters, and no page
#: has more than 1,500 microdata properties.
MAX_BLOCK_LENGTH: Final = 1_000_000
MAX_THINGS: Final = 5_000
MAX_THING_DEPTH: Final = 30
MAX_VALUES: Final = 500
MAX_ITEMPROPS: Final = 4_000
MAX_ITEMPROP_DEPTH: Final = 12
#: Nodes of properties that items refer to (``itemref``), counted once for each reference, plus one for every 50
#: characters of their text.
MAX_REFERRED: Final = 10_000

#: Properties that lead to entities that the page is not about.
_ELSEWHERE: Final = frozenset(
    {"isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "itemReviewed", "relatedLink", "mentions", "citation"}
    | {"itemListElement", "hasOfferCatalog", "makesOffer", "review", "reviews", "comment", "publisher", "author"}
)

JSON_LD: Final = "application/ld+json"


@dataclass(slots=True, eq=False)
class Thing:
    """An entity of schema.org: the names of its types (``"Product"``), and its properties."""

    types: frozenset[str]
    properties: dict[str, list[str | Thing]] = field(default_factory=dict)
    id: str | None = None
    by_id: Mapping[str, Thing] = field(default_factory=dict, repr=False)
    #: ``json-ld`` or ``microdata``.
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


def text_of(value: str | Thing) -> str:
    if isinstance(value, str):
        return plain(value)
    for name in ("name", "@value", "value", "text", "url", "contentUrl"):
        for inner in value.properties.get(name, ()):
            if isinstance(inner, str) and (text := plain(inner)):
                return text
    return ""


class Markup:
    """All entities of a page, those of JSON-LD before those of microdata, in the order of the page."""

    def __init__(self, roots: list[Thing]) -> None:
        self.roots = roots

    @classmethod
    def of(cls, page: Page) -> Markup:
        """Read the structured data of a page, and skip what is broken in it."""
        by_id: dict[str, Thing] = {}
        build = _Builder(by_id)
        roots: list[Thing] = []
        for script in page.scripts:
            if script.type == JSON_LD and len(script.source) <= MAX_BLOCK_LENGTH:
                roots += build.roots(_json_ld(script.source))
        build.syntax = "microdata"
        roots += build.roots(_microdata(page))
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
    def __init__(self, by_id: dict[str, Thing]) -> None:
        self._by_id = by_id
        self._left = MAX_THINGS
        self.syntax = "json-ld"

    def roots(self, values: list[Any]) -> list[Thing]:
        roots: list[Thing] = []
        # Lists and graphs may hold lists and graphs.
        level = values
        for _ in range(4):
            deeper: list[Any] = []
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

    def _thing(self, members: dict[str, Any], depth: int) -> Thing | None:
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

    def _values(self, values: list[Any], depth: int) -> list[str | Thing]:
        found: list[str | Thing] = []
        for value in values[:MAX_VALUES]:
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


def _types(value: Any) -> frozenset[str]:
    values = value if isinstance(value, list) else [value]
    return frozenset(_short(name) for name in values if isinstance(name, str))


def _short(name: str) -> str:
    """Return ``Product`` of ``http://schema.org/Product`` and ``schema:Product``."""
    return re.split(r"[/#:]", name.strip()[-200:])[-1]


def _json_ld(source: str) -> list[JsonValue]:
    if "&quot;" in source and '"' not in source:
        source = html.unescape(source)
    return loads(source)


def _microdata(page: Page) -> list[Any]:
    """Return the microdata of a page in the form of JSON-LD; nothing where there is so much that it would take long."""
    tree, base_url = page.tree, page.base_url
    marked = [
        node
        for node, attributes in zip(page.elements, page.outline.attributes, strict=True)
        if "itemprop" in attributes or "itemscope" in attributes
    ]
    if not marked or len(marked) > MAX_ITEMPROPS:
        return []
    if tree.xpath(f"boolean(//*[@itemprop][count(ancestor::*[@itemprop]) > {MAX_ITEMPROP_DEPTH}])"):
        return []
    _bound_references(tree)
    # urljoin fails on such addresses.
    for node in marked:
        for attribute in ("href", "src", "data"):
            if node.get(attribute) and absolute(base_url, node.get(attribute)) is None:
                del node.attrib[attribute]
    return MicrodataReader(tree, base_url if parts_of(base_url).scheme else "").items()


def _bound_references(tree: HtmlElement) -> None:
    """Remove references of items to properties elsewhere in the page where there are too many, or no such property."""
    referring = tree.xpath("//*[@itemscope][@itemref]")
    if not referring:
        return
    wanted = {name for item in referring for name in item.get("itemref").split()}
    weights: Counter[str] = Counter()
    for found in tree.xpath("//*[@itemprop]"):
        weight = int(found.xpath("count(descendant-or-self::node()) + floor(string-length(.) div 50)"))
        for place in (found, *found.iterancestors()):
            if (name := place.get("id")) in wanted:
                weights[name] += weight
    left = MAX_REFERRED
    for item in referring:
        kept = []
        for name in dict.fromkeys(item.get("itemref").split()):
            if 0 < weights[name] <= left:
                left -= weights[name]
                kept.append(name)
        item.set("itemref", " ".join(kept))
