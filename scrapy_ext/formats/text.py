"""Plain text, and MessagePack."""

from __future__ import annotations

from typing import Any, Final

import msgspec

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
