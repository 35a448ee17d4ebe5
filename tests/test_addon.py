"""What the add-on sets, and what it leaves to the project."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from scrapy_ext.addon import Addon


class Plain:
    def process_item(self, item):
        return item


class Waiting:
    async def process_item(self, item):
        return item


class Storing:
    """Returns a coroutine."""

    def process_item(self, item):
        return self.store(item)

    async def store(self, item):
        return item


class OfAnotherModule(Plain):
    """As one that is written in a module that imports Deferreds."""

    __module__ = "scrapy.crawler"


def updated(**settings):
    made = Settings(settings)
    Addon().update_settings(made)
    return made


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        ({}, 8),
        ({"ITEM_PIPELINES": {Plain: 1}}, 8),
        ({"ITEM_PIPELINES": {Waiting: None}}, 8),
        ({"ITEM_PIPELINES": {Storing: 1}}, 100),
        ({"ITEM_PIPELINES": {OfAnotherModule: 1}}, 100),
        ({"ITEM_PIPELINES": {Waiting: 1}}, 100),
        ({"ITEM_PIPELINES": {"scrapy.pipelines.images.ImagesPipeline": 1}}, 100),
        ({"CONCURRENT_REQUESTS": 1}, 100),
        ({"CONCURRENT_ITEMS": 50}, 50),
    ],
    ids=[
        "none",
        "plain",
        "disabled",
        "a coroutine behind it",
        "Deferreds in its module",
        "waiting",
        "images",
        "one request",
        "the project's",
    ],
)
def test_fewer_items_of_a_response_are_processed_at_once_only_where_that_changes_nothing(settings, tasks):
    assert updated(**settings).getint("CONCURRENT_ITEMS") == tasks


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
