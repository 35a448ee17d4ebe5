"""Blocks of text of a page, as a reader sees them, each with the boxes around it, and the marks of articles on them.

A block is a run of text without a block-level element in it: a paragraph, a heading, a cell, the label of a button. A
box is a block-level element around blocks; its sums include all blocks inside of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from scrapy_ext.server.extraction.auto.articles.body_lines import runs_of
from scrapy_ext.server.extraction.auto.articles.chosen_lines import text_runs
from scrapy_ext.server.extraction.auto.articles.prose import ArticleBox
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.text import code_text, is_no_code, word_count
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Elements within a line of text: they begin no block.
INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "nobr", "picture", "q", "s", "samp", "small",
    "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip
_UNREAD: Final = frozenset({
    "head", "title", "meta", "link", "script", "style", "base", "iframe", "audio", "video", "canvas", "noframes",
    "noembed",
})  # fmt: skip
#: Placeholder of a line break within a block, while other white space is collapsed.
_BREAK: Final = "\ufdd0"
#: Names of texts for screen readers, which say what others see as stars, colours or a line through a price.
_SPOKEN: Final = load_vocabulary("page_parts").words("screen_reader")

_EDITS: Final = frozenset({"del", "ins"})
#: Characters of a text for the eye that is compared with that for screen readers beside it.
MAX_SAID_AGAIN: Final = 200
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
    """A run of text in one line, the words in it and in its links, the names of its inline elements, and whether one
    of these is a ``span``.

    ``pieces`` are the pieces of text of the outline that it consists of: ``2 * position`` is the text of an element,
    ``2 * position + 1`` its tail.
    """

    __slots__ = ("box", "in_span", "inline", "link_words", "pieces", "text", "words")

    def __init__(self, box: Box, text: str, read: _Line) -> None:
        self.box, self.text = box, text
        self.inline, self.in_span, self.pieces = " ".join(read.names), read.in_span, tuple(read.pieces)
        self.words = word_count(text)
        in_links = word_count(" ".join(read.link_texts)) if read.link_texts else 0
        self.link_words = min(self.words, in_links)


class _Line:
    """Texts, links and inline elements read since the last block ended."""

    __slots__ = ("in_span", "link_texts", "names", "pieces", "spoken", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.link_texts: list[str] = []
        self.names: list[str] = []
        self.in_span = False
        self.pieces: list[int] = []
        #: Ranges of ``texts`` that are for screen readers.
        self.spoken: list[range] = []

    def read(self, text: str | None, piece: int, links: int) -> None:
        """Read a piece of text with so many links and buttons around it."""
        if text:
            self.texts.append(text)
            self.pieces.append(piece)
            if links:
                self.link_texts.append(text)

    def clear(self) -> None:
        for read in (self.texts, self.link_texts, self.names, self.pieces, self.spoken):
            read.clear()
        self.in_span = False

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


def _says_again(page: Page, position: int) -> bool:
    """Return whether a text for screen readers has that of an old or new price beside it which is hidden from these
    readers: "Current price is: 20 €." after ``<ins aria-hidden=true>20 €</ins>``.

    The element is not read, so that the text would be lost with the one for screen readers.
    """
    node = page.elements[position]
    for beside in (node.getprevious(), node.getnext()):
        at = page.order.get(beside)
        if at is None or at not in page.hidden or at in page.unshown or page.elements[at].tag not in _EDITS:
            continue
        text = node_text(page.elements[at], MAX_SAID_AGAIN)
        if word_count(text) and text in node_text(node, 2 * MAX_SAID_AGAIN):
            return True
    return False


class Blocks(list[TextBlock]):
    """The blocks of a page with text, in its order; ``root`` is the box around them all."""

    def __init__(self, page: Page, limit: int = MAX_BLOCKS) -> None:
        super().__init__()
        body = page.tree.find("body")
        root = 0 if body is None else page.order[body]
        self._page, self._limit = page, limit
        self._spoken = {page.order[node] for node in page.named(*_SPOKEN) if _is_spoken(node.get("class") or "")}
        self._spoken = {position for position in self._spoken if not _says_again(page, position)}
        self.root = Box(page, root, None)
        #: The boxes of the page in its order: each before those in it. They do not know these, as objects in cycles
        #: would keep the whole page until the garbage collector finds them.
        self.boxes = [self.root]
        self._line = _Line()
        self._read_tree(root)
        self._sum()

    def _read_tree(self, root: int) -> None:
        page, outline, line, spoken = self._page, self._page.outline, self._line, self._spoken
        tags, texts, tails, ends = outline.tags, outline.texts, outline.tails, outline.ends
        names, displays, hidden = page.all_names, page.displays, page.hidden
        # The elements that have begun, whether they stand in a line, the box around them, and the number of links and
        # buttons around that.
        begun: list[tuple[int, bool, Box, int]] = []
        starts: dict[int, int] = {}
        box, position, end = self.root, root, ends[root]
        # The end of the code that is being read, whose lines are one block.
        links = end_of_code = 0
        line.read(texts[root], 2 * root, links)
        position += 1
        while position < end or begun:
            if begun and ends[begun[-1][0]] == position:
                last, inline, around, links = begun.pop()
                if not inline:
                    self._end(box)
                    box = around
                elif last in spoken:
                    line.spoken.append(range(starts.pop(last, 0), len(line.texts)))
                line.read(tails[last], 2 * last + 1, links)
                continue
            tag, in_code = tags[position], position < end_of_code
            inline = in_code or displays.get(position, tag in INLINE)
            is_unseen = inline and (position in hidden or (in_code and is_no_code(outline, position, outside=True)))
            if is_unseen or tag == "br" or tag in _UNREAD:
                if tag == "br":
                    line.texts.append(_BREAK)
                line.read(tails[position], 2 * position + 1, links)
                position = ends[position]
                continue
            begun.append((position, inline, box, links))
            if inline:
                if position in displays.apart:
                    line.texts.append(" ")
                if names[position]:
                    line.names.append(names[position])
                line.in_span |= tag == "span"
                if position in spoken:
                    starts[position] = len(line.texts)
            else:
                self._end(box)
                box = Box(page, position, box)
                self.boxes.append(box)
                if tag == "pre":
                    end_of_code = ends[position]
            links += tag in ("a", "button")
            line.read(texts[position], 2 * position, links)
            position += 1
        self._end(self.root)

    def _end(self, box: Box) -> None:
        line = self._line
        if not (line.texts or line.names or line.in_span):
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
