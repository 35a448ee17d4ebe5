"""Short reads of an SQLite file in the event loop's own thread.

To hand a read to another thread and back costs several times what a look-up by a key does. Here it is done at once,
and nothing blocks the loop, because

- a reader of a file in WAL mode waits for no writer, and the connection waits for no lock at all: what is locked is
  refused;
- SQLite asks every thousand steps whether the time is up, and the read is given up when it is;
- what those who ask for a glance read is of bounded size (see :class:`Engine`), so that a cold page costs as many
  reads of the disk as it would keep a thread for.

Whatever is refused or given up is read in a thread, from its start.
"""

from __future__ import annotations

import sqlite3
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

from scrapy_ext.server.store.engine.sqlite.file import connect_reader
from scrapy_ext.server.store.engine.sqlite.transaction import Start, run_reading

T = TypeVar("T")

#: Seconds after which a read is given up.
_LONGEST: Final = 0.001
#: Steps of SQLite's machine between two looks at the clock; some tens of microseconds.
_STEPS: Final = 1000


class NotAtOnceError(Exception):
    """The read has to be done in a thread."""


class Glances:
    """A connection for one thread."""

    def __init__(self, path: Path) -> None:
        self._connection = connect_reader(path, wait=0)
        self._connection.set_progress_handler(self._is_up, _STEPS)
        self._until = 0.0
        self._closed = False

    def read(self, start: Start[T]) -> T:
        """The result of an operation that only reads; raises :class:`NotAtOnceError`."""
        self._until = perf_counter() + _LONGEST
        try:
            return run_reading(self._connection, start)
        except sqlite3.Error:  # the thread meets it too, if it is more than a lock or the time
            self._until = inf  # to end a transaction takes steps too
            if not self._closed and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise NotAtOnceError from None

    def close(self) -> None:
        """Let go of the file."""
        self._closed = True
        self._connection.close()

    def _is_up(self) -> bool:
        return perf_counter() > self._until
