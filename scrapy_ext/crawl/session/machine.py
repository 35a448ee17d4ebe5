"""Part of one process in the workers of its machine: its locks, the workers that it forks, the server that it keeps.

The first worker is the process of the command. It opens the crawl as any other, lets the template fork the others when
the job exists, and ends after them. With one worker nothing is done here.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Final

from scrapy.crawler import Crawler

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.session.embedded import EmbeddedServerError
from scrapy_ext.crawl.session.forked import is_forked
from scrapy_ext.crawl.session.group import RESUME, group_of
from scrapy_ext.crawl.session.group_locks import GroupLocks
from scrapy_ext.crawl.session.job import JobOverError
from scrapy_ext.crawl.session.keeper import Keeper, until
from scrapy_ext.crawl.session.project import data_directory
from scrapy_ext.crawl.session.services import Services
from scrapy_ext.crawl.session.sharing import SharingWarnings, check_shareable
from scrapy_ext.crawl.session.workers import (
    append_to_log_files,
    number_of_workers,
    settings_of,
    take_template,
    terminal_log,
)
from scrapy_ext.jobprocess.messages import show_number
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Seconds until a message explains the wait for other workers, and until the first worker or a keeper ends before them:
#: a last download may take 180 (DOWNLOAD_TIMEOUT).
_NOTED_SECONDS: Final = 5.0
_OTHERS_SECONDS: Final = 240.0


class Machine:
    """The workers of this machine, as one of them sees them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: Whether another worker of this machine has opened the crawl.
        self.is_forked = is_forked(crawler.settings)
        self._group = group_of(crawler.settings)
        self._template = take_template(crawler)
        self._locks: GroupLocks | None = None
        self._keeper: Keeper | None = None
        self._warnings: SharingWarnings | None = None

    def check(self) -> None:
        """Raise :class:`SettingError` for a wrong number of workers, and for what they cannot share."""
        number_of_workers(self._crawler.settings)
        if self._group is not None:
            check_shareable(self._crawler.settings)

    def lock(self, job: JobKey) -> None:
        """Lock a job as one of its workers. Raises :class:`SettingError` in the first one if others live, and
        :class:`JobOverError` in another one if the last has ended."""
        if self._group is None:
            return
        is_first = self._group.startswith(RESUME)
        locks = GroupLocks(data_directory(self._crawler.settings), job)
        try:
            if is_first:
                _check_free(locks, job)
            locks.join()
        except BlockingIOError:
            raise (_in_use(job, "other workers") if is_first else JobOverError(job)) from None
        except OSError as error:
            if not (is_first or self.is_forked):
                return  # a worker of a node, which needs no lock
            raise SettingError(
                "CRAWL_WORKERS", f"cannot be used: {error}", "Set SERVER_DATA to another folder."
            ) from None
        self._locks = locks

    def hold(self, attempt: int) -> None:
        """Lock an attempt as its process, so that the others of this machine know its end at once."""
        if self._locks is not None:
            # Without the file, they know it after the lease time.
            with contextlib.suppress(OSError):
                self._locks.hold(attempt)

    def is_gone(self, attempt: int) -> bool:
        """Return true if the process of an attempt was on this machine, and has ended."""
        return self._locks is not None and self._locks.is_gone(attempt)

    def begin(
        self, job: JobKey, worker: int, services: Services, on_lost: Callable[[EmbeddedServerError], None]
    ) -> None:
        """Begin as a worker of a job: keep the server if no other worker does, and fork the others. ``worker``: number
        of this worker. ``on_lost``: called when the server has ended and cannot be started again."""
        if self._locks is None:
            return
        settings = self._crawler.settings
        show_number(worker)
        self._warnings = SharingWarnings(self._crawler)
        if services.server is not None:
            self._keeper = Keeper(settings, self._locks, services.server, on_lost)
        if self._template is not None:
            others = [
                settings_of(place, settings, job, services.server) for place in range(1, number_of_workers(settings))
            ]
            append_to_log_files()
            try:
                self._template.fork(others, terminal_log(settings))
            except OSError:
                logger.error(
                    "The process that forks workers has ended, so that one worker crawls alone. Its output has the "
                    "reason: stop the crawl and resume it"
                )

    async def finished(self) -> None:
        """Note that the job is finished."""
        if self._locks is not None:
            self._locks.note_finished()

    async def close(self) -> None:
        """Leave the job, and the server to the others; the first worker and a keeper wait for these."""
        if self._locks is None:
            return
        if self._keeper is not None:
            await self._keeper.stop_watching()
        if self._template is not None or (self._keeper is not None and self._keeper.is_keeper):
            await self._wait_for_others()
        if self._keeper is not None:
            await self._keeper.close()
        self._locks.release()
        self._locks = None

    async def _wait_for_others(self) -> None:
        if await until(self._is_last, _NOTED_SECONDS):
            return
        logger.info("This worker waits for the end of the others")
        if not await until(self._is_last, _OTHERS_SECONDS):
            logger.warning(
                "Other workers take long to end, and go on without this one. Wait for them before the job is resumed"
            )

    def _is_last(self) -> bool:
        # A worker that was just forked has no lock yet.
        has_forked = self._template is not None and not self._template.has_ended
        return not has_forked and (self._locks is None or self._locks.is_last())


def _check_free(locks: GroupLocks, job: JobKey) -> None:
    if not locks.is_last():
        others = locks.others()
        locks.close()
        raise _in_use(job, f"{len(others)} workers of this machine (process IDs {', '.join(map(str, others))})")


def _in_use(job: JobKey, workers: str) -> SettingError:
    return SettingError(
        "PLATFORM_JOB", f"names {job}, which runs in {workers}", "Wait for their end, or stop them first."
    )
