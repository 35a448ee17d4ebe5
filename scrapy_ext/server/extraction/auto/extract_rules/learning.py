"""A selector for an example: the shortest one that finds the element with the value of the example first.

It uses what is likely to be the same on other pages of the site: attributes for machines (``itemprop``), the names of
classes without numbers, tags; then the label before the value; the position in the page last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.api.extraction.extract_rules import ExtractRule
from scrapy_ext.api.extraction.xpath import XPathError, of_css, of_xpath
from scrapy_ext.server.extraction.auto.extract_rules.evaluating import Evaluator
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.text import shown_text

#: Elements with the example that are tried, and selectors tried for each.
MAX_ELEMENTS: Final = 20
MAX_SELECTORS: Final = 60
#: Elements inside of one with the example, and around it that a selector may name.
MAX_INSIDE: Final = 10
MAX_OUTSIDE: Final = 6
#: Longest label of a value, in characters.
MAX_LABEL: Final = 40
#: Attributes with values for machines.
_ATTRIBUTES: Final = ("content", "href", "src", "datetime", "value", "data-sku", "data-price", "data-id")
_MARKS: Final = ("itemprop", "property", "name", "data-testid", "data-test", "data-qa")
#: Names that are the same on other pages: those of frameworks have numbers or capitals in them.
_NAME: Final = re.compile(r"-?[a-z][a-z_]*(?:-+[a-z_]+){0,5}")
_NO_QUOTES: Final = re.compile(r"[^'\"\\]+")


def learned(page: Page, evaluator: Evaluator, example: str) -> ExtractRule | None:
    """Return a rule that finds an example first on its page; None if no element has it."""
    wanted = one_line(example)
    for node, attribute in _places(page, wanted):
        for name, selector in list(_selectors(node))[:MAX_SELECTORS]:
            try:
                tree = of_css(selector) if name == "css" else of_xpath(selector)
            except XPathError:
                continue
            found = evaluator.select(tree)
            if found and found[0].node is node:
                return ExtractRule(**{name: selector}, attribute=attribute)  # type: ignore[arg-type]
    return None


def _places(page: Page, wanted: str) -> list[tuple[HtmlElement, str | None]]:
    """Return the elements whose text, or an attribute of them, is the example; the innermost of those inside of each
    other."""
    found: list[tuple[HtmlElement, str | None]] = []
    outline = page.outline
    words = wanted[:20].split()[:1]
    inner_end = -1
    # From the end, so that the innermost come first.
    for position in range(len(outline.nodes) - 1, -1, -1):
        node = outline.nodes[position]
        text = outline.texts[position] or ""
        if node.tag in ("title", "option", "html", "head", "body"):
            continue
        is_outer = position < inner_end and outline.ends[position] >= inner_end
        inside = outline.ends[position] - position
        may_show = inside <= MAX_INSIDE and not is_outer and (inside > 1 or (words and words[0] in text))
        if may_show and shown_text(node, len(wanted) + 1) == wanted:
            found.append((node, None))
            inner_end = outline.ends[position]
            continue
        for name in _ATTRIBUTES:
            value = outline.attributes[position].get(name)
            if value and (one_line(value) == wanted or (name in ("href", "src") and page.link(value) == wanted)):
                found.append((node, name))
                break
    # In the order of the page, those with a text first.
    found.reverse()
    return sorted(found, key=lambda place: place[1] is not None)[:MAX_ELEMENTS]


def _selectors(node: HtmlElement) -> Iterator[tuple[str, str]]:
    own = list(_parts(node))
    yield from (("css", part) for part in own)
    around = [
        part
        for outer in list(node.iterancestors())[:MAX_OUTSIDE]
        for part in _parts(outer)
        if part not in ("html", "body")
    ]
    yield from (("css", f"{outer} {part}") for outer in around for part in (*own, str(node.tag)))
    yield from (("xpath", xpath) for xpath in _beside_label(node))
    yield "xpath", str(node.getroottree().getpath(node))


def _parts(node: HtmlElement) -> Iterator[str]:
    """Yield simple selectors that an element matches, the best first."""
    for mark in _MARKS:
        value = node.get(mark)
        if value and _NO_QUOTES.fullmatch(value) and len(value) <= MAX_LABEL:
            yield f'{node.tag}[{mark}="{value}"]'
    identifier = node.get("id") or ""
    if _NAME.fullmatch(identifier):
        yield f"#{identifier}"
    classes = [name for name in (node.get("class") or "").split()[:10] if _NAME.fullmatch(name)]
    yield from (f"{node.tag}.{name}" for name in classes)
    if len(classes) > 1:
        yield f"{node.tag}.{'.'.join(classes[:3])}"
    if node.tag in ("h1", "time", "address"):
        yield str(node.tag)


def _beside_label(node: HtmlElement) -> Iterator[str]:
    """Yield the selector of a cell by the label before it: ``//tr[th='Brand']/td``."""
    before = node.getprevious()
    if before is None or node.tag not in ("td", "dd", "span", "div"):
        return
    label = shown_text(before, MAX_LABEL + 1)
    if label and len(label) <= MAX_LABEL and _NO_QUOTES.fullmatch(label):
        parent = node.getparent()
        if node.tag == "td" and parent is not None and parent.tag == "tr":
            yield f"//tr[normalize-space({before.tag})='{label}']/td"
        yield f"//{before.tag}[normalize-space()='{label}']/following-sibling::{node.tag}"
