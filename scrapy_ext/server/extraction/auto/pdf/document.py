"""A PDF as the other modules of this folder see it: lines with their places, and what it says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class UnreadablePdfError(Exception):
    """A PDF without a text to extract. The message continues a sentence: "... is a PDF that needs a password"."""


class TextLine(NamedTuple):
    """A line of a page. Places are in points from the left and from the top of the page."""

    text: str
    left: float
    right: float
    #: Of the line on which the letters stand.
    base: float
    #: Height of the letters, from the lowest to the highest of the font.
    size: float

    @property
    def width_of_letter(self) -> float:
        return (self.right - self.left) / max(len(self.text), 1)


class PdfPage(NamedTuple):
    """A page, with its lines in the order in which the document prints them."""

    height: float
    lines: list[TextLine]


class PdfDocument(NamedTuple):
    """A document. ``information``: title, author and so on by their names in the file."""

    pages: list[PdfPage]
    information: dict[str, str]
    language: str | None


def usual_size(sizes: Iterable[tuple[float, int]]) -> float:
    """Return the size of most letters; ``sizes`` are those of texts, with their numbers of letters."""
    counts: Counter[float] = Counter()
    for size, letters in sizes:
        counts[round(size, 1)] += letters
    return counts.most_common(1)[0][0] if counts else 0.0
