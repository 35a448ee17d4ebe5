"""Reading of a PDF: its lines with their places, and what it says of itself.

PDFium, the reader of Chromium, returns the text of a page in the order in which the file prints it, with line breaks;
the places of the first and the last letter of a line are those of the line. All of it is bounded: pages, characters,
lines and time, after which the rest is left out. What PDFium itself takes is bounded by its process (``auto_worker``).
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import pypdfium2 as pdfium
from pypdfium2 import raw

from scrapy_ext.server.extraction.auto.page.text import one_line


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


#: What is read of a document, in pages, characters, lines, and seconds of processor time.
MAX_PAGES: Final = 1000
MAX_LENGTH: Final = 2_000_000
MAX_LINES: Final = 100_000
MAX_SECONDS: Final = 15.0
#: Bytes of a title, of authors and so on.
MAX_INFORMATION: Final = 4000

#: Sets PDFium's last error to that of a damaged file.
_NO_PDF: Final = b"x"
_INFORMATION: Final = ("Title", "Author", "Subject", "Creator", "Producer", "CreationDate", "ModDate")
#: A line ends at a line break, or where PDFium found a divided word, which it joins to the next line.
_LINE = re.compile(r"[^\r\n\x02\ufffe]+[\x02\ufffe]?")
_WORD = re.compile(r"\S+")
_LIGATURES: Final = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})

#: Not the code of a divided word.
_NO_CONTROLS: Final = dict.fromkeys({*range(32), 127} - {2, *b"\t\n\r"})
_REPLACED: Final = {**_NO_CONTROLS, **_LIGATURES}

_Box = tuple[float, float, float, float]


def read(data: bytes) -> PdfDocument:
    """Return what a document holds; raises :class:`UnreadablePdfError`."""
    document = _opened(data)
    try:
        information = {name: _information(document, name) for name in _INFORMATION}
        pages = list(_pages(document))
        return PdfDocument(pages, information, _language(document))
    finally:
        document.close()


def _opened(data: bytes) -> pdfium.PdfDocument:
    # A file without pages fails without an error of its own, so that PDFium would return that of the document before.
    raw.FPDF_LoadMemDocument(_NO_PDF, len(_NO_PDF), None)
    try:
        return pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            raise UnreadablePdfError("needs a password") from None
        raise UnreadablePdfError("cannot be read: it is damaged, or no PDF") from None


def _information(document: pdfium.PdfDocument, name: str) -> str:
    return _string(lambda buffer, size: raw.FPDF_GetMetaText(document, name.encode(), buffer, size))


def _language(document: pdfium.PdfDocument) -> str | None:
    return _string(lambda buffer, size: raw.FPDFCatalog_GetLanguage(document, buffer, size)) or None


def _string(write: Callable[[Any, int], int]) -> str:
    """Return a string that PDFium writes as UTF-16; an empty one for one that is too long."""
    size = write(None, 0)
    if not 2 < size <= MAX_INFORMATION:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    write(buffer, size)
    return bytes(buffer)[: size - 2].decode("utf-16-le", "replace").translate(_NO_CONTROLS)


def _pages(document: pdfium.PdfDocument) -> Iterator[PdfPage]:
    ends = time.process_time() + MAX_SECONDS
    length = lines = 0
    for number in range(min(len(document), MAX_PAGES)):
        page = _page(document, number, MAX_LENGTH - length, MAX_LINES - lines)
        if page is None:
            continue
        yield page
        length += sum(len(line.text) for line in page.lines)
        lines += len(page.lines)
        if length >= MAX_LENGTH or lines >= MAX_LINES or time.process_time() > ends:
            return


def _page(document: pdfium.PdfDocument, number: int, most: int, most_lines: int) -> PdfPage | None:
    """Return a page; None for one that cannot be read."""
    page = raw.FPDF_LoadPage(document, number)
    if not page:
        return None
    try:
        text = raw.FPDFText_LoadPage(page)
        if not text:
            return None
        try:
            sheet = _Sheet(page, text)
            return PdfPage(sheet.height, list(sheet.lines(most, most_lines)))
        finally:
            raw.FPDFText_ClosePage(text)
    finally:
        raw.FPDF_ClosePage(page)


class _Sheet:
    """A page with its text. Places in files are those before the page is turned, and from its bottom."""

    def __init__(self, page: Any, text: Any) -> None:
        self._text = text
        self._boxes: dict[int, _Box | None] = {}
        self._turned = raw.FPDFPage_GetRotation(page)
        self._width = raw.FPDF_GetPageWidthF(page)
        self.height = raw.FPDF_GetPageHeightF(page)

    def lines(self, most: int, most_lines: int) -> Iterator[TextLine]:
        text = self._read(min(raw.FPDFText_CountChars(self._text), most))
        parts = (part for match in _LINE.finditer(text) for part in self._lines_of(text, *match.span()))
        for begin, end in islice(parts, most_lines):
            shown = one_line(text[begin:end].translate(_REPLACED))
            line = self._line(shown, begin, end - 1) if shown else None
            if line is not None:
                yield line

    def _lines_of(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the begins and ends of the lines in a part of the text: some lines end without a line break."""
        words = [match.span() for match in _WORD.finditer(text, begin, end)]
        if not words:
            return
        first, last = self._box(words[0][0]), self._box(words[-1][1] - 1)
        if first is None or last is None or last[1] < first[3]:
            yield words[0][0], words[-1][1]
            return
        start, bottom = words[0][0], first[3]
        for (_, before), (word, _) in pairwise(words):
            box = self._box(word)
            if box is not None and box[1] >= bottom:
                yield start, before
                start, bottom = word, box[3]
        yield start, words[-1][1]

    def _read(self, count: int) -> str:
        buffer = (ctypes.c_ushort * (count + 1))()
        written = raw.FPDFText_GetText(self._text, 0, count, buffer)
        return bytes(buffer)[: 2 * max(0, written - 1)].decode("utf-16-le", "replace")

    def _line(self, text: str, begin: int, end: int) -> TextLine | None:
        first, middle, last = (self._box(at) for at in (begin, (begin + end) // 2, end))
        if first is None or last is None:
            return None
        size = sorted(box[3] - box[1] for box in (first, middle or first, last))[1]
        return TextLine(text, first[0], last[2], first[3], max(size, 0.1))

    def _box(self, at: int) -> _Box | None:
        """Return left, top, right and bottom of a letter."""
        if at not in self._boxes:
            self._boxes[at] = self._read_box(at)
        return self._boxes[at]

    def _read_box(self, at: int) -> _Box | None:
        box = raw.FS_RECTF()
        place = raw.FPDFText_GetCharIndexFromTextIndex(self._text, at)
        if place < 0 or not raw.FPDFText_GetLooseCharBox(self._text, place, box):
            return None
        (left, top), (right, bottom) = self._placed(box.left, box.top), self._placed(box.right, box.bottom)
        return min(left, right), min(top, bottom), max(left, right), max(top, bottom)

    def _placed(self, x: float, y: float) -> tuple[float, float]:
        match self._turned:
            case 1:
                return y, x
            case 2:
                return self._width - x, y
            case 3:
                return self._width - y, self.height - x
        return x, self.height - y
