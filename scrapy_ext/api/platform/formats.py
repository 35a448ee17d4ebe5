"""Result formats and their parameters (platform-api.md, Common conventions)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import Final

import msgspec

from scrapy_ext.api.violations import ContractError, Violation, refused


class Format(str, Enum):
    """The values of the ``format`` parameter."""

    JSON = "json"
    JSON_LINES = "jl"
    XML = "xml"
    CSV = "csv"
    TEXT = "text"
    MSGPACK = "msgpack"
    PARQUET = "parquet"
    XLSX = "xlsx"


CONTENT_TYPES: Final[dict[Format, str]] = {
    Format.JSON: "application/json",
    Format.JSON_LINES: "application/x-jsonlines",
    Format.XML: "application/xml",
    Format.CSV: "text/csv",
    Format.TEXT: "text/plain",
    Format.MSGPACK: "application/x-msgpack",
    Format.PARQUET: "application/vnd.apache.parquet",
    Format.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_BY_CONTENT_TYPE: Final = {content_type: kind for kind, content_type in CONTENT_TYPES.items()}
_TRUE: Final = ("", "1", "y", "yes", "true")
_QUALITY: Final = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


#: Formats of all resources; only some offer MessagePack, the others ignore it in ``Accept``.
TEXT_FORMATS: Final[Collection[Format]] = (Format.JSON, Format.JSON_LINES, Format.XML, Format.CSV, Format.TEXT)
#: Formats of files for spreadsheets and databases: an extension of the contract, for records of jobs and collections.
FILE_FORMATS: Final[Collection[Format]] = (Format.PARQUET, Format.XLSX)


def choose(parameter: str | None, accept: str, among: Collection[Format] = TEXT_FORMATS) -> Format:
    """Return the requested format: ``format`` before ``Accept`` with its qualities (RFC 9110, 12.5.1), else JSON lines.

    Raises :class:`ContractError`.
    """
    if parameter:
        kind = next((kind for kind in among if kind.value == parameter), None)
        if kind is None:
            choices = ", ".join(kind.value for kind in among)
            raise refused("format", f"must be one of {choices}, got {parameter[:60]!r}", "Use one of these.")
        return kind
    # Of equal ones the first that is named. Any type is JSON lines.
    return max(_accepted(accept, among), key=itemgetter(0, 1), default=(0.0, False, Format.JSON_LINES))[2]


def _accepted(accept: str, among: Collection[Format]) -> Iterator[tuple[float, bool, Format]]:
    """Yield the qualities of an ``Accept`` header, true for a named type, and the formats, without those that it
    excludes."""
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        is_named = name != "*/*"
        kind = _BY_CONTENT_TYPE.get(name) if is_named else Format.JSON_LINES
        quality = next((_quality(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
        if kind is not None and kind in among and quality > 0:
            yield quality, is_named, kind


def _quality(text: str) -> float:
    return float(text) if _QUALITY.fullmatch(text) else 1.0


class CsvOptions(msgspec.Struct, frozen=True):
    """CSV parameters; ``fields`` lists the columns in order."""

    fields: tuple[str, ...]
    include_headers: bool = False
    sep: str = ","
    quote: str = '"'
    escape: str = '"'
    lineend: str = "\n"


def chosen_fields(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the ``fields`` parameter."""
    return tuple(name.strip() for name in parameters.get("fields", "").split(",") if name.strip())


def csv_options(parameters: Mapping[str, str]) -> CsvOptions:
    """Read the CSV parameters; raises :class:`ContractError`."""
    fields = chosen_fields(parameters)
    faults = (
        [] if fields else [Violation("fields", "is required for csv", "Name the columns, as in fields=name,price.")]
    )
    faults.extend(
        Violation(name, "must be one character", f"Write {name}=%3B for a semicolon.")
        for name in ("sep", "quote", "escape")
        if len(parameters.get(name, "x")) != 1
    )
    if faults:
        raise ContractError(faults)
    quote = parameters.get("quote", '"')
    return CsvOptions(
        fields,
        is_true(parameters.get("include_headers")),
        parameters.get("sep", ","),
        quote,
        parameters.get("escape", quote),
        parameters.get("lineend", "\n"),
    )


def is_true(value: str | None) -> bool:
    """Return true for ``1``, ``y``, ``yes`` and ``true`` in any case, and for a flag without a value."""
    return value is not None and value.lower() in _TRUE


def whole_number(parameters: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    """Return an integer parameter; raises :class:`ContractError` for anything but digits."""
    text = parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        rule = f"must be a whole number of 18 digits at most, got {text[:60]!r}"
        raise refused(name, rule, f"Write {name}=100, for example.")
    return int(text)


#: Values of the ``meta`` parameter.
META_FIELDS: Final[Sequence[str]] = ("_key", "_ts", "_project")
