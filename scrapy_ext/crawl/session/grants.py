"""Grants of this worker: the part of the extraction budget that it may spend, renewed by its reports.

Until the answer to the next report, no more is spent than that report says. A worker that spends nothing gives the rest
of its grant back, so that others can have it, and so does one that waits for more: what is left may be too little for
each worker, and enough for one of them (:mod:`scrapy_ext.api.platform.permits`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.api.platform.permits import BudgetReport, Grant
from scrapy_ext.client.extraction.budget import Budget, OverBudgetError, Spent
from scrapy_ext.client.extraction.limiter import Closing

#: Units of a cost in reports, in one of ``EXTRACT_API_PRICES``.
_UNITS: Final = 1_000_000
_REQUESTS, _COST = "requests", "cost"
_SETTINGS: Final = {_REQUESTS: "EXTRACT_API_MAX_REQUESTS", _COST: "EXTRACT_API_MAX_COST"}


def units(cost: float) -> int:
    """Return a cost in whole units, rounded up."""
    return math.ceil(round(cost * _UNITS, 3))


class _Share(msgspec.Struct):
    limit: int
    former: int
    granted: int = 0
    want: int = 0
    #: Of the last report: what was wanted.
    asked: int = 0
    #: Of the last answer: what was wanted and not granted, and whether it is more than is left of the whole budget.
    refused: int | None = None
    is_over: bool = False

    def is_over_for(self, need: int) -> bool:
        return self.is_over and self.refused is not None and need >= self.refused


class SharedBudget(Budget):
    """Budget that the workers of a group share. ``spent`` is that of this worker. ``former``: of the job, before it had
    a group. ``hurry``: called when a report is due at once."""

    def __init__(self, max_requests: int, max_cost: float, former: Spent, hurry: Callable[[], None]) -> None:
        super().__init__()
        self._hurry = hurry
        limits = {_REQUESTS: (max_requests, former.requests), _COST: (units(max_cost), units(former.cost))}
        self._shares = {name: _Share(*values) for name, values in limits.items() if values[0]}
        self._is_used = False
        self._has_ended = False
        self._changed = asyncio.Event()

    async def reserve(self, price: float) -> None:
        """Reserve a request in the grants of this worker, and wait for more when they are used up. Raises
        :class:`OverBudgetError`, and :class:`Closing` once no grants come any more."""
        needs = {_REQUESTS: 1, _COST: units(price)}
        while short := [name for name in self._shares if self._lacks(name, needs[name])]:
            for name in short:
                if self._shares[name].is_over_for(needs[name]) and (name == _REQUESTS or not self._may_fall):
                    raise OverBudgetError(_SETTINGS[name], "all of it is spent by the workers, or nearly")
            for name, share in self._shares.items():
                share.want = max(share.want, needs[name])
            if self._has_ended:
                raise Closing
            if all(self._shares[name].refused is None for name in short):
                self._hurry()
            self._changed.clear()
            await self._changed.wait()
        self._is_used = True
        self.spent.requests += 1
        self._reserved += price

    def settle(self, price: float, *, billed: bool) -> None:
        super().settle(price, billed=billed)
        self._changed.set()

    def reported(self) -> dict[str, BudgetReport]:
        """Return what a report has that is sent now, and spend no more than that until its answer."""
        found: dict[str, BudgetReport] = {}
        keeps = self._is_used and not any(share.want for share in self._shares.values())
        for name, share in self._shares.items():
            used = self._used(name)
            if not keeps:
                share.granted = min(share.granted, used)
            share.asked = share.want
            held = max(share.granted, used)
            found[name] = BudgetReport(share.limit, used, held, share.want, share.former)
        self._is_used = False
        return found

    def answered(self, grants: Mapping[str, Grant]) -> None:
        """Take the grants of the answer to the last report."""
        for name, grant in grants.items():
            if (share := self._shares.get(name)) is not None:
                is_refused = bool(share.asked) and grant.amount < share.granted + share.asked
                share.refused = share.asked if is_refused else None
                share.granted, share.is_over, share.want = grant.amount, grant.over, 0
        self._changed.set()

    def end(self) -> None:
        """End the waits: this worker is lost, or its crawl has failed."""
        self._has_ended = True
        self._changed.set()

    def _lacks(self, name: str, need: int) -> bool:
        return self._used(name) + need > self._shares[name].granted

    def _used(self, name: str) -> int:
        """Return what is spent or reserved."""
        return self.spent.requests if name == _REQUESTS else units(self.spent.cost + self._reserved)


def former_spent(metadata: Mapping[str, Any]) -> Spent:
    """Return what a job has spent before this run, by the stats in its metadata."""
    stats = metadata.get(CRAWL_STATS)
    found = [stats.get(f"extract_api/{name}") if isinstance(stats, dict) else 0 for name in ("attempts", "cost")]
    requests, cost = (max(value, 0) if isinstance(value, int | float) else 0 for value in found)
    return Spent(int(requests), float(cost))
