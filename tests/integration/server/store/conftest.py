"""A store of the test's own on either engine, and a clock that the test moves."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support.postgresql import Cluster

Where = Path | DatabaseUrl

#: Where the rows of frontiers are, and what is yet to be removed of those that were deleted.
FRONTIER_TABLES = (
    "frontier_slots",
    "frontier_batches",
    "frontier_fingerprints",
    "frontier_fingerprint_blocks",
    "discarded",
)


class Clock:
    """Milliseconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
async def where(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Where]:
    """A database without anything in it, on both engines in turn."""
    if request.param == "sqlite":
        yield tmp_path / "data"
        return
    yield await emptied(request.getfixturevalue("store_database"))


async def emptied(url: DatabaseUrl) -> DatabaseUrl:
    """The database, with its tables and nothing in them: much faster than a new one."""
    connection = await asyncpg.connect(url.secret)
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    for (name,) in await connection.fetch(f"{tables} AND NOT relispartition AND relname <> 'schema_version'"):
        await connection.execute(f"DELETE FROM {name}")
    await connection.close()
    return url


@pytest.fixture(scope="session")
def store_database(postgresql: Cluster) -> DatabaseUrl:
    """A database that these tests share, one after the other."""
    return DatabaseUrl(postgresql.database())


@pytest.fixture
async def store(where: Where, clock: Clock) -> AsyncIterator[Store]:
    store = await Store.open(where, clock)
    yield store
    await store.close()


@pytest.fixture
def look(where: Where) -> Callable[[str], Any]:
    """A query past the store: ``await look("SELECT ...")``."""

    async def query(sql: str) -> list[tuple[Any, ...]]:
        if isinstance(where, DatabaseUrl):
            connection = await asyncpg.connect(where.secret)
            try:
                return [tuple(row) for row in await connection.fetch(sql)]
            finally:
                await connection.close()
        with closing(sqlite3.connect(where / "platform.db")) as database:
            return database.execute(sql).fetchall()

    return query


@pytest.fixture
def change(where: Where) -> Callable[[str], Any]:
    """A statement past the store: ``await change("UPDATE ...")``. ``{bytes:…}`` stands for bytes in hexadecimal."""

    async def execute(sql: str) -> None:
        if isinstance(where, DatabaseUrl):
            connection = await asyncpg.connect(where.secret)
            try:
                await connection.execute(re.sub(r"{bytes:(\w*)}", r"decode('\1', 'hex')", sql))
            finally:
                await connection.close()
            return
        with closing(sqlite3.connect(where / "platform.db")) as database, database:
            database.execute(re.sub(r"{bytes:(\w*)}", r"x'\1'", sql))

    return execute
