"""One crawl's session: its services, its job and its writers, opened once and closed last.

Components declare their needs while they are built (:meth:`Session.require`). The first component that can wait opens
the session (:meth:`Session.open`): the services are found or started, the job is created or resumed. If that fails, the
log has one error message, and the spider is closed with a reason of its own.

Its parts are made in this order, and each knows only those before it: the needs of the components, the ending of the
crawl, the writers, which end it when they fail; and when it opens, the services, the client of the platform, the job.

The session closes when the engine has stopped, after every component and the last log line: unsent records are sent,
the job is finished, then the embedded server stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.reactor import is_reactor_installed

from scrapy_ext import settings as names
from scrapy_ext.api.masking import Secrets
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import FAILED, FINISHED, JOB_DELETED
from scrapy_ext.client.extraction import Limiter
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import AttemptOver, Gone, PlatformError, Unauthorized
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.retry import Retry
from scrapy_ext.compatibility.scrapy import close_at_start
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.leases import REPLACED
from scrapy_ext.crawl.commit.target import Target
from scrapy_ext.crawl.session.embedded import EmbeddedServerError, take_early
from scrapy_ext.crawl.session.ending import Ending
from scrapy_ext.crawl.session.group import RESUME, Membership, group_of
from scrapy_ext.crawl.session.group_crawl import GroupCrawl, join_group, new_membership, permit_routed
from scrapy_ext.crawl.session.job import CrawlJob, JobFile, JobOverError, deleted, open_job, open_job_of, running_job
from scrapy_ext.crawl.session.machine import Machine
from scrapy_ext.crawl.session.outputs import start_tasks_as_needed
from scrapy_ext.crawl.session.permits import Permits
from scrapy_ext.crawl.session.plain_stats import plain_reason
from scrapy_ext.crawl.session.scrapy_engine import (
    UnsupportedScrapyError,
    check_names,
    close_after_start_items,
    on_failed_opening,
)
from scrapy_ext.crawl.session.services import Services, new_platform_client, services
from scrapy_ext.crawl.session.sharing import check_platform
from scrapy_ext.crawl.session.stats import JobStats, exporting_crawl, note_failed_opening
from scrapy_ext.crawl.session.unknown_names import UnknownNames
from scrapy_ext.crawl.session.writers import ITEMS, ItemSink, Writers
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.crawl.session.feeds import JobFeeds

logger = logging.getLogger(__name__)

#: Close reasons by the error that kept the session from opening.
_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (SettingError, "bad_setting"),
    (JobOverError, FINISHED),
    (EmbeddedServerError, "embedded_server_failed"),
    (Unauthorized, "platform_bad_key"),
    (AttemptOver, REPLACED),
    (Gone, JOB_DELETED),
    (PlatformError, "platform_unavailable"),
    (Fenced, REPLACED),
    (UnsupportedScrapyError, "unsupported_scrapy"),
)

#: Attribute of a crawler that holds its session, so that both have the same lifetime.
_ATTRIBUTE: Final = "_scrapy_ext_session"


class AnswerStore(Protocol):
    """Store of paid answers, which are kept until their results are safe."""

    def finished(self, key: bytes) -> None:
        """Release the answer of this key."""


class _Needs(msgspec.Struct):
    """Needs of the components, which they declare while they are built."""

    extraction: bool = False
    platform: bool = False
    #: File with the key of the job, which the next run with the same JOBDIR resumes; None without JOBDIR.
    job_file: JobFile | None = None


class _Routing(msgspec.Struct):
    """Parts of ``ExtractMiddleware`` that the scheduler works with; None without it."""

    limiter: Limiter | None = None
    answers: AnswerStore | None = None


class _Opened(msgspec.Struct):
    """Parts of an open session, made in this order."""

    services: Services
    client: PlatformClient | None = None
    job: CrawlJob | None = None
    group: Membership | None = None


class Session:
    """State that the components of one crawl share; get it with :meth:`of`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._machine = Machine(crawler)
        self._needs = _Needs()
        self._resources = AsyncExitStack()
        self._opening: asyncio.Future[None] | None = None
        self._opened: _Opened | None = None
        self.ending = Ending(crawler)
        self._group_crawl = GroupCrawl(crawler, self.ending, self._job_deleted)
        self.writers = Writers(crawler, on_lost=partial(self.fail, reason="platform_unavailable"))
        #: Writer of the job's stats; None: no component needs the platform.
        self.job_stats: JobStats | None = None
        #: Feeds of a group of workers, which its last worker writes; None: it has none, or Scrapy writes them.
        self.feeds: JobFeeds | None = None
        self._routing = _Routing()
        #: Called, with the job open, when the spider cannot be opened: components get no signal of its opening.
        self.on_failed_opening: list[Callable[[], Awaitable[None]]] = []
        #: Secrets of settings and arguments, which are masked in what the platform stores for people to read.
        self.secrets = _secrets_of(crawler)
        #: Warns of settings and meta keys that nothing reads.
        self.unknown_names = UnknownNames(crawler.settings)
        #: Attributes of the spans and metrics of this crawl.
        self.span_attributes = {"scrapy.spider": str(getattr(crawler.spidercls, "name", ""))}
        on_failed_opening(crawler, self._opening_failed)
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

    def require(self, *, extraction: bool = False, platform: bool = False, job_file: JobFile | None = None) -> Session:
        """Declare, before the session opens, the services that a component needs, and the file of a JOBDIR whose job is
        resumed."""
        if is_reactor_installed() and not is_asyncio_available():
            remedy = "Remove the setting: it is Scrapy's default."
            self.refuse(SettingError("TWISTED_REACTOR", "must be the one of asyncio", remedy))
            # Later nothing can wait for its end.
            if (unused := take_early(self._crawler)) is not None:
                unused.abandon()
        self._needs.extraction |= extraction
        self._needs.platform |= platform
        self._needs.job_file = job_file or self._needs.job_file
        if platform and self.job_stats is None:
            self.job_stats = JobStats(self._crawler, self.secrets)
        return self

    def route(self, limiter: Limiter) -> None:
        """Record that requests are routed, with this limiter."""
        self._routing.limiter = limiter

    def keep_answers_in(self, store: AnswerStore) -> None:
        """Record that paid answers are kept in this store."""
        self._routing.answers = store

    @property
    def limiter(self) -> Limiter | None:
        """Limiter of routed requests; None: no request is routed."""
        return self._routing.limiter

    @property
    def answers(self) -> AnswerStore | None:
        """Store of paid answers, notified when one is no longer needed; None: answers are not kept."""
        return self._routing.answers

    @property
    def items(self) -> ItemSink | None:
        """Store of items, each exactly once; None: items are written as they come."""
        return self.writers.items

    @property
    def services(self) -> Services | None:
        return self._opened.services if self._opened is not None else None

    @property
    def client(self) -> PlatformClient:
        if self._opened is None or self._opened.client is None:
            raise RuntimeError("the session has no platform, or is not open")
        return self._opened.client

    @property
    def job(self) -> CrawlJob:
        if self._opened is None or self._opened.job is None:
            raise RuntimeError("the session has no job, or is not open")
        return self._opened.job

    @property
    def job_key(self) -> JobKey | None:
        return self.job.key if self._opened is not None and self._opened.job is not None else None

    @property
    def writer(self) -> int | None:
        """Attempt whose streams have the records of this process; None: it is the only worker of its job."""
        return self.job.attempt if self.job_key is not None else None

    @property
    def group(self) -> Membership | None:
        """Membership in the group of the job's workers; None: this process is the only worker."""
        return self._opened.group if self._opened is not None else None

    @property
    def permits(self) -> Permits | None:
        """Permits of a worker of a group; None: this process is the only worker."""
        return self.group.shares.permits if self.group is not None else None

    def may_start(self, domain: str, active: int) -> bool:
        """Take the permit for one more routed request to a domain (:meth:`Permits.take`)."""
        return self.permits is None or self.permits.take(domain, active)

    @property
    def failure(self) -> Exception | None:
        """Error that kept the session from opening."""
        return self.ending.failure

    async def open(self) -> bool:
        """Open the session if it is not open; return false if that failed. A failure is logged once."""
        if self.failure is not None:
            return False
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)
        return self.failure is None

    async def record_writer(self, resource: str, *, vital: bool = False) -> BatchWriter:
        """Return a writer of the job's ``items``, ``requests`` or ``logs`` that continues after the stored records, or
        of the stream of this worker."""
        records = getattr(self.client, resource)
        key, target = self.job.key, Target(self.job.key, self.job.attempt)
        start = (await records.stats(key)).totals.input_values if self.job.may_have_records else 0

        async def send(body: bytes, index: int) -> None:
            if resource == ITEMS:
                # Whoever reads both while the crawl runs finds no items of answers that are not there.
                await self.writers.requests_stored()
            unknown = await target.write(records, body, index)
            if unknown:
                self._crawler.stats.inc_value("platform/requests/parents_unknown", unknown)

        return self.writers.add(resource, send, start=start, vital=vital)

    def fail(self, error: Exception, reason: str) -> None:
        """Close the spider after a fatal error; the command will report a failure."""
        self.ending.fail(error, reason)
        if self.group is not None:
            self.group.shares.end()

    def _job_deleted(self) -> None:
        self.fail(deleted(self.job.key), JOB_DELETED)

    def refuse(self, error: Exception) -> None:
        """Record that the crawl cannot be opened: the spider is closed as soon as Scrapy permits it."""
        self.ending.refuse(error)

    async def _open(self) -> None:
        settings = self._crawler.settings
        try:
            if group_of(settings) is not None:
                # Scrapy's exporters import item libraries, as pydantic, which take memory and time in each crawl.
                from scrapy_ext.crawl.session.feeds import JobFeeds

                self.feeds = JobFeeds.take(self._crawler)
            if self.failure is not None:
                return
            for setting in names.SETTINGS.values():
                setting.read(settings)
            self._machine.check()
            await self._resources.enter_async_context(exporting_crawl(self._crawler, self.span_attributes))
            found = services(
                settings,
                extraction=self._needs.extraction,
                platform=self._needs.platform,
                early=take_early(self._crawler),
                on_lost=partial(self.fail, reason="embedded_server_failed"),
            )
            self._opened = _Opened(await self._resources.enter_async_context(found))
            if self._needs.platform:
                await self._open_platform(self._opened)
        except (SettingError, EmbeddedServerError, PlatformError, UnsupportedScrapyError) as error:
            self.refuse(error)
            await self._resources.aclose()
        except JobOverError as error:
            self.ending.give_up(error)
            await self._resources.aclose()

    async def _open_platform(self, opened: _Opened) -> None:
        client = new_platform_client(self._crawler.settings, opened.services)
        opened.client = client = await self._resources.enter_async_context(client)
        self._resources.push_async_callback(self._machine.close)
        if (group_of(self._crawler.settings) or "").startswith(RESUME) and opened.services.server is None:
            await check_platform(client, opened.services.project)
        job = await self._open_job(client, opened.services.project)
        self._machine.lock(job.key)
        if not self._machine.is_forked:
            opened.job = job
            logger.info("Job %s %s", job.key, "started" if job.begun else "resumed")
        given = group_of(self._crawler.settings)
        if given is not None:
            job = await self._join(opened, client, job, given)
        if self.job_stats is not None:
            await self.job_stats.open(client, job)
        self._crawler.stats.set_value("platform/job", str(job.key))
        self.span_attributes["scrapy.job"] = str(job.key)
        self.writers.outage.remedy = (
            f"To stop the crawl meanwhile, press Ctrl-C twice; PLATFORM_JOB={job.key} resumes it later."
        )
        lost = partial(self.fail, reason="embedded_server_failed")
        self.ending.after_finish.append(self._machine.finished)
        self._machine.begin(job.key, job.worker, opened.services, on_lost=lost)

    async def _join(self, opened: _Opened, client: PlatformClient, job: CrawlJob, given: str) -> CrawlJob:
        """Join the group of the job. From then on calls have the token of the attempt, until it has ended."""
        settings, outage = self._crawler.settings, self.writers.outage
        retry = Retry(names.PLATFORM_RETRY_TIME.read(settings), outage=outage)
        joined = await join_group(client, job, given, self._machine, retry)
        if self.feeds is not None:
            await self.feeds.open(client, job, is_first=given.startswith(RESUME))
        found = msgspec.structs.replace(opened.services, platform_key=joined.token)
        opened.client = own = await self._resources.enter_async_context(new_platform_client(settings, found))
        opened.job = job = joined.job(job)
        opened.group = group = new_membership(self._crawler, joined, self._machine, self.job_stats, outage)
        self._resources.callback(group.shares.permits.close)
        if self.limiter is not None:
            permit_routed(group, self.limiter)
        group.reports.connect(self._group_crawl)
        send = partial(own.workers.report, job.key.project)

        async def leave(reason: str) -> str | None:
            reason_of_all = await group.end.leave(reason, send, retry)
            opened.client = client
            return reason_of_all

        self.ending.leave_with(leave)
        if self.feeds is not None:
            self.ending.write_feeds = partial(self.feeds.write, own, group.end, job.key)
        group.reports.start(send, partial(self.fail, reason=REPLACED))
        self._resources.push_async_callback(group.reports.stop)
        return job

    async def _open_job(self, client: PlatformClient, project: int) -> CrawlJob:
        spider_name = (self._crawler.spider or self._crawler.spidercls).name
        given: str | None = names.PLATFORM_JOB.read(self._crawler.settings)
        if given is not None and self._machine.is_forked:
            return await running_job(client, given)
        if given is None and self._needs.job_file is not None:
            return await open_job_of(client, project, spider_name, self._needs.job_file)
        return await open_job(
            client, project, spider_name, given, is_shared=group_of(self._crawler.settings) is not None
        )

    async def _spider_opened(self) -> None:
        self.unknown_names.check_settings()
        self.unknown_names.check_dotenv()
        try:
            check_names(self._crawler)
            close_after_start_items(self._crawler)
            start_tasks_as_needed(self._crawler)
        except UnsupportedScrapyError as error:
            self.refuse(error)
        if not await self.open():
            reason = next(reason for kind, reason in _REASONS if isinstance(self.failure, kind))
            close_at_start(self._crawler, reason)
        if self.group is not None:
            self.group.closing.connect(self._group_crawl.close_with_group, self._group_crawl.leave_group)

    async def _opening_failed(self, error: Exception) -> None:
        """Log the error to the job, which is created if it is not open yet: its spider fails to open."""
        if not self._needs.platform:
            return
        self.ending.not_opened()
        logger.error("The spider could not be opened: %r", error, exc_info=error)
        note_failed_opening(self._crawler)
        # Whatever fails here is not the error that Scrapy reports.
        try:
            if await self.open():
                if self.group is not None:
                    self.group.shares.end()
                    self.group.closing.close(FAILED)
                for callback in self.on_failed_opening:
                    await callback()
        except Exception:
            logger.exception("The error could not be stored with a job")

    async def _spider_closed(self, reason: str) -> None:
        self.ending.closed(self.secrets.masked(plain_reason(reason)))
        # An engine that never started sends no signal at its end.
        if self._crawler.engine.start_time is None:
            await self._engine_stopped()

    async def _engine_stopped(self) -> None:
        await self._close()
        if (unused := take_early(self._crawler)) is not None:
            await unused.stop()
        if self.ending.is_failure:
            # A component has no other way to set the exit status of the command: for Scrapy, a crawler without a spider
            # has failed.
            self._crawler.spider = None

    async def _close(self) -> None:
        opened = self._opened
        try:
            if opened is not None and opened.client is not None and opened.job is not None:
                await self.ending.finish(opened.client, opened.job, self.writers, self.job_stats)
        finally:
            await self._resources.aclose()


def _secrets_of(crawler: Crawler) -> Secrets:
    """Return the secrets of a crawl: settings that somebody has set, keys of the services, arguments of the spider."""
    settings = crawler.settings
    given = [(name, settings[name]) for name in settings if (settings.getpriority(name) or 0) > 0]
    keys = [("token", str(key.read(settings) or "")) for key in (names.EXTRACT_API_KEY, names.PLATFORM_API_KEY)]
    arguments = [] if crawler.spider is None else list(vars(crawler.spider).items())
    return Secrets([*given, *keys, *((name, value) for name, value in arguments if isinstance(value, str))])
