"""The part of a budget that a worker has been granted."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from scrapy_ext.api.platform.permits import BudgetReport, Grant
from scrapy_ext.client.extraction.budget import OverBudgetError, Spent
from scrapy_ext.client.extraction.limiter import Closing
from scrapy_ext.crawl.session.grants import SharedBudget, former_spent


class Worker:
    def __init__(self, max_requests: int = 0, max_cost: float = 0.0) -> None:
        self.hurried = 0
        self.budget = SharedBudget(max_requests, max_cost, Spent(3, 0.5), self._hurry)

    def _hurry(self) -> None:
        self.hurried += 1

    async def begin(self, reserve: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(reserve)
        await asyncio.sleep(0)
        return task


async def test_a_request_waits_for_a_grant_which_is_wanted_at_once() -> None:
    worker = Worker(max_requests=100)
    waiting = await worker.begin(worker.budget.reserve(1.0))
    assert worker.hurried == 1
    assert worker.budget.reported() == {"requests": BudgetReport(100, 0, 0, 1, 3)}
    worker.budget.answered({"requests": Grant(2)})
    await waiting
    await worker.budget.reserve(1.0)
    assert worker.budget.reported()["requests"] == BudgetReport(100, 2, 2, 0, 3)


async def test_a_worker_that_spends_nothing_gives_the_rest_back() -> None:
    worker = Worker(max_requests=100)
    waiting = await worker.begin(worker.budget.reserve(1.0))
    worker.budget.reported()
    worker.budget.answered({"requests": Grant(9)})
    await waiting
    assert [worker.budget.reported()["requests"].held for _ in range(2)] == [9, 1]
    assert not (await worker.begin(worker.budget.reserve(1.0))).done()


async def test_requests_under_way_count_until_they_cost_nothing() -> None:
    worker = Worker(max_cost=2.0)
    first = await worker.begin(worker.budget.reserve(1.5))
    assert worker.budget.reported()["cost"] == BudgetReport(2_000_000, 0, 0, 1_500_000, 500_000)
    worker.budget.answered({"cost": Grant(1_500_000)})
    await first
    second = await worker.begin(worker.budget.reserve(1.0))
    worker.budget.reported()
    worker.budget.answered({"cost": Grant(1_500_000, over=True)})
    await asyncio.sleep(0)
    assert not second.done(), "the first one may cost nothing"
    worker.budget.settle(1.5, billed=False)
    await second
    assert worker.budget.spent == Spent(2, 0.0)


async def test_nothing_is_sent_when_the_budget_of_all_is_over() -> None:
    worker = Worker(max_requests=100)
    waiting = await worker.begin(worker.budget.reserve(1.0))
    worker.budget.reported()
    worker.budget.answered({"requests": Grant(0)})
    await asyncio.sleep(0)
    assert (waiting.done(), worker.hurried) == (False, 1), "others have some left"
    worker.budget.reported()
    worker.budget.answered({"requests": Grant(0, over=True)})
    with pytest.raises(OverBudgetError, match="EXTRACT_API_MAX_REQUESTS"):
        await waiting


async def test_waits_end_when_the_worker_is_lost() -> None:
    worker = Worker(max_requests=1)
    waiting = await worker.begin(worker.budget.reserve(1.0))
    worker.budget.end()
    with pytest.raises(Closing):
        await waiting


@pytest.mark.parametrize(
    ("metadata", "spent"),
    [
        ({}, Spent()),
        ({"frameworkstats": {"extract_api/attempts": 7, "extract_api/cost": 0.25}}, Spent(7, 0.25)),
        ({"frameworkstats": {"extract_api/attempts": "x"}}, Spent()),
        ({"frameworkstats": None}, Spent()),
    ],
)
def test_what_a_job_has_spent_before_it_had_a_group(metadata: dict[str, Any], spent: Spent) -> None:
    assert former_spent(metadata) == spent
