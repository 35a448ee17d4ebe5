"""Connections to an SQLite file, and their errors."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Final

from scrapy_ext.compatibility import sqlite
from scrapy_ext.server.store.engine.errors import OTHER_PLACE, SchemaError, StoreBusyError, StoreError, StoreFullError

#: Maximum wait for a lock of another process.
BUSY_SECONDS: Final = 30.0
LOCKED: Final = (sqlite.BUSY, sqlite.LOCKED)

_OLDEST_SQLITE: Final = (3, 35, 0)
_RETURNS_SPACE: Final = "PRAGMA auto_vacuum = INCREMENTAL"


def connect(path: Path, wait: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a connection that waits up to ``wait`` seconds for a lock."""
    connection = sqlite3.connect(
        path, timeout=wait, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def connect_reader(path: Path, wait: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a read-only connection that waits up to ``wait`` seconds for a lock."""
    connection = connect(path, wait)
    # Memory-mapped reads (PRAGMA mmap_size) are a quarter faster. But a page that the disk cannot read would end the
    # process (SIGBUS) instead of the read, and mapped pages count as memory of the process.
    connection.execute("PRAGMA query_only = ON")
    return connection


def vacuum(path: Path) -> None:
    """Rewrite the file without its free space, which it also returns by itself then; raise :class:`StoreError`."""
    try:
        with contextlib.closing(connect(path)) as connection:
            connection.execute(_RETURNS_SPACE)
            connection.execute("VACUUM")
            connection.execute("PRAGMA optimize = 0x10002")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise translated(error, path) from error


def open_writer(path: Path) -> sqlite3.Connection:
    """Open or create the file, in WAL mode, synced at every commit; raise :class:`StoreError`."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed. Use a newer Python or SQLite."
        )
    # SQLite reports an unusable path itself, and creates its other files with the same mode.
    with contextlib.suppress(OSError):
        path.touch(mode=0o600)
    try:
        connection = connect(path)
        # It applies to a new file, and only before that enters WAL mode. Others are converted by VACUUM.
        if not _has_tables(connection, path):
            connection.execute(_RETURNS_SPACE)
        _enter_wal(connection)
        # FULL syncs the log at every commit, so that a stored record survives a power cut, not only a crash.
        connection.execute("PRAGMA synchronous = FULL")
        # On macOS a sync reaches the disk itself only with this; elsewhere it changes nothing.
        connection.execute("PRAGMA fullfsync = ON")
        # The thread of ``checkpoints`` writes the log back earlier, unless a reader prevents that.
        connection.execute("PRAGMA wal_autocheckpoint = 48000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA cache_size = -65536")
        # Deleted data is overwritten with zeros, in freed pages too. Debian's SQLite does that by default. FAST, which
        # skips freed pages, costs nothing; ON writes a third more while a crawl reads its requests.
        connection.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error as error:
        raise translated(error, path) from error
    return connection


def size_of(path: Path) -> int:
    """Return the bytes of the file, its log and its index of the log."""
    size = 0
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            size += path.with_name(path.name + suffix).stat().st_size
    return size


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return false for a new file; refuse a database of another program before any change."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and "schema_version" not in names:
        raise SchemaError(f"{path} is a database of another program. Use another data directory.")
    return bool(names)


def _enter_wal(connection: sqlite3.Connection) -> None:
    # SQLite does not wait here for other processes that open the same file.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if sqlite.code_of(error) != sqlite.BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def translated(error: sqlite3.Error, path: Path) -> StoreError:
    code = sqlite.code_of(error)
    if code in (sqlite.FULL, sqlite.IOERR):
        return StoreFullError(
            f"{path} cannot be written ({error}). The disk is full, over a quota or failing: make room and try again."
        )
    if code in LOCKED:
        return StoreBusyError(f"{path} was locked by another process for {BUSY_SECONDS:.0f} s. Try again.")
    if code in (sqlite.READONLY, sqlite.CANTOPEN, sqlite.PERM, sqlite.AUTH):
        # The system makes a failing disk read-only.
        kind = StoreFullError if code == sqlite.READONLY else StoreError
        return kind(f"{path} cannot be written ({error}). Check the permissions of the data directory. {OTHER_PLACE}")
    if code in (sqlite.NOTADB, sqlite.CORRUPT):
        return StoreError(
            f"{path} is damaged or not a database ({error}). Move it elsewhere to start empty, or restore a backup."
        )
    return StoreError(f"{path}: the database refused an operation ({error}). Please report this.")
