"""Lines that a document prints on page after page: headers, footers and numbers of pages.

Only lines in the margins of a page are examined, and only what is clearly repeated is removed: the same words at the
same height on at least :data:`MIN_PAGES` pages, or on both pages of a document with two. Where the numbers in the words
differ, one of them must count the pages, so that rows of a table are kept. A line in larger letters than the text, such
as the number of an invoice, is kept where it stands first.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from scrapy_ext.server.extraction.auto.pdf.document import PdfPage, TextLine, usual_size

#: Lines at the top and at the bottom of each page that are examined.
EXAMINED: Final = 4
#: Part of the height of a page at its top and at its bottom in which they are.
MARGIN: Final = 0.12
MIN_PAGES: Final = 3
#: Greatest difference in height of lines that repeat each other, in points.
SAME_HEIGHT: Final = 4.0
#: Share of the repetitions of a line in which its number counts the pages.
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
