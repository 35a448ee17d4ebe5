"""The loop of the tasks that a server repeats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from scrapy_ext.server.loops import Loop
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError
from scrapy_ext.server.store.fencing import LeaseLostError


async def passes(
    number: int, act: Callable[[], Awaitable[float | None]], interval: float, wake: asyncio.Event | None = None
) -> None:
    """Run a loop until a number of passes have begun."""
    begun, done = 0, asyncio.Event()

    async def counted() -> float | None:
        nonlocal begun
        begun += 1
        if begun == number:
            done.set()
        return await act()

    task = asyncio.create_task(Loop("things", counted, interval, wake).run())
    await asyncio.wait_for(done.wait(), 30)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        (StoreBusyError("busy"), logging.WARNING, "The loop of things waits for the database: busy"),
        (StoreAwayError("away"), None, None),  # which the store logs
        (LeaseLostError(), logging.WARNING, "Another server has taken over the loop of things"),
        (RuntimeError("odd"), logging.ERROR, "Unexpected error in the loop of things; it is retried"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_pass_that_fails_is_logged_and_followed_by_others(
    error: Exception, level: int | None, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def act() -> None:
        raise error

    await passes(3, act, 0.0)
    assert {each.levelno for each in caplog.records} == ({level} if level else set())
    assert all(str(text) in each.getMessage() for each in caplog.records)


async def test_more_to_do_and_a_change_each_cause_a_pass_before_the_interval_is_over() -> None:
    async def more() -> float:
        return 0.0

    await passes(3, more, 3600.0)
    wake = asyncio.Event()

    async def change_meanwhile() -> None:
        wake.set()

    await passes(3, change_meanwhile, 3600.0, wake)
