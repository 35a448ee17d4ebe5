"""Checkpoints of SQLite's write-ahead log in a thread of their own, so that no commit waits for a whole one.

SQLite writes the log back within the commit that exceeds its limit: a second and more when distant pages have changed.
Here a thread writes most pages back through a connection of its own during commits. The writer writes the remaining few
between two commits, after which it starts the log anew. While a reader holds an old state, the log grows to SQLite's
own limit, which is higher.

After a deletion the log is emptied as well (:meth:`Checkpoints.forget`), so that no file contains deleted data: the
thread writes it back, and the writer truncates it between two commits once no reader needs it. The writer waits for
readers briefly, and retries later.

A log as long as the database, and a thousand pages at least, is written back, since a small database changes the same
pages again and again. When little was written for some seconds, the log is emptied in the same way.

The length of the log is in the ``-shm`` file, which must not be opened here: SQLite's locks are on that file, and
closing it would release all those of this process (https://sqlite.org/howtocorrupt.html, 2.2). So the length is read
from the log itself, which has no locks.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import threading
import time
from pathlib import Path
from typing import Final

#: Pages of the log at which it is written back: those of the database, within these bounds. A page that changes often
#: is then written once for many commits.
_PAGES: Final = 8000
_FEWEST_PAGES: Final = 1000
#: Seconds with these commits at most after which the log is emptied if it has more bytes than these. A node commits a
#: heartbeat every two seconds.
_REST: Final = 10.0
_REST_COMMITS: Final = 10
_REST_BYTES: Final = 1024 * 1024
#: Page size and salts in the header of the log (https://sqlite.org/fileformat.html, The WAL File Format). The salts
#: change when the log starts anew, and each page of the current log has them in its own header.
_HEADER: Final = struct.Struct(">8xI4x8s8x")
_PAGE_HEADER: Final = 24
_PAGE_SALTS_AT: Final = 8
#: Milliseconds that the writer waits for readers before it empties the log.
_READERS_WAIT: Final = 20
#: Seconds until the next attempt to empty the log: the first wait, and the maximum. A backup may read for long.
_AGAIN: Final = (0.05, 5.0)


class Checkpoints:
    """The thread that writes the log back."""

    #: Seconds after which the writer calls :meth:`rested` without a commit; None: never.
    wait: float | None = None

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._log = path.with_name(path.name + "-wal")
        self._due = threading.Event()
        self._ready = False
        self._closed = False
        self._salts = b""
        #: Pages at which the log is written back, from the second time on by the size of the database.
        self._limit = min(_PAGES, _FEWEST_PAGES)
        #: Pages of the log when it was last written back.
        self._length_at_last = 0
        self._to_empty = False
        self._empty_at = 0.0
        #: The time since when commits are counted, and their number.
        self._since = time.monotonic()
        self._commits = 0
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
        self._thread.start()

    def committed(self, writer: sqlite3.Connection) -> None:
        """Continue a checkpoint, or start one; called by the writer between two commits."""
        if not self._to_empty:
            self.wait = _REST
        self._commits += 1
        if time.monotonic() - self._since >= _REST:
            if self._commits <= _REST_COMMITS:
                self._empty_if_long()
            self._since, self._commits = time.monotonic(), 0
        self._continue(writer)

    def rested(self, writer: sqlite3.Connection) -> None:
        """Do the same after :attr:`wait` seconds without a commit."""
        if not self._to_empty:
            self.wait = None
            self._empty_if_long()
        self._continue(writer)

    def _empty_if_long(self) -> None:
        if not self._to_empty and self._bytes() > _REST_BYTES:
            self.forget()

    def _continue(self, writer: sqlite3.Connection) -> None:
        if self._ready:
            self._ready = False
            with contextlib.suppress(sqlite3.Error):
                _, length, _ = writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._length_at_last = max(length, 0)
                self._limit = _limit_of(writer)
            if self._to_empty:
                self._empty(writer)
        elif not self._due.is_set() and (self._is_to_be_emptied() or self._has_grown()):
            self._due.set()

    def forget(self) -> None:
        """Empty the log soon, in calls of :meth:`committed`; called by the writer."""
        self._to_empty = True
        self._empty_at, self.wait = 0.0, _AGAIN[0]

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._due.set()
        self._thread.join()
        self._connection.close()

    def _is_to_be_emptied(self) -> bool:
        return self._to_empty and time.monotonic() >= self._empty_at

    def _empty(self, writer: sqlite3.Connection) -> None:
        busy = 1
        with contextlib.suppress(sqlite3.Error):
            (before,) = writer.execute("PRAGMA busy_timeout").fetchone()
            writer.execute(f"PRAGMA busy_timeout = {_READERS_WAIT}")
            try:
                busy, _, _ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                writer.execute(f"PRAGMA busy_timeout = {before}")
        if not busy:
            self._to_empty, self.wait, self._length_at_last = False, None, 0
            return
        self.wait = min(2 * (self.wait or _AGAIN[0]), _AGAIN[1])
        self._empty_at = time.monotonic() + self.wait

    def _has_grown(self) -> bool:
        """Return true when the log has so many more pages than after the last checkpoint that it is written back."""
        try:
            log = os.open(self._log, os.O_RDONLY)
        except OSError:
            return False
        try:
            header = os.pread(log, _HEADER.size, 0)
            if len(header) < _HEADER.size:
                return False
            page_size: int
            salts: bytes
            page_size, salts = _HEADER.unpack(header)
            if salts != self._salts:  # the log has started anew
                self._salts, self._length_at_last = salts, 0
            pages = self._length_at_last + self._limit - 1
            last = _HEADER.size + pages * (_PAGE_HEADER + page_size)
            return os.pread(log, len(salts), last + _PAGE_SALTS_AT) == salts
        except OSError:
            return False
        finally:
            os.close(log)

    def _bytes(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    def _run(self) -> None:
        while self._due.wait() and not self._is_closed():
            # The writer meets the same error, in an operation that reports it to its caller.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._ready = True
            self._due.clear()
            # ``close`` may have set the event before it was cleared.
            if self._is_closed():
                break

    def _is_closed(self) -> bool:
        return self._closed


def _limit_of(connection: sqlite3.Connection) -> int:
    """Return the pages of the log at which it is written back."""
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    return min(_PAGES, max(_FEWEST_PAGES, pages))
