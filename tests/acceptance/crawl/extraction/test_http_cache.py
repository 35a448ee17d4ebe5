"""Crawls with Scrapy's HTTP cache."""

from __future__ import annotations

from pathlib import Path

import pytest
import scrapy

from tests.support.crawls import Project
from tests.support.sites import Site

SPIDERS = """
import scrapy


class Cached(scrapy.Spider):
    name = "cached"
    custom_settings = {"HTTPCACHE_ENABLED": True}

    async def start(self):
        yield scrapy.Request(self.site + "/page/1", self.read)
        yield scrapy.Request(self.site + "/page/2", self.need)
        yield scrapy.Request(self.site + "/page/3", self.need, meta={"extract_api": False})

    def read(self, response):
        yield {"read": response.css("h1::text").get(), "cached": "cached" in response.flags}

    def need(self, response):
        result = getattr(response, "extract_result", None)
        yield {"result": result and sorted(result), "cached": "cached" in response.flags}


class Extracting(scrapy.Spider):
    name = "extracting"
    custom_settings = {"HTTPCACHE_ENABLED": True}

    async def start(self):
        meta = {"extract_api": {"pageContent": True, "extractFrom": "httpResponseBody"}}
        yield scrapy.Request(self.site + "/page/1", meta=meta)

    def parse(self, response):
        yield {"text": response.extract_result["pageContent"]["itemMain"]}
"""


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    return Project(tmp_path, SPIDERS, f"SERVER_ALLOW_HOSTS = [{site.host!r}]\nROBOTSTXT_OBEY = False\n")


def results(items: list[dict]) -> list:
    return sorted((str(item["result"]) for item in items if "result" in item), reverse=True)


def test_a_cached_page_has_its_result(project, site):
    for _ in range(2):
        crawl = project.crawl("cached", "-a", f"site={site.url}")
        assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert sum(site.hits.values()) == 3
    first, second = (str(results(project.items(f"1/1/{job}"))) for job in (1, 2))
    if scrapy.version_info[:2] < (2, 19):
        # Before Scrapy 2.19 the result is made of the cached page, which has no ID of its job.
        first = first.replace("'jobId', ", "")
    assert second == first


@pytest.mark.long
def test_a_request_for_more_than_the_page_has_its_result_in_each_crawl(project, site):
    """Scrapy before 2.19 keeps no results: such a request is sent again."""
    for _ in range(2):
        crawl = project.crawl("extracting", "-a", f"site={site.url}")
        assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert project.items("1/1/1")[0]["text"] == project.items("1/1/2")[0]["text"] != ""
