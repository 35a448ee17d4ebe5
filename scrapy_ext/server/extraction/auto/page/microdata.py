"""Microdata of a page: items and their properties, as HTML defines them.

Source: the HTML standard, Microdata, with two additions that pages rely on: the attribute ``content`` counts on any
element, and an item without properties has a value. Each item is read once, where it comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from typing import Any, Final
from urllib.parse import urljoin

import html_text
from lxml import etree
from lxml.html import HtmlElement

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
MAX_DEPTH: Final = 30
#: Items around one whose text is its value: the text of a page is read at most so many times.
MAX_DEPTH_OF_TEXT: Final = 12


class MicrodataReader:
    """Reads the items of a tree; ``base_url`` is "" where addresses stay as they are."""

    def __init__(self, tree: HtmlElement, base_url: str) -> None:
        self._tree = tree
        self._base_url = base_url
        self._read: set[HtmlElement] = set()

    def items(self) -> list[dict[str, Any]]:
        """Return the items that are no property of another, in the form of JSON-LD."""
        scopes = self._tree.xpath("descendant-or-self::*[@itemscope]")
        return [item for scope in scopes if (item := self._item(scope, 0))]

    def _item(self, scope: HtmlElement, depth: int) -> dict[str, Any] | None:
        if scope in self._read or depth > MAX_DEPTH:
            return None
        self._read.add(scope)
        types = scope.get("itemtype", "").split()
        item: dict[str, Any] = {"@type": types}
        if types and (identity := scope.get("itemid")):
            item["@id"] = identity.strip()
        properties: dict[str, list[Any]] = {}
        for node in self._property_nodes(scope):
            value = self._value(node, depth)
            for name in node.get("itemprop").split():
                properties.setdefault(name, []).append(value)
        if not properties and scope.xpath("count(ancestor::*[@itemscope])") < MAX_DEPTH_OF_TEXT:
            properties["@value"] = [self._plain_value(scope)]
        return item | properties

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

    def _value(self, node: HtmlElement, depth: int) -> Any:
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
