"""Parquet (docs/reference/downloads.rst has the types).

Records wait as lines until there are enough for a batch, batches as Arrow's arrays until there are enough for a row
group.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from scrapy_ext.formats.arrow import CELLS, Parser, arrow_type, as_json, exact_checks
from scrapy_ext.formats.columns import blocks
from scrapy_ext.formats.encoder import ColumnsChangedError, Encoder, Page, decode
from scrapy_ext.formats.schema import Schema

#: Bytes of the lines that are parsed at once: each call of the parser takes as long as a hundred records.
_BATCH: Final = 1024 * 1024
#: Maximum bytes of arrays and rows of a row group, which takes twice its bytes; and bytes of a page of a column.
_GROUP: Final = 4 * 1024 * 1024
_GROUP_ROWS: Final = 100_000
#: Row groups times columns after which the bytes of a row group double, and their maximum: the description of each
#: column in each row group, about 1.5 KB, is kept until the file ends.
_DESCRIBED: Final = 8192
_LARGEST_GROUP: Final = 4 * _GROUP
_PAGE: Final = 64 * 1024


class ParquetEncoder(Encoder):
    kept = 8 * _GROUP

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._version = schema.version
        types = {name: arrow_type(column) for name, column in schema.columns.items()}
        if schema.has_other:
            types[schema.other] = (pa.string(), as_json)
        self._rows = max(CELLS // (schema.types or 1), 1)
        self._converts = [convert for _, convert in types.values()]
        fields = [
            pa.field(name, kind, metadata={"json": "true"} if convert is as_json else None)
            for name, (kind, convert) in types.items()
        ]
        self._arrow = pa.schema(fields)
        #: Columns with values that the parser does not give.
        self._converted = {name: convert for name, (_, convert) in types.items() if convert is not None}
        self._parser = self._made_parser()
        #: True when the parser refuses records that the schema does not have.
        self._finds_new = self._parser is not None and not self._parser.ignores_members
        self._finds_new &= schema.chosen or not self._converted
        self._sink = _Sink()
        self._file: pq.ParquetWriter | None = None
        self._lines: list[bytes] = []
        self._length = 0
        self._tables: list[pa.Table] = []
        self._bytes = 0
        self._number = 0
        self._described = 0

    def begin(self) -> bytes:
        # Arrow's own memory pool keeps what it once had.
        self._file = pq.ParquetWriter(
            self._sink,
            self._arrow,
            compression="zstd",
            memory_pool=pa.system_memory_pool(),
            data_page_size=_PAGE,
            dictionary_pagesize_limit=_PAGE,
        )
        return self._sink.take()

    def page(self, records: Page) -> bytes:
        for part in blocks(records, _BATCH, self._rows):
            size = sum(map(len, part))
            if self._length + size > _BATCH or len(self._lines) + len(part) > self._rows:
                self._add_batch()
            self._lines += part
            self._length += size
        return self._sink.take()

    def end(self) -> bytes:
        self._add_batch()
        self._write_group()
        if self._file is not None:
            self._file.close()
        return self._sink.take()

    def _made_parser(self) -> Parser | None:
        fields = [field for field in self._arrow if field.name not in self._converted]
        # Each further field of a record is a member of the last column.
        if self._schema.has_other or not fields:
            return None
        ignores_others = self._schema.chosen or bool(self._converted)
        columns = {field.name: self._schema.columns[field.name] for field in fields}
        return Parser(pa.schema(fields), exact_checks(columns), ignores_others=ignores_others)

    def _add_batch(self) -> None:
        if not self._lines:
            return
        lines, self._lines, self._length = self._lines, [], 0
        table = self._parsed(lines)
        for each in map(self._decoded, blocks(lines)) if table is None else (table,):
            self._tables.append(each)
            self._bytes += each.nbytes
        self._number += len(lines)
        enough = min(_GROUP << self._described // _DESCRIBED, _LARGEST_GROUP)
        if self._bytes >= enough or self._number >= _GROUP_ROWS:
            self._write_group()

    def _parsed(self, lines: Page) -> pa.Table | None:
        """Return the records as the parser gives them, with the other columns; None if it cannot."""
        if self._parser is None or not (self._schema.is_complete or self._finds_new):
            return None
        table = self._parser.table(lines, is_checked=self._schema.is_complete)
        if table is None or not self._converted:
            return table
        values: dict[str, list[Any]] = {name: [] for name in self._converted}
        for line in lines:
            record = decode(line)
            for name, convert in self._converted.items():
                values[name].append(convert(record.get(name)))
        columns = [
            _array(values[field.name], field.type) if field.name in values else table.column(field.name)
            for field in self._arrow
        ]
        return pa.Table.from_arrays(columns, schema=self._arrow)

    def _decoded(self, lines: Page) -> pa.Table:
        """Return any records; raises :class:`ColumnsChangedError`."""
        records = [decode(line) for line in lines]
        if not self._schema.is_complete:
            self._schema.observe(records)
            if self._schema.version != self._version:
                raise ColumnsChangedError("a record has a new field or a new type")
        rows = list(map(self._schema.row, records))
        columns = zip(*rows, strict=True) if self._converts else ()
        try:
            arrays = [
                _array(values if convert is None else list(map(convert, values)), field.type)
                for values, convert, field in zip(columns, self._converts, self._arrow, strict=True)
            ]
        except (pa.ArrowException, OverflowError):
            raise ColumnsChangedError("a record has a new type") from None
        return pa.Table.from_arrays(arrays, schema=self._arrow)

    def _write_group(self) -> None:
        if self._tables and self._file is not None:
            self._file.write_table(pa.concat_tables(self._tables))
            self._tables, self._bytes, self._number = [], 0, 0
            self._described += self._schema.types


class _Sink:
    """The file as the library sees it: it only appends."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def write(self, data: bytes | memoryview) -> int:
        self._pieces.append(bytes(data))
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Do nothing: the bytes are taken after each page."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _array(values: object, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind, memory_pool=pa.system_memory_pool())
