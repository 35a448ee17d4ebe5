"""JSON decoding in time linear in its size.

msgspec takes up to 6 µs for a number such as ``9e-320`` (7 bytes, so 0.8 s for 1 MiB of them); Python's ``float``
takes 0.3 µs for any number but is three times slower for usual ones. So only long texts use ``float``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

#: Minimum bytes of a long text. msgspec takes at most a fifth of a second for a shorter one.
LONG: Final = 256 * 1024


def decoder(kind: Any, *, lines: bool = False) -> Callable[[bytes], Any]:
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
