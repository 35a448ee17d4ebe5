"""Stats of a crawl, where they go: into the metadata of its job (platform-api.md, Job metadata), as totals of all runs
and a row for each; and to OpenTelemetry.

A run that was killed has written its stats some seconds before. The platform has its records nevertheless: responses
are counted again from the request records behind the last written stats, items from the number of stored ones.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.extensions.corestats import CoreStats
from scrapy.statscollectors import StatsCollector

from scrapy_ext import settings as names
from scrapy_ext.api.masking import Secrets, masked_values
from scrapy_ext.api.platform.jobs import CRAWL_STATS, FAILED, RUNS
from scrapy_ext.api.platform.stat_kinds import (
    ELAPSED,
    ITEMS,
    MAX_BYTES,
    RESPONSES,
    Stat,
    StatKinds,
    combined,
    is_number,
    with_durations,
)
from scrapy_ext.api.platform.workers import Counts
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import JOB_ENDED, TooLarge
from scrapy_ext.compatibility.scrapy import replace_stats_method
from scrapy_ext.crawl.session.arguments import (
    ARGUMENTS,
    marks_of_crawl,
    note_arguments,
    report_other_arguments,
)
from scrapy_ext.crawl.session.cookies import note_cookies, report_lost_cookies
from scrapy_ext.crawl.session.group import RESUME, group_of
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.plain_stats import PlainStats, plain_reason, plain_stats
from scrapy_ext.telemetry.exporting import exporting
from scrapy_ext.telemetry.families import Family, Labels

logger = logging.getLogger(__name__)

#: Shortened stats that the warning names.
_NAMED: Final = 5
#: Request records behind the last stats of a killed run that are read, and rows of runs that are kept.
_MOST_READ: Final = 20_000
_MOST_RUNS: Final = 100
#: Share of the stats that are tried when the other metadata leave no room for all.
_LESS: Final = 16
_STORED_ITEMS: Final = "platform/items/count"
_REFUSED_ITEMS: Final = "platform/items/refused"
STORED_REQUESTS: Final = "platform/requests/count"
#: Stats of single domains: a metric for each would be too many.
_OF_DOMAINS: Final = "extract_api/domains/"
#: Maximum number of exported stats. A project may name stats by what it finds.
_MOST_EXPORTED: Final = 1000
_PREFIX: Final = "scrapy.stats."
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME: Final = 200


class JobStats:
    """Writer of the stats of one crawl's job. Nothing that a spider puts into its stats makes it fail."""

    def __init__(self, crawler: Crawler, secrets: Secrets) -> None:
        self._crawler = crawler
        self._secrets = secrets
        self._kinds = Kinds(crawler.stats)
        self._has_warned = False
        #: Stats and rows of former runs.
        self._former: dict[str, Any] = {}
        self._rows: list[dict[str, Any]] = []
        self._began = _now()
        self._arguments = marks_of_crawl(crawler)
        self._stored_items: int | None = None

    async def open(self, client: PlatformClient, job: CrawlJob) -> None:
        """Read what former runs of the job have counted; raises :class:`PlatformError`."""
        self._began = _now()
        if job.attempt is not None:
            # The platform adds the stats of the workers of a group, also those of former runs.
            if (group_of(self._crawler.settings) or "").startswith(RESUME):
                await note_arguments(client, job, self._arguments)
            return
        if job.begun:
            return
        stats, rows = job.former.get(CRAWL_STATS), job.former.get(RUNS)
        former = stats if isinstance(stats, dict) else {}
        report_lost_cookies(job, former)
        self._rows = [row for row in rows if isinstance(row, dict)][-_MOST_RUNS:] if isinstance(rows, list) else []
        report_other_arguments(job, self._rows, self._arguments)
        stored = (await client.requests.stats(job.key)).totals.input_values
        counted = former.get(STORED_REQUESTS, 0)
        lost: list[dict[str, Any]] = []
        if isinstance(counted, int) and 0 <= counted < stored <= counted + _MOST_READ:
            lost = [record async for record in client.requests.iter(job.key, start=counted)]
        self._former = with_responses(former, lost)
        self._stored_items = (await client.items.stats(job.key)).totals.input_values
        self._complete_rows(job, lost)

    def _complete_rows(self, job: CrawlJob, lost: list[dict[str, Any]]) -> None:
        """Correct the row of the last run, or make it if that run was killed before it wrote one."""
        began = job.former.get("running_time")
        if not self._rows:
            self._rows.append(
                {"start_time": began if isinstance(began, int) else self._began, "items": 0, "responses": 0}
            )
        row, earlier = self._rows[-1], self._rows[:-1]
        ended = [record["time"] for record in lost if isinstance(record.get("time"), int)]
        row["finish_time"] = max([_whole(row.get("finish_time", row.get("start_time"))), *ended])
        row["items"] = max((self._stored_items or 0) - sum(_whole(each.get("items")) for each in earlier), 0)
        row["responses"] = _whole(row.get("responses")) + len(lost)
        reason = job.former.get("close_reason")
        if isinstance(reason, str):
            row["close_reason"] = reason

    async def write(self, client: PlatformClient, job: CrawlJob, *, reason: object = None) -> None:
        """Write the stats; raises :class:`PlatformError`. ``reason``: close reason of a run that is at its end."""
        if reason is not None and self._rows:
            # What the journal of a killed run has led to is stored by now.
            self._stored_items = (await client.items.stats(job.key)).totals.input_values
        fields = self._fields(reason, MAX_BYTES)
        try:
            await client.jobs.update(job.key, fields)
        except TooLarge:
            # Arguments and other metadata leave too little room.
            await client.jobs.update(job.key, self._fields(reason, MAX_BYTES // _LESS))

    async def finish(self, client: PlatformClient, job: CrawlJob, reason: object) -> None:
        """Write the stats at the end of the crawl; raises :data:`JOB_ENDED` alone, for a job ends without its stats."""
        try:
            await self.write(client, job, reason=reason)
        except JOB_ENDED:
            raise
        except Exception as error:
            logger.error("The stats of job %s could not be stored: %s", job.key, error)

    def reported(self) -> dict[str, Stat]:
        """Return the stats of this worker, with their kinds."""
        return self._kinds.reported(self._plain(MAX_BYTES).stats)

    def _fields(self, reason: object, most: int) -> dict[str, Any]:
        plain = self._plain(most)
        ended = _now()
        row: dict[str, Any] = {
            "start_time": self._began,
            "finish_time": ended,
            "items": _whole(plain.stats.get(ITEMS)),
            "responses": _whole(plain.stats.get(RESPONSES)),
        }
        if self._arguments is not None:
            row[ARGUMENTS] = self._arguments
        if reason is not None:
            row["close_reason"] = self._secrets.masked(plain_reason(reason))
        if not self._rows:
            return {CRAWL_STATS: plain.stats, RUNS: [row]}
        rows = [*self._rows, row]
        seconds = sum(max(_whole(each.get("finish_time")) - _whole(each.get("start_time")), 0) for each in rows) / 1000
        stats = totals(
            self._kinds, self._former, plain.stats, stored_items=self._total_items(plain, reason), seconds=seconds
        )
        # Both have a bound; names of many runs may be more than one has.
        return {CRAWL_STATS: plain_stats(stats, most).stats, RUNS: rows[-_MOST_RUNS:]}

    def _total_items(self, plain: PlainStats, reason: object) -> int | None:
        """Return the items of the job: at the end of a run those that are stored, before it with those of this run."""
        if self._stored_items is None or reason is not None:
            return self._stored_items
        return self._stored_items + _whole(plain.stats.get("platform/items/count"))

    def _plain(self, most: int) -> PlainStats:
        try:
            note_cookies(self._crawler)
            stats: Mapping[Any, Any] = self._crawler.stats.get_stats()
            plain = plain_stats(stats, most)
            plain = plain._replace(stats=masked_values(plain.stats, self._secrets))
        except Exception as error:
            # A class of the project (STATS_CLASS) that returns something else.
            plain = PlainStats({}, [f"all ({type(error).__name__}: {error})"], 0)
        if (plain.shortened or plain.left_out) and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Stats are stored shortened, for all of them may have %d bytes of JSON: %s%s. Keep large values in "
                "items or files",
                most,
                ", ".join(plain.shortened[:_NAMED]) or "many small ones",
                f"; {plain.left_out} were left out" if plain.left_out else "",
            )
        return plain


def note_failed_opening(crawler: Crawler) -> None:
    """Let the stats of Scrapy begin and end for a spider that could not be opened, with ``failed`` as its reason.

    Scrapy sends no signal of its opening. When it closes the spider, CoreStats would raise, which is a second error in
    the log, and there would be no times. The reason would be ``shutdown``.
    """
    with contextlib.suppress(Exception):  # a subclass of the project's
        core = crawler.get_extension(CoreStats)
        if core is not None and core.start_time is None and crawler.spider is not None:
            core.spider_opened(crawler.spider)

    def close() -> None:
        crawler.stats.set_value("finish_reason", FAILED)

    # The last receiver is called last. Signals keep no receiver alive.
    crawler.signals.connect(close, signal=signals.spider_closed, weak=False)


def counts_of(stats: StatsCollector) -> Counts:
    """Return the numbers that limits of a group of workers compare."""
    found = (stats.get_value(name, 0) for name in (ITEMS, "response_received_count", "spider_exceptions/count"))
    return Counts(*(max(_whole(value), 0) for value in found))


def _now() -> int:
    return int(time.time() * 1000)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


# ── totals of all runs ──


class Kinds(StatKinds):
    """Kinds of the stats of a crawl, noted from calls of its collector."""

    def __init__(self, stats: StatsCollector) -> None:
        super().__init__()
        # Replaced in this object: a project may have a class of its own, also one without all methods, and calls from
        # other methods count as well.
        for name, noted in (("set_value", self.set), ("max_value", self.max), ("min_value", self.min)):
            if (method := getattr(stats, name, None)) is not None:
                replace_stats_method(stats, name, _noting(method, noted))


def _noting(method: Callable[..., Any], noted: set[Any]) -> Callable[..., Any]:
    def noting(key: Any, *values: Any, **more: Any) -> Any:
        noted.add(key)
        return method(key, *values, **more)

    return noting


def with_responses(former: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the stats of former runs with the responses of request records that these do not count."""
    counted = dict(former)
    for record in records:
        method, status = record.get("method") or "GET", record.get("status")
        for name in (
            STORED_REQUESTS,
            RESPONSES,
            "response_received_count",
            f"downloader/response_status_count/{status}",
            "downloader/request_count",
            f"downloader/request_method_count/{method}",
        ):
            before = counted.get(name, 0)
            counted[name] = before + 1 if is_number(before) else before
    return counted


def totals(
    kinds: Kinds, former: Mapping[str, Any], stats: Mapping[str, Any], *, stored_items: int | None, seconds: float
) -> dict[str, Any]:
    """Return the stats of all runs.

    ``stored_items``: items of the job on the platform, None if they are not known; ``seconds``: duration of all runs.
    """
    both = {**former, **stats}
    for name in former.keys() & stats.keys():
        both[name] = combined(kinds.of(name), former[name], stats[name])
    counts = [both.get(name, 0) for name in (ITEMS, _STORED_ITEMS, _REFUSED_ITEMS)]
    if stored_items is not None and all(map(is_number, counts)) and (stored_items or counts[1]):
        scraped, counted, refused = counts
        # A pipeline behind the storage may have dropped some. The storage counts a moment later than Scrapy.
        both[ITEMS] = max(stored_items + refused - max(counted - scraped, 0), 0)
        both[_STORED_ITEMS] = stored_items
    return with_durations(both, seconds) if ELAPSED in stats else both


# ── export ──


@contextlib.asynccontextmanager
async def exporting_crawl(crawler: Crawler, attributes: Mapping[str, str]) -> AsyncIterator[None]:
    """Export traces and stats within the block, if that is switched on. ``attributes`` are those of each stat."""
    if not names.OPENTELEMETRY_ENABLED.read(crawler.settings):
        yield
        return

    async def collect() -> list[Family]:
        return list(families(crawler.stats.get_stats(), dict(attributes)))

    async with exporting(str(crawler.settings["BOT_NAME"]), collect):
        yield


def families(stats: Mapping[str, Any], labels: Labels) -> Iterator[Family]:
    """Yield the numbers among the stats as gauges: some only grow, others do not."""
    number = 0
    for name, value in stats.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            continue
        if str(name).startswith(_OF_DOMAINS):
            continue
        number += 1
        if number > _MOST_EXPORTED:
            return
        named = _NOT_IN_NAMES.sub("_", str(name).replace("/", "."))[:_LONGEST_NAME]
        yield Family(_PREFIX + named, "gauge", f"Stat {name}", [(labels, value)])
