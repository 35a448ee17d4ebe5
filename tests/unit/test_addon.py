"""Settings that the add-on sets, and those that it leaves to the project."""

from __future__ import annotations

from typing import ClassVar

import pytest
from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, Settings

from scrapy_ext.addon import Addon
from scrapy_ext.downloadermiddlewares import ExtractMiddleware
from scrapy_ext.pipelines import ItemStoragePipeline
from tests.support.crawlers import get_crawler


class Plain:
    def process_item(self, item):
        return item


class Waiting:
    async def process_item(self, item):
        return item


def updated(**settings):
    made = Settings(settings)
    Addon().update_settings(made)
    return made


def test_the_number_of_concurrent_items_is_that_of_scrapy() -> None:
    settings = updated(ITEM_PIPELINES={Plain: 1})
    assert settings.getpriority("CONCURRENT_ITEMS") == SETTINGS_PRIORITIES["default"]


class Spidery(Spider):
    name = "spidery"
    custom_settings: ClassVar = {
        "ITEM_PIPELINES": {Plain: 1100},
        "DOWNLOADER_MIDDLEWARES": {Plain: 1200.5, Waiting: None},
    }


ADDONS = {"ADDONS": {Addon: 500}}


@pytest.mark.parametrize(
    ("spider", "settings", "pipeline", "middleware"),
    [
        (Spider, {}, 1000, 1000),
        (Spider, {"ITEM_PIPELINES": {Plain: 300, Waiting: None}, "DOWNLOADER_MIDDLEWARES": {Plain: 543}}, 1000, 1000),
        (Spider, {"ITEM_PIPELINES": {Plain: 1000}, "DOWNLOADER_MIDDLEWARES": {Plain: 9999}}, 1001, 10000),
        (Spidery, {}, 1101, 1201),
        (Spider, {"ITEM_PIPELINES": {Plain: 1100, ItemStoragePipeline: 5}}, 5, 1000),
    ],
    ids=["none", "lower", "higher", "custom settings", "ours is placed"],
)
def test_ours_come_behind_all_of_the_project_unless_it_places_them(spider, settings, pipeline, middleware):
    crawler = get_crawler(spider, ADDONS | settings)
    assert crawler.settings["ITEM_PIPELINES"][ItemStoragePipeline] == pipeline
    assert crawler.settings["DOWNLOADER_MIDDLEWARES"][ExtractMiddleware] == middleware


@pytest.mark.parametrize(
    ("settings", "is_routed"),
    [
        ({}, True),
        ({"DOWNLOAD_HANDLERS": {"https": "scrapy.core.downloader.handlers.http2.H2DownloadHandler"}}, True),
        ({"DOWNLOAD_HANDLERS": {"ftp": "project.handlers.Ftp"}}, True),
        ({"DOWNLOAD_HANDLERS": {"https": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"}}, False),
        ({"DOWNLOAD_HANDLERS": {"http": Plain}}, False),
        ({"DOWNLOAD_HANDLERS": {"http": Plain}, "EXTRACT_API_TRANSPARENT_MODE": True}, True),
    ],
    ids=["none", "scrapy's", "another scheme", "a path", "a class", "asked for"],
)
def test_a_download_handler_of_the_projects_keeps_its_requests(settings, is_routed, caplog):
    assert updated(**settings).getbool("EXTRACT_API_TRANSPARENT_MODE") == is_routed
    assert ("DOWNLOAD_HANDLERS names" in caplog.text) == (not is_routed)


class Former(Spider):
    name = "former"

    def start_requests(self):
        yield from ()


class Both(Former):
    async def start(self):
        for request in self.start_requests():
            yield request


class Idle(Former):
    def spider_idle(self):
        pass


@pytest.mark.skipif(hasattr(Spider, "start_requests"), reason="this version of Scrapy calls start_requests()")
@pytest.mark.parametrize(("spider", "warned"), [(Former, True), (Both, False), (Idle, False), (Spider, False)])
def test_a_spider_whose_start_requests_scrapy_does_not_call_is_warned_of(spider, warned, caplog):
    get_crawler(spider, ADDONS)
    assert ("Former has start_requests() and no start()" in caplog.text) is warned
