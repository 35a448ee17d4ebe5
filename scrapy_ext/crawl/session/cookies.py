"""Cookies of a crawl are in the memory of its process, as with Scrapy's JOBDIR: a resumed crawl says what it lost."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

from scrapy_ext.crawl.session.job import CrawlJob

logger = logging.getLogger(__name__)

#: Stat: cookies in the jars of CookiesMiddleware when the stats were last written.
COOKIES: Final = "platform/cookies"


def note_cookies(crawler: Crawler) -> None:
    """Set the stat, if there is a cookie or was one."""
    middleware = crawler.get_downloader_middleware(CookiesMiddleware) if crawler.engine is not None else None
    jars: Mapping[Any, Any] = getattr(middleware, "jars", {})  # a project may replace the class
    cookies = sum(1 for jar in jars.values() for _ in jar)
    if cookies or COOKIES in crawler.stats.get_stats():
        crawler.stats.set_value(COOKIES, cookies)


def report_lost_cookies(job: CrawlJob, former: Mapping[str, Any]) -> None:
    """Log that a resumed job lacks the cookies of its former run. ``former``: the stats of that."""
    cookies = former.get(COOKIES)
    if isinstance(cookies, int) and cookies > 0:
        logger.warning(
            "Job %s goes on without the cookies of its former run (%d), which were in memory. If pages need a login, "
            "log in again where a response shows that it is missing",
            job.key,
            cookies,
        )
