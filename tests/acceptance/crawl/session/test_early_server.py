"""The embedded server is begun while Scrapy prepares the crawl, and only if it is the one that is needed."""

from __future__ import annotations

import os
import re

import pytest

from tests.support.crawls import Crawl, Project

SPIDERS = """
import logging
import os

import scrapy

from scrapy_ext.jobprocess import proc


def children():
    return [pid for pid, process in proc.table().items() if process.parent == os.getpid()]


class Later:
    def update_settings(self, settings):
        logging.info("begun: %s", children())
        settings.setdict(settings.getdict("LATER"), "cmdline")


class Spider(scrapy.Spider):
    name = "spider"

    async def start(self):
        logging.info("started: %s", children())
        yield scrapy.Request("data:,page", meta={"extract_api": False})

    def parse(self, response):
        yield {"url": response.url}
"""
SETTINGS = """
ADDONS = {"scrapy_ext.Addon": 500, "project.spiders.Later": 600}
LATER = %r
"""


def servers(crawl: Crawl, when: str) -> list[int]:
    """The child processes of a crawl, which are servers."""
    found = re.search(rf"{when}: \[(.*)\]", crawl.log)
    assert found, crawl.log[-3000:]
    return [int(pid) for pid in found[1].split(", ") if pid]


def project_of(folder, **changes) -> Project:
    """A project with an add-on after ours that changes these settings."""
    return Project(folder / "crawl", SPIDERS, SETTINGS % changes, is_forked=False)


@pytest.mark.long
def test_the_server_begins_before_the_components_of_the_crawl_are_built(tmp_path):
    crawl = project_of(tmp_path).crawl("spider")
    assert crawl.reason == "finished"
    assert crawl.stat("item_scraped_count") == 1
    assert len(servers(crawl, "begun")) == 1
    assert servers(crawl, "started") == servers(crawl, "begun")


@pytest.mark.long
def test_settings_of_a_later_add_on_apply_to_the_server(tmp_path):
    project = project_of(tmp_path, SERVER_DATA="other")
    crawl = project.crawl("spider")
    assert (crawl.reason, crawl.stat("item_scraped_count")) == ("finished", 1)
    assert len(servers(crawl, "begun")) == len(servers(crawl, "started")) == 1
    assert servers(crawl, "begun") != servers(crawl, "started")
    assert list((project.folder / ".scrapy" / "other").iterdir())


@pytest.mark.long
def test_no_server_outlives_a_crawl_that_does_not_open(tmp_path):
    crawl = project_of(tmp_path, PLATFORM_BATCH_SIZE="many").crawl("spider")
    (server,) = servers(crawl, "begun")
    assert "PLATFORM_BATCH_SIZE must be of type int" in crawl.log
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


@pytest.mark.long
def test_no_server_begins_for_services_elsewhere(tmp_path):
    project = project_of(tmp_path)
    crawl = project.crawl("spider", "-s", "PLATFORM_URL=http://127.0.0.1:1", "-s", "PLATFORM_RETRY_TIME=0")
    assert servers(crawl, "begun") == []
