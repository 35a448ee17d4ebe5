"""Shares of a worker in its reports: its permits of domains, and its grants of the budget."""

from __future__ import annotations

import msgspec

from scrapy_ext.api.platform.workers import Report, ReportAnswer
from scrapy_ext.crawl.session.grants import SharedBudget
from scrapy_ext.crawl.session.group_reports import Reports
from scrapy_ext.crawl.session.permits import Permits


class GroupShares:
    """Shares of this worker. ``permits``: of domains."""

    def __init__(self, reports: Reports, permits: Permits) -> None:
        self.permits = permits
        self._budget: SharedBudget | None = None
        self._reports = reports
        reports.connect(self)

    def spend(self, budget: SharedBudget) -> None:
        """Share the budget of extraction from now on."""
        self._budget = budget

    def end(self) -> None:
        """Use no shares any more: the crawl has failed."""
        self.permits.end()
        if self._budget is not None:
            self._budget.end()

    # ── reports (ReportPart) ──

    def added_to(self, report: Report, _since: float) -> Report:
        budgets = self._budget.reported() if self._budget is not None else None
        return msgspec.structs.replace(report, domains=self.permits.reported(), budgets=budgets)

    def answered(self, answer: ReportAnswer) -> None:
        self.permits.answered(answer.permits)
        if self.permits.are_short:
            self._reports.settle()
        if self._budget is not None:
            self._budget.answered(answer.grants)
