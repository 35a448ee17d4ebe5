"""The queue of the add-on forgets domains that are done."""

from __future__ import annotations

from tests.support.crawls import Project
from tests.support.planned_crawls import ALONE, KEY


def test_domains_that_were_crawled_are_forgotten(tmp_path, service):
    spider = """
from collections.abc import Sized

import scrapy

class Spider(scrapy.Spider):
    name = "many"

    async def start(self):
        for number in range(300):
            yield scrapy.Request(f"https://site-{number}.example/")

    def parse(self, response):
        queue = self.crawler.engine._slot.scheduler.mqs
        parts = [part for part in vars(queue).values() if isinstance(part, Sized) and not isinstance(part, type)]
        self.crawler.stats.set_value("held_at_last", 1 + max(map(len, parts)))
"""
    settings = f"EXTRACT_API_URL = {service.url!r}\nEXTRACT_API_KEY = {KEY!r}\n"
    crawl = Project(tmp_path, spider, ALONE + settings).crawl("many")
    assert (crawl.reason, len(service.posts)) == ("finished", 300)
    assert crawl.errors == []
    assert 1 <= crawl.stat("held_at_last") <= 61
