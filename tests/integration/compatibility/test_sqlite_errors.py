"""Result codes of SQLite's own errors."""

from __future__ import annotations

import sqlite3

import pytest

from scrapy_ext.compatibility import sqlite


def test_an_error_of_sqlite_has_the_same_code_by_its_text_as_by_its_number() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA query_only = 1")
    with pytest.raises(sqlite3.OperationalError) as full:
        connection.execute("CREATE TABLE a (b)")
    assert sqlite.code_of(full.value) == sqlite.code_of_text(str(full.value)) == sqlite.READONLY
