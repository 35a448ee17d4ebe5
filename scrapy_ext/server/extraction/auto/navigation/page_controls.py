"""Number of a page that is the value of a field or a choice: ``Page [2] of 7``; and one in a part without links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.navigation.links import NOT_PAGES
from scrapy_ext.server.extraction.auto.navigation.page_numbers import KEYS
from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_CONTROLS: Final = 200
#: Elements around a control whose text is read, and elements of these.
MAX_LEVELS: Final = 3
MAX_ELEMENTS: Final = 60
#: Longest text around a control, in characters: a longer one has more than the pager.
MAX_LENGTH: Final = 80

_COUNTED = load_vocabulary("pagination").pattern("counted", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,5}")
_FIELD_TYPES: Final = frozenset({"", "text", "number", "tel"})


def number_in_control(page: Page, parts: list[HtmlElement]) -> int | None:
    """Return the number of the page in the only control that states one; ``parts`` have the links between pages."""
    found = {
        number
        for control in islice(page.tree.iter("input", "select"), MAX_CONTROLS)
        if (number := _number_of(page, control, parts)) is not None
    }
    return found.pop() if len(found) == 1 else None


def number_in_part(parts: list[HtmlElement]) -> int | None:
    """Return the number that is the whole text of a part named after the links between pages: ``2 / 7``."""
    found = set()
    for part in parts:
        match = _COUNTED.fullmatch(node_text(part, MAX_LENGTH).strip(" ()|·"))
        if match and 0 < int(match["number"]) <= int(match["total"]):
            found.add(int(match["number"]))
    return found.pop() if len(found) == 1 else None


def _number_of(page: Page, control: HtmlElement, parts: list[HtmlElement]) -> int | None:
    value = _value_of(control)
    if not _NUMBER.fullmatch(value):
        return None
    is_named = (control.get("name") or "").lower() in KEYS
    for around in islice(control.iterancestors(), MAX_LEVELS):
        if NOT_PAGES.search(page.names(around)):
            return None
        is_named = is_named or around in parts
        before, behind = _text_around(control, around)
        if len(before) + len(behind) > MAX_LENGTH:
            return None
        for match in _COUNTED.finditer(f"{before}{value}{behind}"):
            is_of_control = match.start("number") == len(before)
            # Behind another word it is another number: "Results per page".
            is_labelled = match["sheet"] is not None and not before[: match.start()].rstrip()[-1:].isalpha()
            if is_of_control and 0 < int(value) <= int(match["total"]) and (is_named or is_labelled):
                return int(value)
    return None


def _value_of(control: HtmlElement) -> str:
    if control.tag == "input":
        return (control.get("value") or "").strip() if (control.get("type") or "").lower() in _FIELD_TYPES else ""
    chosen = [option for option in islice(control.iter("option"), MAX_ELEMENTS) if option.get("selected") is not None]
    return node_text(chosen[0], MAX_LENGTH) if len(chosen) == 1 else ""


def _text_around(control: HtmlElement, around: HtmlElement) -> tuple[str, str]:
    """Return the text of an element before and behind a control in it, without that of the control."""
    before: list[str] = []
    behind: list[str] = []
    pieces = before
    for node, text in _texts(around, control):
        if node is control:
            pieces = behind
        pieces.append(text)
    first, last = one_line(" ".join(before)), one_line(" ".join(behind))
    return f"{first} " if first else "", f" {last}" if last else ""


def _texts(around: HtmlElement, control: HtmlElement) -> Iterator[tuple[HtmlElement, str]]:
    """Yield the texts of an element in their order, each with the element in or behind which it stands."""
    left: list[tuple[HtmlElement, bool]] = [(around, False)]
    for _ in range(MAX_ELEMENTS):
        if not left:
            return
        node, is_tail = left.pop()
        if is_tail:
            yield node, node.tail or ""
            continue
        if node is not around:
            left.append((node, True))
        if node is not control and isinstance(node.tag, str) and node.tag not in {"script", "style", "option"}:
            yield node, node.text or ""
            left += [(child, False) for child in reversed(node)]
