"""A crawl in its group of workers: it is sent with their permits, and closes with them or for them.

:func:`join_group` makes this process one of the workers. :class:`GroupCrawl` closes the spider when the answers to its
reports say so: all workers together have reached a limit, another one or a user closes the crawl, or the job needs
fewer workers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.jobs import JOB_DELETED, NODE_LOST, SHUTDOWN
from scrapy_ext.api.platform.workers import Closing, Report, ReportAnswer
from scrapy_ext.client.extraction import Limiter
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import BadRequest, NotFound
from scrapy_ext.client.retry import Outage, Retry
from scrapy_ext.crawl.session.close_limits import CloseLimits
from scrapy_ext.crawl.session.ending import Ending
from scrapy_ext.crawl.session.group import Joined, Membership, join
from scrapy_ext.crawl.session.group_liveness import REMEDY
from scrapy_ext.crawl.session.job import CrawlJob, JobOverError
from scrapy_ext.crawl.session.machine import Machine
from scrapy_ext.crawl.session.permits import Demand
from scrapy_ext.crawl.session.scrapy_engine import DownloaderSlots, on_close, use_permits
from scrapy_ext.crawl.session.stats import JobStats, counts_of

logger = logging.getLogger(__name__)

#: Status of a join of a job that has ended, or was deleted.
_NO_LONGER_RUNS: Final = (409, 404)

_TOO_MANY_LOSSES: Final = (
    "The crawl ends, since it has lost five times as many workers in an hour as it may have: they were killed, or sent "
    "no report for FRONTIER_LEASE_TIME seconds, as while a callback blocks the event loop. The log of the job names "
    f"each loss. {REMEDY}"
)


async def join_group(client: PlatformClient, job: CrawlJob, given: str, machine: Machine, retry: Retry) -> Joined:
    """Join the group of a job. Raises :class:`PlatformError`, and :class:`JobOverError` in a worker that another one
    has started if the job has ended."""
    try:
        joined = await join(client, job.key, given, retry)
    except (BadRequest, NotFound) as error:
        if machine.is_forked and error.status in _NO_LONGER_RUNS:
            raise JobOverError(job.key) from None
        raise
    machine.hold(joined.attempt)
    logger.info("This is worker %d of job %s (attempt %d)", joined.worker, job.key, joined.attempt)
    return joined


def new_membership(
    crawler: Crawler, joined: Joined, machine: Machine, job_stats: JobStats | None, outage: Outage
) -> Membership:
    """Return the membership of a worker that has joined, whose direct requests are sent with its permits."""
    membership = Membership(
        joined,
        lease_time=names.FRONTIER_LEASE_TIME.read(crawler.settings),
        limits_of=DownloaderSlots(crawler).limits_of,
        counts=partial(counts_of, crawler.stats),
        stats=dict if job_stats is None else job_stats.reported,
        is_gone=machine.is_gone,
        outage=outage,
    )
    use_permits(crawler, membership.shares.permits)
    on_close(crawler, membership.closing.close)
    return membership


def permit_routed(membership: Membership, limiter: Limiter) -> None:
    """Let routed requests be sent with the permits of this worker."""
    permits = membership.shares.permits
    permits.sources.append(partial(_demand, limiter))
    permits.on_room.append(limiter.offer)


def _demand(limiter: Limiter) -> Iterator[Demand]:
    return (Demand(*each) for each in limiter.demand())


class GroupCrawl:
    """Closing of this worker's spider by the answers to its reports. ``on_deleted``: called when the job is deleted."""

    def __init__(self, crawler: Crawler, ending: Ending, on_deleted: Callable[[], None]) -> None:
        self._crawler = crawler
        self._ending = ending
        self._on_deleted = on_deleted
        self._limits = CloseLimits(crawler.settings)
        self._closing: asyncio.Future[None] | None = None

    def close_with_group(self, closing: Closing) -> None:
        """Close the spider, since a worker or a user closes the crawl."""
        if closing.reason == JOB_DELETED:
            self._on_deleted()
            return
        self._ending.follow(closing.reason)
        if closing.reason == NODE_LOST:
            logger.error(_TOO_MANY_LOSSES)
        if self._close(closing.reason):
            logger.info("The crawl closes for all workers (%s)", closing.reason)

    def leave_group(self) -> None:
        """Close the spider of this worker alone, since the job needs fewer workers."""
        if self._close(SHUTDOWN):
            logger.info("This worker ends, since the job needs fewer; the others go on")

    def _close(self, reason: str) -> bool:
        engine = self._crawler.engine
        if engine.spider is None:
            return False
        self._closing = asyncio.ensure_future(engine.close_spider_async(reason=reason))
        return True

    # ── reports (ReportPart) ──

    def added_to(self, report: Report, _since: float) -> Report:
        return report

    def answered(self, answer: ReportAnswer) -> None:
        """Close the spider when all workers together reach a limit."""
        self._ending.note_totals(answer.totals)
        reason = self._limits.reason(answer.totals)
        if reason is not None and self._closing is None:
            self._close(reason)
