"""Result codes of SQLite (sqlite.org/rescode.html). Python's ``sqlite3`` names them, and gives them to its errors, from
3.11; before, an error has its text alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

ERROR: Final = 1
PERM: Final = 3
BUSY: Final = 5
LOCKED: Final = 6
READONLY: Final = 8
IOERR: Final = 10
CORRUPT: Final = 11
FULL: Final = 13
CANTOPEN: Final = 14
AUTH: Final = 23
NOTADB: Final = 26

#: Beginnings of SQLite's English texts for these codes, which it has no translations of.
_TEXTS: Final[Mapping[str, int]] = {
    "access permission denied": PERM,
    "database is locked": BUSY,
    "database table is locked": LOCKED,
    "database schema is locked": LOCKED,
    "attempt to write a readonly database": READONLY,
    "disk I/O error": IOERR,
    "database disk image is malformed": CORRUPT,
    "database or disk is full": FULL,
    "unable to open database file": CANTOPEN,
    "authorization denied": AUTH,
    "not authorized": AUTH,
    "file is not a database": NOTADB,
}


def code_of(error: sqlite3.Error) -> int:
    """Return the primary result code of an error, :data:`ERROR` if it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code_of_text(str(error)) if code is None else code & 0xFF


def code_of_text(text: str) -> int:
    """Return the result code for the text of an error."""
    return next((code for start, code in _TEXTS.items() if text.startswith(start)), ERROR)
