"""Parts of a page for its Markdown: those that are taken, and those that become Markdown as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, Protocol

from scrapy_ext.server.extraction.auto.markdown.document import CodeBlock
from scrapy_ext.server.extraction.auto.markdown.grids import rows_of
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.text import code_text, whole_number

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.content.blocks import TextBlock

#: Elements without text for readers.
UNREAD: Final = frozenset({
    "head", "title", "meta", "link", "script", "style", "base", "iframe", "audio", "canvas", "datalist", "select",
    "textarea", "input", "template", "noembed", "noframes",
})  # fmt: skip
#: Elements around a picture that are parts of it: whether it is content is for what is around them to say.
_OF_PICTURES: Final = frozenset({"a", "figure", "figcaption", "picture", "span", "img"})
#: Share of the words around a picture that must be content.
_MOST: Final = 0.5


class Selection(Protocol):
    """Choice among the parts of a page, by positions in its outline."""

    def has(self, piece: int) -> bool:
        """Return whether a text is taken: ``2 * position`` is that of an element, ``2 * position + 1`` its tail."""

    def skips(self, position: int) -> bool:
        """Return whether nothing in an element is taken."""

    def has_image(self, position: int) -> bool:
        """Return whether a picture is taken."""

    def leaves_out_hidden(self, position: int) -> bool:
        """Return whether a part of an element is left out because the page does not show it."""


class WholePage:
    """All that a page shows: what it hides itself is left out."""

    def __init__(self, page: Page) -> None:
        self._hidden = page.hidden

    def has(self, piece: int) -> bool:
        return True

    def skips(self, position: int) -> bool:
        return position in self._hidden

    def has_image(self, position: int) -> bool:
        return True

    def leaves_out_hidden(self, position: int) -> bool:
        return False


class MainContent:
    """The blocks of the content, and the pictures among them."""

    def __init__(self, page: Page, blocks: Iterable[TextBlock], chosen: Sequence[TextBlock]) -> None:
        self._outline = outline = page.outline
        self._hidden = page.hidden
        self._pieces = frozenset(piece for block in chosen for piece in block.pieces)
        size = len(outline.nodes)
        #: Sums of words up to each position: of all blocks, and of the chosen ones.
        self._all, self._chosen = _sums(blocks, size), _sums(chosen, size)
        self._texts = list(accumulate(self._counts(size), initial=0))

    def _counts(self, size: int) -> list[int]:
        counts = [0] * size
        for piece in self._pieces:
            counts[piece // 2] += 1
        return counts

    def has(self, piece: int) -> bool:
        return piece in self._pieces

    def skips(self, position: int) -> bool:
        end = self._outline.ends[position]
        # The tail of an element belongs to those around it.
        inside = self._texts[end] - self._texts[position] - (2 * position + 1 in self._pieces)
        return not inside and (position in self._hidden or not self._may_have_images(position, end))

    def _may_have_images(self, position: int, end: int) -> bool:
        return self._all[end] == self._all[position] or self._outline.tags[position] in _OF_PICTURES

    def has_image(self, position: int) -> bool:
        """Return whether most of the words around a picture are content."""
        outline = self._outline
        for around in outline.around(position):
            end = outline.ends[around]
            words = self._all[end] - self._all[around]
            if words and outline.tags[around] not in _OF_PICTURES:
                return self._chosen[end] - self._chosen[around] >= _MOST * words
        return False

    def leaves_out_hidden(self, position: int) -> bool:
        return False


#: Inline styles of text that is not seen, beside those of :attr:`Page.unshown`.
_UNSEEN_STYLE: Final = re.compile(
    r"""(?:^|;)\s*(?:opacity\s*:\s*(?:0+(?:\.0*)?|\.0+)%?\s*(?:!|;|$)
    |font-size\s*:\s*(?:0+(?:\.0*)?|\.0+)\s*(?:[a-z%]+\s*)?(?:!|;|$)
    |visibility\s*:\s*collapse|content-visibility\s*:\s*hidden|text-indent\s*:\s*-\d{3}|clip\s*:\s*rect\(\s*[01](?:px)?[,\s]
    |clip-path\s*:\s*inset\(\s*(?:50|100)%|(?:left|top|right|bottom)\s*:\s*-\d{4})""",
    re.IGNORECASE | re.VERBOSE,
)


class Shown:
    """The parts of a selection that a person can see.

    Left out are elements that attributes or inline styles hide, and on a page that the browser loaded those that
    computed styles hide, make as small as a pixel, or place outside of the page. What its parents cut off, and text in
    the colour of its background, are not known.
    """

    def __init__(self, page: Page, selection: Selection) -> None:
        self._outline, self._selection = page.outline, selection
        #: Whether the elements at these positions, and those around them, are not seen.
        self._hidden = [False] * len(page.outline.nodes)
        for position in sorted(_unseen(page)):
            if not self._hidden[position]:  # else those inside of it are, too
                end = page.outline.ends[position]
                self._hidden[position:end] = [True] * (end - position)

    def has(self, piece: int) -> bool:
        position, is_tail = divmod(piece, 2)
        element = self._outline.parents[position] if is_tail else position
        return not self._hidden[element] and self._selection.has(piece)

    def skips(self, position: int) -> bool:
        return self._hidden[position] or self._selection.skips(position)

    def has_image(self, position: int) -> bool:
        return not self._hidden[position] and self._selection.has_image(position)

    def leaves_out_hidden(self, position: int) -> bool:
        return any(self._hidden[position : self._outline.ends[position]])


def _unseen(page: Page) -> Iterator[int]:
    """Yield the positions of elements that are not seen; those inside of them are not all listed."""
    outline = page.outline
    yield from page.unshown
    for position in page.with_attribute.get("style", ()):
        if _UNSEEN_STYLE.search(outline.attributes[position]["style"]):
            yield position
    yield from (outline.order[node] for node in page.styles.unseen() if node in outline.order)


def _sums(blocks: Iterable[TextBlock], size: int) -> list[int]:
    words = [0] * size
    for block in blocks:
        if block.pieces:
            words[block.pieces[0] // 2] += block.words
    return list(accumulate(words, initial=0))


# ── superscripts and subscripts ──

#: Signs that have raised and lowered forms. Markdown has no marks for ``10²`` and ``H₂O``, and ``102`` and ``H2O`` are
#: something else.
_PLAIN: Final = "0123456789+-=()n"
_RAISED: Final = str.maketrans(_PLAIN, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED: Final = str.maketrans(_PLAIN, "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙ")


def raised(text: str) -> str:
    return _with(text, _RAISED)


def lowered(text: str) -> str:
    return _with(text, _LOWERED)


def _with(text: str, table: dict[int, int]) -> str:
    return text.translate(table) if all(ord(sign) in table for sign in text.strip()) else text


# ── images of a page: the address of one that scripts would load later, and its description ──


#: Attributes with the address of an image, the first that has one; those of scripts that load it later come first, as
#: ``src`` is a placeholder there.
_SOURCES: Final = ("data-src", "data-original", "data-lazy-src", "data-lazy", "src")
_SETS: Final = ("data-srcset", "srcset")
#: Sides in pixels of what is no picture: beacons that count visits.
_BEACON: Final = 2
_MAX_ALT: Final = 1_000


def image_of(page: Page, position: int) -> tuple[str, str] | None:
    """Return the alternative text and the URL of an image; None for one that shows nothing."""
    attributes = page.outline.attributes[position]
    if any(_is_tiny(attributes.get(side)) for side in ("width", "height")):
        return None
    url = next((url for name in _SOURCES if (url := page.link(attributes.get(name)))), None)
    if url is None:
        sets = (attributes.get(name, "").strip().split(maxsplit=1) for name in _SETS)
        url = next((url for parts in sets if parts and (url := page.link(parts[0].rstrip(",")))), None)
    if url is None:
        return None
    return one_line(attributes.get("alt") or attributes.get("title"))[:_MAX_ALT].strip(), url


def _is_tiny(side: str | None) -> bool:
    number = whole_number((side or "").strip().removesuffix("px"), 4)
    return number is not None and number <= _BEACON


# ── blocks of code: their text as it stands in the page, and the language that the page names ──


#: Class names of languages, as highlighters write them.
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-(?:source-|text-)?|brush:\s*|sourceCode\s+)(?P<name>[A-Za-z][\w+#.-]{0,30})"
)
_NAME = re.compile(r"[A-Za-z][\w+#.-]{0,30}", re.ASCII)
#: Names of what is no language.
_NONE: Final = frozenset({
    "none", "plain", "plaintext", "text", "txt", "default", "nohighlight", "no-highlight", "auto",
})  # fmt: skip
#: Class names of the cell with a line of code, after cells with its number, before and after a change.
_CODE_CELL = re.compile(r"(?:^|[\s_-])(?:blob-code|ln-code|lines-code|line-code|code-line|line-content)(?:$|[\s_-])")
_NUMBERS: Final = 2
_NO_CODE = re.compile(r"[\d\s+-]*")
#: Elements around code that may name its language.
_AROUND: Final = 3
_OF_TABLES: Final = frozenset({"table", "tbody", "td", "tr"})


def code_block(page: Page, position: int) -> CodeBlock | None:
    """Return the code of a ``pre``; None for one without any, or with the numbers of lines alone."""
    text = code_text(page.outline, position, page.displays)
    return CodeBlock(text, _language_of(page.outline, position)) if text else None


def code_table(page: Page, position: int) -> CodeBlock | None:
    """Return the code of a table with a row for each line; None for other tables."""
    outline = page.outline
    lines = []
    for row in rows_of(outline, position)[1]:
        if not row.cells:
            continue
        *numbers, code = row.cells
        if len(numbers) > _NUMBERS or not _CODE_CELL.search(outline.attributes[code].get("class", "")):
            return None
        if not all(_NO_CODE.fullmatch("".join(outline.texts_in(cell))) for cell in numbers):
            return None
        lines.append("".join(outline.texts_in(code)).strip("\r\n").rstrip())
    return CodeBlock("\n".join(lines).strip("\n"), _language_of(outline, position)) if any(lines) else None


def _language_of(outline: Outline, position: int) -> str:
    codes = (at for at in range(position + 1, outline.ends[position]) if outline.tags[at] == "code")
    inside = (position, *islice(codes, 1))
    outer = (at for at in outline.around(position) if at != position and outline.tags[at] not in _OF_TABLES)
    around = islice(outer, _AROUND)
    for at in (*inside, *around):
        attributes = outline.attributes[at]
        for name in ("data-lang", "data-language"):
            if _NAME.fullmatch(attributes.get(name, "")):
                return _named(attributes[name])
        if match := _LANGUAGE.search(attributes.get("class", "")):
            return _named(match["name"])
    return ""


def _named(name: str) -> str:
    name = name.lower()
    return "" if name in _NONE else name
