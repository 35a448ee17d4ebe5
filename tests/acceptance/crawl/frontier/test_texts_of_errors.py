"""Errors of callbacks whose texts no encoding can hold: JSON of a page may have halves of surrogate pairs."""

from __future__ import annotations

from pathlib import Path

from tests.support.crawls import Project, key
from tests.support.planned_crawls import WITH_FRONTIER

SPIDERS = r"""
import json

import scrapy


class Odd(scrapy.Spider):
    name = "odd"

    async def start(self):
        for number in range(2):
            yield scrapy.Request(f"data:,{number}")

    def parse(self, response):
        self.crawler.stats.set_value("odd \ud800", "\ud800")
        yield {"number": response.text}
        raise ValueError("odd " + json.loads('"\\ud800"'))
"""


def test_a_half_of_a_surrogate_pair_ends_no_crawl_and_loses_no_dead_letter_log_record_or_stat(tmp_path: Path) -> None:
    settings = "EXTRACT_API_ENABLED = False\nEXTRACT_API_SNAPSHOTS_ON_ERROR = True\n"
    project = Project(tmp_path, SPIDERS, WITH_FRONTIER + settings)
    crawl = project.crawl("odd")
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert crawl.stat("frontier/dead_letters") == 2
    assert crawl.stat("extract_api/snapshots/stored") == 2

    async def read(client, number):
        job = key("1/1/1")
        letters = [batch async for batch in client.frontier.queue(number, "job-1-1", "dead-letters")]
        logs = [record["message"] async for record in client.logs.iter(job)]
        snapshots = [each.snapshot.message async for each in client.snapshots.list(job)]
        return letters, logs, snapshots, await client.jobs.metadata(job)

    letters, logs, snapshots, metadata = project.stored(read)
    assert str(letters).count("ValueError: odd ? (attempt 1 of 1)") == 2
    assert sum("ValueError: odd ?" in message for message in logs) >= 2
    assert snapshots == ["odd ?", "odd ?"]
    assert (metadata["state"], metadata["frameworkstats"]["odd ?"]) == ("finished", "?")
