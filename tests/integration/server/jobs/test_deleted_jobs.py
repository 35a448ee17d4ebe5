"""Running jobs that are deleted: they stop soon, nothing of them can be read, and their units are free again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.opening import FILE
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.running_jobs import Platform
from tests.support.servers import RunningServer

_SPIDER = '''
import pathlib

import scrapy


class Reporting(scrapy.Spider):
    """Goes on until it is stopped, and writes its close reason into the file ``report``."""

    name = "reporting"
    start_urls = ["data:,0"]
    custom_settings = {"DOWNLOAD_DELAY": 0.05}

    def parse(self, response):
        number = int(response.text)
        yield {"number": number}
        yield scrapy.Request(f"data:,{number + 1}")

    def closed(self, reason):
        print("printed at the end")
        pathlib.Path(self.report).write_text(reason)
'''
#: Tables with rows of a job, and those with rows of its frontier, which no other test leaves behind.
_TABLES = ("record_chunks", "record_counts", "comments")
_OTHERS = ("frontier_slots", "frontier_batches", "collection_records", "removals")
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that runs one job at a time; on PostgreSQL a worker runs it."""
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    (folder / "shop" / "reporting.py").write_text(_SPIDER)
    with (folder / "shop" / "settings.py").open("a") as settings:
        settings.write('SPIDER_MODULES.append("shop.reporting")\n')
    data = tmp_path_factory.mktemp("server") / "data"
    node = ["--local-project", str(folder), "--units", "1", "--stop-grace", "2"]
    if request.param == "sqlite":
        with RunningServer(data, options=node) as server:
            yield server
        return
    database = request.getfixturevalue("postgresql").database()
    with (
        RunningServer(data, database=database, options=["--no-runner"]) as server,
        RunningServer(data, database=database, options=node, worker=True) as worker,
    ):
        yield server
        assert "Traceback" not in worker.log()


@pytest.fixture
async def platform(server: RunningServer) -> AsyncIterator[Platform]:
    async with Http(server.url, server.platform_key) as http:
        yield Platform(http)


async def rows(server: RunningServer, table: str, job: str = "") -> int:
    """The number of rows of a table, or of those of a job."""
    sql = f"SELECT count(*) FROM {table}"
    if job:
        _, spider, number = job.split("/")
        sql += f" WHERE spider = {spider} AND job = {number}"
    if isinstance(server.where, DatabaseUrl):
        connection = await asyncpg.connect(server.where.secret)
        try:
            return int(await connection.fetchval(sql))
        finally:
            await connection.close()
    with closing(sqlite3.connect(server.where / FILE)) as database:
        return int(database.execute(sql).fetchone()[0])


async def delete(platform: Platform, job: str) -> None:
    assert (await platform.http.delete(f"/jobs/{job}")).status == 200


async def check_gone(server: RunningServer, platform: Platform, job: str) -> None:
    """Nothing of a deleted job can be read; once its process has ended, all rows are removed."""
    for kind in ("items", "requests", "logs", "samples"):
        assert (await platform.http.get(f"/{kind}/{job}")).status == 410
    await eventually_async(lambda: rows(server, "attempts", job), lambda number: not number, what="its process's end")

    async def left() -> dict[str, int]:
        found = {table: await rows(server, table, job) for table in _TABLES}
        found |= {table: await rows(server, table) for table in _OTHERS}
        return {table: number for table, number in found.items() if number}

    await eventually_async(left, lambda found: not found, what="the removal of its rows")
    for kind in ("items", "requests", "logs", "samples"):
        assert (await platform.http.get(f"/{kind}/{job}")).status == 410
    metadata = await platform.metadata(job)
    assert metadata["state"] == "deleted"
    assert not {"spider_args", "job_settings", "frameworkstats"} & metadata.keys()
    assert "Traceback" not in server.log()


@pytest.mark.long
async def test_a_crawl_on_a_node_ends_with_the_reason_and_frees_its_units(
    server: RunningServer, platform: Platform, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    job = await platform.run("reporting", report=str(report))

    async def items() -> bool:
        return len(await platform.records("items", job)) > 5

    await eventually_async(items, what="some items")
    waiting = await platform.run("quick", n="1")
    assert (await platform.metadata(waiting))["state"] == "pending"
    await delete(platform, job)
    assert await eventually_async(lambda: report.exists() and report.read_text()) == "job_deleted"
    assert await platform.reason(waiting) == "finished"
    await check_gone(server, platform, job)


@pytest.mark.long
async def test_a_crawl_that_does_not_end_is_killed(server: RunningServer, platform: Platform) -> None:
    job = await platform.run("stubborn")
    await platform.says(job, "deaf now")
    await delete(platform, job)
    await check_gone(server, platform, job)


async def test_a_script_is_ended_and_its_output_is_dropped(server: RunningServer, platform: Platform) -> None:
    job = await platform.run("py:wait.py")
    await eventually_async(lambda: platform.metadata(job), lambda found: found["state"] == "running")
    await delete(platform, job)
    await check_gone(server, platform, job)


@pytest.mark.parametrize("seconds", [0.3, 0, 1])
@pytest.mark.long
async def test_a_job_that_is_deleted_while_it_starts_ends(
    server: RunningServer, platform: Platform, tmp_path: Path, seconds: float
) -> None:
    job = await platform.run("reporting", report=str(tmp_path / "report"))
    await eventually_async(lambda: platform.metadata(job), lambda found: found["state"] == "running")
    await asyncio.sleep(seconds)
    await delete(platform, job)
    await check_gone(server, platform, job)
