"""Jobs of deployed versions: a real server builds the environment, and runs them in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import packed_projects as packed
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster
from tests.support.running_jobs import until
from tests.support.servers import RunningServer

SPIDERS = """
import os

import scrapy
import unit_of_measure


class Quick(scrapy.Spider):
    name = "quick"
    start_urls = ["data:,page"]

    def parse(self, response):
        yield {"unit": unit_of_measure.UNIT, "page": self.page, "key": "AWS_SECRET" in os.environ}
"""


async def checked(http: Http, version: str) -> dict[str, Any]:
    """The version once its check has ended."""
    path = f"/api/projects/5/versions/{version}"
    answer = await eventually_async(lambda: http.get(path), lambda answer: answer.json["state"] != "uploaded")
    shown: dict[str, Any] = answer.json
    return shown


async def deploy(http: Http, version: str, archive: bytes) -> None:
    assert (await http.post(f"/api/projects/5/versions?version={version}", archive)).status == 201
    shown = await checked(http, version)
    assert shown["state"] == "ready", shown


@pytest.mark.long
async def test_jobs_run_in_the_version_that_they_were_scheduled_with(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_SECRET", "s")
    with RunningServer(tmp_path / "data", options=["--units", "1"]) as server:
        async with Http(server.url, server.platform_key) as http:
            for version, unit in (("1.0", "m"), ("2.0", "inch")):
                module = {"unit_of_measure": f"UNIT = {unit!r}", "shop__spiders": SPIDERS}
                await deploy(http, version, packed.egg(**module))
            jobs = []
            for page, fields in (("7", {}), ("8", {"meta": json.dumps({"version": "1.0"})})):
                answer = await http.post("/api/run.json", {"project": "5", "spider": "quick", "page": page, **fields})
                jobs.append(answer.json["jobid"])
            script = await http.post("/api/run.json", {"project": "5", "spider": "py:clean.py"})
            ended = [await until(http, job, "finished") for job in [*jobs, script.json["jobid"]]]
            assert [(job["close_reason"], job["version"]) for job in ended] == [
                ("finished", "2.0"),
                ("finished", "1.0"),
                ("finished", "2.0"),
            ]
            items = [(await http.get(f"/items/{job}?format=json")).json for job in jobs]
            assert items == [
                [{"unit": "inch", "page": "7", "key": False}],
                [{"unit": "m", "page": "8", "key": False}],
            ]
    environments = [path for path in (tmp_path / "data" / "environments").iterdir() if path.is_dir()]
    assert len(environments) == 2


@pytest.mark.long
async def test_a_worker_builds_what_was_deployed_to_the_server(tmp_path: Path, postgresql: Cluster) -> None:
    database = postgresql.database()
    caches = [tmp_path / "server", tmp_path / "worker"]
    options = [["--environments", str(cache)] for cache in caches]
    with RunningServer(tmp_path / "data", database=database, options=["--no-runner", *options[0]]) as server:
        async with Http(server.url, server.platform_key) as http:
            module = {"unit_of_measure": "UNIT = 'm'", "shop__spiders": SPIDERS}
            await deploy(http, "1.0", packed.egg(**module))
            answer = await http.post("/api/run.json", {"project": "5", "spider": "quick", "page": "7"})
            with RunningServer(tmp_path / "other", database=database, options=options[1], worker=True):
                ended = await until(http, answer.json["jobid"], "finished")
            assert (ended["close_reason"], ended["version"]) == ("finished", "1.0")
    assert all(any(path.is_dir() for path in cache.iterdir()) for cache in caches)


@pytest.mark.long
async def test_a_check_that_was_cut_off_is_made_when_the_server_starts_again(tmp_path: Path) -> None:
    slow = "import time; time.sleep(3)\n" + packed.SPIDER
    with RunningServer(tmp_path / "data") as server:
        async with Http(server.url, server.platform_key) as http:
            answer = await http.post("/api/projects/5/versions?version=1.0", packed.folder(shop__spiders=slow))
            assert answer.status == 201
        server.kill()
    with RunningServer(tmp_path / "data") as server:
        async with Http(server.url, server.platform_key) as http:
            shown = await checked(http, "1.0")
            assert (shown["state"], len(shown["spiders"])) == ("ready", 2)
