"""Count of the bytes that an extraction request holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Counts bytes that a request holds until it is answered; raises :class:`ExtractionError` (503) for too many.
Hold = Callable[[int], None]

#: Bytes of a body that are not counted: the number of requests bounds their sum, and small pages are never refused
#: because of large ones.
UNCOUNTED: Final = 64 * 1024


def no_count(_size: int) -> None:
    """Count nothing."""


def growing(hold: Hold) -> Hold:
    """Return a function that counts one growing body; call it with the size so far."""
    counted = UNCOUNTED

    def count(size: int) -> None:
        nonlocal counted
        if size > counted:
            hold(size - counted)
            counted = size

    return count
