"""XLSX: the parts of a workbook, written one after the other, so that no file is needed (ECMA-376, Part 1).

Strings are inline strings, which are never formulas; those that look like one have ``quotePrefix``, so that they stay
text when their cell is edited. Integers of more than 15 digits are text, because spreadsheets keep 15. All parts have
the date 1980-01-01, which is the default of ``ZipFile.open``, so the same records give the same file.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final
from xml.sax.saxutils import escape

from scrapy_ext.formats.csv import is_formula
from scrapy_ext.formats.encoder import Encoder, Page, decode, plain
from scrapy_ext.formats.schema import Schema

#: Limits of the format. A sheet has one line of headers.
MAX_ROWS: Final = 1_048_576
MAX_CHARACTERS: Final = 32_767
#: Maximum bytes of a sheet, so that no part needs ZIP64, which some programs cannot read.
_MAX_SHEET: Final = 1536 * 1024 * 1024
_MAX_INTEGER: Final = 10**15
_LEVEL: Final = 1

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
#: Styles of cells: plain, text that looks like a formula, headers.
_FORMULA_STYLE: Final = ' s="1"'
_HEADER_STYLE: Final = ' s="2"'
_STYLES: Final = (
    f'{_HEAD}<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_SHEET_BEGIN: Final = (
    f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
    '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>'
)
_SHEET_END: Final = b"</sheetData></worksheet>"

#: Characters that XML excludes, and text that reads like the escape of one.
_ESCAPED: Final = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
#: Text without any of these stays as it is.
_SPECIAL: Final = re.compile("[&<>\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]|_x")


class XlsxEncoder(Encoder):
    # A cell has up to 90 bytes of markup, and its field at least seven bytes of JSON. Empty cells are left out.
    growth, columns = 16, 40
    #: The zlib compressor, and its output.
    kept = 1024 * 1024

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._letters = [_letters(index) for index in range(len(schema.names))]
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._sheets = 0
        self._sheet: IO[bytes] | None = None
        self._rows = 0
        self._length = 0

    def begin(self) -> bytes:
        self._part("xl/styles.xml", _STYLES)
        self._next_sheet()
        return self._sink.take()

    def page(self, records: Page) -> bytes:
        lines: list[bytes] = []
        for record in records:
            if self._rows == MAX_ROWS or self._length > _MAX_SHEET:
                self._add(lines)
                lines = []
                self._next_sheet()
            line = self._row(self._schema.row(decode(record)))
            self._length += len(line)
            lines.append(line)
        self._add(lines)
        return self._sink.take()

    def end(self) -> bytes:
        self._end_sheet()
        for name, text in _workbook(self._sheets):
            self._part(name, text)
        self._zip.close()
        return self._sink.take()

    def _next_sheet(self) -> None:
        self._end_sheet()
        self._sheets += 1
        self._sheet = self._zip.open(f"xl/worksheets/sheet{self._sheets}.xml", "w")
        self._rows = self._length = 0
        self._add([_SHEET_BEGIN.encode(), self._row(self._schema.names, _HEADER_STYLE)])

    def _end_sheet(self) -> None:
        if self._sheet is not None:
            self._sheet.write(_SHEET_END)
            self._sheet.close()

    def _add(self, lines: Sequence[bytes]) -> None:
        if lines and self._sheet is not None:
            self._sheet.write(b"".join(lines))

    def _row(self, values: Sequence[Any], style: str = "") -> bytes:
        self._rows += 1
        number = self._rows
        cells = [
            _cell(f"{letters}{number}", value, style)
            for letters, value in zip(self._letters, values, strict=True)
            if value is not None
        ]
        return f'<row r="{number}">{"".join(cells)}</row>'.encode()

    def _part(self, name: str, text: str) -> None:
        with self._zip.open(name, "w") as part:
            part.write(text.encode())


class _Sink(io.RawIOBase):
    """Bytes that were written and not yet taken. It cannot seek, so the archive is written from start to end."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _cell(place: str, value: Any, style: str) -> str:
    kind = type(value)
    if kind is bool:
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if (kind is int and -_MAX_INTEGER < value < _MAX_INTEGER) or (kind is float and math.isfinite(value)):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    text = value if kind is str else plain(value)
    if len(text) > MAX_CHARACTERS // 2:
        text = _fitting(text)
    style = style or (_FORMULA_STYLE if is_formula(text) else "")
    if _SPECIAL.search(text):
        text = _escaped(text)
    return f'<c r="{place}"{style} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _fitting(text: str) -> str:
    """Return the text cut to the characters of a cell, which are UTF-16 units, with a note of its length."""
    units = text.encode("utf-16-le", "replace")
    if len(units) // 2 <= MAX_CHARACTERS:
        return text
    note = f"… (cut: {len(text)} characters)"
    return units[: 2 * (MAX_CHARACTERS - len(note))].decode("utf-16-le", "ignore") + note


def _escaped(text: str) -> str:
    return escape(_ESCAPED.sub(_escape, _SURROGATE.sub("\ufffd", text)))


def _escape(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):04X}_"


def _letters(index: int) -> str:
    """Return the name of a column: A to Z, then AA."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _workbook(sheets: int) -> Iterator[tuple[str, str]]:
    """Yield the parts that name the others."""
    numbers = range(1, sheets + 1)
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for number in numbers
    )
    yield (
        "[Content_Types].xml",
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>{overrides}</Types>',
    )
    yield (
        "_rels/.rels",
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    )
    names = "".join(f'<sheet name="Sheet{number}" sheetId="{number}" r:id="rId{number}"/>' for number in numbers)
    yield (
        "xl/workbook.xml",
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>',
    )
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in numbers
    )
    yield (
        "xl/_rels/workbook.xml.rels",
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{links}'
        f'<Relationship Id="rId{sheets + 1}" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
    )
