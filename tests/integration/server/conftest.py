"""A server that tests do not harm, a store of the test's own, and the extraction service with a site to fetch."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support.extraction_service import LIMITS, Service
from tests.support.handwritten_site import Target
from tests.support.http import Http
from tests.support.postgresql import Cluster
from tests.support.servers import RunningServer
from tests.support.stores import ENGINES, WRONG_COUNTS, Clock, Where, emptied

#: Not the first ones, which some tests name.
_projects = itertools.count(101)


@pytest.fixture(scope="session", params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the whole run, on each engine in turn."""
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    with RunningServer(tmp_path_factory.mktemp("server") / "data", database=database) as server:
        yield server
    if database is None:
        with closing(sqlite3.connect(server.data / "platform.db")) as file:
            assert file.execute(WRONG_COUNTS).fetchall() == []


@pytest.fixture
def project() -> int:
    """A project that no other test uses."""
    return next(_projects)


@pytest.fixture
async def http(server: RunningServer) -> AsyncIterator[Http]:
    """A client with the platform's key."""
    async with Http(server.url, server.platform_key) as http:
        yield http


# ── stores ──


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=ENGINES)
async def where(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Where]:
    """A database without anything in it, on each engine in turn."""
    if request.param == "sqlite":
        yield tmp_path / "data"
        return
    yield await emptied(request.getfixturevalue("store_database"))


@pytest.fixture(scope="session")
def store_database(postgresql: Cluster) -> DatabaseUrl:
    """A database that these tests share, one after the other."""
    return DatabaseUrl(postgresql.database())


@pytest.fixture
async def store(where: Where, clock: Clock, look: Callable[[str], Any]) -> AsyncIterator[Store]:
    """A store, whose jobs are counted right at the end of every test."""
    store = await Store.open(where, clock)
    yield store
    await store.close()
    assert await look(WRONG_COUNTS) == []


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


# ── the extraction service ──


@pytest.fixture(scope="session")
def target() -> Iterator[Target]:
    """A site that the service may fetch."""
    site = Target().start()
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def _no_call_is_of_another_test(request: pytest.FixtureRequest) -> None:
    if "target" in request.fixturenames:
        request.getfixturevalue("target").calls.clear()


@pytest.fixture(scope="session")
def forbidden() -> Iterator[Target]:
    """A site on loopback that nobody allowed: it must never be called."""
    site = Target().start_on_a_web_port()
    site.page("/", "<h1>inside</h1>")
    yield site
    site.stop()


@pytest.fixture(scope="session")
def service(target: Target) -> Iterator[Service]:
    rules = (f"shop.example:80=127.0.0.1:{target.port}", f"other.example:80=127.0.0.1:{target.port}")
    with Service(allow_hosts=(target.host,), connect_to=rules, limits=LIMITS) as running:
        yield running
