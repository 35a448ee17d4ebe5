"""An SQLite file: how it is opened, and what to say when it fails."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Final

from scrapy_ext.server.store.engine.errors import SchemaError, StoreBusyError, StoreError, StoreFullError

#: How long a lock that another process holds is waited for.
BUSY_SECONDS: Final = 30.0
LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_OLDEST_SQLITE: Final = (3, 35, 0)


def connect(path: Path, wait: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection, which waits so many seconds for a lock."""
    connection = sqlite3.connect(
        path, timeout=wait, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def connect_reader(path: Path, wait: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection that cannot write, and waits so many seconds for a lock."""
    connection = connect(path, wait)
    connection.execute("PRAGMA query_only = ON")
    return connection


def vacuum(path: Path) -> None:
    """Rewrite the file without what was deleted; raises :class:`StoreError`."""
    try:
        with contextlib.closing(connect(path)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA optimize = 0x10002")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise translated(error, path) from error


def open_writer(path: Path) -> sqlite3.Connection:
    """Open or create the file, in WAL mode, synced at every commit; raises :class:`StoreError`."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed. Use a newer Python or SQLite."
        )
    with contextlib.suppress(OSError):  # SQLite says what is wrong with the path
        path.touch(mode=0o600)  # the data is its owner's; SQLite gives the files beside it the same mode
    try:
        connection = connect(path)
        _check_whose(connection, path)
        _enter_wal(connection)
        # FULL syncs the log at every commit: what was answered with 200 survives a power cut, not only a crash.
        connection.execute("PRAGMA synchronous = FULL")
        # The log is written back by another thread (sqlite_checkpoints); this is for when that one cannot.
        connection.execute("PRAGMA wal_autocheckpoint = 48000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA cache_size = -65536")
        # What is deleted is overwritten with zeros, also where a page comes free. Debian's SQLite does that by itself.
        # FAST, which leaves free pages, costs nothing; this one writes a third more where a crawl takes its requests.
        connection.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error as error:
        raise translated(error, path) from error
    return connection


def size_of(path: Path) -> int:
    """Bytes that the file and those beside it take."""
    size = 0
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            size += path.with_name(path.name + suffix).stat().st_size
    return size


def _check_whose(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of another program before anything is changed in it."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and "schema_version" not in names:
        raise SchemaError(
            f"{path} is not a database of this server, but of another program. Use another data directory."
        )


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switching the journal does not wait for other processes that are opening the same file, so wait here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def code_of(error: sqlite3.Error) -> int:
    """What kind of error it is."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def translated(error: sqlite3.Error, path: Path) -> StoreError:
    """The error that a store raises instead."""
    code = code_of(error)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreFullError(
            f"{path} cannot be written ({error}). The disk is full, over a quota or failing: make room and try again."
        )
    if code in LOCKED:
        return StoreBusyError(f"{path} was locked by another process for {BUSY_SECONDS:.0f} s. Try again.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        # A disk that fails is made read-only by the system: for clients that is as one that is full.
        kind = StoreFullError if code == sqlite3.SQLITE_READONLY else StoreError
        return kind(
            f"{path} cannot be written ({error}). Check the permissions of the data directory, or use another one."
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError(
            f"{path} is damaged or not a database ({error}). Move it away to start afresh, or put a backup in place."
        )
    return StoreError(f"{path}: the database refused an operation ({error}). Please report this.")
