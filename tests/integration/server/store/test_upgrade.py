"""Databases of earlier versions of the package."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.server.store import Store, schema
from scrapy_ext.server.store.engine.errors import SchemaError


async def test_an_older_database_gets_what_it_lacks_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(tmp_path)
    await store.keys.keep("name", "value")
    await store.close()
    present = schema.migrations()
    added = (present[-1][0] + 1, "ALTER TABLE access_keys ADD COLUMN more TEXT NOT NULL DEFAULT 'yes';\n")
    monkeypatch.setattr(schema, "migrations", lambda: [*present, added])
    for _ in range(2):  # the second time there is nothing to do
        store = await Store.open(tmp_path)
        assert await store.keys.get("name") == "value"
        await store.close()
    with sqlite3.connect(tmp_path / "platform.db") as database:
        assert database.execute("SELECT value, more FROM access_keys WHERE name = 'name'").fetchall() == [
            ("value", "yes")
        ]
        assert database.execute("SELECT max(version) FROM schema_version").fetchone() == (added[0],)
    database.close()


async def test_a_database_of_a_development_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    await (await Store.open(tmp_path)).close()
    path = tmp_path / "platform.db"
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM schema_version WHERE version > 1")
        database.execute("INSERT INTO schema_version (version) VALUES (1)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(SchemaError, match=r"schema version 1, of a development version.*Use a new data directory"):
        await Store.open(tmp_path)
    assert path.read_bytes() == before


async def test_a_server_whose_database_a_newer_one_has_migrated_is_not_ready(
    store: Store, change: Callable[[str], Any]
) -> None:
    await store.probe()
    await change("INSERT INTO schema_version (version) VALUES (9999)")
    try:
        with pytest.raises(SchemaError, match=r"to schema version 9999.*Stop this server, and start it with the newer"):
            await store.probe()
    finally:
        await change("DELETE FROM schema_version WHERE version = 9999")
    await store.probe()
