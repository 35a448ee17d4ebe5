"""One crawl's session: its services, its job and its writers, opened once and closed last.

Components declare their needs while they are built (:meth:`Session.require`). The first component that can wait opens
the session (:meth:`Session.open`): the services are found or started, the job is created or resumed. If that fails, the
log has one error message, and the spider is closed with a reason of its own.

The session closes when the engine has stopped, after every component and the last log line: unsent records are sent,
the job is finished, then the embedded server stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, Protocol

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.reactor import is_reactor_installed

from scrapy_ext import settings as names
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import FINISHED, JobState
from scrapy_ext.client.extraction import Limiter
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import JOB_ENDED, AttemptOver, Gone, PlatformError, Unauthorized
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.retry import Outage
from scrapy_ext.compatibility.scrapy import close_at_start
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.ownership import REPLACED
from scrapy_ext.crawl.session.early_server import take_early
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.crawl.session.job import CrawlJob, JobFile, open_job, open_job_of, write_stats
from scrapy_ext.crawl.session.scrapy_engine import UnsupportedScrapyError, close_after_start_items
from scrapy_ext.crawl.session.services import Services, new_platform_client, services
from scrapy_ext.crawl.session.telemetry import exporting_crawl
from scrapy_ext.crawl.session.unknown_names import UnknownNames
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Close reason of a crawl whose job was deleted.
JOB_DELETED: Final = "job_deleted"
#: Close reasons by the error that kept the session from opening.
_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (SettingError, "bad_setting"),
    (EmbeddedServerError, "embedded_server_failed"),
    (Unauthorized, "platform_bad_key"),
    (AttemptOver, REPLACED),
    (Gone, JOB_DELETED),
    (PlatformError, "platform_unavailable"),
    (Fenced, REPLACED),
    (UnsupportedScrapyError, "unsupported_scrapy"),
)

#: Name of the writer of the log.
_LOG: Final = "logs"
#: Attribute of a crawler that holds its session, so that both have the same lifetime.
_ATTRIBUTE: Final = "_scrapy_ext_session"


class ItemSink(Protocol):
    """Store of items, each exactly once."""

    def add_item(self, record: bytes) -> None:
        """Take an item, as JSON."""

    @property
    def is_full(self) -> bool:
        """True if more items wait than allowed."""

    async def wait_for_room(self) -> None:
        """Wait until fewer items wait."""


class AnswerStore(Protocol):
    """Store of paid answers, which are kept until their results are safe."""

    def finished(self, key: bytes) -> None:
        """Release the answer of this key."""


class Session:
    """State that the components of one crawl share; get it with :meth:`of`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._extraction = False
        self._platform = False
        self._opening: asyncio.Future[None] | None = None
        self._resources = AsyncExitStack()
        self._writers: dict[str, BatchWriter] = {}
        self._vital: set[str] = set()
        #: Writers above their high-water mark.
        self._full: set[BatchWriter] = set()
        #: Reports failing writes of all components.
        self.outage = Outage(logger)
        #: Store of items, each exactly once; None: items are written as they come.
        self.items: ItemSink | None = None
        #: File with the key of the job, which the next run with the same JOBDIR resumes; None without JOBDIR.
        self.job_file: JobFile | None = None
        self._closed = False
        self._reason = FINISHED
        #: Limiter of routed requests; None: no request is routed.
        self.limiter: Limiter | None = None
        #: Store of paid answers, notified when one is no longer needed; None: answers are not kept.
        self.answers: AnswerStore | None = None
        #: Whether this process must write nothing more to its job: another one runs it now, or it was deleted.
        self.is_replaced = False
        #: Warns of settings and meta keys that nothing reads.
        self.unknown_names = UnknownNames(crawler.settings)
        #: Called before the writers are closed, in order.
        self.before_close: list[Callable[[], Awaitable[None]]] = []
        #: Called at once when the job is finished and everything is stored.
        self.after_finish: list[Callable[[], Awaitable[None]]] = []
        self._closing: asyncio.Future[None] | None = None
        #: Attributes of the spans and metrics of this crawl.
        self.span_attributes = {"scrapy.spider": str(getattr(crawler.spidercls, "name", ""))}
        #: Error that kept the session from opening.
        self.failure: Exception | None = None
        self._failed = False
        self.services: Services | None = None
        self._client: PlatformClient | None = None
        self._job: CrawlJob | None = None
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(self._engine_stopped, signal=signals.engine_stopped)

    @classmethod
    def of(cls, crawler: Crawler) -> Session:
        """Return the session of a crawl, the same for all its components."""
        session = vars(crawler).get(_ATTRIBUTE)
        if session is None:
            session = cls(crawler)
            setattr(crawler, _ATTRIBUTE, session)
        return session

    def require(self, *, extraction: bool = False, platform: bool = False) -> Session:
        """Declare, before the session opens, the services that a component needs."""
        if is_reactor_installed() and not is_asyncio_available():
            remedy = "Remove the setting: it is Scrapy's default."
            self.refuse(SettingError("TWISTED_REACTOR", "must be the one of asyncio", remedy))
            # Later nothing can wait for its end.
            if (unused := take_early(self._crawler)) is not None:
                unused.abandon()
        self._extraction |= extraction
        self._platform |= platform
        return self

    @property
    def client(self) -> PlatformClient:
        if self._client is None:
            raise RuntimeError("the session has no platform, or is not open")
        return self._client

    @property
    def job(self) -> CrawlJob:
        if self._job is None:
            raise RuntimeError("the session has no job, or is not open")
        return self._job

    @property
    def job_key(self) -> JobKey | None:
        return self._job.key if self._job is not None else None

    async def open(self) -> bool:
        """Open the session if it is not open; return false if that failed. A failure is logged once."""
        if self.failure is not None:
            return False
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)
        return self.failure is None

    def writer(
        self, name: str, send: Callable[[bytes, int], Awaitable[None]], *, start: int = 0, vital: bool = False
    ) -> BatchWriter:
        """Return a writer that the session closes at its end.

        The crawl cannot continue without a ``vital`` writer: its failure closes the spider. The failure of another
        writer is logged, and nothing waits for it any more.
        """
        read = self._crawler.settings

        def on_failed(error: Exception) -> None:
            self._crawler.stats.inc_value("platform/writers_failed")
            if vital or isinstance(error, JOB_ENDED):
                self.fail(error, "platform_unavailable")

        writer = BatchWriter(
            send,
            name=name,
            start=start,
            max_records=names.PLATFORM_BATCH_SIZE.read(read),
            flush_interval=names.PLATFORM_FLUSH_INTERVAL.read(read),
            high_water_bytes=names.PLATFORM_BUFFER_BYTES.read(read),
            retry_time=names.PLATFORM_RETRY_TIME.read(read),
            on_failed=on_failed,
            full=self._full,
            outage=self.outage,
        )
        self._writers[name] = writer
        if vital:
            self._vital.add(name)
        return writer

    async def record_writer(self, resource: str, *, vital: bool = False) -> BatchWriter:
        """Return a writer of the job's ``items``, ``requests`` or ``logs`` that continues after the stored records."""
        records = getattr(self.client, resource)
        key = self.job.key
        start = (await records.stats(key)).totals.input_values if self.job.resumed else 0

        async def send(body: bytes, index: int) -> None:
            await records.write(key, body, index, attempts=1)

        return self.writer(resource, send, start=start, vital=vital)

    def written(self, name: str) -> BatchWriter | None:
        """Return the writer of that name, None if no component has made it."""
        return self._writers.get(name)

    @property
    def is_full(self) -> bool:
        """Return true if too much is unsent: whoever adds more must :meth:`wait_for_room`."""
        return bool(self._full) or (self.items is not None and self.items.is_full)

    async def wait_for_room(self) -> None:
        """Wait until no writer is full: the point of back-pressure."""
        for writer in list(self._full):
            if writer.failed is not None:
                self._full.discard(writer)
                continue
            with contextlib.suppress(PlatformError):  # Its failure is logged.
                await writer.wait_below_high_water()
        if self.items is not None:
            await self.items.wait_for_room()

    def fail(self, error: Exception, reason: str) -> None:
        """Close the spider after a fatal error; the command will report a failure."""
        if self._failed:
            return
        self._failed = True
        if isinstance(error, JOB_ENDED):
            self.is_replaced, reason = True, REPLACED if isinstance(error, AttemptOver) else JOB_DELETED
        logger.error("%s", error)
        if self._crawler.engine.spider is not None:
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))

    def refuse(self, error: Exception) -> None:
        """Record that the crawl cannot be opened: the spider is closed as soon as Scrapy permits it."""
        if self.failure is None:
            self.failure = error
            self._failed = True
            self.is_replaced |= isinstance(error, Gone)
            logger.error("%s", error)

    async def _open(self) -> None:
        settings = self._crawler.settings
        if self.failure is not None:
            return
        try:
            for setting in names.SETTINGS.values():
                setting.read(settings)
            await self._resources.enter_async_context(exporting_crawl(self._crawler, self.span_attributes))
            found = services(
                settings,
                extraction=self._extraction,
                platform=self._platform,
                early=take_early(self._crawler),
                on_lost=lambda error: self.fail(error, "embedded_server_failed"),
            )
            self.services = await self._resources.enter_async_context(found)
            if self._platform:
                await self._open_platform(self.services)
        except (SettingError, EmbeddedServerError, PlatformError) as error:
            self.refuse(error)
            await self._resources.aclose()

    async def _open_platform(self, services: Services) -> None:
        settings = self._crawler.settings
        client = new_platform_client(settings, services)
        self._client = await self._resources.enter_async_context(client)
        spider_name = (self._crawler.spider or self._crawler.spidercls).name
        given: str | None = names.PLATFORM_JOB.read(settings)
        if given is None and self.job_file is not None:
            self._job = await open_job_of(client, services.project, spider_name, self.job_file)
        else:
            self._job = await open_job(client, services.project, spider_name, given)
        logger.info("Job %s %s", self._job.key, "started" if self._job.begun else "resumed")
        self._crawler.stats.set_value("platform/job", str(self._job.key))
        self.span_attributes["scrapy.job"] = str(self._job.key)
        self.outage.remedy = (
            f"To stop the crawl meanwhile, press Ctrl-C twice; PLATFORM_JOB={self._job.key} resumes it later."
        )

    async def _spider_opened(self) -> None:
        self.unknown_names.check_settings()
        self.unknown_names.check_dotenv()
        try:
            close_after_start_items(self._crawler)
        except UnsupportedScrapyError as error:
            self.refuse(error)
        if not await self.open():
            reason = next(reason for kind, reason in _REASONS if isinstance(self.failure, kind))
            close_at_start(self._crawler, reason)

    async def _spider_closed(self, reason: str) -> None:
        self._reason = reason
        # An engine that never started sends no signal at its end.
        if self._crawler.engine.start_time is None:
            await self._engine_stopped()

    async def _engine_stopped(self) -> None:
        await self._close()
        if (unused := take_early(self._crawler)) is not None:
            await unused.stop()
        if self._failed:
            # A component has no other way to set the exit status of the command: for Scrapy, a crawler without a spider
            # has failed.
            self._crawler.spider = None

    async def _close(self) -> None:
        if self._closed or self._opening is None:
            return
        self._closed = True
        try:
            if self._job is not None:
                await self._finish(self.client, self._job)
        finally:
            await self._resources.aclose()

    async def _finish(self, client: PlatformClient, job: CrawlJob) -> None:
        if self.is_replaced:
            await self._abandon()
            return
        lost = await self._close_writers()
        if self._may_not_write():
            await self._abandon_writers()
            return
        if lost and self._reason == FINISHED:
            self._reason = "platform_unavailable"
        try:
            # The stats are complete now, and nothing is logged to the platform any more.
            log_closed = asyncio.ensure_future(self._close_writer(_LOG, self.written(_LOG)))
            try:
                await write_stats(client, job, self._crawler.stats.get_stats())
            finally:
                await log_closed
            if self._may_not_write():
                return
            state = JobState.FINISHED.value
            await client.jobq.update(job.key.project, job.key, state=state, close_reason=self._reason)
        except JOB_ENDED as error:
            self.fail(error, JOB_DELETED)
            return
        except PlatformError as error:
            self._failed = True
            logger.error("Job %s could not be finished: %s. Resume it with PLATFORM_JOB=%s", job.key, error, job.key)
            return
        if self._reason == REPLACED:
            logger.info("Job %s stopped (%s): another process continues its requests", job.key, self._reason)
            return
        if self._reason != FINISHED:
            again = f"To resume it, repeat the command with -s PLATFORM_JOB={job.key}"
            logger.info("Job %s stopped (%s). %s", job.key, self._reason, again)
            return
        logger.info("Job %s finished", job.key)
        await asyncio.gather(*map(self._clean_up, self.after_finish))

    async def _clean_up(self, callback: Callable[[], Awaitable[None]]) -> None:
        try:
            await callback()
        except PlatformError as error:
            logger.warning("Data of the finished job could not be deleted: %s", error)

    def _may_not_write(self) -> bool:
        # Each call may have changed it.
        return self.is_replaced

    async def _abandon(self) -> None:
        """Send nothing more: the indexes of unsent records belong to the successor."""
        for callback in self.before_close:
            with contextlib.suppress(PlatformError):
                await callback()
        await self._abandon_writers()

    async def _abandon_writers(self) -> None:
        for writer in self._writers.values():
            await writer.abandon()

    async def _close_writers(self) -> bool:
        """Close every writer but that of the log, even after errors; return true if vital records were not stored."""
        for callback in self.before_close:
            try:
                await callback()
            except PlatformError as error:
                logger.error("%s", error)
        closed = [self._close_writer(name, writer) for name, writer in self._writers.items() if name != _LOG]
        lost = any(await asyncio.gather(*closed))
        self._failed = self._failed or lost
        return lost

    async def _close_writer(self, name: str, writer: BatchWriter | None) -> bool:
        """Close a writer; return true if vital records were not stored."""
        if writer is None:
            return False
        if self._may_not_write():
            await writer.abandon()
            return False
        try:
            await writer.close()
        except PlatformError as error:
            if not self._may_not_write():
                logger.error("%s", error)
            return name in self._vital
        return False
