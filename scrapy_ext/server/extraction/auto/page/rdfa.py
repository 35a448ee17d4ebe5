"""RDFa of a page with the vocabulary of schema.org, in the form of JSON-LD, within bounds.

Read is what RDFa Lite 1.1 defines: ``vocab``, ``typeof``, ``property``, ``resource`` and the prefix ``schema:``, with
``content`` and the addresses of elements as values. Other vocabularies, such as ``og:``, are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.layout import Parts
from scrapy_ext.server.extraction.auto.page.lenient_json import JsonValue
from scrapy_ext.server.extraction.auto.page.microdata import (
    MAX_ITEMPROP_DEPTH,
    MAX_ITEMPROPS,
    MAX_MICRODATA_DEPTH,
    depth_of,
    own_properties,
    text_below,
)
from scrapy_ext.server.extraction.auto.page.urls import absolute

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.page import Page

_SCHEMA: Final = re.compile(r"https?://(?:www\.)?schema\.org/?|schema:", re.IGNORECASE)
#: Attributes with the address of an entity, or of a value, in the order in which they count.
_ADDRESSES: Final = ("resource", "href", "src")
_VALUES: Final = ("datetime", "value")
#: Properties whose value is text. A link around a name leads to a page about it, and its address is no name.
_TEXTS: Final = frozenset(
    {"name", "alternateName", "headline", "alternativeHeadline", "title", "description", "text", "articleBody"}
    | {"streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry"}
    | {"brand", "hiringOrganization", "jobLocation", "sku", "price", "datePublished"}
)


def rdfa_of(page: Page) -> list[JsonValue]:
    """Return the entities of a page; nothing where there is so much that it would take long."""
    typed = page.with_attribute.get("typeof", [])
    properties = page.with_attribute.get("property", [])
    if not typed or not properties or len(typed) + len(properties) > MAX_ITEMPROPS:
        return []
    if depth_of(sorted({*typed, *properties}), page.outline.ends) > MAX_ITEMPROP_DEPTH:
        return []
    reader = _Reader(page)
    return [item for position in typed if (item := reader.item(page.elements[position], 0))]


class _Reader:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._read: set[HtmlElement] = set()
        #: Parts where names without a prefix are those of schema.org: the innermost vocabulary counts.
        self._of_schema = Parts(
            lambda node: _is_schema(node) is True,
            ends=lambda node: _is_schema(node) is False,
        )

    def item(self, node: HtmlElement, depth: int) -> dict[str, JsonValue] | None:
        """Return an entity that was not read before; None for one of another vocabulary."""
        types = self._names(node, "typeof")
        if not types or node in self._read or depth > MAX_MICRODATA_DEPTH:
            return None
        self._read.add(node)
        item: dict[str, JsonValue] = {"@type": [*types]}
        if identity := node.get("about") or (self._address(node) if node.get("property") else node.get("resource")):
            item["@id"] = identity
        properties: dict[str, list[JsonValue]] = {}
        for inner in own_properties(node, "property", "typeof"):
            names = self._names(inner, "property")
            value = self._value(inner, names, depth) if names else None
            for name in names if value else ():
                properties.setdefault(name, []).append(value)
        return {**item, **properties}

    def _names(self, node: HtmlElement, attribute: str) -> list[str]:
        """Return the names of an attribute that are of schema.org, without their vocabulary."""
        names = []
        for name in node.get(attribute, "").split():
            prefix = _SCHEMA.match(name)
            if prefix:
                names.append(name[prefix.end() :])
            elif ":" not in name and self._of_schema.hold(node):
                names.append(name)
        return names

    def _value(self, node: HtmlElement, names: list[str], depth: int) -> JsonValue:
        if node.get("typeof") is not None:
            return self.item(node, depth + 1)
        if (content := node.get("content")) is not None:
            return str(content)
        stated = next((str(found) for name in _VALUES if (found := node.get(name))), None)
        text = text_below(node) if node.tag == "a" and not _TEXTS.isdisjoint(names) else ""
        return text or self._address(node) or stated or text_below(node)

    def _address(self, node: HtmlElement) -> str | None:
        reference = next((found for name in _ADDRESSES if (found := node.get(name))), None)
        return absolute(self._page.base_url, reference)


def _is_schema(node: HtmlElement) -> bool | None:
    """Return whether the vocabulary that begins at an element is schema.org; None where none does."""
    vocabulary = node.get("vocab")
    return None if vocabulary is None else _SCHEMA.match(vocabulary.strip()) is not None
