"""Types of columns, which only grow: each is a set of the kinds of values that were seen."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

#: Integers that a double has exactly, at least.
EXACT: Final = 2**53


class Seen(IntEnum):
    """Kinds of values that a column has, as bits of an integer: arithmetic of ``IntFlag`` takes ten times as long."""

    NOTHING = 0
    BOOLEAN = 1
    INTEGER = 2
    #: An integer that a double does not have exactly.
    LONG = 4
    #: An integer of more than 64 bits.
    HUGE = 8
    FLOAT = 16
    STRING = 32
    LIST = 64
    OBJECT = 128
    #: Too deep, or too many members.
    JSON = 256


_NUMBER: Final = Seen.INTEGER | Seen.LONG | Seen.FLOAT
_SIMPLE: Final = (Seen.NOTHING, Seen.BOOLEAN, Seen.STRING, Seen.LIST, Seen.OBJECT)


class ColumnType:
    """The kinds of a column's values, and the types of their elements or members."""

    __slots__ = ("element", "members", "seen")

    def __init__(self) -> None:
        self.seen: int = Seen.NOTHING
        self.element: ColumnType | None = None
        self.members: dict[str, ColumnType] = {}

    @property
    def kind(self) -> int:
        """The one kind of all values: ``NOTHING`` if all are null, ``JSON`` if they are mixed."""
        seen = self.seen
        if seen & _NUMBER and not seen & ~_NUMBER:
            if not seen & Seen.FLOAT:
                return Seen.INTEGER
            # A double would change a long integer.
            return Seen.JSON if seen & Seen.LONG else Seen.FLOAT
        if seen == Seen.OBJECT and not self.members:
            return Seen.JSON
        return seen if seen in _SIMPLE else Seen.JSON
