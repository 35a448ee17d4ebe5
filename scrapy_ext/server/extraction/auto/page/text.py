"""Text as a reader sees it, in one line, in paragraphs or as code: without tags, entities and the white space of the
source.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from lxml import etree
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.parsing import parsed
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest value of structured data or text of a node, in characters; the rest is dropped.
MAX_VALUE_LENGTH: Final = 200_000

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,2000}>")
_NO_LETTERS = re.compile(r"[\W_]+")
#: The same signs of ASCII, which texts are rid of in a tenth of the time.
_NO_LETTERS_OF_ASCII: Final = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())
_WORD = re.compile(r"\w+")
_SPACES_FOR_SIGNS: Final = bytes(code if _WORD.match(chr(code)) else ord(" ") for code in range(256))


#: A line break of the source between characters of East Asia, which browsers do not show (CSS Text, "Segment Break
#: Transformation Rules"). Words of Hangul have spaces.
_WIDE: Final = (
    r"[\u2e80-\u312f\u3190-\u9fff\ua000-\ua4cf\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    r"\U00020000-\U0003fffd]"
)
_WIDE_BREAK = re.compile(rf"(?<={_WIDE})[ \t\r]*\n\s*(?={_WIDE})")
_IS_WIDE = re.compile(_WIDE)
_FIRST_WIDE: Final = "\u2e80"
#: Signs without width that only say in which direction the signs beside them are written, and the space.
_MARKS_OF_DIRECTION: Final = "\u200e\u200f\u061c "


def one_line(text: str | None) -> str:
    """Return a text with every run of white space as one space, and none around it.

    Line breaks between characters of East Asia are no space, and marks of direction around the text not of it.
    """
    if not text:
        return ""
    if "\n" in text and not text.isascii() and _IS_WIDE.search(text):
        text = _WIDE_BREAK.sub("", text)
    line = " ".join(text.split())
    return line if line.isascii() else line.strip(_MARKS_OF_DIRECTION)


def is_wide(sign: str) -> bool:
    """Return whether a character is of East Asia, where a line break of the source is no space."""
    return sign >= _FIRST_WIDE and _IS_WIDE.match(sign) is not None


def lines(text: str) -> str:
    """Return a text with its line breaks, no empty line, and every line as :func:`one_line` makes it."""
    return "\n".join(line for line in map(one_line, text.splitlines()) if line)


def plain(text: str | None) -> str:
    """Return the text of a value of structured data: entities resolved, tags (some sites put HTML there) removed.

    Line breaks are kept, those of HTML too.
    """
    if not text:
        return ""
    text = text[:MAX_VALUE_LENGTH]
    if "&" in text:
        # Twice, because many sites escape these values twice.
        text = html.unescape(html.unescape(text))
    if _TAG.search(text):
        return layout_text(parsed(text).tree)
    return lines(text)


def node_text(node: HtmlElement, limit: int = MAX_VALUE_LENGTH) -> str:
    """Return the text of a node in one line, read no further than ``limit`` characters.

    A space is put between the texts of different elements. It sometimes splits a word that is styled letter by letter,
    and two words are never joined.
    """
    # Its length would be counted child by child.
    if next(iter(node), None) is None:
        return one_line((node.text or "").strip()[: limit + 1])[:limit]
    return one_line(" ".join(_pieces(node, limit)))[:limit]


#: Elements that are set apart from the text around them: blocks, cells, controls.
_SET_APART: Final = HEADINGS | {
    "address", "article", "aside", "blockquote", "br", "button", "caption", "center", "dd", "details", "dialog", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "li", "main",
    "menu", "nav", "ol", "optgroup", "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody",
    "td", "textarea", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip


def shown_text(node: HtmlElement, limit: int = MAX_VALUE_LENGTH) -> str:
    """Return the text of a node in one line as a browser shows it, read no further than ``limit`` characters.

    Unlike :func:`node_text` it puts no space between the texts of elements that stand in a line, as parts of a word
    do.
    """
    pieces: list[str] = []
    left = limit
    for piece in shown_pieces(node):
        pieces.append(piece)
        left -= len(piece.strip())
        if left < 0:
            break
    return one_line("".join(pieces))[:limit]


def shown_pieces(node: HtmlElement) -> Iterator[str]:
    """Yield the texts of a node and those in it, with a space around elements that are set apart."""
    yield node.text or ""
    for event, inner in etree.iterwalk(node, events=("start", "end")):
        if inner is node:
            continue
        if inner.tag in _SET_APART:
            yield " "
        yield (inner.text if event == "start" else inner.tail) or ""


def _pieces(node: HtmlElement, limit: int) -> Iterator[str]:
    left = limit
    for text in node.itertext():
        # White space of the source does not count, so that indented text is not cut off.
        piece = text.strip()
        yield piece[: limit + 1]
        left -= len(piece) + 1
        if left < 0:
            return


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case, for comparison."""
    if text.isascii():
        return text.lower().translate(_NO_LETTERS_OF_ASCII)
    return _NO_LETTERS.sub("", text.casefold())


def word_count(text: str) -> int:
    """Return the number of words: of runs of letters, digits and underscores."""
    # Texts of ASCII are split in half of the time.
    return len(text.encode().translate(_SPACES_FOR_SIGNS).split() if text.isascii() else _WORD.findall(text))


class Found(dict[str, bool]):
    """Verdicts of a pattern by text: each text is searched once, as many elements have the same names."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._search = pattern.search

    def __missing__(self, text: str) -> bool:
        found = self[text] = self._search(text) is not None
        return found


T = TypeVar("T")


def joined(parts: Sequence[T], text_of: Callable[[T], str], between: Callable[[T, T], str]) -> str:
    """Return the texts of parts as one; ``between`` is what stands between a part and the next."""
    pieces = (piece for before, part in pairwise(parts) for piece in (between(before, part), text_of(part)))
    return "".join((*map(text_of, parts[:1]), *pieces))


def whole_number(text: str | None, digits: int) -> int | None:
    """Return the value of a text that is a number of at most so many digits; None for others."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= digits else None


def first(values: Iterable[str | None]) -> str | None:
    """Return the first value that is not empty."""
    return next((value for value in values if value), None)


# ── text of a part of a page in lines and paragraphs, with white space where a browser shows it ──


#: Elements that stand in lines of their own, and those with an empty line around them.
_OWN_LINES: Final = frozenset({
    "address", "article", "aside", "br", "center", "dd", "details", "div", "dt", "fieldset", "figcaption", "footer",
    "form", "header", "hr", "legend", "li", "main", "nav", "option", "section", "summary", "table", "tr",
})  # fmt: skip
_PARAGRAPHS: Final = frozenset({
    "blockquote", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "title", "ul",
})  # fmt: skip
#: Elements in a line that are apart from the text around them.
_SPACED: Final = frozenset({"button", "caption", "select", "td", "textarea", "th"})
_UNREAD: Final = frozenset({"audio", "canvas", "embed", "iframe", "object", "script", "style", "template", "video"})


def layout_text(tree: HtmlElement) -> str:
    """Return the text of an element."""
    written = _Written()
    for event, node in etree.iterwalk(tree, events=("start", "end")):
        is_start = event == "start"
        written.border(node.tag)
        if is_start and node.tag == "pre":
            written.code += 1
        if not is_start and node.tag == "pre":
            written.code -= 1
        if node.tag in _UNREAD:
            written.unread += 1 if is_start else -1
        written.text(node.text if is_start else node.tail if node is not tree else None)
    return written.whole()


class _Written:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        #: Line breaks before the line that is being written.
        self._breaks = 0
        #: Nesting in code, whose line breaks count, and in what is not shown.
        self.code = self.unread = 0

    def border(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._end(2)
        elif tag in _OWN_LINES:
            self._end(1)
        elif tag in _SPACED:
            self._line.append(" ")

    def text(self, text: str | None) -> None:
        if not text or self.unread:
            return
        first, *others = text.split("\n") if self.code else (text,)
        self._line.append(first)
        for line in others:
            self._end(1)
            self._line.append(line)

    def _end(self, breaks: int) -> None:
        if line := one_line("".join(self._line)):
            self._lines.append("\n" * self._breaks + line if self._lines else line)
            self._breaks = 0
        self._line.clear()
        self._breaks = max(self._breaks, breaks)

    def whole(self) -> str:
        self._end(1)
        return "".join(self._lines)


# ── text of preformatted elements (``pre``) as a browser shows it: with line breaks, and the spaces before each line ──
#
# Highlighters put each line into an element of its own, and add buttons, the name of the language and numbers of lines,
# which are no code.


#: Elements that begin a new line.
_LINES: Final = frozenset({
    "address", "article", "blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hr", "li", "ol", "p", "pre", "section", "summary", "table", "tr", "ul",
})  # fmt: skip
#: Elements in which white space between others is not shown.
_HOLDERS: Final = frozenset({"dl", "ol", "table", "tbody", "tfoot", "thead", "tr", "ul"})
_WIDGETS: Final = frozenset({"button", "input", "option", "select", "textarea"})
_WIDGET_ROLES: Final = frozenset({"button", "toolbar", "tooltip", "status"})
_WIDGET_NAMES, _NUMBER_NAMES = load_vocabulary("page_parts").patterns("code_widget", "code_number")
#: Longest text of a widget, in characters.
_MAX_WIDGET: Final = 80
#: Class names of the lines of code.
_LINE_NAMES: Final = frozenset({"line", "code-line", "token-line"})
_NOT_SELECTED: Final = re.compile(r"user-select\s*:\s*none", re.IGNORECASE)
_ONLY_NUMBERS: Final = re.compile(r"[\d\s]+")


def code_text(outline: Outline, position: int, displays: Mapping[int, bool]) -> str:
    """Return the text of an element with its line breaks, without widgets and numbers of lines.

    ``displays`` are the elements that are laid out otherwise than their tags (:mod:`.styles`). There are no empty
    lines at both ends, and no spaces at the ends of lines. Numbers of lines in a cell beside the code are no text.
    """
    text = _whole_text(outline, position, displays)
    is_column = "\n" in text and _ONLY_NUMBERS.fullmatch(text) is not None
    return "" if is_column and any(outline.tags[around] == "td" for around in outline.around(position)) else text


def _whole_text(outline: Outline, position: int, displays: Mapping[int, bool]) -> str:
    written = _WrittenCode()
    written.text(outline.texts[position], outline.tags[position])
    has_code = "code" in outline.tags[position + 1 : outline.ends[position]]
    begun: list[tuple[int, bool]] = []
    at, end = position + 1, outline.ends[position]
    while at < end or begun:
        if begun and outline.ends[begun[-1][0]] <= at:
            last, is_line = begun.pop()
            if is_line:
                written.end_line()
            elif _is_line_before_another(outline, last):
                written.break_line(is_empty=not any(outline.texts_in(last)))
            written.text(outline.tails[last], outline.tags[outline.parents[last]])
            continue
        tag = outline.tags[at]
        if is_no_code(outline, at, outside=has_code and "code" not in (outline.tags[up] for up, _ in begun)):
            written.text(outline.tails[at], outline.tags[outline.parents[at]])
            at = outline.ends[at]
            continue
        is_line = not displays[at] if at in displays else tag in _LINES
        if tag == "br":
            written.text("\n", tag)
        elif is_line:
            written.begin_line()
        written.text(outline.texts[at], tag)
        begun.append((at, is_line))
        at += 1
    return written.whole()


def _is_line_before_another(outline: Outline, position: int) -> bool:
    """Return whether an element in a line is a line by its name, and so is the next, without a break between them."""
    after = outline.ends[position]
    if outline.tails[position] or after >= len(outline.tags) or outline.parents[after] != outline.parents[position]:
        return False
    both = (outline.attributes[at].get("class", "").split() for at in (position, after))
    return all(not _LINE_NAMES.isdisjoint(names) for names in both)


def is_no_code(outline: Outline, position: int, *, outside: bool) -> bool:
    """Return whether an element in a ``pre`` is a widget or the number of a line.

    ``outside``: the ``pre`` has its code in an element that the position is not in.
    """
    tag, attributes = outline.tags[position], outline.attributes[position]
    if tag in _WIDGETS or attributes.get("role") in _WIDGET_ROLES:
        return True
    if tag in ("code", "pre") or not attributes:
        return False
    if "hidden" in attributes:
        return True
    names = attributes.get("class", "").lower()
    is_number = names and _NUMBER_NAMES.search(names)
    if is_number or attributes.get("aria-hidden") == "true" or _NOT_SELECTED.search(attributes.get("style", "")):
        return all(not text.strip() or _ONLY_NUMBERS.fullmatch(text) for text in outline.texts_in(position))
    if not outside or not names or not _WIDGET_NAMES.search(names):
        return False
    inside = outline.tags[position : outline.ends[position]]
    return "code" not in inside and sum(map(len, outline.texts_in(position))) <= _MAX_WIDGET


class _WrittenCode:
    """Text written so far. Each element that is a line ends the one before it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._is_after_line = False

    def text(self, text: str | None, parent: str) -> None:
        if not text or (parent in _HOLDERS and text.isspace()):
            return
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self._is_after_line:
            # The line break of the source between two lines, which are apart already.
            blank, _, rest = text.partition("\n")
            text = rest.lstrip() if text.isspace() else text if blank.strip() else rest
        if text:
            self._pieces.append(text)
            self._is_after_line = False

    def begin_line(self) -> None:
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self._pieces.append("\n")
        self._is_after_line = False

    def end_line(self) -> None:
        self.begin_line()
        self._is_after_line = True

    def break_line(self, *, is_empty: bool) -> None:
        """End a line that is not laid out as one by its tag."""
        if is_empty:
            self._pieces.append("\n")
        self.begin_line()

    def whole(self) -> str:
        lines = [line.rstrip() for line in "".join(self._pieces).split("\n")]
        first = next((at for at, line in enumerate(lines) if line), len(lines))
        while lines and not lines[-1]:
            lines.pop()
        return "\n".join(lines[first:])
