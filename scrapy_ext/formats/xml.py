"""XML: the types of XML-RPC as the parameter of a response, for any XML-RPC library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final

from scrapy_ext.api.violations import refused
from scrapy_ext.formats.encoder import Encoder, Page, decode


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


def _xml(value: Any) -> str:
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
