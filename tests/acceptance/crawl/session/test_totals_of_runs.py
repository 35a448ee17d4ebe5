"""A job that ran three times has the counts of an undisturbed one, for lists and for every check of a monitor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.client.platform import PlatformClient
from tests.support.crawls import Project, key
from tests.support.eventually import TIMEOUT
from tests.support.handwritten_site import Target

PAGES = 24
SPIDER = """
import os
import signal

import scrapy


class S(scrapy.Spider):
    name = "s"
    custom_settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 0.05, "RANDOMIZE_DOWNLOAD_DELAY": False}

    async def start(self):
        for number in range(%d):
            yield scrapy.Request("http://%s/" + str(number))

    def parse(self, response):
        self.crawler.stats.inc_value("counted")
        self.crawler.stats.set_value("set", 7)
        yield {"n": response.css("h1::text").get()}
        ending, _, number = os.environ.get("ENDING", "").partition(" ")
        if ending and self.crawler.stats.get_value("counted") == int(number):
            os.kill(os.getpid(), getattr(signal, ending))
"""
#: Checks that an undisturbed crawl passes.
CHECKS = (
    f"items == {PAGES}",
    f"requests >= {PAGES}",
    "errors == 0",
    "warnings <= 100",
    "outcome == finished",
    "coverage n == 100%",
    f"status 200 >= {PAGES}",
    "share 2xx == 100%",
    f"stat item_scraped_count == {PAGES}",
    f"stat downloader/response_count >= {PAGES}",
    "stat set == 7",
)


@pytest.mark.long
def test_a_job_that_was_killed_and_stopped_has_the_counts_of_one_run(tmp_path: Path) -> None:
    site = Target().start()
    try:
        for number in range(PAGES):
            site.page(f"/{number}", f"<h1>{number}</h1>")
        settings = (
            f"SERVER_ALLOW_HOSTS = [{site.host!r}]\nPLATFORM_STATS_INTERVAL = 0.3\nPLATFORM_FLUSH_INTERVAL = 0.1\n"
        )
        project = Project(tmp_path / "project", SPIDER % (PAGES, site.host), settings)
        again = ("-s", "PLATFORM_JOB=1/1/1")
        assert project.start("s", environment={"ENDING": "SIGKILL 10"}).process.wait(TIMEOUT) == -9
        assert project.crawl("s", *again, environment={"ENDING": "SIGINT 5"}).reason == "shutdown"
        assert project.crawl("s", *again).reason == "finished"
    finally:
        site.stop()

    async def facts(client: PlatformClient, number: int) -> tuple[Any, ...]:
        metadata = await client.jobs.metadata(key("1/1/1"))
        listed = (await client.jobs.list(number)).jobs[0]
        return metadata, listed, (await client.monitors.preview(number, {"checks": list(CHECKS)}))

    metadata, listed, preview = project.stored(facts)
    runs = metadata["runs"]
    assert [run.get("close_reason") for run in runs] == [None, "shutdown", "finished"]
    assert sum(run["items"] for run in runs) == PAGES
    assert sum(run["responses"] for run in runs) == listed.responses_received >= PAGES
    assert listed.items_scraped == PAGES
    seconds = sum(run["finish_time"] - run["start_time"] for run in runs)
    assert seconds <= listed.elapsed <= metadata["finished_time"] - runs[0]["start_time"]
    results = [check for result in preview.results for check in result.checks]
    assert len(results) == len(CHECKS)
    assert [result.sentence for result in results if result.outcome != "passed"] == []
