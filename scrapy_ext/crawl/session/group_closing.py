"""Closing of a crawl by several workers: for all of them, or for this one alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import msgspec

from scrapy_ext.api.platform.jobs import FINISHED, JOB_DELETED
from scrapy_ext.api.platform.workers import Closing, Report, ReportAnswer
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.leases import REPLACED
from scrapy_ext.crawl.session.group_reports import Reports

#: Close reasons that are no reason for the others to close.
_OWN_REASONS: Final = frozenset({FINISHED, REPLACED, JOB_DELETED})


class GroupClosing:
    """The close reason of this worker, which its reports have, and that of the group, which their answers have."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        #: Close reason of this worker's spider, and whether it closes the crawl for all.
        self._reason: str | None = None
        self._is_for_all = False
        self._on_closing: Callable[[Closing], None] | None = None
        self._on_leave: Callable[[], None] | None = None
        self._has_closed = self._leaves = False
        reports.connect(self)

    @property
    def is_closing(self) -> bool:
        """True when the spider of this worker closes."""
        return self._reason is not None

    def connect(self, on_closing: Callable[[Closing], None], on_leave: Callable[[], None]) -> None:
        """Set the functions that are called once, when the crawl closes, and when this worker alone is to end. Call
        this when the spider is open."""
        self._on_closing, self._on_leave = on_closing, on_leave

    def close(self, reason: str) -> None:
        """Close the crawl for all workers, when the spider of this one closes with ``reason``. A spider closes once:
        only its first reason counts."""
        if self._reason is not None:
            return
        self._reason = reason
        if reason not in _OWN_REASONS and not self._leaves:
            self._is_for_all = True
            self._reports.hurry()

    async def leaves_alone(self) -> bool:
        """Return true if this worker closes and the crawl goes on, by the answer to another report."""
        if self._reason in (None, FINISHED):
            return False
        with contextlib.suppress(PlatformError):
            await self._reports.refreshed()
        return self.is_alone

    @property
    def is_alone(self) -> bool:
        """True if this worker closes and the crawl goes on, by the answer to the last report."""
        return (
            self._reason not in (None, FINISHED)
            and not self._reports.has_failed
            and self._reports.answer.closing is None
        )

    # ── reports (ReportPart) ──

    def added_to(self, report: Report, _since: float) -> Report:
        closing = self._reason if self._is_for_all else None
        return msgspec.structs.replace(report, closing=closing, leaving=self._leaves)

    def answered(self, answer: ReportAnswer) -> None:
        if answer.closing is not None and self._on_closing is not None and not self._has_closed:
            self._has_closed = True
            self._on_closing(answer.closing)
        elif answer.leave and self._on_leave is not None and not (self._leaves or self._has_closed):
            self._leaves = True
            self._on_leave()
