"""Crawls with Scrapy's HTTP cache, which keeps the result of an extraction from Scrapy 2.19 on."""

from __future__ import annotations

from pathlib import Path

import pytest

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
"""


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    return Project(tmp_path, SPIDERS, f"SERVER_ALLOW_HOSTS = [{site.host!r}]\nROBOTSTXT_OBEY = False\n")


def results(items: list[dict]) -> list:
    return sorted((str(item["result"]) for item in items if "result" in item), reverse=True)


@pytest.mark.scrapy(newest="2.18", why="the HTTP cache stores no result")
def test_a_cached_page_reports_its_lost_result_to_those_that_need_it_and_the_crawl_goes_on(project, site):
    for _ in range(2):
        crawl = project.crawl("cached", "-a", f"site={site.url}")
        assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert sum(site.hits.values()) == 3
    first, again = project.items("1/1/1"), project.items("1/1/2")
    assert len(results(first)) == 2
    assert {"read": "1", "cached": True} in again
    assert results(again) == ["None"]  # the page that came direct
    assert len(crawl.errors) == 1
    error = next(line for line in crawl.log.splitlines() if "LostResultError: " in line)
    assert "/page/2 comes from the HTTP cache" in error
    assert "Use Scrapy 2.19 or later, or set meta dont_cache" in error
    assert crawl.stat("spider_exceptions/LostResultError") == 1


@pytest.mark.scrapy(oldest="2.19", why="the HTTP cache stores a response's own attributes")
def test_a_cached_page_has_its_result(project, site):
    for _ in range(2):
        crawl = project.crawl("cached", "-a", f"site={site.url}")
        assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert sum(site.hits.values()) == 3
    assert results(project.items("1/1/2")) == results(project.items("1/1/1"))
