"""Size of a step: one transaction, during which other writers wait for some tens of milliseconds.

A removal yields the number of rows of each step. It finds its rows anew at each start, so that it continues after any
interruption. It skips rows that others have locked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from itertools import accumulate
from typing import Final

from scrapy_ext.server.store.engine.interface import Row

#: Maximum rows of a step, and bytes of their values, unless one row has more. SQLite overwrites them with zeros.
STEP_ROWS: Final = 1000
STEP_BYTES: Final = 2 * 1024 * 1024

#: Numbers of removed rows, one for each step.
Steps = AsyncGenerator[int, None]


def fitting(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first rows of one step; their first columns are their sizes."""
    sizes = accumulate(row[0] for row in rows)
    return rows[: max(1, sum(size <= STEP_BYTES for size in sizes))]
