"""Steps of a removal: one transaction each, during which other writers wait for some tens of milliseconds.

A removal yields the number of rows of each step. It finds its rows anew at each start, so that it continues after any
interruption. It skips rows that others have locked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from scrapy_ext.server.store.engine.interface import Engine, Operation, Row, Transaction

#: Maximum rows of a step, and bytes of their values, unless one row has more. SQLite overwrites them with zeros.
STEP_ROWS: Final = 1000
STEP_BYTES: Final = 2 * 1024 * 1024

#: Numbers of removed rows, one for each step.
Steps = AsyncGenerator[int, None]

#: Returns the next group of rows after another one, at a time (ms); None at the end.
NextGroup = Operation[[int, Row], Row | None]

_FIND: Final = """
    SELECT {size}, {key} FROM {table} WHERE {old} ORDER BY {order} LIMIT {rows} FOR UPDATE SKIP LOCKED"""
_REMOVE: Final = "DELETE FROM {table} WHERE {where}"


def fitting(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first rows of one step; their first columns are their sizes."""
    sizes = accumulate(row[0] for row in rows)
    return rows[: max(1, sum(size <= STEP_BYTES for size in sizes))]


class OldRows(NamedTuple):
    """Rows of a table that are removed once they are old."""

    table: str
    #: Columns of the primary key.
    key: tuple[str, ...]
    #: Bytes of a row.
    size: str
    #: Condition on an old row: with the time (ms) as ``$1``, and the group, if there are groups, from ``$2`` on.
    old: str
    #: Columns of an index, in whose order the rows are removed.
    order: str
    #: Returns the next group after another one, where the rows are removed group by group; ``first`` is before all.
    next_group: NextGroup | None = None
    first: Row = ()

    async def remove(self, engine: Engine, before: int) -> Steps:
        """Remove the rows that are old at a time (ms)."""
        if self.next_group is None:
            while removed := await engine.write(self._remove, (before,)):
                yield removed
            return
        group = self.first
        while (found := await engine.read(self.next_group, before, group)) is not None:
            group = found
            while removed := await engine.write(self._remove, (before, *group)):
                yield removed

    async def _remove(self, tx: Transaction, old: Row) -> int:
        names = self._asdict() | {"key": ", ".join(self.key), "rows": STEP_ROWS}
        doomed = fitting(await tx.fetch(_FIND.format_map(names), *old))
        where = " AND ".join(f"{column} = ${place}" for place, column in enumerate(self.key, 1))
        await tx.execute_many(_REMOVE.format(table=self.table, where=where), sorted(tuple(row[1:]) for row in doomed))
        return len(doomed)
