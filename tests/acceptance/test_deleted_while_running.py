"""A crawl whose job is deleted stops soon, says why once, and leaves nothing behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_ext.client.platform.errors import Gone
from tests.support.crawls import Project, ask_server, collect, key
from tests.support.eventually import eventually
from tests.support.servers import ForkedServer

SPIDERS = """
import scrapy


class Endless(scrapy.Spider):
    name = "endless"
    custom_settings = {"EXTRACT_API_ENABLED": False, "CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.05}

    async def start(self):
        yield scrapy.Request("data:,0", cb_kwargs={"number": 0})

    def parse(self, response, number):
        yield {"number": number}
        yield scrapy.Request(f"data:,{number + 1}", cb_kwargs={"number": number + 1})
"""

NO_FRONTIER = ("-s", "FRONTIER_ENABLED=0")
CASES = [
    pytest.param(False, (), id="embedded"),
    pytest.param(True, (), id="remote", marks=pytest.mark.long),
    pytest.param(False, NO_FRONTIER, id="embedded, without a frontier", marks=pytest.mark.long),
    pytest.param(True, NO_FRONTIER, id="remote, without a frontier", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("remote", "arguments"), CASES)
@pytest.mark.long
def test_a_crawl_whose_job_is_deleted_stops_and_says_so_once(
    tmp_path: Path, remote: bool, arguments: tuple[str, ...]
) -> None:
    project = Project(tmp_path / "project", SPIDERS)
    if not remote:
        check(project, arguments, lambda ask: project.stored(lambda client, _: ask(client)))
        return
    with ForkedServer(tmp_path / "data") as server:
        there = ("-s", f"PLATFORM_URL={server.url}", "-s", f"PLATFORM_API_KEY={server.platform_key}")
        check(project, (*arguments, *there), lambda ask: ask_server(server.url, server.platform_key, ask))


def check(project, arguments, ask) -> None:
    crawl = project.start("endless", *arguments)

    def items():
        found = re.search(r"Job (\d+/\d+/\d+) started", crawl.log.read_text())
        return found and ask(lambda client: collect(client.items.iter(key(found[1])))) and found[1]

    job = key(eventually(items, what="stored items"))
    ask(lambda client: client.jobs.delete(job.project, job))
    ended = crawl.end()
    assert ended.reason == "job_deleted"
    assert ended.returncode == 1
    assert len(ended.errors) == 1, ended.errors
    assert f"{job} was deleted" in ended.errors[0]
    assert "PLATFORM_JOB" not in "\n".join(line for line in ended.log.splitlines() if "WARNING" in line)

    async def left(client):
        with pytest.raises(Gone):
            await client.items.stats(job)
        staged = await collect(client.collections.iter(job.project, "s", "scrapy_commits"))
        return staged, await client.frontier.frontiers(job.project), await client.jobs.metadata(job)

    staged, frontiers, metadata = ask(left)
    assert (staged, frontiers, metadata["state"]) == ([], [], "deleted")
