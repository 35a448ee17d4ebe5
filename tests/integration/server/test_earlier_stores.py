"""A store of an earlier version, opened by the server of this one: all is read, and work goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest

from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.server.store.schema import migrations
from tests.earlier_stores.stored import (
    ACKNOWLEDGED,
    REQUESTS,
    VERSIONS,
    answers,
    expected,
    load_postgresql,
    load_sqlite,
)
from tests.support.crash import killed_server
from tests.support.crash.killed_server import KillAt
from tests.support.http import Http
from tests.support.servers import ForkedServer, RunningServer
from tests.support.stores import ENGINES

SLOT = "/hcf/7/shop/s/0"
RUNNING = "7/1/2"


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def load(version: int, engine: str, data: Path, request: pytest.FixtureRequest) -> tuple[Path, str | None]:
    """Make a store of a version; return its data directory and its database."""
    if engine == "postgresql":
        return data, load_postgresql(version, request.getfixturevalue("postgresql"))
    load_sqlite(version, data)
    return data, None


@pytest.fixture
def store(version: int, engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, str | None]:
    return load(version, engine, tmp_path / "data", request)


class Upgraded(NamedTuple):
    """A server of this version on a store of another, and its first answers."""

    server: ForkedServer
    answers: dict[str, Any]


@pytest.fixture(scope="module")
def upgraded(
    version: int, engine: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Upgraded]:
    data, database = load(version, engine, tmp_path_factory.mktemp("upgraded") / "data", request)
    with ForkedServer(data, database=database, options=["--no-runner"]) as server:
        yield Upgraded(server, asyncio.run(read_all(server)))


@pytest.fixture
async def http(upgraded: Upgraded) -> AsyncIterator[Http]:
    async with Http(upgraded.server.url, upgraded.server.platform_key) as http:
        yield http


async def read_all(server: ForkedServer) -> dict[str, Any]:
    async with Http(server.url, server.platform_key) as http:
        return await answers(http)


def test_all_data_is_read_as_its_own_server_answered(upgraded: Upgraded, version: int, engine: str) -> None:
    for path, answer in expected(version, engine).items():
        assert upgraded.answers[path] == answer, path


async def test_a_frontier_goes_on_and_adds_no_known_request(http: Http) -> None:
    assert (await http.post(SLOT, REQUESTS)).json == {"newcount": 0}
    new = [{"fp": f"/new/{n}"} for n in range(70)]
    assert (await http.post(SLOT, [*new[:50], *REQUESTS[:100]])).json == {"newcount": 50}
    assert (await http.post(SLOT, [*REQUESTS, *new])).json == {"newcount": 20}
    all_fps = {str(each["fp"]) for each in (*REQUESTS, *new)}
    assert [line["fp"] for line in (await http.get(f"{SLOT}/f")).lines] == sorted(all_fps)
    queue = (await http.get(f"{SLOT}/q?mincount=1000")).lines
    queued = [fp for batch in queue for fp, _ in batch["requests"]]
    assert sorted(queued) == sorted(all_fps - ACKNOWLEDGED)
    await http.post(f"{SLOT}/q/deleted", [batch["id"] for batch in queue])
    assert (await http.get(f"{SLOT}/q/count")).json == {"count": 0}
    assert (await http.post(SLOT, [*REQUESTS, *new])).json == {"newcount": 0}


async def test_jobs_go_on(http: Http) -> None:
    assert (await http.post(f"/items/{RUNNING}?start=4", [{"n": 4}, {"n": 5}])).status == 200
    assert (await http.post(f"/items/{RUNNING}?start=4", [{"n": 4}, {"n": 5}, {"n": 6}])).status == 200  # sent again
    assert [item["n"] for item in (await http.get(f"/items/{RUNNING}")).lines] == list(range(7))
    assert (await http.post("/jobq/7/update", [{"key": RUNNING, "state": "finished"}])).status == 200
    assert (await http.get(f"/jobs/{RUNNING}")).json["state"] == "finished"
    assert (await http.post("/items/7/2/1", [{"n": 1}])).status == 410  # its job was deleted
    (pushed,) = (await http.post("/jobq/7/push", [{"spider": "books"}])).lines
    assert pushed["key"] == "7/1/4"
    assert (await http.post("/jobq/7/startjob")).status == 200
    assert (await http.get("/jobs/7/1/3")).json["state"] == "running"  # pending since before the upgrade


async def test_collections_go_on(http: Http) -> None:
    assert (await http.post("/collections/7/s/books", [{"_key": "00", "n": -1}, {"_key": "07", "n": 7}])).status == 200
    assert (await http.get("/collections/7/s/books/count")).json["count"] == 59
    assert (await http.get("/collections/7/s/books/00")).lines == [{"n": -1}]
    assert (await http.post("/collections/7/vs/prices", [{"_key": "a", "price": 5}])).status == 200
    copies = (await http.get("/collections/7/vs/prices/a?copies=3")).lines
    assert copies == [{"price": 5}, {"price": 4}, {"price": 3}]


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 1], ids=["before the commit", "after the commit"])
async def test_a_migration_whose_server_is_killed_is_whole_or_was_never_there(
    store: tuple[Path, str | None], version: int, engine: str, place: int
) -> None:
    data, database = store
    known = [each for each, _ in migrations()]
    kill_at = KillAt(place, ("migrate",))
    with pytest.raises(AssertionError, match="the server ended instead of being ready"):
        RunningServer(data, database=database, environment=kill_at.environment, program=killed_server.__name__)
    before = [each for each in known if each <= version] if place == 0 else known
    assert await versions_of(data, database) == before
    with ForkedServer(data, database=database, options=["--no-runner"]) as server:
        assert await read_all(server) == expected(version, engine)
        assert await versions_of(data, database) == known


@pytest.mark.long
async def test_of_servers_that_start_at_once_one_migrates(
    store: tuple[Path, str | None], version: int, engine: str
) -> None:
    data, database = store

    def start() -> ForkedServer:
        return ForkedServer(data, database=database, options=["--no-runner"])

    servers = await asyncio.gather(*(asyncio.to_thread(start) for _ in range(3)))
    try:
        for server in servers:
            assert await read_all(server) == expected(version, engine)
    finally:
        for server in servers:
            server.stop()


async def versions_of(data: Path, database: str | None) -> list[int]:
    """Return the versions that a store records."""
    sql = "SELECT version FROM schema_version WHERE version > 0 ORDER BY version"
    if database is None:
        with closing(sqlite3.connect(data / FILE)) as connection:
            return [row[0] for row in connection.execute(sql)]
    connection = await asyncpg.connect(database)
    try:
        return [row[0] for row in await connection.fetch(sql)]
    finally:
        await connection.close()
