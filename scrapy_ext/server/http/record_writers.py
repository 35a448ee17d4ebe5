"""Writers of records in the formats of the API (platform-api.md, Common conventions).

Records are the stored bytes of JSON values. JSON and JSON lines contain them unchanged; other formats decode each.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from xml.sax.saxutils import escape

import msgspec

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.formats import CsvOptions, Format, csv_options
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.call import Call

Page = Sequence[bytes]


class Text(list[bytes]):
    """A page that is JSON lines already, in pieces of any length."""


_decode: Final = decoder(Any)
_encode: Final = msgspec.json.Encoder().encode
_encode_msgpack: Final = msgspec.msgpack.Encoder().encode


class Writer(ABC):
    head = tail = b""
    #: True for a writer that decodes records, which takes long for large ones.
    decodes = True
    #: Maximum bytes of output: ``growth`` per byte of a record, and ``columns`` per record.
    growth, columns = 1, 0

    @abstractmethod
    def page(self, records: Page) -> bytes:
        """Return the output for some records, at least one."""


class _JsonLines(Writer):
    decodes = False

    def page(self, records: Page) -> bytes:
        return b"\n".join(records) + b"\n"


class _Json(Writer):
    head, tail = b"[", b"]\n"
    decodes = False

    def __init__(self) -> None:
        self._separator = b""

    def page(self, records: Page) -> bytes:
        separator, self._separator = self._separator, b","
        return separator + b",".join(records)


class _Text(Writer):
    """Strings unchanged, also with line breaks; other values as JSON."""

    def page(self, records: Page) -> bytes:
        return b"".join(_plain(_decode(record)).encode() + b"\n" for record in records)


#: The first characters of a formula in spreadsheets, with their wide forms; numbers are not formulas.
_FORMULA: Final = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")


def _without_formula(text: str) -> str:
    """Return the text of a cell, with an apostrophe before a formula (OWASP, CSV Injection)."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


class _Csv(Writer):
    def __init__(self, options: CsvOptions, *, for_people: bool) -> None:
        self._options = options
        self._for_people = for_people
        # A quote becomes two, a field may be selected several times, and each has a separator.
        self.growth = 2 * max(Counter(options.fields).values(), default=1)
        self.columns = len(options.fields) + 2
        self._special = re.compile("[" + re.escape(options.sep + options.quote + options.escape) + "\r\n]")
        self.head = self._row(options.fields) if options.include_headers else b""

    def page(self, records: Page) -> bytes:
        return b"".join(self._row(self._cells(_decode(record))) for record in records)

    def _cells(self, record: Any) -> list[str]:
        if not isinstance(record, dict):  # the values of one field: a column of its own
            return [_plain(record)]
        return [_plain(record.get(name)) for name in self._options.fields]

    def _row(self, cells: Sequence[str]) -> bytes:
        return (self._options.sep.join(map(self._cell, cells)) + self._options.lineend).encode()

    def _cell(self, text: str) -> str:
        if self._for_people:
            text = _without_formula(text)
        if not self._special.search(text):
            return text
        quote, escape_mark = self._options.quote, self._options.escape
        if escape_mark != quote:
            text = text.replace(escape_mark, escape_mark * 2)
        return quote + text.replace(quote, escape_mark + quote) + quote


class _Xml(Writer):
    """XML-RPC's types as the parameter of a response, for any XML-RPC library."""

    head = b'<?xml version="1.0" encoding="UTF-8"?>\n<params><param><value><array><data>\n'
    tail = b"</data></array></value></param></params>\n"
    growth = 16

    def page(self, records: Page) -> bytes:
        try:
            return b"".join(f"{_xml(_decode(record))}\n".encode() for record in records)
        except RecursionError:
            raise refused("format", "cannot be xml for records that are nested so deeply", "Use jl.") from None


#: Characters that XML 1.0 excludes, even escaped.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _xml(value: Any) -> str:
    return f"<value>{_xml_type(value)}</value>"


def _xml_type(value: Any) -> str:
    match value:
        case None:
            return "<nil/>"
        case bool():
            return f"<boolean>{int(value)}</boolean>"
        case int():
            name = "int" if -(2**31) <= value < 2**31 else "i8"
            return f"<{name}>{value}</{name}>"
        case float():
            return f"<double>{value!r}</double>"
        case str():
            return f"<string>{_xml_text(value)}</string>"
        case list():
            return f"<array><data>{''.join(map(_xml, value))}</data></array>"
        case _:
            members = (f"<member><name>{_xml_text(name)}</name>{_xml(each)}</member>" for name, each in value.items())
            return f"<struct>{''.join(members)}</struct>"


def _xml_text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text), {"\r": "&#13;"})


class _MessagePack(Writer):
    """Consecutive objects. Integers of more than 64 bits become text, with all digits."""

    def page(self, records: Page) -> bytes:
        return b"".join(map(_as_msgpack, records))


def _as_msgpack(record: bytes) -> bytes:
    value = _decode(record)  # one at a time: decoded records take thirty times their bytes
    try:
        return _encode_msgpack(value)
    except OverflowError:
        return _encode_msgpack(_in_64_bits(value))


def _in_64_bits(value: Any) -> Any:
    match value:
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case list():
            return [_in_64_bits(each) for each in value]
        case dict():
            return {name: _in_64_bits(each) for name, each in value.items()}
        case _:
            return value


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _encode(value).decode()


def writer_of(call: Call, kind: Format) -> Writer:
    """Return the writer of a format, with the options of a call; raises ``ContractError``."""
    match kind:
        case Format.JSON:
            return _Json()
        case Format.XML:
            return _Xml()
        case Format.TEXT:
            return _Text()
        case Format.CSV:
            options = csv_options(call.query)
            if len(options.lineend) not in (1, 2):
                raise refused("lineend", "must be one or two characters", "Write lineend=%0D%0A, for example.")
            return _Csv(options, for_people=call.for_people)
        case Format.MSGPACK:
            return _MessagePack()
        case Format.JSON_LINES:
            return _JsonLines()


def written(writer: Writer, page: Page) -> Sequence[bytes]:
    """Return a page in a format, in pieces."""
    if isinstance(page, Text):
        return page
    return [writer.page(page)] if page else ()
