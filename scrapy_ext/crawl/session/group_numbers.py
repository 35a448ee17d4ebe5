"""Numbers of a worker in its reports: its queue, its counts and its stats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from scrapy_ext.api.platform.stat_kinds import Stat
from scrapy_ext.api.platform.workers import Counts, Queue, Report, ReportAnswer
from scrapy_ext.crawl.session.group_reports import Reports

#: Every which report has the stats.
_STATS_EVERY: Final = 5


class GroupNumbers:
    """Numbers of this worker. ``counts``, ``stats``: functions that return them."""

    def __init__(
        self, reports: Reports, counts: Callable[[], Counts] = Counts, stats: Callable[[], dict[str, Stat]] = dict
    ) -> None:
        self._counts = counts
        self._stats = stats
        # Its slots may have requests until it has read them.
        self._queue: Callable[[], Queue] = lambda: Queue(more=True)
        reports.connect(self)

    def watch(self, queue: Callable[[], Queue]) -> None:
        """Set the function that returns the requests of this worker."""
        self._queue = queue

    def stats(self) -> dict[str, Stat]:
        """Return the stats of this worker."""
        return self._stats()

    # ── reports (ReportPart) ──

    def added_to(self, report: Report, since: float) -> Report:
        queue = self._queue()
        return msgspec.structs.replace(
            report,
            queue=msgspec.structs.replace(queue, idle=since if queue.is_empty else 0.0),
            counts=self._counts(),
            stats=self._stats() if report.number % _STATS_EVERY == 0 else None,
        )

    def answered(self, answer: ReportAnswer) -> None:
        """Nothing to do."""
