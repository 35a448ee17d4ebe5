"""Traces and metrics of real crawls through a real server, as a collector receives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.collector import Collector
from tests.support.crawls import Project
from tests.support.servers import RunningServer
from tests.support.sites import Site

SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {"HTTPERROR_ALLOW_ALL": True}

    async def start(self):
        for path in self.paths.split(","):
            yield scrapy.Request(self.site + path, headers={"X-Api-Key": "header-secret"})

    def parse(self, response):
        yield {"url": response.url}
"""
PATHS = "/page/1?token=query-secret,/moved/2,/gone"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", SPIDER, 'BOT_NAME = "shop"\n')


def test_one_trace_joins_the_request_of_a_spider_with_the_fetch_of_its_page(
    tmp_path: Path, project: Project, site: Site
) -> None:
    with (
        Collector() as collector,
        RunningServer(tmp_path / "data", allow_hosts=[site.host], environment=collector.environment) as server,
    ):
        keys = {"EXTRACT_API_KEY": server.extract_key, "PLATFORM_API_KEY": server.platform_key}
        crawl = project.crawl(
            "pages",
            *("-a", f"site=http://user:password-secret@{site.host}", "-a", f"paths={PATHS}"),
            environment={
                **collector.environment,
                **keys,
                "EXTRACT_API_URL": f"{server.url}/v1",
                "PLATFORM_URL": server.url,
            },
        )
        print(crawl.log)
        assert crawl.errors == []
        assert crawl.reason == "finished"
        server.stop()
        print(server.log())
        for span in collector.spans:
            print(span)
        print(collector.metrics)
        assert 0
