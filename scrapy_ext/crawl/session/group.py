"""Membership of this process in a group of workers, which run one job together.

A worker sends a report every two seconds (``group_reports``). The answer lists the live workers (``group_liveness``),
and has the decisions that are made once for all of them: whether the crawl closes (``group_closing``), and who runs
``start()`` (``group_start``). Each idea is a part of the membership, made after those that it knows::

    Reports ◄── GroupNumbers, GroupShares, GroupLiveness, GroupClosing ◄── GroupStart
                GroupNumbers, GroupLiveness, GroupClosing              ◄── GroupEnd
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.stat_kinds import Stat
from scrapy_ext.api.platform.worker_bounds import GROUP_SETTING, bounds_of
from scrapy_ext.api.platform.workers import Counts, Report, ReportAnswer
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.retry import Outage, Retry
from scrapy_ext.crawl.session.group_closing import GroupClosing
from scrapy_ext.crawl.session.group_end import GroupEnd
from scrapy_ext.crawl.session.group_liveness import GroupLiveness
from scrapy_ext.crawl.session.group_numbers import GroupNumbers
from scrapy_ext.crawl.session.group_reports import Reports
from scrapy_ext.crawl.session.group_shares import GroupShares
from scrapy_ext.crawl.session.group_start import GroupStart
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.permits import Permits, SiteLimits

#: Setting by which whoever starts the workers of a job makes each of them join: the number of workers, or its bounds as
#: ``4..32``. ``resume`` before it: no worker of an earlier start is alive. Not for users.
SETTING: Final = GROUP_SETTING
RESUME: Final = "resume "


def group_of(settings: BaseSettings) -> str | None:
    """Return the group that the crawl is to join, None if it is the only worker of its job."""
    return settings.get(SETTING) or None


def workers_of(settings: BaseSettings) -> int:
    """Return the highest number of workers of the group that the crawl is to join."""
    return bounds_of(settings[SETTING].removeprefix(RESUME)).most


class Joined(NamedTuple):
    """A worker that has joined: its attempt, its number, the token of its calls, and the ``answer``, whose report was
    sent ``at`` (monotonic clock)."""

    key: JobKey
    attempt: int
    worker: int
    token: str
    answer: ReportAnswer
    at: float

    def job(self, job: CrawlJob) -> CrawlJob:
        """Return the job as this worker runs it."""
        return msgspec.structs.replace(job, attempt=self.attempt, worker=self.worker)


async def join(client: PlatformClient, key: JobKey, given: str, retry: Retry) -> Joined:
    """Join the group of a job, as the setting says. Raises :class:`PlatformError`."""
    report = Report(
        job=str(key),
        nonce=secrets.token_hex(16),
        number=1,
        workers=given.removeprefix(RESUME),
        resume=given.startswith(RESUME),
    )
    sent = 0.0

    async def send() -> ReportAnswer:
        nonlocal sent
        sent = time.monotonic()
        return await client.workers.report(key.project, report)

    answer = await retry.until_done(send, "join the workers of the job")
    if answer.attempt is None or answer.worker is None or answer.token is None:
        raise ValueError("the answer to a join has an attempt, a worker and a token")
    return Joined(key, answer.attempt, answer.worker, answer.token, answer, sent)


def _lives(_attempt: int) -> bool:
    return False


class Membership:
    """This worker in its group.

    ``lease_time``: seconds without a new report after which a worker is considered dead.
    ``limits_of``: limits of a domain as in a crawl with one worker.
    ``counts``, ``stats``: functions that return those of this worker.
    ``is_gone``: returns true if the process of an attempt is known to have ended.
    """

    def __init__(
        self,
        joined: Joined,
        *,
        lease_time: float,
        limits_of: Callable[[str], SiteLimits],
        counts: Callable[[], Counts] = Counts,
        stats: Callable[[], dict[str, Stat]] = dict,
        is_gone: Callable[[int], bool] = _lives,
        outage: Outage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        attempt = joined.attempt
        empty = Report(job=str(joined.key), attempt=attempt, number=1)
        self.reports = reports = Reports(empty, joined.answer, joined.at, outage=outage, clock=clock)
        self.numbers = GroupNumbers(reports, counts, stats)
        self.shares = GroupShares(reports, Permits(limits_of, reports.hurry))
        self.liveness = GroupLiveness(reports, attempt, lease_time, is_gone, clock)
        self.closing = GroupClosing(reports)
        self.start = GroupStart(reports, self.closing)
        self.end = GroupEnd(reports, self.liveness, self.closing, self.numbers, attempt=attempt, clock=clock)
