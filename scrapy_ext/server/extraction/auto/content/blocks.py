"""Blocks of text of a page, as a reader sees them, each with the boxes around it.

A block is a run of text without a block-level element in it: a paragraph, a heading, a cell, the label of a button. A
box is a block-level element around blocks; its sums include all blocks inside of it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Page

#: Elements within a line of text: they begin no block.
INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "nobr", "picture", "q", "rp", "rt", "ruby", "s", "samp", "small",
    "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip
#: Inline elements that often style a part of a word: no space is put around their text.
_WITHIN_WORDS: Final = frozenset({
    "abbr", "b", "big", "cite", "code", "em", "font", "i", "mark", "nobr", "s", "small", "strong", "sub", "sup",
    "u", "wbr",
})  # fmt: skip
_UNREAD: Final = frozenset(
    {"head", "title", "meta", "link", "script", "style", "base", "iframe", "audio", "video", "canvas"}
)
_WORD = re.compile(r"\w+")
#: Placeholder of a line break within a block, while other white space is collapsed.
_BREAK: Final = "\ufdd0"

#: The blocks of a page that are read. Of several hundred real pages, the longest has 9,000.
MAX_BLOCKS: Final = 10_000


class Box:
    """A block-level element, and the sums over all blocks in it."""

    __slots__ = (
        "blocks",
        "children",
        "depth",
        "hidden",
        "link_words",
        "names",
        "node",
        "parent",
        "tag",
        "twins",
        "words",
    )

    def __init__(self, node: HtmlElement, parent: Box | None, names: str, *, hidden: bool) -> None:
        self.node, self.parent, self.names, self.hidden = node, parent, names, hidden
        self.tag: str = node.tag
        self.depth: int = parent.depth + 1 if parent else 0
        self.words = self.link_words = self.blocks = 0
        #: Number of sibling boxes, itself included, with the same tag and class.
        self.twins = 1
        self.children: list[Box] = []

    def chain(self) -> list[Box]:
        """Return the box and those around it, from the inside."""
        found, box = [self], self.parent
        while box is not None:
            found.append(box)
            box = box.parent
        return found


class TextBlock:
    """A run of text in one line, the words in it and in its links, and the names of the inline elements in it."""

    __slots__ = ("box", "inline", "link_words", "tags", "text", "words")

    def __init__(self, box: Box, text: str, link_text: str, inline: str, tags: frozenset[str]) -> None:
        self.box, self.text, self.inline, self.tags = box, text, inline, tags
        self.words = len(_WORD.findall(text))
        self.link_words = min(self.words, len(_WORD.findall(link_text))) if link_text else 0


class Blocks(list[TextBlock]):
    """The blocks of a page with text, in its order; ``root`` is the box around them all."""

    def __init__(self, page: Page, limit: int = MAX_BLOCKS) -> None:
        super().__init__()
        body = page.tree.find("body")
        self._page, self._limit = page, limit
        self._boxes: list[Box] = []
        self._texts: list[str] = []
        self._link_texts: list[str] = []
        self._inline: list[str] = []
        self._tags: list[str] = []
        self._links = 0
        self.root = self._box(page.tree if body is None else body, None)
        self._walk(self.root.node, self.root)
        self._end(self.root)
        self._sum()

    def _box(self, node: HtmlElement, parent: Box | None) -> Box:
        hidden = bool(parent and parent.hidden) or node in self._page.hidden
        box = Box(node, parent, self._page.names(node), hidden=hidden)
        if parent:
            parent.children.append(box)
        self._boxes.append(box)
        return box

    def _walk(self, node: HtmlElement, box: Box) -> None:
        """Read an element. The parser bounds the depth of the tree (see :class:`Page`)."""
        self._read(node.text)
        for child in node:
            tag = child.tag
            if tag in _UNREAD:
                pass
            elif tag == "br":
                self._texts.append(_BREAK)
            elif tag in INLINE:
                self._walk_inline(child, tag, box)
            else:
                self._end(box)
                links, self._links = self._links, self._links + (tag == "button")
                inner = self._box(child, box)
                self._walk(child, inner)
                self._end(inner)
                self._links = links
            self._read(child.tail)

    def _walk_inline(self, node: HtmlElement, tag: str, box: Box) -> None:
        if node in self._page.hidden:
            return
        apart = tag not in _WITHIN_WORDS
        if apart:
            self._texts.append(" ")
        names = self._page.names(node)
        if names:
            self._inline.append(names)
        self._tags.append(tag)
        self._links += tag == "a"
        self._walk(node, box)
        self._links -= tag == "a"
        if apart:
            self._texts.append(" ")

    def _read(self, text: str | None) -> None:
        if text:
            self._texts.append(text)
            if self._links:
                self._link_texts.append(text)

    def _end(self, box: Box) -> None:
        if self._texts:
            text = "".join(self._texts)
            if box.tag == "pre":
                text = text.replace("\n", _BREAK)
            text = " ".join(text.split())
            if _BREAK in text:
                text = "\n".join(line for part in text.split(_BREAK) if (line := part.strip()))
            if text and len(self) < self._limit:
                block = TextBlock(box, text, " ".join(self._link_texts), " ".join(self._inline), frozenset(self._tags))
                if block.words:
                    self.append(block)
            self._texts.clear()
        self._link_texts.clear()
        self._inline.clear()
        self._tags.clear()

    def _sum(self) -> None:
        for block in self:
            box = block.box
            box.words += block.words
            box.link_words += block.link_words
            box.blocks += 1
        # Boxes come before those in them.
        for box in reversed(self._boxes):
            above = box.parent
            if above is not None:
                above.words += box.words
                above.link_words += box.link_words
                above.blocks += box.blocks
            if len(box.children) > 1:
                _count_twins(box.children)


def _count_twins(boxes: list[Box]) -> None:
    keys = [(box.tag, box.node.get("class")) for box in boxes]
    counts = Counter(keys)
    for box, key in zip(boxes, keys, strict=True):
        box.twins = counts[key]
