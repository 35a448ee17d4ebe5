"""Equivalents of names that Python 3.10 lacks behave as those of later versions."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import subprocess
from datetime import datetime, timezone

import pytest

from scrapy_ext.compatibility.python import (
    TIMEOUT_ERRORS,
    create_task_in,
    datetime_of_iso,
    log_level,
    run_together,
    safe_module,
    timeout_after,
    timeout_at,
)

VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=0)


async def test_every_kind_of_timeout_is_one_of_the_errors() -> None:
    with pytest.raises(TIMEOUT_ERRORS):
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    with pytest.raises(TIMEOUT_ERRORS):
        concurrent.futures.Future[None]().result(timeout=0)
    with pytest.raises(TimeoutError):  # an OSError, as of the operating system
        async with timeout_after(0.001):
            await asyncio.Event().wait()


async def test_a_time_limit_ends_its_block_and_no_other() -> None:
    async with timeout_after(60) as outer:
        with pytest.raises(TimeoutError):
            async with timeout_after(0) as inner:
                await asyncio.sleep(60)
    assert (inner.expired(), outer.expired()) == (True, False)
    async with timeout_after(None) as endless:
        await asyncio.sleep(0)
    assert endless.when() is None


async def test_a_time_limit_can_be_postponed_and_suspended() -> None:
    now = asyncio.get_running_loop().time()
    async with timeout_at(now + 0.01) as limit:
        limit.reschedule(None)
        await asyncio.sleep(0.03)
        limit.reschedule(now + 60)
        await asyncio.sleep(0)
    assert limit.when() == now + 60


async def test_a_time_limit_that_is_moved_to_the_past_ends_its_block() -> None:
    async def wait() -> None:
        async with timeout_after(60) as limit:
            limit.reschedule(asyncio.get_running_loop().time() - 1)
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await wait()


async def test_a_cancellation_from_outside_is_no_timeout() -> None:
    async def limited() -> None:
        async with timeout_after(60):
            await asyncio.Event().wait()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_failure_ends_those_that_run_together() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("wait")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await run_together(wait(), fail(), wait())
    assert ended == ["wait", "wait"]
    await run_together()


async def test_a_task_runs_in_the_context_that_it_is_given_also_from_within() -> None:
    context = contextvars.copy_context()
    VARIABLE.set(1)
    found: list[int] = []

    async def note() -> None:
        found.append(VARIABLE.get())

    loop = asyncio.get_running_loop()
    await create_task_in(context, loop, note())
    await context.run(create_task_in, context, loop, note())
    assert found == [0, 0]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-23", datetime(2026, 11, 23)),  # noqa: DTZ001
        ("2026-11-23T08:15:00Z", datetime(2026, 11, 23, 8, 15, tzinfo=timezone.utc)),
        ("2026-11-23T08:15:00.5+00:00", datetime(2026, 11, 23, 8, 15, 0, 500_000, tzinfo=timezone.utc)),
        ("2026-11-23T08:15:00.123456789", datetime(2026, 11, 23, 8, 15, 0, 123_456)),  # noqa: DTZ001
    ],
)
def test_dates_of_other_systems_are_read(text: str, moment: datetime) -> None:
    assert datetime_of_iso(text) == moment
    with pytest.raises(ValueError, match="soon"):
        datetime_of_iso("soon")


def test_levels_of_logging_have_names() -> None:
    assert log_level("WARNING") == 30
    with pytest.raises(KeyError):
        log_level("LOUD")


def test_a_module_runs_by_its_name_with_its_arguments() -> None:
    options = safe_module("json.tool")
    assert "json.tool" in " ".join(options)
    assert subprocess.list2cmdline(options)
