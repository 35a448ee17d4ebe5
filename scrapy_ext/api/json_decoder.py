"""JSON decoding in time linear in its size, and an upper bound of the memory of the result.

msgspec takes up to 10 µs for a number such as ``9e300`` (5 bytes, so 1.7 s for 1 MiB of them), and before 0.23 as long
for ``9e-320``; Python's ``float`` takes 0.3 µs for any number but is three times slower for usual ones. So only long
texts use ``float``.

The bound is computed from the text: each value and each key follows a comma, a colon or an opening bracket, or is the
whole text, so the count of these characters bounds the number of objects. Those inside most strings make the bound too
high.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

#: Minimum bytes of a long text. msgspec takes at most 0.4 s for a shorter one.
LONG: Final = 256 * 1024


def decoder(kind: object, *, lines: bool = False) -> Callable[[bytes], Any]:
    """Return a function that decodes JSON of a type, or with ``lines`` its lines, and raises as msgspec does."""
    usual: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
    steady: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind, float_hook=_float)
    short, long = (usual.decode_lines, steady.decode_lines) if lines else (usual.decode, steady.decode)

    def decode(data: bytes) -> Any:
        return short(data) if len(data) < LONG else long(data)

    return decode


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise msgspec.DecodeError("Number out of range")
    return number


#: Bytes per comma, colon or opening bracket: half of an object with one entry, which has a key, a table and a header
#: and is itself an entry of another object.
VALUE: Final = 136
#: Bytes per line besides its text: the object, its place in a list, and its decoded value.
LINE: Final = 160


#: Bytes of a long string, and strings that are looked at for one.
_LONG_STRING: Final = 4096
_MOST_STRINGS: Final = 64


def values_in(data: bytes | bytearray) -> int:
    """Return the maximum number of values and keys in a JSON text, minus one."""
    values = begin = quote = 0
    # The first long strings, such as pages, are not looked through. In one line without a backslash, each second quote
    # ends a string.
    for _ in range(_MOST_STRINGS if len(data) > _LONG_STRING else 0):
        opening = data.find(b'"', quote)
        closing = data.find(b'"', opening + 1)
        if opening < 0 or closing < 0:
            break
        if closing - opening > _LONG_STRING:
            if data.find(b"\\", begin, closing) >= 0 or data.find(b"\n", begin, closing) >= 0:
                break
            values += _separators(data[begin:opening])
            begin = closing
        quote = closing + 1
    return values + _separators(data[begin:] if begin else data)


def _separators(data: bytes | bytearray) -> int:
    return len(data) - len(data.translate(None, b",:[{"))


def weight(data: bytes | bytearray, values: int | None = None) -> int:
    """Return the maximum bytes that decoding a JSON text takes, as lines or whole, besides the text.

    ``values``: the result of :func:`values_in`, if known.
    """
    # To find one byte is many times as fast as to find two, or to count.
    escape = data.find(b"\\")
    plain = data.isascii() and (escape < 0 or data.find(b"\\u", escape) < 0)
    lines = data.count(b"\n") if b"\n" in data else 0
    values = values_in(data) if values is None else values
    return values * VALUE + (lines + 1) * LINE + len(data) * (1 if plain else 4)
