"""An upper bound of the memory of a decoded JSON text, from the text.

Each value and each key follows a comma, a colon or an opening bracket, or is the whole text, so the count of these
characters bounds the number of objects. Those inside most strings make the bound too high.
"""

from __future__ import annotations

from typing import Final

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
