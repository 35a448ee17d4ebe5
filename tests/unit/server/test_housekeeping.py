"""Runs of tasks that remove rows in steps."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

import pytest

from scrapy_ext.server import housekeeping
from scrapy_ext.server.housekeeping import Housekeeping, Progress, Task
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.expiry.steps import Steps


async def test_a_long_removal_lets_other_tasks_run_and_continues_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    async def begin() -> Steps:
        begun.append(1)
        for number in range(3):
            yield number

    monkeypatch.setattr(housekeeping, "_LONGEST", -1.0)
    removal = housekeeping._Removal(begin)
    found = [await removal.run() for _ in range(4)]
    assert found == [Progress(0, False), Progress(1, False), Progress(2, False), Progress(0, True)]
    assert len(begun) == 1
    monkeypatch.setattr(housekeeping, "_LONGEST", 60.0)
    assert await removal.run() == Progress(3, True)
    assert len(begun) == 2


async def test_a_removal_that_failed_begins_again() -> None:
    times = iter([True, False])

    async def begin() -> Steps:
        yield 1
        if next(times):
            raise StoreError("the disk is full")
        yield 2

    removal = housekeeping._Removal(begin)
    with pytest.raises(StoreError):
        await removal.run()
    assert await removal.run() == Progress(3, True)


async def test_the_first_runs_of_tasks_are_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_APART", 3600.0)
    begun = []

    async def run(name: str) -> Progress:
        begun.append(name)
        return Progress(0)

    tasks = [Task(name, 3600.0, partial(run, name)) for name in ("first", "second", "third")]
    running = asyncio.create_task(Housekeeping(tasks).run())
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert begun == ["first"]
