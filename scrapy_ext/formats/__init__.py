"""Formats of files of records: CSV, JSON, JSON lines, XML, Parquet and XLSX.

An :class:`Encoder` makes the bytes of a file in steps; a :class:`Writer` puts them into a sink, compressed if wanted.
:class:`Schema` holds the columns of a table, and :class:`Spool` the records until their columns are known.
"""

from scrapy_ext.formats.encoder import ColumnsChangedError, Encoder, MissingLibraryError, Page
from scrapy_ext.formats.schema import Schema
from scrapy_ext.formats.spool import Spool, SpoolLimitError
from scrapy_ext.formats.writer import (
    FORMAT_NAMES,
    TABLES,
    Compression,
    Writer,
    check_installed,
    encoder_of,
    format_of_name,
    needs_spool,
    open_writer,
    spool_schema,
)

__all__ = [
    "FORMAT_NAMES",
    "TABLES",
    "ColumnsChangedError",
    "Compression",
    "Encoder",
    "MissingLibraryError",
    "Page",
    "Schema",
    "Spool",
    "SpoolLimitError",
    "Writer",
    "check_installed",
    "encoder_of",
    "format_of_name",
    "needs_spool",
    "open_writer",
    "spool_schema",
]
