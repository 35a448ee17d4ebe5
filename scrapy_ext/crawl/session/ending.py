"""End of a crawl: unsent records are sent, the stats are stored, and the job is finished with its close reason.

A failure closes the spider, and the command reports it. Whoever has lost its job to another process, or to somebody who
has deleted it, writes nothing more: the indexes of its unsent records belong to the successor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from scrapy.crawler import Crawler

from scrapy_ext.api.platform.jobs import FAILED, FINISHED, JOB_DELETED, START_ERROR, JobState, Outcome, outcome_of
from scrapy_ext.api.platform.workers import Totals
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import JOB_ENDED, AttemptOver, Gone, PlatformError
from scrapy_ext.crawl.commit.leases import REPLACED
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.stats import JobStats
from scrapy_ext.crawl.session.writers import Writers

logger = logging.getLogger(__name__)

#: Ends a worker of a group with its close reason; returns that of the crawl if it was the last one, else None.
LeaveGroup = Callable[[str], Awaitable[str | None]]


class Ending:
    """End of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: Called before the writers are closed, in order.
        self.before_close: list[Callable[[], Awaitable[None]]] = []
        #: Called at once when the job is finished and everything is stored.
        self.after_finish: list[Callable[[], Awaitable[None]]] = []
        #: Error that kept the crawl from opening.
        self.failure: Exception | None = None
        self.has_failed = False
        #: Whether this process must write nothing more to its job: another one runs it now, or it was deleted.
        self.is_replaced = False
        self._leave_group: LeaveGroup | None = None
        #: In a group with feeds: waits for the others, with the close reason, and writes the feeds as the last worker.
        self.write_feeds: Callable[[str], Awaitable[None]] | None = None
        #: In a group: whether the failure of another worker has closed the crawl, and the totals of the last report.
        self._has_group_failed = False
        self._totals: Totals | None = None
        self._reason = FINISHED
        self._has_opened = True
        self._closing: asyncio.Future[None] | None = None
        self._is_finishing = False

    def fail(self, error: Exception, reason: str) -> None:
        """Close the spider after a fatal error; the command will report a failure."""
        if self.has_failed:
            return
        self.has_failed = True
        if isinstance(error, JOB_ENDED):
            self.is_replaced, reason = True, REPLACED if isinstance(error, AttemptOver) else JOB_DELETED
        logger.error("%s", error)
        if self._crawler.engine.spider is not None:
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))

    @property
    def is_failure(self) -> bool:
        """True if the command reports a failure."""
        return self.has_failed or self._has_group_failed

    def follow(self, reason: str) -> None:
        """Record the reason for which the crawl closes for all workers of the group: a failure is one of each."""
        self._has_group_failed = outcome_of(reason) is Outcome.FAILED and reason != START_ERROR

    def leave_with(self, leave: LeaveGroup) -> None:
        """End as a worker of a group, which ends the job with its last one."""
        self._leave_group = leave

    def note_totals(self, totals: Totals) -> None:
        """Record the totals of all workers of the group."""
        self._totals = totals

    def refuse(self, error: Exception) -> None:
        """Record that the crawl cannot be opened: the spider is closed as soon as Scrapy permits it."""
        if self.failure is None:
            self.failure = error
            self.has_failed = True
            self.is_replaced |= isinstance(error, Gone)
            logger.error("%s", error)

    def not_opened(self) -> None:
        """Record that the spider failed to open: Scrapy closes it as one that was interrupted."""
        self.has_failed, self._has_opened = True, False

    def give_up(self, reason: Exception) -> None:
        """Record that there is nothing to crawl, which is no failure."""
        self.failure = self.failure or reason
        logger.info("%s", reason)

    def note_successor(self, *, exists: bool) -> None:
        """Record whether another process runs the job now."""
        self.is_replaced = exists

    def closed(self, reason: str) -> None:
        """Record the close reason of the spider."""
        self._reason = reason if self._has_opened else FAILED

    async def finish(self, client: PlatformClient, job: CrawlJob, writers: Writers, stats: JobStats | None) -> None:
        """Store what remains, and finish the job, once; errors are logged."""
        if self._is_finishing:
            return
        self._is_finishing = True
        try:
            await self._finish(client, job, writers, stats)
        except Exception:
            # In a signal handler it would be logged, and the command would report a success.
            self.has_failed = True
            logger.exception("Unexpected error at the end of the crawl. Job %s may be listed as running", job.key)

    async def _finish(self, client: PlatformClient, job: CrawlJob, writers: Writers, stats: JobStats | None) -> None:
        if self.is_replaced:
            await self._abandon(writers)
            return
        await self._run_before_close()
        if await writers.close(self._may_write):
            self.has_failed = True
            if self._reason == FINISHED:
                self._reason = "platform_unavailable"
        if not self._may_write():
            await writers.abandon()
            return
        if self.write_feeds is not None:
            # Before the end of the log, which has the errors of the feeds.
            await self.write_feeds(self._reason)
        try:
            job_reason = await self._store_end(client, job, writers, stats)
        except JOB_ENDED as error:
            self.fail(error, JOB_DELETED)
        except PlatformError as error:
            self.has_failed = True
            logger.error("Job %s could not be finished: %s. Resume it with PLATFORM_JOB=%s", job.key, error, job.key)
        else:
            if job_reason is not None:
                await self._ended(job, job_reason)

    async def _store_end(
        self, client: PlatformClient, job: CrawlJob, writers: Writers, stats: JobStats | None
    ) -> str | None:
        """Store the rest of the log, the stats and the state of the job. Return the close reason of the job; None if
        another process has it, or runs it still."""
        # The stats are complete now, and nothing is logged to the platform any more.
        log_closed = asyncio.ensure_future(writers.close_log(self._may_write))
        try:
            if stats is not None and self._leave_group is None:
                await stats.finish(client, job, self._reason)
        finally:
            await log_closed
        if not self._may_write():
            return None
        if self._leave_group is not None:
            job_reason = await self._leave_group(self._reason)
            logger.info("This worker of job %s has ended (%s)", job.key, self._reason)
            return job_reason
        state = JobState.FINISHED.value
        await client.jobq.update(job.key.project, job.key, state=state, close_reason=self._reason)
        return self._reason

    async def _ended(self, job: CrawlJob, reason: str) -> None:
        """Log the end of the job, and remove what a finished one needs no more."""
        if reason == REPLACED:
            logger.info("Job %s stopped (%s): another process continues its requests", job.key, reason)
            return
        if reason != FINISHED:
            again = f"To resume it, repeat the command with -s PLATFORM_JOB={job.key}"
            logger.info("Job %s stopped (%s)%s. %s", job.key, reason, _text(self._totals), again)
            return
        logger.info("Job %s finished%s", job.key, _text(self._totals))
        await asyncio.gather(*map(_clean_up, self.after_finish))

    def _may_write(self) -> bool:
        # Each call may have changed it.
        return not self.is_replaced

    async def _abandon(self, writers: Writers) -> None:
        for callback in self.before_close:
            with contextlib.suppress(PlatformError):
                await callback()
        await writers.abandon()

    async def _run_before_close(self) -> None:
        for callback in self.before_close:
            try:
                await callback()
            except PlatformError as error:
                logger.error("%s", error)
            except Exception:
                # The job ends all the same.
                logger.exception("Unexpected error at the end of the crawl")
                self.has_failed = True


def _text(totals: Totals | None) -> str:
    if totals is None:
        return ""
    return (
        f": {totals.items} items, {totals.responses} responses and {totals.errors} errors of all workers in "
        f"{totals.seconds:.0f} seconds"
    )


async def _clean_up(callback: Callable[[], Awaitable[None]]) -> None:
    try:
        await callback()
    except PlatformError as error:
        logger.warning("Data of the finished job could not be deleted: %s", error)
