"""The spider middleware of the add-on beside those of others."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_ext.crawl.commit.tracking import START, current
from scrapy_ext.spidermiddlewares import ParentMiddleware

STARTS = [Request("data:,1"), {"an": "item"}, Request("data:,2")]


@pytest.fixture
def middleware() -> ParentMiddleware:
    return ParentMiddleware.from_crawler(Crawler(Spider))


def test_it_lives_beside_middlewares_that_have_process_start_requests_alone(middleware) -> None:
    """Scrapy 2.13 to 2.15 take such middlewares, and refuse them beside one that has ``process_start`` alone."""
    assert hasattr(middleware, "process_start")
    token = current.set(None)
    started = middleware.process_start_requests(iter(STARTS), Spider("any"))
    assert next(started) is STARTS[0]
    assert current.get() is START
    assert list(started) == STARTS[1:]
    current.reset(token)


async def test_it_passes_on_all_that_start_yields(middleware) -> None:
    async def start():
        for each in STARTS:
            yield each

    assert [each async for each in middleware.process_start(start())] == STARTS
