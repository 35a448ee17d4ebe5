"""Return of free pages of an SQLite file to the file system, a few at a time, between commits.

A freed page at the end of the file is cut off, and another one is filled with the last page in use (``PRAGMA
incremental_vacuum``), which is written to the log. Some free pages are kept, since new data would need new pages.
Files that were created without ``auto_vacuum`` keep theirs until ``scrapy platform vacuum``.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

#: Free share and free bytes above which space is returned. Half of it stays.
_SHARE: Final = 0.05
_BYTES: Final = 2 * 1024 * 1024
#: Seconds of a step before its commit, which syncs about as long: other writes wait some 20 ms.
_STEP_SECONDS: Final = 0.01
#: Bytes of the log above which it has to be written back first. A reader, such as a backup, may prevent that.
_LOG_BYTES: Final = 64 * 1024 * 1024
#: Value of ``PRAGMA auto_vacuum`` for a file that can return pages.
_INCREMENTAL: Final = 2


def free_bytes(connection: sqlite3.Connection) -> int:
    return _number(connection, "freelist_count") * _number(connection, "page_size")


def is_returnable(connection: sqlite3.Connection) -> bool:
    """Return true when so much of the file is free that some of it is to be returned."""
    if _number(connection, "auto_vacuum") != _INCREMENTAL:
        return False
    return free_bytes(connection) > _to_keep(connection)


def return_pages(connection: sqlite3.Connection, path: Path) -> int | None:
    """Return free pages to the file system for some milliseconds; return their bytes, 0 when enough were returned.

    None: the log is too long to write to it.
    """
    if _log_bytes(path) > _LOG_BYTES:
        return None
    began = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = free = free_bytes(connection)
        kept = _to_keep(connection) / 2
        while free > kept and time.perf_counter() - began < _STEP_SECONDS:
            # Python steps a statement without columns once, which frees one page, whatever the argument.
            connection.execute("PRAGMA incremental_vacuum(1)")
            left = free_bytes(connection)
            if left == free:
                break
            free = left
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return before - free


def _to_keep(connection: sqlite3.Connection) -> float:
    return max(_BYTES, _SHARE * _number(connection, "page_count") * _number(connection, "page_size"))


def _number(connection: sqlite3.Connection, name: str) -> int:
    number: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return number


def _log_bytes(path: Path) -> int:
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0
