"""What an engine counts of its work. Written by the thread that commits, read by whoever shows it."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from scrapy_ext.server.store.engine.errors import StoreBusyError, StoreError

#: Upper bounds of the classes of commits by the number of writes in them.
GROUPS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class Measures:
    """``waiting`` writes are in the queue, or under way, now; the others are totals since the start."""

    def __init__(self) -> None:
        self.waiting = 0
        #: Why the last write was refused that was; None since as much was written again.
        self.refusal: StoreError | None = None
        self.operations = 0
        self.rows = 0
        self.failures = 0
        self.seconds = 0.0
        self.groups = [0] * (len(GROUPS) + 1)

    def failed(self, error: Exception) -> None:
        """Remember why a write was refused. That the database is busy, or away, says nothing of the next one."""
        if isinstance(error, StoreError) and not isinstance(error, StoreBusyError):
            self.refusal = error

    def committed(self, operations: int, rows: int, seconds: float) -> None:
        """Count a commit of so many writes, which changed so many rows."""
        self.operations += operations
        self.rows += rows
        self.seconds += seconds
        self.groups[bisect_left(GROUPS, operations)] += 1
