"""Paragraphs of a document, made of its lines.

A PDF has no paragraphs, only lines in their places. A new paragraph begins where the letters have another size, below a
gap, at an indent, at the sign of a list item, and after a line that ends early: where the next word would have had
room, its author broke the line. Across columns and pages a paragraph goes on if its sentence does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.pdf.document import PdfPage, TextLine, usual_size
from scrapy_ext.server.extraction.auto.pdf.line_ends import OPEN_ENDS, LineEnds

#: Sizes of letters of one paragraph differ by no more.
SAME_SIZE: Final = 1.12
#: A step to the next line that is larger than the usual one by this factor is a gap.
GAP: Final = 1.3
#: Largest step within a paragraph where no usual one is known, in sizes of its letters.
LARGEST_STEP: Final = 2.2
#: A smaller step is no new line: a superscript, or the next cell of a table.
SMALLEST_STEP: Final = 0.4
#: Smallest indent of the first line, in sizes of its letters.
INDENT: Final = 0.7
#: Lines before and after that show how long lines are.
NEIGHBOURS: Final = 3
#: Difference of the ends of lines, in letters, from which they are not full: a word that did not fit is shorter.
UNEVEN: Final = 15
#: Share of lines that end at one edge in justified text.
JUSTIFIED: Final = 0.6
#: Paragraphs before the end of a column that may go on in the next: notes and captions may stand between.
PASSED: Final = 6

_ITEM = re.compile(r"[•◦▪▫■□●○‣⁃∙·–—*\-➢➤✓]\s+(?=\S)|\(?(?:\d{1,3}|[a-zA-Z])[.)]\s+(?=\S)")
_SIGN = re.compile(r"^[•◦▪▫■□●○‣⁃∙·➢➤✓\uf0b7\uf0a7]\s*")
_SENTENCE_END = re.compile(r"[.!?:;。！？…][\"'”’»)\]]*$")


class Paragraph(NamedTuple):
    text: str
    size: float
    #: Number of the page on which it begins.
    page: int
    #: Whether it follows the one before without a gap: the next item of a list, the next line of an address.
    close: bool = False


class _Draft:
    """A paragraph of which further lines may be found."""

    def __init__(self, line: TextLine, page: int, *, close: bool) -> None:
        self.lines = [line.text]
        self.size = line.size
        self.begins = self.ends = page
        self.close = close

    def is_continued_by(self, other: _Draft) -> bool:
        last = self.lines[-1]
        return last[-1] in OPEN_ENDS or (other.lines[0][:1].islower() and not _ends_sentence(last))


def paragraphs_of(pages: Sequence[PdfPage]) -> list[Paragraph]:
    """Return the paragraphs of the pages in their order."""
    found: list[_Draft] = []
    for number, page in enumerate(pages):
        for flow in _flows(page.lines):
            drafts = list(_Flow(flow).drafts(number))
            before = _continued_by(found, drafts[0])
            if before is not None:
                before.lines += drafts.pop(0).lines
                before.ends = number
            found += drafts
    ends = LineEnds(line.text for page in pages for line in page.lines)
    made = (Paragraph(_SIGN.sub("", ends.text_of(each.lines)), each.size, each.begins, each.close) for each in found)
    return [paragraph for paragraph in made if paragraph.text]


def _flows(lines: Sequence[TextLine]) -> Iterator[list[TextLine]]:
    """Yield the lines that follow each other downwards in one column."""
    flow: list[TextLine] = []
    for line in _rows(lines):
        if flow and not (line.base > flow[-1].base and _overlap(line, flow)):
            yield flow
            flow = []
        flow.append(line)
    if flow:
        yield flow


def _rows(lines: Sequence[TextLine]) -> Iterator[TextLine]:
    """Yield lines, with the next pieces of the same row in one: cells of a table, a sign and its item."""
    row: TextLine | None = None
    for line in lines:
        if row is not None and _is_same_row(row, line):
            text = f"{row.text} {line.text}"
            size = row.size if len(row.text) >= len(line.text) else line.size
            row = TextLine(text, row.left, line.right, row.base if size == row.size else line.base, size)
            continue
        if row is not None:
            yield row
        row = line
    if row is not None:
        yield row


def _is_same_row(row: TextLine, line: TextLine) -> bool:
    step = abs(line.base - row.base)
    return step < SMALLEST_STEP * max(row.size, line.size) and line.left >= row.right - 0.3 * row.size


def _overlap(line: TextLine, flow: list[TextLine]) -> bool:
    before = flow[-NEIGHBOURS:]
    left, right = min(each.left for each in before), max(each.right for each in before)
    return min(line.right, right) - max(line.left, left) > 0


class _Flow:
    """Lines of one column, and what is usual in it."""

    def __init__(self, lines: list[TextLine]) -> None:
        self._lines = lines
        self._step = _usual_step(lines)
        size = usual_size((line.size, len(line.text)) for line in lines)
        #: The end of the lines of its text: headings may be longer.
        self._right = max((line.right for line in lines if _is_alike(line.size, size)), default=0.0)

    def drafts(self, number: int) -> Iterator[_Draft]:
        """Yield the paragraphs of the column, which is on the page with this number."""
        draft = _Draft(self._lines[0], number, close=False)
        for at, (before, line) in enumerate(pairwise(self._lines), 1):
            gap = self._is_gap(before, line)
            if gap or self._is_new(at, before, line):
                yield draft
                draft = _Draft(line, number, close=not gap)
            else:
                draft.lines.append(line.text)
        yield draft

    def _is_gap(self, before: TextLine, line: TextLine) -> bool:
        if not _is_alike(before.size, line.size):
            return True
        step = (line.base - before.base) / line.size
        return step > (LARGEST_STEP if self._step is None else GAP * self._step)

    def _is_new(self, at: int, before: TextLine, line: TextLine) -> bool:
        """Return whether a line without a gap before it begins a paragraph."""
        if _ITEM.match(line.text):
            return True
        if before.text[-1] in OPEN_ENDS or (line.text[0].islower() and not _ends_sentence(before.text)):
            return False
        near = self._lines[max(0, at - NEIGHBOURS) : at + NEIGHBOURS]
        near = [each for each in near if _is_alike(each.size, line.size)]
        left = min(each.left for each in near)
        is_indented = line.left - left > INDENT * line.size and before.left - left < INDENT * line.size
        if is_indented and not _ITEM.match(before.text):
            return True
        return self._has_room(before, line, near)

    def _has_room(self, before: TextLine, line: TextLine, near: list[TextLine]) -> bool:
        """Return whether the first word of a line would have had room at the end of the line before.

        Text beside a picture has shorter lines than the rest of its column, and yet full ones. Lines of addresses and
        lists are shorter still, or end in very different places.
        """
        word = line.text.split(maxsplit=1)[0]
        end = before.right + 1.25 * (len(word) + 1) * line.width_of_letter
        rights = [each.right for each in near]
        edge = max(rights)
        if end < edge or (before.right < edge - 0.3 * line.size and _is_justified(rights, line.size)):
            return True
        is_uneven = edge - min(rights) > UNEVEN * line.width_of_letter
        is_short = before.right < (before.left + self._right) / 2
        return end < self._right and (is_uneven or is_short)


def _is_justified(rights: list[float], size: float) -> bool:
    """Return whether lines end at one edge, so that any shorter one is the last of its paragraph."""
    edge = max(rights)
    return sum(edge - right < 0.1 * size for right in rights) >= JUSTIFIED * len(rights)


def _usual_step(lines: list[TextLine]) -> float | None:
    """Return the distance of lines in sizes of their letters, as most have it."""
    steps = Counter(
        round((line.base - before.base) / line.size, 1)
        for before, line in pairwise(lines)
        if _is_alike(before.size, line.size) and line.base - before.base < LARGEST_STEP * line.size
    )
    if not steps:
        return None
    # Of two that are as frequent, the smaller one: the other is that of gaps.
    return min(steps, key=lambda step: (-steps[step], step))


def _is_alike(size: float, other: float) -> bool:
    return max(size, other) <= SAME_SIZE * min(size, other)


def _ends_sentence(text: str) -> bool:
    return _SENTENCE_END.search(text[-4:]) is not None


def _continued_by(found: list[_Draft], first: _Draft) -> _Draft | None:
    """Return the paragraph that goes on at the top of the next column or page; None without one."""
    if _ITEM.match(first.lines[0]):
        return None
    for before in reversed(found[-PASSED:]):
        if first.begins - before.ends > 1:
            return None
        if _is_alike(before.size, first.size):
            return before if before.is_continued_by(first) else None
    return None


def text_of(paragraphs: Sequence[Paragraph]) -> str:
    """Return paragraphs as one text, with an empty line between those that have a gap between them."""
    pieces: list[str] = []
    for paragraph in paragraphs:
        if pieces:
            pieces.append("\n" if paragraph.close else "\n\n")
        pieces.append(paragraph.text)
    return "".join(pieces)
