"""Microdata of a page in the form of JSON-LD, within bounds.

It is read as the HTML standard defines it, with two additions that pages rely on: the attribute ``content`` counts on
any element, and an item without properties has a value. Each item is read once, where it comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import html_text
from lxml import etree
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.lenient_json import JsonValue
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
#: Bounds. Of several hundred real pages, none has more than 1,500 properties.
MAX_ITEMPROPS: Final = 4_000
MAX_ITEMPROP_DEPTH: Final = 12
#: Nodes of properties that items refer to (``itemref``), counted once for each reference, plus one for every 50
#: characters of their text.
MAX_REFERRED: Final = 10_000


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
        yield from own_properties(scope)
        for name in scope.get("itemref", "").split():
            node = self._by_id.get(name)
            if node is None:
                continue
            if node.get("itemprop") is not None:
                yield node
            if node.get("itemscope") is None:
                yield from own_properties(node)

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
        return node.get("content") or text_below(node)


def own_properties(
    scope: HtmlElement, property_attribute: str = "itemprop", item_attribute: str = "itemscope"
) -> Iterator[HtmlElement]:
    """Yield the elements with properties below an element, without those of items below it."""
    left = list(reversed(scope))
    while left:
        node = left.pop()
        if not isinstance(node.tag, str):
            continue
        if node.get(property_attribute) is not None:
            yield node
        if node.get(item_attribute) is None:
            left += reversed(node)


def text_below(node: HtmlElement) -> str:
    """Return the text of an element for a reader."""
    if node.tag in _NO_TEXT:
        return ""
    copy = deepcopy(node)
    copy.tail = None
    etree.strip_elements(copy, *_NO_TEXT, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    return str(html_text.etree_to_text(copy))


def microdata_of(page: Page) -> list[JsonValue]:
    """Return the microdata of a page in the form of JSON-LD; nothing where there is so much that it would take long."""
    tree, base_url = page.tree, page.base_url
    properties = page.with_attribute.get("itemprop", [])
    marked = [page.elements[position] for position in {*properties, *page.with_attribute.get("itemscope", ())}]
    if not marked or len(marked) > MAX_ITEMPROPS:
        return []
    if depth_of(properties, page.outline.ends) > MAX_ITEMPROP_DEPTH:
        return []
    _bound_references(tree)
    # urljoin fails on such addresses.
    for node in marked:
        for attribute in ("href", "src", "data"):
            if node.get(attribute) and absolute(base_url, node.get(attribute)) is None:
                del node.attrib[attribute]
    return MicrodataReader(tree, base_url if parts_of(base_url).scheme else "").items()


def depth_of(positions: list[int], ends: list[int]) -> int:
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
