"""Reading of a page into a document: one walk over its outline, without recursion.

A run of text ends where a block-level element begins or ends. It becomes a paragraph, or a heading, in the innermost
quote or item of a list. Bold, italic, struck and linked text are the style of spans, so they go on across blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.markdown.containers import (
    Container,
    Numbering,
    join_definition,
    without_empty,
)
from scrapy_ext.server.extraction.auto.markdown.document import (
    MAX_NESTING,
    PLAIN,
    Block,
    CodeBlock,
    Heading,
    Paragraph,
    Quote,
    Rule,
    Span,
    SpanKind,
    Spans,
    Style,
    Table,
    one_line,
    settled,
)
from scrapy_ext.server.extraction.auto.markdown.grids import Grid, grid_of, part_of_table
from scrapy_ext.server.extraction.auto.markdown.parts import (
    UNREAD,
    Selection,
    code_block,
    code_table,
    image_of,
    lowered,
    raised,
)
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.formulas import FORMULA
from scrapy_ext.server.extraction.auto.page.text import whole_number

#: Elements within a line. Others begin a block.
_INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "button", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "img", "ins", "kbd", "label", "mark", "meter", "nobr", "output", "picture", "progress", "q", "rb",
    "s", "samp", "small", "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var",
    "video", "wbr",
})  # fmt: skip
_STYLES: Final = {
    "b": "strong", "strong": "strong", "em": "emphasis", "i": "emphasis", "del": "struck", "s": "struck",
    "strike": "struck",
}  # fmt: skip
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"})
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_LISTS: Final = frozenset({"ul", "ol", "menu", "dir", "dl"})
_MAIL = re.compile(r"mailto:[\w.+%-]{1,100}@[\w.-]{1,200}", re.ASCII)
_LARGEST_NUMBER: Final = 999_999_999
#: Elements whose text is not read, and which are between the words around them.
_CONTROLS: Final = frozenset({"input", "select", "textarea", "iframe"})
_SPACE: Final = Span(SpanKind.TEXT, " ")

#: Characters of text, addresses and structure that a document holds; the rest of a larger page is left out.
MAX_LENGTH: Final = 1_000_000
#: What a block takes beside its text: its signs, and the spaces before it.
_OF_BLOCK: Final = 24
#: What the spaces before a line of code take at most, for each level of nesting.
_OF_LINE: Final = 6


class MarkdownOptions(NamedTuple):
    """Options of a conversion: ``content`` is ``main`` or ``all``; without ``hidden``, only what a person can see."""

    content: str = "main"
    links: bool = True
    images: bool = True
    hidden: bool = True


class Reader:
    """Reader of a page. ``blocks`` returns its document."""

    def __init__(self, page: Page, selection: Selection, options: MarkdownOptions) -> None:
        self._page, self._outline, self._displays = page, page.outline, page.displays
        self._selection, self._options = selection, options
        self._left = MAX_LENGTH
        self._root = Container("root")
        self._containers = [self._root]
        self._nesting = 0
        self._spans: list[Span] = []
        self._style = PLAIN
        self._heading: int | None = None
        self._code: list[str] | None = None
        #: Signs for a superscript or subscript, where the text is in one.
        self._script: Callable[[str], str] | None = None
        #: Whether blocks are cells: their runs are one.
        self._in_cell = False

    def blocks(self) -> list[Block]:
        """Return the blocks of the page."""
        body = self._page.tree.find("body")
        root = 0 if body is None else self._page.order[body]
        self._walk(root)
        self._flush()
        return without_empty(self._root.blocks)

    def _walk(self, root: int) -> None:
        outline = self._outline
        ends, tails, texts = outline.ends, outline.tails, outline.texts
        begun: list[tuple[int, Callable[[], None]]] = []
        self._text(texts[root], 2 * root)
        position, end = root + 1, ends[root]
        while position < end or begun:
            if begun and ends[begun[-1][0]] <= position:
                last, finish = begun.pop()
                finish()
                self._text(tails[last], 2 * last + 1)
            elif self._left <= 0:
                position = ends[position]
                while begun:
                    begun.pop()[1]()
                return
            elif self._skips(position) or self._takes_whole(position):
                if outline.tags[position] in _CONTROLS:
                    self._take_control(position)
                self._text(tails[position], 2 * position + 1)
                position = ends[position]
            else:
                begun.append((position, self._begun(position)))
                self._text(texts[position], 2 * position)
                position += 1

    # ── elements ──

    def _skips(self, position: int) -> bool:
        return self._outline.tags[position] in UNREAD or self._selection.skips(position)

    def _takes_whole(self, position: int) -> bool:
        """Take an element with all that is in it; return False for one that is read part by part."""
        match part_of_table(self._outline, position):
            case "br":
                self._take_break()
            case "img":
                self._take_image(position)
            case "hr":
                self._flush()
                self._add(Rule())
            case "pre":
                return self._take_code(position)
            case "table":
                return self._take_table(position)
            case _:
                return False
        return True

    def _begun(self, position: int) -> Callable[[], None]:
        """Begin an element, and return the function that ends it."""
        tag = self._outline.tags[position]
        if self._displays.get(position, tag in _INLINE):
            return self._begun_inline(position, tag)
        self._flush()
        if self._in_cell:
            return self._flush
        if tag in _HEADINGS:
            return self._begun_heading(_HEADINGS[tag])
        if tag == "blockquote":
            return self._begun_container("quote", 1)
        if tag in _LISTS:
            return self._begun_container("list", 2, self._numbering_of(position) if tag == "ol" else None)
        if tag == "li":
            return self._begun_item(position)
        if tag in ("dt", "dd"):
            return self._begun_definition(is_term=tag == "dt")
        return self._flush

    def _begun_inline(self, position: int, tag: str) -> Callable[[], None]:
        if position in self._displays.apart or tag == "button":
            self._append(_SPACE)
        before, script = self._style, self._script
        closes = ""
        if name := _STYLES.get(tag):
            self._style = before.with_mark(name)
        elif tag == "a":
            self._style = before._replace(link=self._link_of(position) or before.link)
        elif tag in ("sup", "sub"):
            self._script = raised if tag == "sup" else lowered
        elif tag == "q":
            self._append(Span(SpanKind.TEXT, "“", self._style))
            closes = "”"
        elif tag in _CODE and self._code is None:
            self._code = []
            return lambda: self._end_code(tag)
        elif FORMULA in self._outline.attributes[position] and self._code is None:
            self._code = []
            return self._end_formula

        def finish() -> None:
            if closes:
                self._append(Span(SpanKind.TEXT, closes, self._style))
            self._style, self._script = before, script
            if tag == "button":
                self._append(_SPACE)

        return finish

    def _end_code(self, tag: str) -> None:
        raw = "".join(self._code or ())
        self._code = None
        if text := " ".join(raw.split()):
            if raw[0].isspace():
                self._append(Span(SpanKind.TEXT, " ", self._style))
            self._append(self._code_span(text))
            if raw[-1].isspace():
                self._append(Span(SpanKind.TEXT, " ", self._style))

    def _end_formula(self) -> None:
        """End a formula, which is inline code between dollar signs: TeX has signs that are marks in Markdown."""
        formula = "".join(self._code or ()).strip("$")
        self._code = None
        if formula:
            sign = Span(SpanKind.TEXT, "$", self._style)
            self._spans += [sign, self._code_span(formula), sign]

    def _code_span(self, text: str) -> Span:
        # A line that begins with a link to such code would define a reference: parsers look for those first.
        is_text = self._style.link is not None and "]:" in text
        return Span(SpanKind.TEXT if is_text else SpanKind.CODE, text, self._style)

    def _link_of(self, position: int) -> str | None:
        if not self._options.links:
            return None
        reference = self._outline.attributes[position].get("href")
        if reference and _MAIL.fullmatch(reference):
            return reference
        url = self._page.link(reference)
        self._left -= len(url or "")
        return url

    def _begun_heading(self, level: int) -> Callable[[], None]:
        before, self._heading = self._heading, level

        def finish() -> None:
            self._flush()
            self._heading = before

        return finish

    def _begun_container(self, kind: str, cost: int, numbering: Numbering | None = None) -> Callable[[], None]:
        if self._nesting + cost > MAX_NESTING:
            return self._flush
        container = Container(kind, cost, numbering)
        self._containers.append(container)
        self._nesting += cost
        heading, self._heading = self._heading, None

        def finish() -> None:
            self._flush()
            self._containers.pop()
            self._nesting -= cost
            self._heading = heading
            if kind == "list":
                for block in container.lists():
                    self._add(block)
            elif blocks := without_empty(container.blocks):
                self._add(Quote(blocks))

        return finish

    def _begun_item(self, position: int) -> Callable[[], None]:
        container = self._containers[-1]
        if container.kind == "list":
            container.begin_item(self._number(position, "value") if container.numbering else None)
        return self._flush

    def _begun_definition(self, *, is_term: bool) -> Callable[[], None]:
        container = self._containers[-1]
        if container.kind != "list":
            return self._flush
        if is_term:
            if not container.term or not container.items:
                container.begin_item()
            container.term = True
            return self._begun_term()
        begins = container.term and container.items and len(container.items[-1]) > 0
        container.term = False
        item = container.items[-1] if container.items else []
        terms = len(item)

        def finish() -> None:
            self._flush()
            if begins:
                join_definition(item, terms)

        return finish

    def _begun_term(self) -> Callable[[], None]:
        before = self._style
        self._style = before._replace(strong=True)

        def finish() -> None:
            self._flush()
            self._style = before

        return finish

    def _numbering_of(self, position: int) -> Numbering:
        outline = self._outline
        step = -1 if "reversed" in outline.attributes[position] else 1
        usual = 1 if step > 0 else sum(outline.tags[child] == "li" for child in outline.children(position))
        first = self._number(position, "start")
        return Numbering(usual if first is None else first, step)

    def _number(self, position: int, name: str) -> int | None:
        """Return the number in an attribute; None for one that Markdown cannot have."""
        number = whole_number(self._outline.attributes[position].get(name, "").strip(), 9)
        size = len(self._outline.tags) - position
        return None if number is None or number + size > _LARGEST_NUMBER else number

    # ── what is taken whole ──

    def _take_break(self) -> None:
        if self._code is not None:
            self._code.append(" ")
            return
        shown = (span for span in reversed(self._spans) if span.kind is not SpanKind.TEXT or span.text.strip())
        last = next(shown, None)
        if last is not None and last.kind is SpanKind.BREAK and self._heading is None:
            # An empty line, as between paragraphs.
            self._flush()
        else:
            self._append(Span(SpanKind.BREAK, style=self._style))

    def _take_control(self, position: int) -> None:
        if self._is_box(position):
            self._append(Span(SpanKind.BOX, "x" if "checked" in self._outline.attributes[position] else " "))
        self._append(_SPACE)

    def _is_box(self, position: int) -> bool:
        """Return whether a control is the box of a task: the first thing of an item, and not to be clicked.

        Boxes that can be clicked are in filters and forms, but for those that are named after tasks.
        """
        attributes, item = self._outline.attributes[position], self._containers[-1]
        if attributes.get("type", "").lower() != "checkbox" or position in self._page.hidden:
            return False
        if not item.items or item.items[-1] or self._in_cell or settled(self._spans):
            return False
        return "disabled" in attributes or "task" in attributes.get("class", "")

    def _take_image(self, position: int) -> None:
        if self._options.images and self._selection.has_image(position):
            found = image_of(self._page, position)
            if found is not None and self._code is None:
                alt, url = found
                self._left -= len(url) + len(alt)
                self._append(Span(SpanKind.IMAGE, alt, self._style, url))

    def _take_code(self, position: int) -> bool:
        if self._in_cell or self._code is not None or self._selection.leaves_out_hidden(position):
            return False
        outline = self._outline
        pieces = range(2 * position, 2 * outline.ends[position])
        if any(self._selection.has(piece) for piece in pieces if piece != 2 * position + 1):
            block = code_block(self._page, position)
            if block is not None:
                self._flush()
                self._add(block._replace(text=self._cut(block.text)))
        return True

    def _cut(self, code: str) -> str:
        """Return the lines of code for which there is room, each with the spaces before it."""
        kept, of_line = [], 1 + _OF_LINE * self._nesting
        for line in code[: max(0, self._left)].split("\n"):
            if self._left <= 0:
                break
            kept.append(line)
            self._left -= len(line) + of_line
        return "\n".join(kept)

    def _take_table(self, position: int) -> bool:
        if self._in_cell or self._code is not None:
            return False
        is_whole = not self._selection.leaves_out_hidden(position)
        if is_whole and (code := code_table(self._page, position)) is not None:
            self._flush()
            self._add(code._replace(text=self._cut(code.text)))
            return True
        grid = grid_of(self._outline, position)
        if grid is None:
            return False
        self._flush()
        if grid.caption is not None:
            self._walk(grid.caption)
            self._flush()
        table = self._table(grid)
        if table is not None:
            self._add(table)
        return True

    def _table(self, grid: Grid) -> Table | None:
        style, self._in_cell = self._style, True
        rows: list[list[Spans]] = []
        for row in grid.rows:
            if self._left <= 0:
                break
            cells: list[Spans] = []
            for cell in row:
                self._style = style if not grid.is_header(cell) else style._replace(strong=False)
                cells.append(self._cell(cell) if cell is not None else [])
            self._left -= 3 * len(cells)
            if any(cells):
                rows.append(cells)
        self._style, self._in_cell = style, False
        if not rows:
            return None
        width = max((at + 1 for row in rows for at, cell in enumerate(row) if cell), default=1)
        rows = [row[:width] for row in rows]
        if grid.has_header:
            return Table(rows[0], rows[1:])
        return Table([[] for _ in range(width)], rows)

    def _cell(self, position: int) -> Spans:
        self._walk(position)
        spans, self._spans = one_line(self._spans), []
        return spans

    # ── text ──

    def _text(self, text: str | None, piece: int) -> None:
        if not text or not self._selection.has(piece):
            return
        text = text[: max(0, self._left)]
        self._left -= len(text)
        if self._code is not None:
            self._code.append(text)
            return
        if text.strip() and self._script is not None:
            text = self._script(text)
        self._append(Span(SpanKind.TEXT, text, self._style))

    def _append(self, span: Span) -> None:
        self._spans.append(span)

    def _flush(self) -> None:
        """End the run of text: make a block of it."""
        if self._in_cell:
            # Blocks of a cell are words of one line.
            self._append(Span(SpanKind.TEXT, " "))
            return
        if self._code:
            # A block within inline code: the code goes on after it.
            self._append(self._code_span(" ".join("".join(self._code).split())))
            self._code = []
        spans, self._spans = settled(span for span in self._spans if span.text or span.kind is not SpanKind.CODE), []
        if all(span.kind is SpanKind.BOX for span in spans):
            return
        if self._heading is not None:
            spans = one_line(span._replace(style=span.style._replace(strong=False)) for span in spans)
            self._add(Heading(self._heading, spans))
        else:
            self._add(Paragraph(spans))

    def _add(self, block: Block) -> None:
        self._left -= _OF_BLOCK
        self._containers[-1].add(block)


__all__ = ["MAX_LENGTH", "CodeBlock", "MarkdownOptions", "Reader", "Style"]
