"""Encoders of the formats that a call may choose (platform-api.md, Common conventions)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scrapy_ext.api.platform.formats import (
    FILE_FORMATS,
    TEXT_FORMATS,
    CsvOptions,
    Format,
    chosen_fields,
    csv_options,
)
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Encoder, Page, Schema, encoder_of
from scrapy_ext.formats.csv import CsvEncoder
from scrapy_ext.server.http.call import Call


class Text(list[bytes]):
    """A page that is JSON lines already, in pieces of any length."""


def offered(*, msgpack: bool = False, files: bool = False) -> Collection[Format]:
    """Return the formats of a resource."""
    return (*TEXT_FORMATS, *((Format.MSGPACK,) if msgpack else ()), *(FILE_FORMATS if files else ()))


def writer_of(call: Call, kind: Format, schema: Schema | None = None) -> Encoder:
    """Return the encoder of a format, with the options of a call; raises ``ContractError``.

    ``schema``: the columns that were found in the records, else those that the call has.
    """
    schema = schema or call.columns
    if kind is not Format.CSV:
        return encoder_of(kind, schema)
    if schema is not None:
        return CsvEncoder(CsvOptions((), include_headers=True), schema, escape_formulas=call.for_people)
    options = csv_options(call.query)
    if len(options.lineend) not in (1, 2):
        raise refused("lineend", "must be one or two characters", "Write lineend=%0D%0A, for example.")
    return CsvEncoder(options, escape_formulas=call.for_people)


def columns_of(call: Call) -> Schema | None:
    """Return the columns that a call chooses; None: all fields of the records."""
    if call.columns is not None:
        return call.columns
    fields = chosen_fields(call.query)
    return Schema.of(fields) if fields else None


def finds_columns(call: Call, kind: Format) -> bool:
    """Return true when the columns are known only after all records were read."""
    if kind is Format.CSV:
        return call.for_people and columns_of(call) is None
    return kind in FILE_FORMATS


def written(writer: Encoder, page: Page) -> Sequence[bytes]:
    """Return a page in a format, in pieces."""
    if isinstance(page, Text):
        return page
    return [writer.page(page)] if page else ()
