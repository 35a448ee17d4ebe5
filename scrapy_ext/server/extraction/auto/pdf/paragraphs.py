"""Paragraphs of a document, made of its lines without those that it prints on page after page.

A PDF has no paragraphs, only lines in their places. A new paragraph begins where the letters have another size, below a
gap, at an indent, at the sign of a list item, and after a line that ends early: where the next word would have had
room, its author broke the line. Across columns and pages a paragraph goes on if its sentence does.

The end of a line is joined with the next one with a space, without one, or without the hyphen between them. A hyphen
there may divide a word, or belong to it. The rest of the document decides: whether the word stands in it with or
without its hyphen, else whether this is so for more of the words at other ends of lines.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page.text import joined
from scrapy_ext.server.extraction.auto.pdf.reading import PdfPage, TextLine


def usual_size(sizes: Iterable[tuple[float, int]]) -> float:
    """Return the size of most letters; ``sizes`` are those of texts, with their numbers of letters."""
    counts: Counter[float] = Counter()
    for size, letters in sizes:
        counts[round(size, 1)] += letters
    return counts.most_common(1)[0][0] if counts else 0.0


# ── lines that a document prints on page after page: headers, footers and numbers of pages ──
#
# Only lines in the margins of a page are examined, and only what is clearly repeated is removed: the same words at the
# same height on at least :data:`MIN_PAGES` pages, or on both pages of a document with two. Where the numbers in the
# words differ, one of them must count the pages, so that rows of a table are kept. A line in larger letters than the
# text, such as the number of an invoice, is kept where it stands first.


#: Lines at the top and at the bottom of each page that are examined.
EXAMINED: Final = 4
#: They are in this part of the height of a page at its top and at its bottom: 3.5 cm of A4, a margin and a line.
MARGIN: Final = 0.12
MIN_PAGES: Final = 3
#: Greatest difference in height of lines that repeat each other, in points.
SAME_HEIGHT: Final = 4.0
#: The number of a line counts the pages in this share of its repetitions: some pages have no number, or a Roman one.
MOST: Final = 0.8
#: Longer lines are no headers.
MAX_LENGTH: Final = 200
#: Letters are larger than those of the text by at least this factor.
LARGE: Final = 1.05

_NUMBER = re.compile(r"\d+")


def without_running_lines(pages: Sequence[PdfPage]) -> list[PdfPage]:
    """Return the pages without headers, footers and page numbers."""
    if len(pages) < 2:
        return list(pages)
    places: defaultdict[tuple[bool, str], list[tuple[int, TextLine]]] = defaultdict(list)
    for number, page in enumerate(pages):
        for is_top, line in _edges(page):
            places[is_top, _NUMBER.sub("#", line.text.casefold())].append((number, line))
    large = LARGE * usual_size((line.size, len(line.text)) for page in pages for line in page.lines)
    running: defaultdict[int, set[int]] = defaultdict(set)
    for found in places.values():
        repeated = _repeated(found, min(MIN_PAGES, len(pages)))
        for number, line in repeated[1:] if repeated and repeated[0][1].size > large else repeated:
            running[number].add(id(line))
    rest = [
        page._replace(lines=[line for line in page.lines if id(line) not in running[number]])
        for number, page in enumerate(pages)
    ]
    # Pages with nothing else, such as tickets, are no headers.
    return rest if any(page.lines for page in rest) else list(pages)


def _edges(page: PdfPage) -> Iterator[tuple[bool, TextLine]]:
    """Yield the lines at the top (True) and at the bottom of a page."""
    ordered = sorted((line for line in page.lines if len(line.text) <= MAX_LENGTH), key=lambda line: line.base)
    yield from ((True, line) for line in ordered[:EXAMINED] if line.base < MARGIN * page.height)
    yield from ((False, line) for line in ordered[-EXAMINED:] if line.base > (1 - MARGIN) * page.height)


def _repeated(found: list[tuple[int, TextLine]], least: int) -> list[tuple[int, TextLine]]:
    """Return those of the lines with the same words that repeat each other."""
    heights = Counter(round(line.base) for _, line in found)
    usual = heights.most_common(1)[0][0]
    same = [(number, line) for number, line in found if abs(line.base - usual) <= SAME_HEIGHT]
    if len({number for number, _ in same}) < least:
        return []
    texts = {line.text for _, line in same}
    return same if len(texts) == 1 or _counts_pages(same) else []


def _counts_pages(lines: list[tuple[int, TextLine]]) -> bool:
    numbers = [(page, [int(digits[:9]) for digits in _NUMBER.findall(line.text)]) for page, line in lines]
    for at in range(min(len(found) for _, found in numbers)):
        offsets = Counter(found[at] - page for page, found in numbers)
        if offsets.most_common(1)[0][1] >= MOST * len(lines):
            return True
    return False


# ── ends of lines ──

#: What only divides words.
SOFT_HYPHEN: Final = "\u00ad"
#: What may divide a word, with the two codes that PDFium has for a hyphen at the end of a line.
HYPHENS: Final = "-\u2010\x02\ufffe"
#: Ends of lines after which a word may go on.
OPEN_ENDS: Final = SOFT_HYPHEN + HYPHENS
#: What is written for the codes of PDFium.
_SHOWN: Final = {"\x02": "-", "\ufffe": "-", SOFT_HYPHEN: ""}
#: A document with this share of lines with such a hyphen divides words, where none of them stands elsewhere in it.
DIVIDES: Final = 0.04
_LONGEST_WORD: Final = 100

_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LAST_PART = re.compile(r"[^\W\d_]+$")
_FIRST_PART = re.compile(r"[^\W\d_]+")
#: Scripts that have no spaces between words: Han, kana and Thai.
_NO_SPACE = re.compile(r"[\u0e00-\u0e7f\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")


class _Divided(NamedTuple):
    """The two parts of a word at the end of a line and at the begin of the next one."""

    first: str
    second: str

    @classmethod
    def of(cls, line: str, after: str) -> _Divided | None:
        """Return the parts; None where they are surely two words."""
        first, second = _LAST_PART.search(line[-_LONGEST_WORD:-1]), _FIRST_PART.match(after[:_LONGEST_WORD])
        if first is None or second is None or not second[0][0].islower() or first[0][1:] != first[0][1:].lower():
            return None
        return cls(first[0].casefold(), second[0])


class LineEnds:
    """The words of a document, by which the ends of its lines are joined."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: set[str] = set()
        divided: Counter[_Divided] = Counter()
        count, before = 0, ""
        for line in lines:
            count += 1
            words = _WORD.findall(line)
            is_open = bool(line) and line[-1] in OPEN_ENDS
            # The last word of such a line may be a part of one.
            self._words.update(word.casefold().replace("\u2010", "-") for word in (words[:-1] if is_open else words))
            if before and (parts := _Divided.of(before, line)):
                divided[parts] += 1
            before = line if is_open else ""
        whole = sum(number for parts, number in divided.items() if self._is_whole(parts))
        compound = sum(number for parts, number in divided.items() if self._is_compound(parts))
        self._divides = whole > compound if whole or compound else divided.total() >= DIVIDES * count

    def text_of(self, lines: Sequence[str]) -> str:
        """Return lines as one text."""
        parts = [self._ended(line, after) for line, after in pairwise(lines)]
        last = lines[-1] if lines else ""
        return "".join((*parts, last[:-1] + _SHOWN.get(last[-1:], last[-1:])))

    def _ended(self, line: str, after: str) -> str:
        """Return a line with what is between it and the next one."""
        last, first = line[-1:], after[:1]
        if last == SOFT_HYPHEN:
            return line[:-1]
        if last in HYPHENS and line[-2:-1].isalnum():
            return line[:-1] + (_SHOWN.get(last, last) if self._keeps_hyphen(line, after) else "")
        return line if _NO_SPACE.match(last) and _NO_SPACE.match(first) else f"{line} "

    def _keeps_hyphen(self, line: str, after: str) -> bool:
        parts = _Divided.of(line, after)
        if parts is None:
            return True
        return not self._is_whole(parts) and (not self._divides or self._is_compound(parts))

    def _is_whole(self, parts: _Divided) -> bool:
        return parts.first + parts.second in self._words

    def _is_compound(self, parts: _Divided) -> bool:
        return f"{parts.first}-{parts.second}" in self._words


# ── paragraphs ──

#: Sizes of letters of one paragraph differ by no more: the next step of a font, from 10 to 12 points, is 1.2.
SAME_SIZE: Final = 1.12
#: A step to the next line that is larger than the usual one by this factor is a gap: half an empty line is 1.5.
GAP: Final = 1.3
#: Largest step within a paragraph where no usual one is known, in sizes of its letters.
LARGEST_STEP: Final = 2.2
#: A smaller step is no new line: a superscript, or the next cell of a table.
SMALLEST_STEP: Final = 0.4
#: Smallest indent of the first line, in sizes of its letters.
INDENT: Final = 0.7
#: Lines before and after that show how long lines are.
NEIGHBOURS: Final = 3
#: Lines are not full where their ends differ by more letters: a word that did not fit is shorter.
UNEVEN: Final = 15
#: Share of lines that end at one edge in justified text: last lines of paragraphs and headings do not.
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
    """A paragraph in the making: further lines may follow."""

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
    return joined(paragraphs, lambda each: each.text, lambda _, each: "\n" if each.close else "\n\n")
