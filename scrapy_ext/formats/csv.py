"""CSV: RFC 4180, with the parameters of the API (platform-api.md, Common conventions)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from scrapy_ext.api.platform.formats import CsvOptions
from scrapy_ext.formats.columns import blocks, reader_of, texts_of
from scrapy_ext.formats.encoder import Encoder, Page, decode, plain
from scrapy_ext.formats.schema import Schema

#: The first characters of a formula in spreadsheets, with their wide forms; numbers are not formulas.
_FORMULA: Final = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")


def is_formula(text: str) -> bool:
    """Return true for text that spreadsheets take for a formula."""
    return text[:1] in _FORMULA and not _NUMBER.fullmatch(text)


def may_have_formula(texts: Iterable[str]) -> bool:
    """Return false when no text begins as a formula does."""
    return not _FORMULA.isdisjoint({text[:1] for text in texts})


class CsvRows:
    """Rows of cells.

    ``escape_formulas``: an apostrophe precedes a formula (OWASP, CSV Injection). ``quote_lone``: a row of one empty
    cell is not an empty line, which readers skip.
    """

    def __init__(self, options: CsvOptions, *, escape_formulas: bool = False, quote_lone: bool = False) -> None:
        self._options = options
        self._escape_formulas = escape_formulas
        self._lone = options.quote * 2 if quote_lone else ""
        self._marks = frozenset(f"{options.sep}{options.quote}{options.escape}\r\n")
        self._special = re.compile("[" + re.escape(options.sep + options.quote + options.escape) + "\r\n]")

    def row(self, cells: Sequence[str]) -> str:
        text = self._options.sep.join(map(self._cell, cells))
        return (text or (self._lone if cells else "")) + self._options.lineend

    def rows(self, columns: Sequence[Sequence[str]]) -> str:
        """Return the rows of columns of cells, at least one."""
        cells = list(map(self._column, columns))
        if len(cells) == 1:
            cells = [[text or self._lone for text in cells[0]]]
        rows = map(self._options.sep.join, zip(*cells, strict=True))
        return self._options.lineend.join([*rows, ""])

    def _column(self, texts: Sequence[str]) -> Sequence[str]:
        """Return each text as a cell."""
        if self._escape_formulas and may_have_formula(texts):
            return list(map(self._cell, texts))
        joined, quote = "".join(texts), self._options.quote
        if not any(mark in joined for mark in self._marks):
            return texts
        sep, double = self._options.sep, quote * 2
        if self._options.escape != quote or len(sep) > 1:
            return list(map(self._cell, texts))
        return [
            f"{quote}{text.replace(quote, double)}{quote}"
            if quote in text or sep in text or "\n" in text or "\r" in text
            else text
            for text in texts
        ]

    def _cell(self, text: str) -> str:
        if self._escape_formulas and is_formula(text):
            text = f"'{text}"
        if not self._special.search(text):
            return text
        quote, escape_mark = self._options.quote, self._options.escape
        if escape_mark != quote:
            text = text.replace(escape_mark, escape_mark * 2)
        return quote + text.replace(quote, escape_mark + quote) + quote


class CsvEncoder(Encoder):
    """``schema``: columns that were found in the records, in place of those of the options."""

    def __init__(self, options: CsvOptions, schema: Schema | None = None, *, escape_formulas: bool = False) -> None:
        self._schema = schema
        self._names = options.fields if schema is None else schema.names
        self._has_headers = options.include_headers
        # Rows of the API are as the contract has them.
        self._rows = CsvRows(options, escape_formulas=escape_formulas, quote_lone=schema is not None)
        # Fields beyond the columns are one column, whose object is made for each record.
        names = () if schema is not None and schema.has_other else tuple(dict.fromkeys(self._names))
        self._reader = reader_of(names, has_others=schema is None or schema.chosen)
        self._places = [names.index(name) for name in self._names] if names else []
        # A quote becomes two, a field may be selected several times, and each has a separator.
        self.growth = 2 * max(Counter(self._names).values(), default=1)
        self.columns = len(self._names) + 2

    def begin(self) -> bytes:
        return self._rows.row(self._names).encode() if self._has_headers else b""

    def page(self, records: Page) -> bytes:
        return "".join(map(self._block, blocks(records))).encode()

    def _block(self, records: Page) -> str:
        columns = None if self._reader is None else self._reader.columns(b",".join(records))
        if columns is None:
            return "".join([self._rows.row(self._cells(decode(record))) for record in records])
        texts = list(map(texts_of, columns))
        return self._rows.rows([texts[place] for place in self._places])

    def _cells(self, record: object) -> list[str]:
        if self._schema is not None:
            return list(map(plain, self._schema.row(record)))
        if not isinstance(record, dict):  # the values of one field: a column of its own
            return [plain(record)]
        return [plain(record.get(name)) for name in self._names]
