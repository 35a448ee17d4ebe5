"""A crawl whose spider cannot be opened: its job has failed, and its log has the error with its traceback."""

from __future__ import annotations

import re
from itertools import product

import pytest

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from tests.support.crawls import Project, collect, key

JOB = "1/1/1"
SPIDERS = """
import asyncio

import scrapy
from scrapy.statscollectors import MemoryStatsCollector


class Pipeline:
    def process_item(self, item):
        return item


class SyncPipeline(Pipeline):
    def open_spider(self):
        raise ConnectionError("the database is away")


class AsyncPipeline(Pipeline):
    async def open_spider(self):
        await asyncio.sleep(0.1)
        raise ConnectionError("the database is away")


class Stats(MemoryStatsCollector):
    def open_spider(self, spider=None):
        raise ConnectionError("the database is away")


class SyncSpider(scrapy.Spider):
    name = "sync"
    start_urls = ["http://shop.example/"]
    custom_settings = {"ITEM_PIPELINES": {SyncPipeline: 100}}


class AsyncSpider(SyncSpider):
    name = "async"
    custom_settings = {"ITEM_PIPELINES": {AsyncPipeline: 100}}


class StatsSpider(SyncSpider):
    name = "stats"
    custom_settings = {"STATS_CLASS": Stats}


class Closes(SyncSpider):
    name = "closes"
    custom_settings = {}

    async def start(self):
        raise scrapy.exceptions.CloseSpider("nothing_new")
        yield
"""


async def stored(client, _project):
    job = key(JOB)
    metadata = await client.jobs.metadata(job)
    return metadata, [record["message"] for record in await collect(client.logs.iter(job))]


@pytest.mark.parametrize(
    ("spider", "queue"),
    [
        *product(("sync", "async", "stats"), ("", "FRONTIER_ENABLED = False\n")),
        # Seconds of each worker are its start.
        ("async", "CRAWL_WORKERS = 2\n"),
    ],
)
def test_a_spider_that_cannot_be_opened_is_a_failure_with_its_error_in_the_log_of_the_job(tmp_path, spider, queue):
    project = Project(tmp_path, SPIDERS, f"EXTRACT_API_ENABLED = False\n{queue}")
    assert project.crawl(spider).returncode == 1
    metadata, log = project.stored(stored)
    assert (metadata["state"], metadata["close_reason"]) == ("finished", "failed")
    errors = [message for message in log if "The spider could not be opened" in message]
    assert errors
    for error in errors:
        assert "ConnectionError('the database is away')" in error
        assert re.search(r"Traceback .*in open_spider\n", error, re.DOTALL)
    # One failure of each worker.
    assert len(errors) <= (2 if "WORKERS" in queue else 1)
    assert not any("Error caught on signal handler" in message for message in log)
    stats = metadata[CRAWL_STATS]
    assert stats["finish_reason"] == "failed"
    assert stats["finish_time"] >= stats["start_time"]
    # The lines from before the job was open.
    assert any("Overridden settings" in message for message in log)


def test_a_crawl_without_the_platform_fails_as_without_the_add_on(tmp_path):
    project = Project(
        tmp_path, SPIDERS, "EXTRACT_API_ENABLED = False\nPLATFORM_ENABLED = False\nFRONTIER_ENABLED = False\n"
    )
    crawl = project.crawl("sync")
    plain = project.crawl("sync", "-s", "ADDONS={}")
    # Scrapy's exit code: 0 in 2.14, 1 in 2.19.
    assert crawl.returncode == plain.returncode
    assert "ConnectionError: the database is away" in crawl.log
    assert "The spider could not be opened" not in crawl.log


@pytest.mark.scrapy(oldest="2.18", why="CloseSpider in start()")
def test_a_start_that_closes_its_spider_has_opened_it(tmp_path):
    project = Project(tmp_path, SPIDERS, "EXTRACT_API_ENABLED = False\n")
    crawl = project.crawl("closes")
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "nothing_new", [])
