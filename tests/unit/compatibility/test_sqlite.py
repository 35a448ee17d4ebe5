"""Result codes of SQLite, also where its errors have their text alone (Python 3.10)."""

from __future__ import annotations

import sqlite3

import pytest

from scrapy_ext.compatibility import sqlite


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("database is locked", sqlite.BUSY),
        ("database table is locked: jobs", sqlite.LOCKED),
        ("database or disk is full", sqlite.FULL),
        ("file is not a database", sqlite.NOTADB),
        ("no such table: jobs", sqlite.ERROR),
    ],
)
def test_a_text_has_its_code(text: str, code: int) -> None:
    assert sqlite.code_of_text(text) == sqlite.code_of(sqlite3.OperationalError(text)) == code
