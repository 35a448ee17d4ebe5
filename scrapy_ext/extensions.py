"""Extensions of a crawl: job record, request records and log on the platform; pages whose callbacks raise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import weakref
from collections import deque
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ext import settings as names
from scrapy_ext.api.masking import Secrets
from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.records import MAX_ITEM_BYTES, LogRecord, StreamRequestRecord, shortened
from scrapy_ext.api.violations import encodable
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.compatibility.python import Self
from scrapy_ext.compatibility.scrapy import close_at_start
from scrapy_ext.crawl.frontier.identity import fingerprint_by
from scrapy_ext.crawl.frontier.marks import note_record, parent_of
from scrapy_ext.crawl.session.project import project_data
from scrapy_ext.crawl.session.scrapy_engine import on_fetched
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.crawl.snapshots.pages import taken
from scrapy_ext.crawl.snapshots.storing import JobSnapshots, SnapshotFolder, SnapshotQueue, SnapshotStore
from scrapy_ext.jobprocess.messages import LOG_IS_STORED
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)


class _Extension:
    """Base of the platform extensions, disabled by ``PLATFORM_ENABLED``."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not names.PLATFORM_ENABLED.read(crawler.settings):
            raise NotConfigured
        return cls(crawler)


async def _record_writer(crawler: Crawler, session: Session, resource: str) -> BatchWriter:
    try:
        return await session.record_writer(resource)
    except PlatformError as error:
        logger.error("%s", error)
        close_at_start(crawler, "platform_unavailable")
        raise CloseSpider("platform_unavailable") from None


class PlatformJob(_Extension):
    """Creates a job record for the crawl, and writes the crawl's stats to it.

    The record is created or resumed (``PLATFORM_JOB``) when the crawl opens, and finished with Scrapy's close reason
    when everything is stored. Stats are written at the start, every ``PLATFORM_STATS_INTERVAL`` seconds (0: not in
    between) and at the end.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._interval: float = names.PLATFORM_STATS_INTERVAL.read(crawler.settings)
        self._task: asyncio.Task[None] | None = None
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    async def _spider_opened(self) -> None:
        if await self._session.open() and self._session.group is None:
            self._session.ending.before_close.append(self._stop)
            self._task = asyncio.ensure_future(self._write_stats())

    async def _write_stats(self) -> None:
        outage, what, stats = self._session.writers.outage, "write the stats to the job", self._session.job_stats
        # The first at once, so that a run that is killed before the second has its row among those of the job, with the
        # marks of its arguments.
        while stats is not None:
            try:
                await stats.write(self._session.client, self._session.job)
            except PlatformError as error:
                # The stats on the platform stay old until the next write.
                outage.failed(what, error)
            else:
                outage.worked(what)
                if not self._interval:
                    return
            await asyncio.sleep(self._interval or names.PLATFORM_STATS_INTERVAL.default)

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class RequestLog(_Extension):
    """Stores a request record for each answer (platform-api.md, Request record), including retries and redirects.

    ``time`` and ``duration`` are those of the download, ``rs`` is the size of the body, ``parent`` the index of the
    record of the request whose callback returned this one. A request without an answer has no status, and so no record:
    Scrapy logs its error, and stat ``platform/requests/no_answer`` counts it.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._writer: BatchWriter | None = None
        #: Start times of requests in the downloader, and those that have their record.
        self._began: dict[Request, float] = {}
        self._recorded: set[Request] = set()
        connect = crawler.signals.connect
        connect(self._spider_opened, signal=signals.spider_opened)
        connect(self._reached, signal=signals.request_reached_downloader)
        connect(self._downloaded, signal=signals.response_downloaded)

    async def _spider_opened(self) -> None:
        if await self._session.open():
            self._writer = await _record_writer(self._crawler, self._session, "requests")
        self._job = str(self._session.job_key)
        # Bound once, since the look-up takes as long as the count.
        self._count = self._crawler.stats.inc_value
        self._fingerprint = partial(fingerprint_by, self._crawler.request_fingerprinter)
        on_fetched(self._crawler, self._fetched)

    def _reached(self, request: Request) -> None:
        self._began[request] = time.time()

    def _downloaded(self, response: Response, request: Request) -> None:
        self._recorded.add(request)
        self._record(response, request, self._began.get(request))

    def _fetched(self, request: Request, result: object) -> None:
        began = self._began.pop(request, None)
        if request in self._recorded:
            self._recorded.discard(request)
        elif began is not None:
            self._count("platform/requests/no_answer")
        elif isinstance(result, Response):
            # The response came from a cache.
            self._record(result, request, None)

    def _record(self, response: Response, request: Request, began: float | None) -> None:
        if self._writer is None or self._writer.failed is not None:
            return
        now = time.time()
        duration = request.meta.get("download_latency", 0.0) if began is None else now - began
        parent = parent_of(request)
        record = StreamRequestRecord(
            time=round((now - duration) * 1000),
            method=request.method,
            url=self._session.secrets.masked(request.url),
            status=response.status,
            duration=round(duration * 1000),
            rs=len(response.body),
            parent=parent.named_by(self._job, self._session.writer) if parent is not None else None,
            fp=self._fingerprint(request).hex(),
        )
        line = msgspec.json.encode(record)
        if len(line) > MAX_ITEM_BYTES:
            self._count("platform/requests/refused")
            logger.warning("No request record is stored for a URL of %d characters", len(request.url))
            return
        note_record(request, self._writer.add(line))
        self._count("platform/requests/count")


#: Maximum records kept until the job is open.
_EARLY_RECORDS: Final = 10_000
#: Loggers whose records are not sent to the platform: each record would cause another.
_NOT_UPLOADED: Final = ("scrapy_ext.client", "scrapy_ext.crawl.session.embedded", "aiohttp", "asyncio")


class LogUploader(_Extension):
    """Stores the crawl's log in ``/logs``, from ``PLATFORM_LOG_LEVEL`` upwards, from its first line.

    Records pass through a writer: adding one never blocks, and records of other threads are handed to the event loop.
    Records of the platform client itself are excluded. Lines of a worker of a group begin with its number.
    """

    def __init__(self, crawler: Crawler) -> None:
        level = logging.getLevelName(str(names.PLATFORM_LOG_LEVEL.read(crawler.settings)).upper())
        if not isinstance(level, int):
            raise SettingError("PLATFORM_LOG_LEVEL", "must be the name of a log level", "Write INFO or DEBUG.")
        super().__init__(crawler)
        self._handler = _Handler(crawler, level, self._session.secrets)
        logging.getLogger().addHandler(self._handler)
        self._session.on_failed_opening.append(self._spider_opened)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._engine_stopped, signal=signals.engine_stopped)

    async def _spider_opened(self) -> None:
        if await self._session.open():
            job = self._session.job
            prefix = "" if job.attempt is None else f"[{job.worker}] "
            self._handler.open(await _record_writer(self._crawler, self._session, "logs"), prefix)
            LOG_IS_STORED.set()
            self._session.ending.before_close.append(self._detach)
        else:
            await self._detach()

    async def _detach(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        # Records of other threads may still be on their way to the loop.
        await asyncio.sleep(0)

    async def _engine_stopped(self) -> None:
        if self._session.failure is not None:
            await self._detach()


class _Handler(logging.Handler):
    """Converts log records to the platform's, keeps them until there is a writer, and adds them to it in the thread of
    its loop."""

    def __init__(self, crawler: Crawler, level: int, secrets: Secrets) -> None:
        super().__init__(level)
        self._secrets = secrets
        # Weak, since the root logger keeps this handler even if the crawl could not be built.
        self._crawler = weakref.ref(crawler)
        self._early: deque[LogRecord] = deque(maxlen=_EARLY_RECORDS)
        self._prefix = ""
        self._writer: BatchWriter | None = None
        # Unknown yet: `scrapy shell` builds its components before there is a loop.
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, writer: BatchWriter, prefix: str) -> None:
        """Send kept and further records to the writer, with ``prefix`` before each message."""
        self._writer, self._prefix = writer, prefix
        while self._early:
            writer.add(self._encoded(self._early.popleft()))
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        if self._crawler() is None:
            # A new list: the root logger is iterating over the old one, and would skip the next handler.
            root = logging.getLogger()
            root.handlers = [handler for handler in root.handlers if handler is not self]
            return
        if record.name.startswith(_NOT_UPLOADED) or self._is_of_another_crawl(record):
            return
        try:
            # Masked before it is shortened: that could hide the end of a secret.
            message = encodable(shortened(self._secrets.masked(self.format(record))))
            line = LogRecord(time=round(record.created * 1000), level=record.levelno, message=message)
        except Exception:
            self.handleError(record)
            return
        if self._loop is None:
            self._early.append(line)
            return
        # The loop is closed after the crawl.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._add, line)

    def _encoded(self, line: LogRecord) -> bytes:
        line.message = shortened(self._prefix + line.message)
        return msgspec.json.encode(line)

    def _add(self, line: LogRecord) -> None:
        if self._writer is not None and self._writer.failed is None:
            # The writer is closed once the job is finished.
            with contextlib.suppress(RuntimeError):
                self._writer.add(self._encoded(line))

    def _is_of_another_crawl(self, record: logging.LogRecord) -> bool:
        spider: object = getattr(record, "spider", None)
        crawler: object = getattr(record, "crawler", None) or getattr(spider, "crawler", None)
        return crawler is not None and crawler is not self._crawler()


class ErrorSnapshots:
    """Keeps the pages whose callbacks or errbacks raise, with their screenshots (``EXTRACT_API_SNAPSHOTS_ON_ERROR``).

    They are stored with the job on the platform. Without a job, or with ``EXTRACT_API_SNAPSHOTS_DIR``, they are files.
    Pages of every response count, also of those that did not come from the extraction API. A crawl never waits for
    them, except for a bounded time at its end.
    """

    def __init__(self, crawler: Crawler, most: int) -> None:
        self._crawler = crawler
        self._most = most
        self._session = Session.of(crawler)
        self._queue: SnapshotQueue | None = None
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_error, signal=signals.spider_error)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        most = names.EXTRACT_API_SNAPSHOTS_ON_ERROR.read(crawler.settings)
        if not most:
            raise NotConfigured
        return cls(crawler, snapshots.USUAL if most is True else most)

    async def _spider_opened(self) -> None:
        if await self._session.open():
            self._queue = SnapshotQueue(self._store(), self._most, self._crawler.stats)

    def _store(self) -> SnapshotStore:
        folder = names.EXTRACT_API_SNAPSHOTS_DIR.read(self._crawler.settings)
        if folder is not None:
            return SnapshotFolder(Path(folder).expanduser().absolute())
        if self._session.job_key is None:
            return SnapshotFolder(project_data(Path("snapshots", self._crawler.spidercls.name)))
        job = self._session.job
        return JobSnapshots(self._session.client.snapshots, job.key, resumed=job.resumed)

    def _spider_error(self, failure: Failure, response: Response | Failure | None) -> None:
        # start() has no page.
        if self._queue is None or response is None:
            return
        page = taken(failure, response, round(time.time() * 1000), self._session.secrets)
        if page is not None and self._queue.has_room:
            self._queue.add(page)

    async def _spider_closed(self) -> None:
        if self._queue is not None:
            await self._queue.close()
