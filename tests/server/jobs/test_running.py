"""Jobs that run: a real server, real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.http import Http
from tests.server.jobs.projects import write_project
from tests.servers import RunningServer


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """On each engine in turn, and with it the carrier that is for it."""
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "2"]
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    with RunningServer(tmp_path_factory.mktemp("server") / "data", database=database, options=options) as server:
        yield server


@pytest.fixture
async def platform(running: RunningServer) -> AsyncIterator[Http]:
    async with Http(running.url, running.platform_key) as http:
        yield http


async def run(platform: Http, spider: str, **fields: str) -> str:
    answer = await platform.call("POST", "/api/run.json", {"project": "1", "spider": spider, **fields})
    return str(answer.json["jobid"])


async def until(platform: Http, job: str, state: str) -> dict[str, Any]:
    for _ in range(600):
        metadata: dict[str, Any] = (await platform.call("GET", f"/jobs/{job}")).json
        if metadata["state"] == state:
            return metadata
        await asyncio.sleep(0.1)
    raise AssertionError(f"job {job} is still {metadata}")


async def test_a_job_runs_with_its_arguments_and_settings(platform: Http) -> None:
    job = await run(platform, "quick", n="4", job_settings='{"ANSWER": 42}')
    metadata = await until(platform, job, "finished")
    assert metadata["close_reason"] == "finished"
    assert (metadata["attempt"], metadata["version"]) == (1, "local")
    assert metadata["frameworkstats"]["item_scraped_count"] == 4
    items = (await platform.call("GET", f"/items/{job}?format=json")).json
    assert [item["number"] for item in items] == [0, 1, 2, 3]
    log = [record["message"] for record in (await platform.call("GET", f"/logs/{job}?format=json")).json]
    assert "answer 42" in log


async def test_an_unknown_spider_is_told(platform: Http) -> None:
    job = await run(platform, "nobody")
    assert (await until(platform, job, "finished"))["close_reason"] == "spider_not_found"
    log = (await platform.call("GET", f"/logs/{job}?format=json")).json
    assert "no spider 'nobody'" in log[-1]["message"]


async def test_a_job_is_cancelled(platform: Http) -> None:
    job = await run(platform, "endless")
    await until(platform, job, "running")
    for _ in range(600):
        if (await platform.call("GET", f"/items/{job}?format=json&count=1")).json:
            break
        await asyncio.sleep(0.1)
    await platform.call("POST", "/api/jobs/stop.json", {"project": "1", "job": job})
    metadata = await until(platform, job, "finished")
    assert metadata["close_reason"] == "cancelled"
    events = (await platform.call("GET", "/activity/1/?format=json")).json
    told = [event["event"] for event in reversed(events) if event["job"] == job]
    assert told == ["job:scheduled", "job:started", "job:cancelled", "job:completed"]


async def test_a_job_whose_server_was_killed_goes_on_at_the_next_start(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At once, with a database of its own: its process is seen to be gone."""
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--platform-key", "k" * 32]
    with RunningServer(tmp_path / "data", options=options) as killed:
        async with Http(killed.url, "k" * 32) as http:
            job = await run(http, "endless")
            for _ in range(600):
                if (await http.call("GET", f"/items/{job}?format=json&count=1")).json:
                    break
                await asyncio.sleep(0.1)
        killed.kill()
    ended = time.monotonic()
    with RunningServer(tmp_path / "data", options=options) as server:
        started = time.monotonic() - ended
        async with Http(server.url, "k" * 32) as http:
            for _ in range(600):
                metadata = (await http.call("GET", f"/jobs/{job}")).json
                if metadata.get("attempt") == 2:
                    break
                await asyncio.sleep(0.1)
            assert metadata["attempt"] == 2
            assert "is lost" in server.log()
            print(f"{time.monotonic() - ended - started:.1f} s after the start")
            await http.call("POST", "/api/jobs/stop.json", {"project": "1", "job": job})
            items = [item["number"] for item in (await http.call("GET", f"/items/{job}?format=json")).json]
            assert sorted(items) == list(range(len(items)))
