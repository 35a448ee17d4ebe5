"""Writing the log back into the database beside the commits, so that none of them waits for all of it.

SQLite writes the log back within the commit that makes it long: a second and more, when pages that are far apart have
changed. Here a thread does nearly all of it through a connection of its own, while commits go on; the writer does the
rest between two commits, a few pages, after which it begins the log anew. Where that does not come about (a reader
holds an old state), SQLite's own limit, which is higher, does as before.
"""

from __future__ import annotations

import contextlib
import sqlite3
import struct
import threading
from pathlib import Path
from typing import Final

#: Pages of the log at which it is written back: what changes often is written once for many commits.
_PAGES: Final = 8000
#: Where the log's length in pages is in the file beside it (https://sqlite.org/walformat.html, mxFrame).
_LENGTH_AT: Final = 16
_LENGTH: Final = struct.Struct("=I")


class Checkpoints:
    """The thread that writes the log back."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._index = path.with_name(path.name + "-shm")
        self._due = threading.Event()
        self._ready = False
        self._closed = False
        self._length_at_last = 0
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
        self._thread.start()

    def committed(self, writer: sqlite3.Connection) -> None:
        """Told by the writer between two commits."""
        if self._ready:
            self._ready = False
            with contextlib.suppress(sqlite3.Error):
                writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._length_at_last = self._length()
        elif not self._due.is_set():
            length = self._length()
            self._length_at_last = min(self._length_at_last, length)  # less: it has begun anew
            if length - self._length_at_last >= _PAGES:
                self._due.set()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._due.set()
        self._thread.join()
        self._connection.close()

    def _length(self) -> int:
        try:
            with self._index.open("rb") as file:
                file.seek(_LENGTH_AT)
                length: int = _LENGTH.unpack(file.read(_LENGTH.size))[0]
                return length
        except (OSError, struct.error):
            return 0

    def _run(self) -> None:
        while self._due.wait() and not self._closed:
            # What fails here, the writer meets too, in an operation whose caller is told.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._ready = True
            self._due.clear()
