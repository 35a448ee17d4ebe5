"""Appearance of a crawl to sites."""

from __future__ import annotations

from scrapy_ext.crawl.extraction.headers import BROWSER_AGENT
from scrapy_ext.server.extraction.outgoing import user_agent


def test_the_browser_of_direct_requests_is_that_of_the_service() -> None:
    assert user_agent() == BROWSER_AGENT
