"""What an engine counts of its work. Written by the thread that commits, read by whoever shows it."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

#: Upper bounds of the classes of commits by the number of writes in them.
GROUPS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class Measures:
    """``waiting`` writes are in the queue, or under way, now; the others are totals since the start."""

    def __init__(self) -> None:
        self.waiting = 0
        self.operations = 0
        self.rows = 0
        self.failures = 0
        self.seconds = 0.0
        self.groups = [0] * (len(GROUPS) + 1)

    def committed(self, operations: int, rows: int, seconds: float) -> None:
        """Count a commit of so many writes, which changed so many rows."""
        self.operations += operations
        self.rows += rows
        self.seconds += seconds
        self.groups[bisect_left(GROUPS, operations)] += 1
