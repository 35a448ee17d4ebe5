"""The server as a process on PostgreSQL: how it refuses to start, and what survives the database's end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from scrapy.settings import BaseSettings

from scrapy_ext.crawl.session.services import platform_client
from scrapy_ext.server.auth.api_keys import REFRESH_SECONDS, add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support.acknowledged_writes import write_through
from tests.support.cut_connections import Cutter
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster, cluster
from tests.support.servers import RunningServer, command, without_keys


class Bereft(NamedTuple):
    """A server without its database, a key limited to project 1, and where the database was."""

    server: RunningServer
    limited: str
    address: str


def failed_start(*options: str, **environment: str) -> tuple[int, str]:
    """Return code and last line of a server that cannot start."""
    done = subprocess.run(
        command("--port", "0", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        env={**without_keys(), "EXTRACT_API_KEY": "a", "PLATFORM_API_KEY": "b", **environment},
        check=False,
    )
    assert done.stdout == ""
    assert "opensesame" not in done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.long
def test_a_wrong_password_is_reported_and_not_shown(postgresql: Cluster) -> None:
    url = postgresql.url("postgres", "opensesame")
    for code, text in (failed_start("--database", url), failed_start(SERVER_DATABASE=url)):
        assert code == 1
        assert text.startswith(f"error: postgresql://scrapy@127.0.0.1:{postgresql.port}/postgres refused user scrapy")


def test_an_address_of_another_form_is_refused_and_not_shown() -> None:
    for code, text in (
        failed_start("--database", "http://u:opensesame@h/d"),
        failed_start(SERVER_DATABASE="postgresql://u:open/sesame@h/d"),
    ):
        assert code == 2
        assert text.endswith("is malformed. Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE.")


def test_a_data_directory_and_a_database_are_not_both_served(tmp_path: Path) -> None:
    code, text = failed_start("--data", str(tmp_path), "--database", "postgresql://u@h/d")
    assert code == 2
    assert "not allowed with" in text


def test_a_data_directory_that_is_named_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SERVER_DATABASE", "postgresql://nobody@127.0.0.1:1/nothing")
    with RunningServer(tmp_path):
        assert (tmp_path / "platform.db").exists()


@pytest.mark.long
def test_a_database_that_is_away_at_the_start_is_named() -> None:
    code, text = failed_start("--database", "postgresql://scrapy:opensesame@127.0.0.1:1/crawls")
    assert code == 1
    assert text.startswith("error: postgresql://scrapy@127.0.0.1:1/crawls cannot be reached")
    assert "Check that PostgreSQL runs there" in text


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A PostgreSQL that may be harmed."""
    with cluster() as own:
        yield own


@pytest.fixture
def served(own: Cluster, tmp_path: Path) -> Iterator[RunningServer]:
    """A server on a new database of it."""
    with RunningServer(tmp_path, database=own.database()) as server:
        yield server


@pytest.fixture
async def client(served: RunningServer) -> AsyncIterator[Http]:
    async with Http(served.url, served.platform_key) as client:
        yield client


@pytest.mark.long
@pytest.mark.parametrize("times", [4, pytest.param(40, marks=[pytest.mark.full, pytest.mark.timeout(3600)])])
async def test_what_was_answered_with_200_survives_the_end_of_postgresql(
    own: Cluster, client: Http, times: int
) -> None:
    """Its clients notice that they wait, and nothing else."""

    async def restart(turn: int) -> None:
        await asyncio.to_thread(own.stop if turn % 2 else own.kill)
        await asyncio.to_thread(own.start)

    try:
        call = await write_through([client], times, times, restart)
    finally:
        own.stop()
        own.start()  # by the main thread, with which it ends
    assert call.broken == 0


@pytest.mark.long
async def test_an_outage_that_every_write_survives_is_reported_once_in_the_log(own: Cluster, tmp_path: Path) -> None:
    way = Cutter(own.port)
    port = await way.start()
    address = own.database().replace(f":{own.port}/", f":{port}/")
    served = await asyncio.to_thread(RunningServer, tmp_path, database=address)
    try:
        async with Http(served.url, served.platform_key) as client:
            assert (await client.post("/items/1/1/1", [{"n": 0}])).status == 200
            way.sever()
            writes = [asyncio.create_task(client.post(f"/items/1/1/{job}", [{"n": 1}])) for job in range(1, 6)]
            ready = await client.get("/readyz")
            way.dark = False
            assert [(await write).status for write in writes] == [200] * 5
    finally:
        await asyncio.to_thread(served.stop)
        way.stop()
    assert ready.status == 503
    for message in (ready.json["message"], served.log()):
        assert f"127.0.0.1:{port}/" in message
        assert "cannot be reached" in message
        assert "did not answer within" not in message
    log = served.log().splitlines()
    assert len([line for line in log if "Calls wait for it" in line]) == 1
    assert len([line for line in log if " is back after " in line]) == 1


@pytest.mark.long
async def test_a_full_disk_is_reported_and_stores_nothing_by_halves(own: Cluster, client: Http) -> None:
    blob, start = os.urandom(200_000).hex(), 0
    assert (await client.post("/collections/1/s/c", [{"_key": "before", "value": 1}])).status == 200
    own.stop()
    own.start(file_limit=20_000_100)  # a little more than a segment of PostgreSQL's log
    try:
        while (answer := await client.post(f"/items/1/1/1?start={start}", [{"blob": blob}] * 2)).status == 200:
            start += 2
            assert start < 400
        assert answer.status == 507
        assert "Make room on the database's disk" in answer.json["message"]
        assert len((await client.get("/items/1/1/1?nodata=1&meta=_key")).lines) == start
        assert (await client.get("/collections/1/s/c/before")).status == 200
    finally:
        own.stop()
        own.start()
    assert (await client.post(f"/items/1/1/1?start={start}", [{"blob": blob}] * 2)).status == 200
    assert (await client.get("/items/1/1/1/stats")).json["totals"]["input_values"] == start + 2


@pytest.mark.long
async def test_a_database_that_hangs_is_not_ready_and_is_waited_for(own: Cluster, client: Http) -> None:
    assert (await client.post("/items/1/1/1", [{"n": 0}])).status == 200
    own.pause()
    try:
        writing = asyncio.create_task(client.post("/items/1/1/1", [{"n": 1}]))
        answer = await client.get("/readyz")
        assert (answer.status, answer.json["status"]) == (503, "unavailable")
        assert (await client.get("/healthz")).status == 200
        assert not writing.done()
    finally:
        own.go_on()
    assert (await writing).status == 200
    assert (await client.get("/items/1/1/1")).lines == [{"n": 0}, {"n": 1}]
    await eventually_async(lambda: client.get("/readyz"), lambda answer: answer.status == 200)


@pytest.fixture(scope="module")
def bereft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bereft]:
    """A server whose PostgreSQL is away, and stays so."""
    with cluster() as gone:
        url = gone.database()
        limited = asyncio.run(_limited_key(DatabaseUrl(url)))
        with RunningServer(tmp_path_factory.mktemp("bereft"), database=url) as server:
            gone.stop()
            time.sleep(REFRESH_SECONDS)  # what it knew of keys holds no longer
            yield Bereft(server, limited, f"127.0.0.1:{gone.port}")


async def _limited_key(url: DatabaseUrl) -> str:
    store = await Store.open(url)
    try:
        return await add_key(store, "limited", frozenset({1}), may_write=True)
    finally:
        await store.close()


@pytest.mark.long
async def test_the_address_of_a_database_that_is_away_is_reported_to_keys_of_all_projects_only(bereft: Bereft) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Http(bereft.server.url, *credentials))
            for credentials in (
                (bereft.server.platform_key,),
                (bereft.limited,),
                ("a-wrong-key",),
                ("1/1/1", "a-wrong-token"),
            )
        ]
        nobody = await stack.enter_async_context(Http(bereft.server.url, None))
        waiting = [asyncio.create_task(client.get("/items/1/1/1")) for client in clients]
        for path in ("/items/1/1/1", "/api/jobs/list.json?project=1", "/jobq/1/count"):
            assert (await nobody.get(path)).status == 401
        assert not any(each.done() for each in waiting)
        holder, *others = await asyncio.gather(*waiting)
    assert (holder.status, "Retry-After" in holder.headers) == (503, True)
    assert f"{bereft.address}/" in holder.json["message"]
    assert "cannot be reached" in holder.json["message"]
    for answer in others:
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
        assert answer.json["message"] == "The store is away. Try again later."
    assert f"{bereft.address}/" in bereft.server.log()


@pytest.mark.long
async def test_pages_for_people_say_that_the_store_is_away_and_metrics_go_on(bereft: Bereft) -> None:
    async with contextlib.AsyncExitStack() as stack:
        keys = (bereft.server.platform_key, bereft.limited, "a-wrong-key", None)
        clients = [await stack.enter_async_context(Http(bereft.server.url, key)) for key in keys]
        holder, *_ = clients
        metrics = asyncio.create_task(holder.get("/metrics"))
        *away, nobody = await asyncio.gather(*(client.get("/") for client in clients))
        numbers = await metrics
    assert numbers.status == 200
    assert "scrapy_ext_store_failures_total" in numbers.text
    assert "scrapy_ext_database_bytes" not in numbers.text
    assert (nobody.status, nobody.headers["WWW-Authenticate"][:6]) == (401, "Basic ")
    for answer in away:
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
        assert answer.headers["Content-Type"] == "text/html; charset=UTF-8"
        assert "<h1>The database is unavailable</h1>" in answer.text
    assert [bereft.address in answer.text for answer in away] == [True, False, False]
    assert "Traceback" not in bereft.server.log()


@pytest.mark.long
async def test_an_embedded_server_keeps_its_data_there_too(postgresql: Cluster, tmp_path: Path) -> None:
    url = postgresql.database()
    settings = BaseSettings({"SERVER_DATABASE": url, "SERVER_DATA": str(tmp_path / "data"), "PLATFORM_PROJECT": 7})
    async with platform_client(settings) as (client, project):
        await client.jobs.run(project, "spider")
    assert postgresql.query(url, "SELECT project, name FROM spiders") == [["7", "spider"]]
    assert not (tmp_path / "data").exists()
