"""Formats without columns, record by record: plain text, MessagePack, JSON, JSON lines and XML.

JSON is the stored bytes of records, unchanged. XML has the types of XML-RPC as the parameter of a response, for any
XML-RPC library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import refused
from scrapy_ext.formats.encoder import Encoder, Page, decode, plain

_encode_msgpack: Final = msgspec.msgpack.Encoder().encode


class TextEncoder(Encoder):
    """Strings unchanged, also with line breaks; other values as JSON."""

    def page(self, records: Page) -> bytes:
        return b"".join(plain(decode(record)).encode() + b"\n" for record in records)


class MessagePackEncoder(Encoder):
    """Consecutive objects. Integers of more than 64 bits become text, with all digits."""

    def page(self, records: Page) -> bytes:
        return b"".join(map(_as_msgpack, records))


def _as_msgpack(record: bytes) -> bytes:
    value = decode(record)  # one at a time: decoded records take thirty times their bytes
    try:
        return _encode_msgpack(value)
    except OverflowError:
        return _encode_msgpack(_in_64_bits(value))


def _in_64_bits(value: object) -> Any:
    match value:
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case list():
            return [_in_64_bits(each) for each in value]
        case dict():
            return {name: _in_64_bits(each) for name, each in value.items()}
        case _:
            return value


class JsonLinesEncoder(Encoder):
    decodes = False

    def page(self, records: Page) -> bytes:
        return b"\n".join(records) + b"\n"


class JsonEncoder(Encoder):
    decodes = False

    def __init__(self) -> None:
        self._separator = b""

    def begin(self) -> bytes:
        return b"["

    def page(self, records: Page) -> bytes:
        separator, self._separator = self._separator, b","
        return separator + b",".join(records)

    def end(self) -> bytes:
        return b"]\n"


class XmlEncoder(Encoder):
    growth = 16

    def begin(self) -> bytes:
        return b'<?xml version="1.0" encoding="UTF-8"?>\n<params><param><value><array><data>\n'

    def page(self, records: Page) -> bytes:
        try:
            return b"".join(f"{_xml(decode(record))}\n".encode() for record in records)
        except RecursionError:
            raise refused("format", "cannot be xml for records that are nested so deeply", "Use jl.") from None

    def end(self) -> bytes:
        return b"</data></array></value></param></params>\n"


#: Characters that XML 1.0 excludes, even escaped.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
#: Text without any of these stays as it is.
_SPECIAL: Final = re.compile("[&<>\x00-\x08\x0b-\x1f\ufffe\uffff]")


def _xml(value: object) -> str:
    return f"<value>{_XML_TYPES[type(value)](value)}</value>"


def _integer(value: int) -> str:
    return f"<int>{value}</int>" if -(2**31) <= value < 2**31 else f"<i8>{value}</i8>"


def _struct(value: dict[str, Any]) -> str:
    members = [f"<member><name>{_text(name)}</name>{_xml(each)}</member>" for name, each in value.items()]
    return f"<struct>{''.join(members)}</struct>"


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES) if _SPECIAL.search(text) else text


_XML_TYPES: Final[Mapping[type, Callable[[Any], str]]] = {
    NoneType: lambda _: "<nil/>",
    bool: lambda value: f"<boolean>{int(value)}</boolean>",
    int: _integer,
    float: lambda value: f"<double>{value!r}</double>",
    str: lambda value: f"<string>{_text(value)}</string>",
    list: lambda value: f"<array><data>{''.join(map(_xml, value))}</data></array>",
    dict: _struct,
}
