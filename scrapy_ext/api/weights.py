"""Upper bound of the memory that decoded JSON takes, computed from the text.

Each value and each key follows a comma, a colon or an opening bracket, or is the whole text, so the count of these
characters bounds the number of objects. Those inside strings make the bound too high.
"""

from __future__ import annotations

from typing import Final

#: Bytes per such character: half of an object with one entry, which has a key, a table and a header and is itself an
#: entry of another object.
VALUE: Final = 136
#: Bytes per line besides its text: the object, its place in a list, and its decoded value.
LINE: Final = 160


def values_in(data: bytes) -> int:
    """Return the maximum number of values and keys in a JSON text, minus one."""
    return len(data) - len(data.translate(None, b",:[{"))


def weight(data: bytes, values: int | None = None) -> int:
    """Return the maximum bytes that decoding a JSON text takes, as lines or whole, besides the text.

    ``values``: the result of :func:`values_in`, if known.
    """
    plain = data.isascii() and b"\\u" not in data
    values = values_in(data) if values is None else values
    return values * VALUE + (data.count(b"\n") + 1) * LINE + len(data) * (1 if plain else 4)
