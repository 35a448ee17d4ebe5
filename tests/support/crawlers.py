"""Crawlers that are configured and not run, as ``scrapy.utils.test.get_crawler`` makes them from Scrapy 2.15."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy import Spider
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.settings import default_settings
from scrapy.utils import test


def get_crawler(spider: type[Spider] | None = None, settings_dict: Mapping[str, Any] | None = None) -> Crawler:
    """A crawler whose settings are applied. Before 2.15, Scrapy's own function needs a Twisted reactor."""
    if hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        return test.get_crawler(spider, dict(settings_dict or {}))
    runner = AsyncCrawlerRunner({"TWISTED_REACTOR": None, **(settings_dict or {})})
    crawler = runner.create_crawler(spider or Spider)
    crawler._apply_settings()
    return crawler
