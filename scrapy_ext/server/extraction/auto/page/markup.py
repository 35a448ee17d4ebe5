"""Structured data of a page: JSON-LD and microdata in one form, within bounds.

A :class:`Thing` is an entity of schema.org, whichever syntax it was written in. References between entities
(``{"@id": …}``) are resolved one step at a time when a property is read, so that circular references do no harm.

Microdata is read as the HTML standard defines it, with two additions that pages rely on: the attribute ``content``
counts on any element, and an item without properties has a value. Each item is read once, where it comes first.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import html_text
from lxml import etree
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.lenient_json import JsonValue, loads
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, plain
from scrapy_ext.server.extraction.auto.page.urls import absolute, parts_of

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.page import Page

#: Attributes that hold the value of an element, and whether it is an address.
_VALUE_ATTRIBUTES: Final = {
    "meta": ("content", False),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), ("src", True)),
    **dict.fromkeys(("a", "area", "link"), ("href", True)),
    "object": ("data", True),
    **dict.fromkeys(("data", "meter"), ("value", False)),
    "time": ("datetime", False),
}
#: Elements without text for a reader.
_NO_TEXT: Final = ("script", "style", "link", "meta")
#: White space of HTML.
_SPACE: Final = " \t\n\r\f"
#: Depth of items in items, which references may make as deep as there are items.
MAX_MICRODATA_DEPTH: Final = 30
#: Items around one whose text is its value: the text of a page is read at most so many times.
MAX_DEPTH_OF_TEXT: Final = 12


class MicrodataReader:
    """Reads the items of a tree; ``base_url`` is "" where addresses stay as they are."""

    def __init__(self, tree: HtmlElement, base_url: str) -> None:
        self._tree = tree
        self._base_url = base_url
        self._read: set[HtmlElement] = set()

    def items(self) -> list[JsonValue]:
        """Return the items that are no property of another, in the form of JSON-LD."""
        scopes = self._tree.xpath("descendant-or-self::*[@itemscope]")
        return [item for scope in scopes if (item := self._item(scope, 0))]

    def _item(self, scope: HtmlElement, depth: int) -> dict[str, JsonValue] | None:
        if scope in self._read or depth > MAX_MICRODATA_DEPTH:
            return None
        self._read.add(scope)
        types = scope.get("itemtype", "").split()
        item: dict[str, JsonValue] = {"@type": [*types]}
        if types and (identity := scope.get("itemid")):
            item["@id"] = identity.strip()
        properties: dict[str, list[JsonValue]] = {}
        for node in self._property_nodes(scope):
            value = self._value(node, depth)
            for name in node.get("itemprop").split():
                properties.setdefault(name, []).append(value)
        if not properties and scope.xpath("count(ancestor::*[@itemscope])") < MAX_DEPTH_OF_TEXT:
            properties["@value"] = [self._plain_value(scope)]
        return {**item, **properties}

    def _property_nodes(self, scope: HtmlElement) -> Iterator[HtmlElement]:
        """Yield the elements with properties of an item: those below it, and those below elements that it refers to."""
        yield from _own_properties(scope)
        for name in scope.get("itemref", "").split():
            node = self._by_id.get(name)
            if node is None:
                continue
            if node.get("itemprop") is not None:
                yield node
            if node.get("itemscope") is None:
                yield from _own_properties(node)

    @cached_property
    def _by_id(self) -> dict[str, HtmlElement]:
        """The first element of each id."""
        return {node.get("id"): node for node in reversed(self._tree.xpath("//*[@id]"))}

    def _value(self, node: HtmlElement, depth: int) -> JsonValue:
        if node.get("itemscope") is not None:
            return self._item(node, depth + 1)
        return self._plain_value(node)

    def _plain_value(self, node: HtmlElement) -> str:
        attribute, is_address = _VALUE_ATTRIBUTES.get(node.tag, ("", False))
        if attribute:
            value = str(node.get(attribute, ""))
            return urljoin(self._base_url, value.strip(_SPACE)) if is_address else value
        return node.get("content") or _text(node)


def _own_properties(scope: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the elements with properties below an element, without those of items below it."""
    left = list(reversed(scope))
    while left:
        node = left.pop()
        if not isinstance(node.tag, str):
            continue
        if node.get("itemprop") is not None:
            yield node
        if node.get("itemscope") is None:
            left += reversed(node)


def _text(node: HtmlElement) -> str:
    if node.tag in _NO_TEXT:
        return ""
    copy = deepcopy(node)
    copy.tail = None
    etree.strip_elements(copy, *_NO_TEXT, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    return str(html_text.etree_to_text(copy))


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

    def _values(self, values: list[JsonValue], depth: int) -> list[str | Thing]:
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


def _types(value: JsonValue) -> frozenset[str]:
    values = value if isinstance(value, list) else [value]
    return frozenset(_short(name) for name in values if isinstance(name, str))


def _short(name: str) -> str:
    """Return ``Product`` of ``http://schema.org/Product`` and ``schema:Product``."""
    return re.split(r"[/#:]", name.strip()[-200:])[-1]


def _json_ld(source: str) -> list[JsonValue]:
    if _ESCAPED_JSON.match(source) or ("&quot;" in source and '"' not in source):
        source = html.unescape(source)
    return loads(source)


def _microdata(page: Page) -> list[JsonValue]:
    """Return the microdata of a page in the form of JSON-LD; nothing where there is so much that it would take long."""
    tree, base_url = page.tree, page.base_url
    properties = page.with_attribute.get("itemprop", [])
    marked = [page.elements[position] for position in {*properties, *page.with_attribute.get("itemscope", ())}]
    if not marked or len(marked) > MAX_ITEMPROPS:
        return []
    if _depth_of(properties, page.outline.ends) > MAX_ITEMPROP_DEPTH:
        return []
    _bound_references(tree)
    # urljoin fails on such addresses.
    for node in marked:
        for attribute in ("href", "src", "data"):
            if node.get(attribute) and absolute(base_url, node.get(attribute)) is None:
                del node.attrib[attribute]
    return MicrodataReader(tree, base_url if parts_of(base_url).scheme else "").items()


def _depth_of(positions: list[int], ends: list[int]) -> int:
    """Return the most elements of these that are around one of them."""
    deepest = 0
    around: list[int] = []
    for position in positions:
        while around and ends[around[-1]] <= position:
            around.pop()
        deepest = max(deepest, len(around))
        around.append(position)
    return deepest


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
