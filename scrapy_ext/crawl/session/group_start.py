"""Run of ``start()`` in one worker of a group.

The platform decides in which, and gives it to another one when that one dies before its requests and items are stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from scrapy_ext.api.platform.workers import Report, ReportAnswer
from scrapy_ext.crawl.session.group_closing import GroupClosing
from scrapy_ext.crawl.session.group_reports import Reports


class GroupStart:
    """Part of this worker in the run of ``start()``."""

    def __init__(self, reports: Reports, closing: GroupClosing) -> None:
        self._reports = reports
        self._closing = closing
        self._state: Literal["running", "done"] | None = None
        self._prepare: Callable[[], Awaitable[bool]] | None = None
        reports.connect(self)

    def prepare_with(self, prepare: Callable[[], Awaitable[bool]]) -> None:
        """Set the function that is awaited before this worker runs ``start()``; it returns false if that is not
        possible."""
        self._prepare = prepare

    async def may_run(self) -> bool:
        """Wait until this worker is to run ``start()``, or none is any more; return whether it is."""
        while not (self._answer.run_start or self._answer.started or self._answer.closing):
            await self._reports.next_answer()
        if not self._answer.run_start or self._answer.closing:
            return False
        if self._prepare is not None and not await self._prepare():
            return False
        self._state = "running"
        return True

    def done(self) -> None:
        """Report that the requests and items of ``start()`` are stored, if this worker runs it and does not close."""
        if self._state == "running" and not self._closing.is_closing:
            self._state = "done"
            self._reports.hurry()

    @property
    def _answer(self) -> ReportAnswer:
        return self._reports.answer

    # ── reports (ReportPart) ──

    def added_to(self, report: Report, _since: float) -> Report:
        return msgspec.structs.replace(report, start=self._state)

    def answered(self, answer: ReportAnswer) -> None:
        """Nothing to do: :meth:`may_run` reads the answer."""
