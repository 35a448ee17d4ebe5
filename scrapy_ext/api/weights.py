"""The memory that JSON takes when it is decoded, known before it is decoded.

Each value, and each key, of a text stands behind a comma, a colon or an opening bracket, or is the whole text: so the
number of these bounds the number of objects. Some of them may be inside strings, which makes the bound too high.
"""

from __future__ import annotations

from typing import Final

#: Bytes for one of these characters: half of what an object with one entry takes, which has a key, a table and a
#: header, and is itself an entry of another.
VALUE: Final = 136
#: Bytes that a line takes beside its own: itself, its place in a list, and what it decodes to.
LINE: Final = 160


def values_in(data: bytes) -> int:
    """The most values and keys that a JSON text can have, but for one."""
    return len(data) - len(data.translate(None, b",:[{"))


def weight(data: bytes, values: int | None = None) -> int:
    """The most bytes that JSON takes when it is decoded, as lines or whole, beside the text.

    ``values``: those in it, where that is known.
    """
    plain = data.isascii() and b"\\u" not in data
    values = values_in(data) if values is None else values
    return values * VALUE + (data.count(b"\n") + 1) * LINE + len(data) * (1 if plain else 4)
