"""The box with most of the prose of a page, and the elements in that box that are something else."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, one_line
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

# Names are those of ``class``, ``id`` and ``itemprop`` in lower case. Short words match only as whole words.

_VOCABULARY: Final = load_vocabulary("article_parts")

#: Parts with comments of readers.
_TALK_NAME = _VOCABULARY.pattern("talk")
#: Parts about other things: menus, suggestions, forms to subscribe, notices.
OTHER_THINGS = _VOCABULARY.pattern("other_things")
#: Parts about the article or its images, and buttons.
_ABOUT_IT = _VOCABULARY.pattern("about_it")
#: Names of the box around the text of an article.
_TEXT_BOX = _VOCABULARY.pattern("text_box")


#: Block-level elements.
BLOCKS: Final = frozenset({
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "blockquote", "pre", "td", "th", "dd", "dt", "div", "section",
    "article", "main", "header", "footer", "aside", "nav", "ul", "ol", "table", "tr", "tbody", "thead", "tfoot",
    "caption", "figure", "figcaption", "form", "fieldset", "dl", "center", "details", "summary", "address", "body",
    "html", "hr", "select", "label", "video", "audio", "iframe", "menu", "legend", "picture", "dialog", "button",
    "option", "noscript",
})  # fmt: skip
#: Elements that hold no prose.
_NEVER: Final = frozenset({
    "nav", "aside", "button", "select", "input", "textarea", "label", "figcaption", "iframe", "video", "audio",
    "dialog", "menu", "object", "embed", "canvas", "map", "option", "legend", "head", "picture", "img", "fieldset",
    "footer", "noscript",
})  # fmt: skip
#: Elements around the boxes of articles.
_HOLDERS: Final = frozenset({
    "div", "section", "article", "main", "form", "table", "tbody", "tr", "td", "center", "span", "header", "li",
    "ul",
})  # fmt: skip
_QUOTED: Final = ("table", "pre", "blockquote")
_ROLES: Final = frozenset({
    "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alert", "menu", "menubar",
    "tablist", "toolbar", "button", "form",
})  # fmt: skip

#: Shortest line of prose in the search for the box, in characters.
MIN_PROSE: Final = 40
#: Weight of a character in scripts that need fewer of them.
DENSITY: Final = 3
_DENSE = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
#: Shares of the prose from which a part is of the text whatever its name (MUCH), and a form or header, too (SOME).
MUCH: Final = 0.5
SOME: Final = 0.3
#: The least share that is left without the parts named as something else; with less, names are ignored.
TOO_FEW: Final = 0.2
#: Shares of the prose of a box that a box inside must have to be chosen: in general, for one named so, and for one
#: with a paragraph beside it.
NEARLY_ALL: Final = 0.85
MOST: Final = 0.6
ALL_BUT_PARAGRAPHS: Final = 0.97
#: ArticleBox between the headline and the box from which it is the beginning of the text, not a standfirst.
INTRODUCTION: Final = 150
#: ArticleBox from which a header has some of the text.
LONG_HEADER: Final = 400


class ArticleBox:
    """The ``box`` with most of the prose of a page, and the elements in it that are something else (``noise``).

    ``marked`` is true where the page itself names the box an article.
    """

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._focus = focus
        body = page.tree.find("body")
        self._body = page.tree if body is None else body
        self._raw = self._masses(frozenset())
        self.noise = self._find_noise(by_name=True)
        self._clean = self._masses(self.noise)
        if self._clean.get(self._body, 0) < TOO_FEW * self._raw.get(self._body, 0):
            self.noise = self._find_noise(by_name=False)
            self._clean = self._masses(self.noise)
        self.box = self._find_box()
        self.marked = any(map(self._is_named_article, (self.box, *self.box.iterancestors())))

    def _masses(self, without: AbstractSet[HtmlElement]) -> dict[HtmlElement, int]:
        """Return the characters of prose in each element that has any, without links."""
        own: dict[HtmlElement, int] = {}
        # The block in which an element stands, None in what is left out; and the blocks that links begin in.
        blocks: dict[HtmlElement, HtmlElement | None] = {}
        linked: set[HtmlElement] = set()
        for node in self._page.elements:
            parent = node.getparent()
            above = blocks[parent] if parent is not None else node
            is_block = node.tag in BLOCKS
            block = None if above is None or node in without else node if is_block else above
            blocks[node] = block
            if not is_block and (node.tag == "a" or parent in linked):
                linked.add(node)
            if block is not None and node.text and node not in linked:
                own[block] = own.get(block, 0) + _length(node.text)
            if above is not None and node.tail and parent not in linked:
                own[above] = own.get(above, 0) + _length(node.tail)
        masses: dict[HtmlElement, int] = {}
        for node in reversed(self._page.elements):
            mass = own.get(node, 0)
            total = masses.get(node, 0) + (mass if mass >= MIN_PROSE else 0)
            if total:
                masses[node] = total
                parent = node.getparent()
                if parent is not None:
                    masses[parent] = masses.get(parent, 0) + total
        return masses

    def _find_noise(self, *, by_name: bool) -> set[HtmlElement]:
        noise: set[HtmlElement] = set()
        stack = [self._body]
        while stack:
            for child in stack.pop():
                if self._is_noise(child, by_name=by_name):
                    noise.add(child)
                elif len(child):
                    stack.append(child)
        return noise

    def _is_noise(self, node: HtmlElement, *, by_name: bool) -> bool:
        tag = node.tag
        names = self._page.names(node)
        mass = self._raw.get(node, 0)
        whole = self._raw.get(self._body, 0) or 1
        if mass >= MUCH * whole:
            # Comments may be longer than the article.
            return bool(_TALK_NAME.search(names)) and node not in self._focus.path
        if tag in _NEVER:
            return True
        if tag in ("form", "header", "figure"):
            return not self._has_text(node, mass, whole)
        if tag not in BLOCKS:
            return tag == "span" and node in self._page.hidden
        if node in self._page.hidden or node.get("role") in _ROLES:
            return True
        if tag == "p" or tag in HEADINGS:
            # Their ids are often generated from their own text.
            names = (node.get("class") or "").lower()
        if not names:
            return False
        if _TALK_NAME.search(names):
            return True
        about_it = tag not in HEADINGS and _ABOUT_IT.search(names)
        return by_name and bool(about_it or OTHER_THINGS.search(names))

    def _has_text(self, node: HtmlElement, mass: int, whole: int) -> bool:
        """Return whether a form (some are around whole pages), a header or a figure has some of the text."""
        if node.tag == "figure":
            return next(node.iter(*_QUOTED), None) is not None
        return mass >= SOME * whole or (node.tag == "header" and mass >= LONG_HEADER)

    def _find_box(self) -> HtmlElement:
        box = self._marked_box()
        while True:
            child = max(box, key=lambda node: self._clean.get(node, 0), default=None)
            if child is None or child.tag not in _HOLDERS:
                return box
            held = self._clean.get(child, 0)
            if not held or held < self._enough(box, child) * self._clean.get(box, 0):
                return box
            box = child

    def _enough(self, box: HtmlElement, child: HtmlElement) -> float:
        """Return the share of the prose of a box that a box inside must have to be chosen."""
        before = True
        for node in box:
            if node is child:
                before = False
            elif (mass := self._clean.get(node, 0)) and node not in self.noise:
                below_headline = node in self._focus.path or self._focus.distance(node) >= 0
                if before and below_headline and mass >= INTRODUCTION:
                    return 1.0
                if node.tag == "p":
                    return ALL_BUT_PARAGRAPHS
        return MOST if self._is_named_article(child) else NEARLY_ALL

    def _marked_box(self) -> HtmlElement:
        """Return the element that the page names as the text of its article, where there is one; else its body."""
        marked: list[HtmlElement] = []
        passed: set[HtmlElement] = set()
        for node in self._page.elements:
            if node in self.noise or node.getparent() in passed:
                passed.add(node)
            elif node is not self._body and node.tag in _HOLDERS and self._is_named_text(node):
                passed.add(node)
                marked.append(node)
        masses = sorted((self._clean.get(node, 0) for node in marked), reverse=True)
        if not masses or masses[0] < SOME * self._clean.get(self._body, 0) or masses[0] < DENSITY * sum(masses[1:2]):
            return self._body
        return max(marked, key=lambda node: self._clean.get(node, 0))

    def _is_named_text(self, node: HtmlElement) -> bool:
        return bool(_TEXT_BOX.search(self._page.names(node)))

    def _is_named_article(self, node: HtmlElement) -> bool:
        return node.tag in ("article", "main") or (node.tag in _HOLDERS and self._is_named_text(node))


def _length(text: str) -> int:
    length = len(one_line(text))
    return DENSITY * length if length and _DENSE.search(text) else length
