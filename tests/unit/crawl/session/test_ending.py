"""The end of a crawl by several workers, as the command and its log report it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.workers import Closing, ReportAnswer, Totals
from scrapy_ext.crawl.session.session import Session
from tests.support.crawlers import get_crawler

#: Reasons for which another worker or a user closes the crawl, and whether the command fails.
REASONS = {
    "platform_unavailable": True,
    "frontier_unavailable": True,
    "embedded_server_failed": True,
    "extract_api_bad_key": True,
    "bad_setting": True,
    "node_lost": True,
    "extract_api_max_cost": False,
    "closespider_itemcount": False,
    "start_error": False,
    "cancelled": False,
    "shutdown": False,
    "a reason of the spider": False,
}


@pytest.fixture
def session() -> Session:
    """A session whose spider is open."""
    crawler = get_crawler(Spider)
    crawler.spider = Spider("a")

    async def close_spider_async(*, reason: str) -> None:
        closed.append(reason)

    closed: list[str] = []
    crawler.engine = SimpleNamespace(  # type: ignore[assignment]
        spider=crawler.spider, close_spider_async=close_spider_async, closed=closed
    )
    return Session(crawler)


@pytest.mark.parametrize(("reason", "fails"), REASONS.items())
async def test_the_command_fails_with_each_worker_whose_failure_closes_the_crawl(
    session: Session, reason: str, *, fails: bool
) -> None:
    session._group_crawl.close_with_group(Closing(reason, attempt=2))
    assert session._group_crawl._closing is not None
    await session._group_crawl._closing
    assert session._crawler.engine.closed == [reason]  # type: ignore[union-attr]
    await session._engine_stopped()
    assert (session._crawler.spider is None) == fails


@pytest.mark.parametrize(
    ("reason", "logged"),
    [
        ("finished", "Job 1/2/3 finished: 7 items, 9 responses and 1 errors of all workers in 61 seconds"),
        (
            "cancelled",
            "Job 1/2/3 stopped (cancelled): 7 items, 9 responses and 1 errors of all workers in 61 seconds. "
            "To resume it, repeat the command with -s PLATFORM_JOB=1/2/3",
        ),
    ],
)
async def test_the_log_of_the_last_worker_has_the_totals_of_all(
    session: Session, caplog: pytest.LogCaptureFixture, reason: str, logged: str
) -> None:
    job: Any = SimpleNamespace(key=JobKey(1, 2, 3))
    session._group_crawl.answered(ReportAnswer(totals=Totals(7, 9, 1, seconds=61.4)))
    with caplog.at_level(logging.INFO):
        await session.ending._ended(job, reason)
    assert caplog.messages == [logged]
