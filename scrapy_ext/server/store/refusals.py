"""The last write that the disk or the database refused, while it would be refused again.

A full disk may have room for a small row but not for a large record. So after a refused write the store is not ready
until a test write of the largest record's size succeeds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from scrapy_ext.server.store.engine.interface import Engine, Transaction

#: Bytes of a test write: those of the largest record.
_SIZE: Final = 1024 * 1024
#: Seconds between two test writes.
_EVERY: Final = 2.0
#: Key of the test row, which belongs to no project.
_ROW: Final = (-1, "room")


class Refusals:
    """Check whether writes are refused; :class:`Measures` has the last refused write."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._again = 0.0

    async def check(self) -> None:
        """Raise the last refusal unless a test write succeeds now."""
        refusal = self._engine.measures.refusal
        if refusal is None:
            return
        if self._clock() < self._again:
            raise refusal
        self._again = self._clock() + _EVERY
        # Two commits: data written and deleted in one transaction may never reach the disk.
        await self._engine.write(_fill, os.urandom(_SIZE))
        await self._engine.write(_empty)
        self._engine.measures.refusal = None


async def _fill(tx: Transaction, data: bytes) -> None:
    await tx.execute(
        """INSERT INTO project_settings (project, name, value) VALUES ($1, $2, $3)
           ON CONFLICT (project, name) DO UPDATE SET value = excluded.value""",
        *_ROW,
        data,
    )


async def _empty(tx: Transaction) -> None:
    await tx.execute("DELETE FROM project_settings WHERE project = $1 AND name = $2", *_ROW)
