"""Jobs whose process, or server, is killed: they go on elsewhere, and store what an undisturbed one stores."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from scrapy_ext.jobprocess.proc import below, table
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.running_jobs import Platform, run, until
from tests.support.servers import RunningServer

_SPIDER = '''
import scrapy


class Tree(scrapy.Spider):
    """A page for each number below ``n``, three on each, an item for each."""

    name = "tree"
    custom_settings = {"CONCURRENT_REQUESTS": 2, "DOWNLOAD_DELAY": 0.02, "PLATFORM_FLUSH_INTERVAL": 0.2}

    async def start(self):
        yield scrapy.Request("data:,1")

    def parse(self, response):
        number = int(response.text)
        yield {"number": number}
        for child in (3 * number - 1, 3 * number, 3 * number + 1):
            if child < int(self.n):
                yield scrapy.Request(f"data:,{child}")
'''
_PAGES = 80


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_project(tmp_path / "shop")
    (folder / "shop" / "broken_spiders.py").write_text(_SPIDER)
    return folder


async def items(http: Http, job: str) -> list[int]:
    return [item["number"] for item in await Platform(http).records("items", job)]


async def some_items(http: Http, job: str, more_than: int) -> None:
    async def look() -> bool:
        return len(await items(http, job)) > more_than

    await eventually_async(look, what=f"more than {more_than} items")


@pytest.mark.long
async def test_a_server_that_is_killed_goes_on_with_its_jobs_when_it_is_started_again(
    tmp_path: Path, folder: Path
) -> None:
    options = ["--local-project", str(folder), "--units", "2"]
    with RunningServer(tmp_path / "data", options=options) as first:
        async with Http(first.url, first.platform_key) as http:
            job = await run(http, "tree", n=str(_PAGES))
            script = await run(http, "py:wait.py")
            await some_items(http, job, 5)
            await until(http, script, "running")
        server = first.process.pid
        processes = [process.pid for process in below([server], table())[server][1:]]
        first.kill()
        # A job that runs for the first time reads no feed of its frontier.
        assert "/feed" not in first.log()

    async def all_gone() -> bool:
        now = table()
        return not any(pid in now for pid in processes)

    await eventually_async(all_gone, what="the end of what the server had started")
    with RunningServer(tmp_path / "data", options=options) as second:
        async with Http(second.url, second.platform_key) as http:
            # At once, not when its beat has stood still for long enough.
            metadata = await Platform(http).metadata(job)
            assert metadata["state"] == "pending" or metadata["attempt"] == 2
            metadata = await until(http, job, "finished")
            assert (metadata["close_reason"], metadata["attempt"], metadata["nodes_lost"]) == ("finished", 2, 1)
            assert sorted(await items(http, job)) == list(range(1, _PAGES))
            # It would have begun anew.
            assert (await until(http, script, "finished"))["close_reason"] == "node_lost"


@pytest.mark.full
async def test_one_whose_process_is_killed_ends_and_says_so(tmp_path: Path, folder: Path) -> None:
    """A killed process is the job's own fault, as far as the node knows: it is not run again by itself."""
    options = ["--local-project", str(folder), "--units", "1"]
    with RunningServer(tmp_path / "data", options=options) as server:
        async with Http(server.url, server.platform_key) as http:
            job = await run(http, "tree", n=str(_PAGES))
            await some_items(http, job, 5)
            tree = below([server.process.pid], table())[server.process.pid]
            lines = {each.pid: Path(f"/proc/{each.pid}/cmdline").read_bytes() for each in tree}
            os.kill(max(pid for pid, line in lines.items() if b"scrapy_ext.jobprocess.launch" in line), signal.SIGKILL)
            metadata = await until(http, job, "finished")
            assert metadata["close_reason"] == "killed by SIGKILL"
            stored = await items(http, job)
            assert len(stored) == len(set(stored))


@pytest.mark.long
async def test_a_drained_server_lets_its_jobs_go_on_at_the_next(tmp_path: Path, folder: Path) -> None:
    options = ["--local-project", str(folder), "--units", "2"]
    with RunningServer(tmp_path / "data", options=options) as first:
        async with Http(first.url, first.platform_key) as http:
            job = await run(http, "tree", n=str(_PAGES))
            await some_items(http, job, 5)
        assert first.terminate() == 0
    with RunningServer(tmp_path / "data", options=options) as second:
        async with Http(second.url, second.platform_key) as http:
            metadata = await until(http, job, "finished")
            assert (metadata["close_reason"], metadata["attempt"]) == ("finished", 2)
            assert "nodes_lost" not in metadata
            assert sorted(await items(http, job)) == list(range(1, _PAGES))
