"""Formats without columns, record by record: plain text, MessagePack, JSON, JSON lines and XML.

JSON is the stored bytes of records, unchanged. XML has the types of XML-RPC as the parameter of a response, for any
XML-RPC library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice, repeat
from types import NoneType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.violations import refused
from scrapy_ext.formats.columns import blocks, may_be_markup, may_have_controls
from scrapy_ext.formats.encoder import Encoder, Page, decode, plain

T = TypeVar("T")

_decode_records: Final = decoder(list[Any])
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
            return b"".join(map(self._block, blocks(records)))
        except RecursionError:
            raise refused("format", "cannot be xml for records that are nested so deeply", "Use jl.") from None

    def _block(self, records: Page) -> bytes:
        text = b",".join(records)
        values = _XmlValues(may_have_controls=may_have_controls(text))
        head, texts, tail = values.of(_decode_records(b"[%b]" % text))
        between = f"{tail}\n{head}"
        return f"{head}{between.join(texts)}{tail}\n".encode()

    def end(self) -> bytes:
        return b"</data></array></value></param></params>\n"


#: Characters that XML 1.0 excludes, even escaped.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
#: Text without any of these stays as it is.
_SPECIAL: Final = re.compile("[&<>\x00-\x08\x0b-\x1f\ufffe\uffff]")


class _Texts(NamedTuple):
    """Texts, and what precedes and follows each of them."""

    head: str
    texts: Sequence[str]
    tail: str

    def whole(self) -> Sequence[str]:
        return [f"{self.head}{text}{self.tail}" for text in self.texts]


class _XmlValues:
    """Values as XML, all values of a field or list at once.

    ``may_have_controls``: strings may have characters that XML excludes.
    """

    def __init__(self, *, may_have_controls: bool) -> None:
        self._may_have_controls = may_have_controls
        self._of_kind: Mapping[type, Callable[[Sequence[Any]], _Texts]] = {
            NoneType: lambda values: _Texts("<value>", ["<nil/>"] * len(values), "</value>"),
            bool: lambda values: _Texts("<value><boolean>", ["01"[value] for value in values], "</boolean></value>"),
            int: _integers,
            float: lambda values: _Texts("<value><double>", list(map(repr, values)), "</double></value>"),
            str: lambda values: _Texts("<value><string>", self._escaped(values), "</string></value>"),
            list: self._lists,
            dict: self._objects,
        }

    def of(self, values: Sequence[Any]) -> _Texts:
        kinds = list(map(type, values))
        if len(set(kinds)) == 1:
            return self._of_kind[kinds[0]](values)
        return _grouped(kinds, values, lambda kind, group: self._of_kind[kind](group))

    def _lists(self, values: Sequence[list[Any]]) -> _Texts:
        head, texts, tail = self.of(list(chain.from_iterable(values)))
        between, elements = tail + head, iter(texts)
        parts = [f"{head}{between.join(islice(elements, len(value)))}{tail}" if value else "" for value in values]
        return _Texts("<value><array><data>", parts, "</data></array></value>")

    def _objects(self, values: Sequence[dict[str, Any]]) -> _Texts:
        names = list(map(tuple, values))
        if len(set(names)) == 1:
            return self._alike(names[0], values)
        return _grouped(names, values, self._alike)

    def _alike(self, names: tuple[str, ...], values: Sequence[dict[str, Any]]) -> _Texts:
        """Return objects that have the same members."""
        if not names:
            return _Texts("<value><struct>", [""] * len(values), "</struct></value>")
        parts: list[Iterable[str]] = []
        between = "<value><struct>"
        for name, members in zip(names, zip(*map(dict.values, values), strict=True), strict=True):
            head, texts, tail = self.of(members)
            parts += [repeat(f"{between}<member><name>{_text(name)}</name>{head}", len(values)), texts]
            between = f"{tail}</member>"
        return _Texts("", list(map("".join, zip(*parts, strict=True))), f"{between}</struct></value>")

    def _escaped(self, texts: Sequence[str]) -> Sequence[str]:
        if may_be_markup("".join(texts), may_have_controls=self._may_have_controls):
            return list(map(_text, texts))
        return texts


def _grouped(keys: Sequence[T], values: Sequence[Any], write: Callable[[T, Sequence[Any]], _Texts]) -> _Texts:
    """Return the texts of values, which are written together with those of the same key."""
    groups: dict[T, list[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).append(value)
    texts = {key: iter(write(key, group).whole()) for key, group in groups.items()}
    return _Texts("", [next(texts[key]) for key in keys], "")


def _integers(values: Sequence[int]) -> _Texts:
    if values and min(values) >= -(2**31) and max(values) < 2**31:
        return _Texts("<value><int>", list(map(str, values)), "</int></value>")
    return _Texts("", list(map(_integer, values)), "")


def _integer(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return f"<value><int>{value}</int></value>"
    return f"<value><i8>{value}</i8></value>"


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES) if _SPECIAL.search(text) else text
