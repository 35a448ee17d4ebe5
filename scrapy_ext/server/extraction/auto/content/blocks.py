"""Blocks of text of a page, as a reader sees them, each with the boxes around it, and the marks of articles on them.

A block is a run of text without a block-level element in it: a paragraph, a heading, a cell, the label of a button. A
box is a block-level element around blocks; its sums include all blocks inside of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from scrapy_ext.server.extraction.auto.articles.body_lines import runs_of, text_runs
from scrapy_ext.server.extraction.auto.articles.prose import ArticleBox
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.page import Focus, Page, one_line
from scrapy_ext.server.extraction.auto.page.text import code_text, is_no_code, word_count
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Elements within a line of text: they begin no block.
INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "nobr", "picture", "q", "rp", "rt", "ruby", "s", "samp", "small",
    "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip
_UNREAD: Final = frozenset(
    {"head", "title", "meta", "link", "script", "style", "base", "iframe", "audio", "video", "canvas"}
)
#: Placeholder of a line break within a block, while other white space is collapsed.
_BREAK: Final = "\ufdd0"
#: Names of texts for screen readers, which say what others see as stars, colours or a line through a price.
_SPOKEN: Final = load_vocabulary("page_parts").words("screen_reader")

#: The blocks of a page that are read. Of several hundred real pages, the longest has 9,000.
MAX_BLOCKS: Final = 10_000


class Box:
    """A block-level element, and the sums over all blocks in it."""

    __slots__ = (
        "attributes",
        "blocks",
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

    def __init__(self, page: Page, position: int, parent: Box | None) -> None:
        outline = page.outline
        self.parent = parent
        self.node, self.tag = outline.nodes[position], outline.tags[position]
        self.attributes, self.names = outline.attributes[position], page.all_names[position]
        self.hidden: bool = position in page.hidden or bool(parent and parent.hidden)
        self.depth: int = parent.depth + 1 if parent else 0
        self.words = self.link_words = self.blocks = 0
        #: Number of sibling boxes, itself included, with the same tag and class.
        self.twins = 1

    def chain(self) -> list[Box]:
        """Return the box and those around it, from the inside."""
        found, box = [self], self.parent
        while box is not None:
            found.append(box)
            box = box.parent
        return found


class TextBlock:
    """A run of text in one line, the words in it and in its links, and the names of the inline elements in it.

    ``pieces`` are the pieces of text of the outline that it consists of: ``2 * position`` is the text of an element,
    ``2 * position + 1`` its tail.
    """

    __slots__ = ("box", "inline", "link_words", "pieces", "tags", "text", "words")

    def __init__(self, box: Box, text: str, read: _Line) -> None:
        self.box, self.text = box, text
        self.inline, self.tags, self.pieces = " ".join(read.names), frozenset(read.tags), tuple(read.pieces)
        self.words = word_count(text)
        in_links = word_count(" ".join(read.link_texts)) if read.link_texts else 0
        self.link_words = min(self.words, in_links)


class _Line:
    """Texts, links and inline elements read since the last block ended."""

    __slots__ = ("link_texts", "names", "pieces", "spoken", "tags", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.link_texts: list[str] = []
        self.names: list[str] = []
        self.tags: list[str] = []
        self.pieces: list[int] = []
        #: Ranges of ``texts`` that are for screen readers.
        self.spoken: list[range] = []

    def clear(self) -> None:
        for read in (self.texts, self.link_texts, self.names, self.tags, self.pieces, self.spoken):
            read.clear()

    def text(self) -> str:
        """Return the text: without that for screen readers, unless there is no other."""
        if self.spoken:
            unseen = {at for part in self.spoken for at in part}
            seen = "".join(" " if at in unseen else text for at, text in enumerate(self.texts))
            if word_count(seen):
                return seen
        return "".join(self.texts)


def _is_spoken(names: str) -> bool:
    """Return whether classes are those of a text for screen readers, and of none that wide screens show."""
    names = names.lower()
    return "not-sr-only" not in names and any(name in names for name in _SPOKEN)


class Blocks(list[TextBlock]):
    """The blocks of a page with text, in its order; ``root`` is the box around them all."""

    def __init__(self, page: Page, limit: int = MAX_BLOCKS) -> None:
        super().__init__()
        body = page.tree.find("body")
        root = 0 if body is None else page.order[body]
        self._page, self._limit = page, limit
        self._spoken = {page.order[node] for node in page.named(*_SPOKEN) if _is_spoken(node.get("class") or "")}
        self.root = Box(page, root, None)
        #: The boxes of the page in its order: each before those in it. They do not know these, as objects in cycles
        #: would keep the whole page until the garbage collector finds them.
        self.boxes = [self.root]
        self._line = _Line()
        #: The end of the code that is being read, whose lines are one block.
        self._end_of_code = 0
        #: Links and buttons around the current text.
        self._links = 0
        self._read_tree(root)
        self._sum()

    def _read_tree(self, root: int) -> None:
        outline = self._page.outline
        tags, texts, tails, ends = outline.tags, outline.texts, outline.tails, outline.ends
        displays = self._page.displays
        # The elements that have begun, whether they stand in a line, the box around them and the links around that.
        begun: list[tuple[int, bool, Box, int]] = []
        line, spoken = self._line, self._spoken
        starts: dict[int, int] = {}
        box, position, end = self.root, root, ends[root]
        self._read(texts[root], 2 * root)
        position += 1
        while position < end or begun:
            if begun and ends[begun[-1][0]] == position:
                last, inline, around, links = begun.pop()
                if not inline:
                    self._end(box)
                    box = around
                elif last in spoken:
                    line.spoken.append(range(starts.pop(last, 0), len(line.texts)))
                self._links = links
                self._read(tails[last], 2 * last + 1)
                continue
            tag = tags[position]
            inline = position < self._end_of_code or displays.get(position, tag in INLINE)
            if tag == "br" or tag in _UNREAD or (inline and self._is_unseen(position)):
                if tag == "br":
                    self._line.texts.append(_BREAK)
                self._read(tails[position], 2 * position + 1)
                position = ends[position]
                continue
            begun.append((position, inline, box, self._links))
            if inline:
                if position in displays.apart:
                    self._line.texts.append(" ")
                self._name(position, tag)
                if position in spoken:
                    starts[position] = len(line.texts)
            else:
                self._end(box)
                box = Box(self._page, position, box)
                self.boxes.append(box)
                if tag == "pre":
                    self._end_of_code = ends[position]
            self._links += tag in ("a", "button")
            self._read(texts[position], 2 * position)
            position += 1
        self._end(self.root)

    def _is_unseen(self, position: int) -> bool:
        if position < self._end_of_code and is_no_code(self._page.outline, position, outside=True):
            return True
        return position in self._page.hidden

    def _name(self, position: int, tag: str) -> None:
        if names := self._page.all_names[position]:
            self._line.names.append(names)
        self._line.tags.append(tag)

    def _read(self, text: str | None, piece: int) -> None:
        if text:
            self._line.texts.append(text)
            self._line.pieces.append(piece)
            if self._links:
                self._line.link_texts.append(text)

    def _end(self, box: Box) -> None:
        line = self._line
        if not line.texts and not line.tags:
            return
        text = one_line(line.text())
        if _BREAK in text:
            text = "\n".join(stripped for part in text.split(_BREAK) if (stripped := part.strip()))
        if text and box.tag == "pre":
            outline = self._page.outline
            text = code_text(outline, outline.order[box.node], self._page.displays)
        if text and len(self) < self._limit:
            block = TextBlock(box, text, line)
            if block.words:
                self.append(block)
        line.clear()

    def _sum(self) -> None:
        for block in self:
            box = block.box
            box.words += block.words
            box.link_words += block.link_words
            box.blocks += 1
        for box in reversed(self.boxes):
            above = box.parent
            if above is not None:
                above.words += box.words
                above.link_words += box.link_words
                above.blocks += box.blocks
        alike = [(box.parent, box.tag, box.attributes.get("class")) for box in self.boxes]
        counts = Counter(alike)
        for box, key in zip(self.boxes, alike, strict=True):
            box.twins = counts[key]


# Marks of the rules for articles on a page of any kind: which blocks they would take, and which they would leave out.
#
# On an article these rules are more precise than the model of blocks. On other pages they say where the prose is.


class ArticleMarks:
    """Marks of the blocks of a page, each a list with a value for each block."""

    def __init__(self, page: Page, blocks: Blocks, focus: Focus | None = None) -> None:
        focus = focus or Focus(page, page.meta("og:title", "twitter:title"), page.title)
        ends = page.outline.ends
        article = ArticleBox(page, focus)
        runs = text_runs(runs_of(page, article.box, article.noise), focus.heading, headline_of(page, None, focus) or "")
        taken = {2 * position for run in runs for position in run.texts}
        taken.update(2 * position + 1 for run in runs for position in run.tails)
        box = range(article.box, ends[article.box])
        noise: set[int] = set()
        for position in article.noise:
            noise.update(range(position, ends[position]))
        starts = [block.pieces[0] // 2 for block in blocks]
        #: Whether the page itself names the box an article.
        self.is_marked = article.marked
        #: The share of the pieces of text of the block that are of the article.
        self.shares = [len(taken.intersection(block.pieces)) / len(block.pieces) for block in blocks]
        #: Whether the block begins in the box of the article.
        self.inside = [start in box for start in starts]
        #: Whether the block begins in an element that the rules leave out as a whole.
        self.noise = [start in noise for start in starts]
