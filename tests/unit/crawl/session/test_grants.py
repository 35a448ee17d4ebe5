"""The part of a budget that a worker has been granted."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from scrapy_ext.api.platform.permits import BudgetReport, BudgetShare, Grant, granted
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


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize(
    ("max_requests", "max_cost", "prices"),
    [
        (0, 7.5, [0.25]),
        (30, 0.0, [0.25]),
        (30, 7.5, [0.25]),
        (40, 9.9, [0.25, 0.7, 1.1]),
        (21, 2.2, [0.1, 0.1, 0.1, 0.3]),
    ],
)
@pytest.mark.parametrize("seed", range(20))
async def test_workers_spend_all_of_a_budget_and_then_end(
    count: int, max_requests: int, max_cost: float, prices: list[float], seed: int
) -> None:
    chance = random.Random(seed)
    workers = [Worker(max_requests, max_cost) for _ in range(count)]
    shares: dict[int, dict[str, BudgetShare]] = {}

    async def crawl(number: int) -> None:
        own, budget = random.Random(seed * 100 + number), workers[number].budget
        with contextlib.suppress(OverBudgetError):
            while True:
                price = own.choice(prices)
                await budget.reserve(price)
                for _ in range(own.randrange(9)):
                    await asyncio.sleep(0)
                budget.settle(price, billed=own.random() < 0.9)

    crawls = [asyncio.ensure_future(crawl(number)) for number in range(count) for _ in range(4)]
    for _ in range(2_000):
        if all(task.done() for task in crawls):
            break
        number = chance.randrange(count)
        reports = workers[number].budget.reported()
        others = {
            name: [BudgetShare(report.former, report.former, ended=True)]
            + [found[name] for other, found in shares.items() if other != number]
            for name, report in reports.items()
        }
        grants = granted(reports, others, count)
        shares[number] = {
            name: BudgetShare(grant.amount, reports[name].used, ended=False) for name, grant in grants.items()
        }
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        workers[number].budget.answered(grants)
    assert all(task.done() for task in crawls), "they wait for each other"
    requests = 3 + sum(worker.budget.spent.requests for worker in workers)
    cost = 0.5 + sum(worker.budget.spent.cost for worker in workers)
    assert requests <= (max_requests or math.inf)
    assert cost <= (max_cost or math.inf) + 1e-6
    assert requests == max_requests or cost > max_cost - max(prices)


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
