"""XLSX: the parts of a workbook, written one after the other, so that no file is needed (ECMA-376, Part 1).

Strings are inline strings, which are never formulas; those that look like one have ``quotePrefix``, so that they stay
text when their cell is edited. Integers of more than 15 digits are text, because spreadsheets keep 15. All parts have
the date 1980-01-01, which is the default of ``ZipFile.open``, so the same records give the same file.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, repeat
from types import NoneType
from typing import IO, Any, Final, NamedTuple
from xml.sax.saxutils import escape

from scrapy_ext.api.compression import deflate_compressor
from scrapy_ext.compatibility.zip_files import compress_with
from scrapy_ext.formats.columns import Column, blocks, may_be_markup, may_have_controls, reader_of, texts_of
from scrapy_ext.formats.csv import is_formula, may_have_formula
from scrapy_ext.formats.encoder import Encoder, Page, decode
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
        # Fields beyond the columns are one column, whose object is made for each record.
        self._reader = None if schema.has_other else reader_of(schema.names, has_others=schema.chosen)
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
        for block in blocks(records):
            text = b",".join(block)
            columns = None if self._reader is None else self._reader.columns(text)
            if columns is None:
                columns = list(zip(*(self._schema.row(decode(record)) for record in block), strict=True))
            self._add_rows(columns, len(block), _Style(may_have_controls=may_have_controls(text)))
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
        compress_with(self._sheet, deflate_compressor())
        self._rows = self._length = 0
        self._write(_SHEET_BEGIN.encode())
        self._write(self._block([(name,) for name in self._schema.names], 1, _Style(_HEADER_STYLE)))

    def _end_sheet(self) -> None:
        if self._sheet is not None:
            self._sheet.write(_SHEET_END)
            self._sheet.close()

    def _add_rows(self, columns: Sequence[Column], number: int, style: _Style) -> None:
        """Add rows to the sheet, and to further ones when it is full."""
        while number:
            if self._rows >= MAX_ROWS or self._length > _MAX_SHEET:
                self._next_sheet()
            fitting = min(number, MAX_ROWS - self._rows)
            block = self._block([values[:fitting] for values in columns], fitting, style)
            self._length += len(block)
            self._write(block)
            columns, number = [values[fitting:] for values in columns], number - fitting

    def _block(self, columns: Sequence[Column], number: int, style: _Style) -> bytes:
        """Return the next rows of the sheet."""
        first = self._rows + 1
        self._rows += number
        rows = list(map(str, range(first, first + number)))
        cells = [_cells(letters, rows, values, style) for letters, values in zip(self._letters, columns, strict=True)]
        parts = zip(repeat('<row r="'), rows, repeat('">'), *cells, repeat("</row>"))
        return "".join(map("".join, parts)).encode()

    def _write(self, data: bytes) -> None:
        if self._sheet is not None:
            self._sheet.write(data)

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


class _Style(NamedTuple):
    """Style of cells. ``may_have_controls``: texts may have characters that XML excludes."""

    text: str = ""
    may_have_controls: bool = True


def _cells(letters: str, rows: Sequence[str], values: Column, style: _Style) -> Sequence[str]:
    """Return the cells of a column in some rows: empty texts where it has no value."""
    kinds = set(map(type, values))
    if NoneType in kinds:
        are_present = [value is not None for value in values]
        rows, dense = list(compress(rows, are_present)), list(compress(values, are_present))
        cells = iter(_cells(letters, rows, dense, style) if dense else ())
        return [next(cells) if is_present else "" for is_present in are_present]
    if kinds == {bool}:
        return [f'<c r="{letters}{row}" t="b"><v>{value:d}</v></c>' for row, value in zip(rows, values, strict=True)]
    if kinds == {float} or (kinds <= {int, float} and min(values) > -_MAX_INTEGER and max(values) < _MAX_INTEGER):
        return [f'<c r="{letters}{row}"><v>{value!r}</v></c>' for row, value in zip(rows, values, strict=True)]
    if len(values) == 1 or kinds.isdisjoint((bool, int, float)):
        return _text_cells(letters, rows, texts_of(values), style)
    return [_cells(letters, (row,), (value,), style)[0] for row, value in zip(rows, values, strict=True)]


def _text_cells(letters: str, rows: Sequence[str], texts: Sequence[str], style: _Style) -> Sequence[str]:
    joined = "".join(texts)
    if len(joined) > MAX_CHARACTERS // 2:
        texts = [_fitting(text) if len(text) > MAX_CHARACTERS // 2 else text for text in texts]
    styles: Iterable[str] = repeat(style.text)
    if not style.text and may_have_formula(texts):
        styles = [_FORMULA_STYLE if is_formula(text) else "" for text in texts]
    if "_x" in joined or may_be_markup(joined, may_have_controls=style.may_have_controls):
        texts = [_escaped(text) if _SPECIAL.search(text) else text for text in texts]
    return [
        f'<c r="{letters}{row}"{own} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
        for row, own, text in zip(rows, styles, texts)  # noqa: B905 - the style of all is repeated without end
    ]


def _fitting(text: str) -> str:
    """Return a text cut to the characters of a cell, which are UTF-16 units, with a note of its length."""
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
