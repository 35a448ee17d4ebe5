"""Decoding of JSON in time that its size bounds.

msgspec takes up to 6 µs for a number such as ``9e-320`` (one of 7 bytes, so 0.8 s for 1 MiB of them); Python's own
``float`` takes 0.3 µs for any number, but is three times as slow for usual ones. So it reads those of long texts only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

#: Bytes of a text from which it counts as long. msgspec takes a fifth of a second at most for what is shorter.
LONG: Final = 256 * 1024


def decoder(kind: Any, *, lines: bool = False) -> Callable[[bytes], Any]:
    """A function that decodes a JSON text of a type, or with ``lines`` the lines of one; it raises as msgspec does."""
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
