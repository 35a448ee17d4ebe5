"""Superscripts and subscripts as characters of their own, where all of a text has them: ``10²``, ``H₂O``.

Markdown has no signs for them, and ``102`` and ``H2O1`` are something else.
"""

from __future__ import annotations

from typing import Final

_PLAIN: Final = "0123456789+-=()n"
_RAISED: Final = str.maketrans(_PLAIN, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED: Final = str.maketrans(_PLAIN, "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙ")


def raised(text: str) -> str:
    return _with(text, _RAISED)


def lowered(text: str) -> str:
    return _with(text, _LOWERED)


def _with(text: str, table: dict[int, int]) -> str:
    return text.translate(table) if all(ord(sign) in table for sign in text.strip()) else text
