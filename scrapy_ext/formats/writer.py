"""Writers of files: an encoder, a compression and a sink."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Final, Protocol

from scrapy_ext.api.compression import gzip_compressor
from scrapy_ext.api.platform.formats import CsvOptions, Format
from scrapy_ext.formats.csv import CsvEncoder
from scrapy_ext.formats.encoder import Encoder, MissingLibraryError, Page
from scrapy_ext.formats.schema import Schema
from scrapy_ext.formats.sequences import JsonEncoder, JsonLinesEncoder, MessagePackEncoder, TextEncoder, XmlEncoder
from scrapy_ext.formats.spool import Spool

#: Formats whose columns are found in the records. CSV is one when its columns are not chosen.
TABLES: Final = (Format.CSV, Format.PARQUET, Format.XLSX)


class Compression(str, Enum):
    NONE = ""
    GZIP = "gz"
    ZSTD = "zst"


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


def encoder_of(kind: Format, schema: Schema | None = None) -> Encoder:
    """Return the encoder of a format; a table needs a schema, Parquet one with types.

    Raises :class:`MissingLibraryError`.
    """
    match kind:
        case Format.JSON:
            return JsonEncoder()
        case Format.JSON_LINES:
            return JsonLinesEncoder()
        case Format.XML:
            return XmlEncoder()
        case Format.TEXT:
            return TextEncoder()
        case Format.MSGPACK:
            return MessagePackEncoder()
    if schema is None:
        raise AssertionError(f"{kind.value} needs the columns of the records")
    match kind:
        case Format.CSV:
            return CsvEncoder(CsvOptions((), include_headers=True, lineend="\r\n"), schema)
        case Format.XLSX:
            from scrapy_ext.formats.xlsx import XlsxEncoder

            return XlsxEncoder(schema)
        case Format.PARQUET:
            # The library of Parquet takes 50 MB of memory.
            from scrapy_ext.formats.parquet import ParquetEncoder

            return ParquetEncoder(schema)


class Writer:
    """Writes records to a sink in steps. All methods block.

    Without a schema, the records of a table are kept in a temporary file until :meth:`close`, which then writes all.
    A writer that is left without :meth:`close`, or by an exception in ``with``, leaves an incomplete file.
    """

    def __init__(
        self,
        kind: Format,
        sink: Sink,
        *,
        schema: Schema | None = None,
        compression: Compression = Compression.NONE,
    ) -> None:
        check_installed(kind, compression)
        self.records = 0
        #: Bytes given to the sink.
        self.size = 0
        self._kind = kind
        self._sink = sink
        self._compressor = _compressor(compression)
        self._spool: Spool | None = None
        self._encoder: Encoder | None = None
        if needs_spool(kind, schema):
            self._spool = Spool(spool_schema(kind, schema))
        else:
            self._encoder = self._begun(schema)

    def write(self, lines: Page) -> None:
        """Write stored records; raises :class:`ColumnsChangedError` for one that a given schema does not have."""
        if not lines:
            return
        self.records += len(lines)
        if self._encoder is not None:
            self._put(self._encoder.page(lines))
        elif self._spool is not None:
            self._spool.add(lines)

    def close(self) -> None:
        """Write what remains. The sink stays open."""
        if self._spool is not None:
            self._encoder = self._begun(self._spool.schema)
            for page in self._spool.pages():
                self._put(self._encoder.page(page))
            self.abandon()
        if self._encoder is not None:
            self._put(self._encoder.end())
            self._encoder = None
            if self._compressor is not None:
                self._send(self._compressor.flush())

    def abandon(self) -> None:
        """Remove the temporary file. The file in the sink stays incomplete."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def _begun(self, schema: Schema | None) -> Encoder:
        encoder = encoder_of(self._kind, schema)
        self._put(encoder.begin())
        return encoder

    def _put(self, data: bytes) -> None:
        self._send(data if self._compressor is None else self._compressor.compress(data))

    def _send(self, data: bytes) -> None:
        if data:
            self._sink.write(data)
            self.size += len(data)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


#: Opens a writer.
open_writer: Final = Writer


def needs_spool(kind: Format, schema: Schema | None) -> bool:
    """Return true when the columns, or their types, are unknown until all records were read."""
    return kind in TABLES and (schema is None or (kind is Format.PARQUET and not schema.typed))


def spool_schema(kind: Format, schema: Schema | None = None) -> Schema:
    """Return the schema to fill while records are spooled; it keeps chosen columns."""
    typed = kind is Format.PARQUET
    return Schema.of(schema.columns, typed=typed) if schema is not None and schema.chosen else Schema(typed=typed)


def check_installed(kind: Format, compression: Compression = Compression.NONE) -> None:
    """Raise :class:`MissingLibraryError` when the library of a format or compression is not installed."""
    if kind is Format.PARQUET and find_spec("pyarrow") is None:
        raise MissingLibraryError("Parquet", "pyarrow", "parquet")
    if compression is Compression.ZSTD:
        _zstd()


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def _compressor(compression: Compression) -> _Compressor | None:
    if compression is Compression.GZIP:
        return gzip_compressor()
    return _zstd().ZstdCompressor() if compression is Compression.ZSTD else None


def _zstd() -> Any:
    """Return the module of Zstandard: Python has one from 3.14 on."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise MissingLibraryError("Zstandard", "backports.zstd", "parquet")


_KINDS: Final = {
    "csv": Format.CSV,
    "json": Format.JSON,
    "jl": Format.JSON_LINES,
    "jsonl": Format.JSON_LINES,
    "jsonlines": Format.JSON_LINES,
    "ndjson": Format.JSON_LINES,
    "xml": Format.XML,
    "parquet": Format.PARQUET,
    "xlsx": Format.XLSX,
}
#: Formats that compress by themselves.
_PACKED: Final = (Format.PARQUET, Format.XLSX)
FORMAT_NAMES: Final = tuple(_KINDS)


def format_of_name(name: str) -> tuple[Format, Compression] | None:
    """Return the format and compression of ``csv``, ``jl.gz``, ``items.jl.zst`` or another file name; None: unknown."""
    parts = name.lower().split(".")
    compression = Compression.NONE
    if parts[-1] in ("gz", "zst"):
        compression = Compression(parts.pop())
    kind = _KINDS.get(parts[-1]) if parts else None
    if kind is None or (compression and kind in _PACKED):
        return None
    return kind, compression
