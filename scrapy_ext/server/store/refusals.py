"""The last write that the disk or the database refused, for as long as such a write would be refused again.

A disk is seldom full to the last byte: where a large record finds no room, a small row may. So after a refused write
the store is not ready before a write of the largest record's size succeeds, which is tried now and then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from scrapy_ext.server.store.engine import Engine, Operation, P, T, Transaction
from scrapy_ext.server.store.errors import SchemaError, StoreBusyError, StoreError

#: Bytes that are written to see whether there is room: those of the largest record.
_SIZE: Final = 1024 * 1024
#: Seconds between two such writes.
_EVERY: Final = 2.0
#: The row that they write: of no project.
_ROW: Final = (-1, "room")


class Refusals:
    """What became of the writes of an engine."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._tried = 0.0
        #: Why the last one was refused; None when writes succeed.
        self.last: StoreError | None = None

    def note(self, error: StoreError) -> None:
        """A write has failed. That the database is busy, or away, says nothing of the next one."""
        if not isinstance(error, StoreBusyError | SchemaError):
            if self.last is None:
                self._tried = self._clock()
            self.last = error

    async def check(self) -> None:
        """Raise the last refusal unless as much can be written now."""
        if self.last is None:
            return
        if self._clock() - self._tried < _EVERY:
            raise self.last
        self._tried = self._clock()
        # Two commits: what one transaction writes and deletes again may never reach the disk.
        await self._engine.write(_fill, os.urandom(_SIZE))
        await self._engine.write(_empty)
        self.last = None


class NotingEngine:
    """An engine that notes the writes which are refused."""

    def __init__(self, engine: Engine) -> None:
        self._inner = engine
        self.refusals = Refusals(engine)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        try:
            return await self._inner.write(operation, *args, **kwargs)
        except StoreError as error:
            self.refusals.note(error)
            raise


async def _fill(tx: Transaction, data: bytes) -> None:
    await tx.execute(
        """INSERT INTO project_settings (project, name, value) VALUES ($1, $2, $3)
           ON CONFLICT (project, name) DO UPDATE SET value = excluded.value""",
        *_ROW,
        data,
    )


async def _empty(tx: Transaction) -> None:
    await tx.execute("DELETE FROM project_settings WHERE project = $1 AND name = $2", *_ROW)
