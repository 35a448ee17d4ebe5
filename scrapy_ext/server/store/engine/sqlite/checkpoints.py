"""Writing the log back into the database beside the commits, so that none of them waits for all of it.

SQLite writes the log back within the commit that makes it long: a second and more, when pages that are far apart have
changed. Here a thread does nearly all of it through a connection of its own, while commits go on; the writer does the
rest between two commits, a few pages, after which it begins the log anew. Where that does not come about (a reader
holds an old state), SQLite's own limit, which is higher, does as before.

After a deletion the log is emptied as well (:meth:`Checkpoints.forget`), so that no file has what was deleted: the
thread writes it back, and the writer cuts it to nothing between two commits, as soon as no reader needs it. It waits
for readers for a moment only, and tries again later.

How long the log is stands in the ``-shm`` file, which must not be opened here: the locks of SQLite are on that file,
and to close it would give up all those of this process (https://sqlite.org/howtocorrupt.html, 2.2). So it is seen from
the log itself, on which there are none.
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

#: Pages of the log at which it is written back: what changes often is written once for many commits.
_PAGES: Final = 8000
#: Of the log's header (https://sqlite.org/fileformat.html, The WAL File Format): size of a page, and the salts, which
#: are others whenever the log is begun anew. A page of the present log has them before it, in a header of its own.
_HEADER: Final = struct.Struct(">8xI4x8s8x")
_PAGE_HEADER: Final = 24
_PAGE_SALTS_AT: Final = 8
#: Milliseconds for which the writer, and whoever waits for it, waits for readers of the log that is to be emptied.
_READERS_WAIT: Final = 20
#: Seconds until the next try: the first time, and the longest. A backup reads for as long as it takes.
_AGAIN: Final = (0.05, 5.0)


class Checkpoints:
    """The thread that writes the log back."""

    #: Seconds until :meth:`committed` is to be called although nothing was committed; None: not at all.
    wait: float | None = None

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._log = path.with_name(path.name + "-wal")
        self._due = threading.Event()
        self._ready = False
        self._closed = False
        self._salts = b""
        #: Pages of the log when it was last written back.
        self._length_at_last = 0
        self._to_empty = False
        self._empty_at = 0.0
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
        self._thread.start()

    def committed(self, writer: sqlite3.Connection) -> None:
        """Told by the writer between two commits."""
        if self._ready:
            self._ready = False
            with contextlib.suppress(sqlite3.Error):
                _, length, _ = writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._length_at_last = max(length, 0)
            if self._to_empty:
                self._empty(writer)
        elif not self._due.is_set() and (self._is_to_be_emptied() or self._has_grown()):
            self._due.set()

    def forget(self) -> None:
        """Empty the log soon, by calls of :meth:`committed`; called by the writer."""
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
        """Whether the log has so many pages more than when it was last written back."""
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
            if salts != self._salts:  # it has begun anew
                self._salts, self._length_at_last = salts, 0
            pages = self._length_at_last + _PAGES - 1
            last = _HEADER.size + pages * (_PAGE_HEADER + page_size)
            return os.pread(log, len(salts), last + _PAGE_SALTS_AT) == salts
        except OSError:
            return False
        finally:
            os.close(log)

    def _run(self) -> None:
        while self._due.wait() and not self._ends():
            # What fails here, the writer meets too, in an operation whose caller is told.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._ready = True
            self._due.clear()
            if self._ends():  # which was perhaps said before that
                break

    def _ends(self) -> bool:
        return self._closed
