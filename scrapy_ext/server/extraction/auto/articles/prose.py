"""The box with most of the prose of a page, and the elements in that box that are something else."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from math import inf
from typing import Final

from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, Found
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

# Names are those of ``class``, ``id`` and ``itemprop`` in lower case. Short words match only as whole words.

_VOCABULARY: Final = load_vocabulary("article_parts")

#: Parts with comments of readers.
_TALK_NAME = _VOCABULARY.pattern("talk")
#: Parts about other things: menus, suggestions, forms to subscribe, notices.
OTHER_THINGS = _VOCABULARY.pattern("other_things")
TEASER, _CAPTION, _EDIT_LINK = _VOCABULARY.patterns("teaser", "caption", "edit_link")
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
_BOXES: Final = frozenset({"div", "section"})
#: Elements of a box with a button that are no list, table, code, or picture.
_OF_CONTROL: Final = frozenset(
    {"a", "b", "br", "button", "div", "i", "input", "label", "p", "section", "span", "strong"}
)
MAX_CONTROL: Final = 12
#: Longest text of such buttons that is read, in characters.
MAX_BUTTON: Final = 60
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)]*(?:\s|$)")
_QUOTED: Final = frozenset({"table", "pre", "blockquote"})
_ROLES: Final = frozenset({
    "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alert", "menu", "menubar",
    "tablist", "toolbar", "button", "form",
})  # fmt: skip

#: Shortest line of prose in the search for the box, in characters: entries of menus and captions are shorter.
MIN_PROSE: Final = 40
#: Weight of a character of scripts that say in one what takes about three Latin letters: Thai, kana, Han, Hangul.
DENSITY: Final = 3
_DENSE = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
#: With this share of the prose (MUCH) a part is of the text whatever its name is; a form or header, with SOME.
MUCH: Final = 0.5
SOME: Final = 0.3
#: The least share that is left without the parts named as something else. With less, the names are those of the text
#: itself (a page about comments, a ``sidebar`` around all), and are ignored.
TOO_FEW: Final = 0.2
#: Shares of the prose of a box that a box inside must have to be chosen: in general (the rest is a teaser or a box with
#: the author), for one named so, and for one with a paragraph beside it, which belongs to the text as well.
NEARLY_ALL: Final = 0.85
MOST: Final = 0.6
ALL_BUT_PARAGRAPHS: Final = 0.97
#: Prose between the headline and a box that is the beginning of the text: a standfirst is shorter, in characters.
INTRODUCTION: Final = 150
#: Prose of a header that has some of the text, in characters: headline, standfirst and byline are shorter.
LONG_HEADER: Final = 400


class ArticleBox:
    """The ``box`` with most of the prose of a page, and the elements in it that are something else (``noise``).

    Both are positions in the outline of the page. Boxes with buttons and words on these are noise where ``controls`` is
    true; the model of the content of pages was trained without them. ``marked`` is true where the page itself names the
    box an article.
    """

    def __init__(self, page: Page, focus: Focus, *, controls: bool = False) -> None:
        self._page = page
        self._focus = focus
        self._controls = controls
        self._names = page.all_names
        self.outline = page.outline
        self._is_talk, self._is_text_box = Found(_TALK_NAME), Found(_TEXT_BOX)
        self._is_teaser, self._is_caption = Found(TEASER), Found(_CAPTION)
        self._is_edit_link = Found(_EDIT_LINK)
        self._is_about_it, self._is_other = Found(_ABOUT_IT), Found(OTHER_THINGS)
        body = page.tree.find("body")
        self._body = 0 if body is None else page.order[body]
        prose = _Prose(self.outline)
        self._raw = prose.masses(frozenset())
        self.noise = self._find_noise(by_name=True)
        self._clean = prose.masses(self.noise)
        if self._clean[self._body] < TOO_FEW * self._raw[self._body]:
            self.noise = self._find_noise(by_name=False)
            self._clean = prose.masses(self.noise)
        self.box = self._find_box()
        self.marked = any(map(self._is_named_article, self.outline.around(self.box)))

    def _find_noise(self, *, by_name: bool) -> set[int]:
        noise: set[int] = set()
        ends = self.outline.ends
        position, end = self._body + 1, ends[self._body]
        while position < end:
            if self._is_noise(position, by_name=by_name):
                noise.add(position)
                position = ends[position]
            else:
                position += 1
        return noise

    def _is_noise(self, position: int, *, by_name: bool) -> bool:
        tag, node = self.outline.tags[position], self.outline.nodes[position]
        mass = self._raw[position]
        whole = self._raw[self._body] or 1
        if mass >= MUCH * whole:
            # Comments may be longer than the article. Without a heading, nearly all of the prose is the text.
            if self._focus.heading is None and mass >= NEARLY_ALL * whole:
                return False
            return self._is_talk[self._names[position]] and node not in self._focus.path
        if tag in _NEVER:
            return True
        if tag in ("form", "header", "figure"):
            return not self._has_text(position, mass, whole)
        if tag not in BLOCKS:
            names = self._names[position]
            return tag == "span" and (
                position in self._page.hidden or self._is_caption[names] or self._is_edit_link[names]
            )
        attributes = self.outline.attributes[position]
        if position in self._page.hidden or attributes.get("role") in _ROLES:
            return True
        if self._controls and not mass and self._is_control(position):
            return True
        names = self._names[position]
        if names and (tag == "p" or tag in HEADINGS):
            # Their ids are often generated from their own text.
            names = attributes.get("class", "").lower()
        if not names:
            return False
        if self._is_talk[names]:
            return True
        if not by_name:
            return False
        if self._is_teaser[names] and not self._begins_text(position):
            return True
        return (tag not in HEADINGS and self._is_about_it[names]) or self._is_other[names]

    def _begins_text(self, position: int) -> bool:
        """Return whether a part named as a teaser is right in the text of the article, and leads to no other page."""
        inside = self.outline.tags[position : self.outline.ends[position]]
        return self._is_named_text(self.outline.parents[position]) and "a" not in inside

    def _is_control(self, position: int) -> bool:
        """Return whether a box has a button, and words on it that are no sentence: ``Recommended content [Load]``."""
        tags, end = self.outline.tags, self.outline.ends[position]
        if tags[position] not in _BOXES or end - position > MAX_CONTROL or "button" not in tags[position:end]:
            return False
        if not _OF_CONTROL.issuperset(tags[position:end]):
            return False
        words = node_text(self.outline.nodes[position], MIN_PROSE + MAX_BUTTON)
        return not _SENTENCE_END.search(words)

    def _has_text(self, position: int, mass: int, whole: int) -> bool:
        """Return whether a form (some are around whole pages), a header or a figure has some of the text."""
        tags = self.outline.tags
        if tags[position] == "figure":
            return not _QUOTED.isdisjoint(tags[position : self.outline.ends[position]])
        return mass >= SOME * whole or (tags[position] == "header" and mass >= LONG_HEADER)

    def _find_box(self) -> int:
        box = self._marked_box()
        while True:
            child = max(self.outline.children(box), key=self._clean.__getitem__, default=None)
            if child is None or self.outline.tags[child] not in _HOLDERS:
                return box
            held = self._clean[child]
            if not held or held < self._enough(box, child) * self._clean[box]:
                return box
            box = child

    def _enough(self, box: int, child: int) -> float:
        """Return the share of the prose of a box that a box inside must have to be chosen."""
        before = True
        in_text = any(map(self._is_named_text, self.outline.around(box)))
        for position in self.outline.children(box):
            if position == child:
                before = False
            elif in_text and position not in self.noise and self._has_sentence(position):
                return inf
            elif (mass := self._clean[position]) and position not in self.noise:
                node = self.outline.nodes[position]
                below_headline = node in self._focus.path or self._focus.distance(node) >= 0
                if before and below_headline and mass >= INTRODUCTION:
                    return 1.0
                if self.outline.tags[position] == "p":
                    return ALL_BUT_PARAGRAPHS
        return MOST if self._is_named_article(child) else NEARLY_ALL

    def _has_sentence(self, position: int) -> bool:
        """Return whether a part has a paragraph of text, which may be as short as a sentence."""
        outline = self.outline
        for inner in range(position, outline.ends[position]):
            if outline.tags[inner] == "p" and "a" not in outline.tags[inner : outline.ends[inner]]:
                text = (outline.texts[inner] or "").strip()
                if _SENTENCE_END.search(text) and not any(each in self.noise for each in outline.around(inner)):
                    return True
        return False

    def _marked_box(self) -> int:
        """Return the element that the page names as the text of its article, where there is one; else its body."""
        marked: list[int] = []
        ends = self.outline.ends
        position = 0
        while position < len(ends):
            if position in self.noise:
                position = ends[position]
            elif self._is_named_text(position):
                marked.append(position)
                position = ends[position]
            else:
                position += 1
        masses = sorted((self._clean[position] for position in marked), reverse=True)
        if not masses or masses[0] < SOME * self._clean[self._body] or masses[0] < DENSITY * sum(masses[1:2]):
            return self._body
        return max(marked, key=self._clean.__getitem__)

    def _is_named_text(self, position: int) -> bool:
        return self.outline.tags[position] in _HOLDERS and self._is_text_box[self._names[position]]

    def _is_named_article(self, position: int) -> bool:
        return self.outline.tags[position] in ("article", "main") or self._is_named_text(position)


class _Prose:
    """The characters of prose of a page, without links, by the blocks in which they stand."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        #: The block in which the text of each element stands: the element itself, or one around it.
        self._blocks: list[int] = []
        self._texts: list[int] = []
        self._tails: list[int] = []
        linked: list[bool] = []
        for position, (tag, parent) in enumerate(zip(outline.tags, outline.parents, strict=True)):
            is_block = tag in BLOCKS or not position
            in_link = not is_block and (tag == "a" or linked[parent])
            linked.append(in_link)
            self._blocks.append(position if is_block else self._blocks[parent])
            text = None if in_link else outline.texts[position]
            tail = None if not position or linked[parent] else outline.tails[position]
            self._texts.append(text_length(text) if text else 0)
            self._tails.append(text_length(tail) if tail else 0)

    def masses(self, without: AbstractSet[int]) -> list[int]:
        """Return the characters of prose in each element, without those in some elements."""
        ends, parents, blocks, texts, tails = (
            self._outline.ends, self._outline.parents, self._blocks, self._texts, self._tails,
        )  # fmt: skip
        own = [0] * len(ends)
        position = 0
        while position < len(ends):
            own[blocks[parents[position]]] += tails[position]
            if position in without:
                position = ends[position]
            else:
                own[blocks[position]] += texts[position]
                position += 1
        masses = [mass if mass >= MIN_PROSE else 0 for mass in own]
        for position in range(len(ends) - 1, 0, -1):
            masses[parents[position]] += masses[position]
        return masses


def text_length(text: str) -> int:
    """Return the length of a text in Latin letters, about: a sign of a dense script counts as several."""
    words = text.split()
    if not words:
        return 0
    length = len(" ".join(words))
    return DENSITY * length if not text.isascii() and _DENSE.search(text) else length
