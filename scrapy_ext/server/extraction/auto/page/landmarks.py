"""The parts that most pages have: what is between header, menus, side bars and footer, and the links in those."""

from __future__ import annotations

import copy
import re
from typing import Final

import html_text
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: A ``<main>`` with less than this part of the page's text is not around its content.
SMALLEST_MAIN: Final = 0.2

_LANDMARKS: Final = frozenset({"nav", "footer", "aside", "form", "button", "select", "iframe", "dialog"})
_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "dialog", "search"})
_BOXES: Final = frozenset({"div", "section", "ul", "ol", "aside", "header"})
_VOCABULARY: Final = load_vocabulary("lists")
_NAMED = _VOCABULARY.pattern("landmark")
_SPACE = re.compile(r"\s+")


def between_landmarks(page: Page) -> str:
    """The text of a page without that of its landmarks."""
    original = _main(page)
    node = copy.deepcopy(original)
    for part in list(node.iterdescendants("*")):
        if part.getparent() is not None and _is_landmark(part, in_body=original.tag == "body"):
            part.drop_tree()
    return str(html_text.extract_text(node))


def _main(page: Page) -> HtmlElement:
    body = page.tree.find("body")
    body = page.tree if body is None else body
    mains = page.tree.xpath("//main | //*[@role='main']")
    main = max(mains, key=_length, default=body)
    return main if _length(main) >= SMALLEST_MAIN * _length(body) else body


def _is_landmark(node: HtmlElement, *, in_body: bool) -> bool:
    if node.tag in _LANDMARKS or (in_body and node.tag == "header"):
        return True
    if node.get("role") in _ROLES or node.get("aria-hidden") == "true":
        return True
    return node.tag in _BOXES and bool(_NAMED.search(f"{node.get('class', '')} {node.get('id', '')}".lower()))


def _length(node: HtmlElement) -> int:
    return len(_SPACE.sub("", "".join(node.itertext())))
