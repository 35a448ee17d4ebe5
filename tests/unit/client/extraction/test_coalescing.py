from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

from scrapy_ext.client.extraction.client import Coalescing


class Work:
    """Work that ends on demand, and counts its starts."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = 0
        self.end = asyncio.Event()
        self.error = error

    async def __call__(self) -> int:
        self.begun += 1
        await self.end.wait()
        if self.error is not None:
            raise self.error
        return self.begun


async def begun(*coroutines) -> list[asyncio.Task]:
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_work_that_is_under_way_is_done_once_for_all():
    coalescing, work, other = Coalescing(), Work(), Work()
    tasks = await begun(*(coalescing.share("a", work) for _ in range(3)), coalescing.share("b", other))
    work.end.set()
    other.end.set()
    assert await asyncio.gather(*tasks) == [(1, False), (1, True), (1, True), (1, False)]
    assert (work.begun, other.begun) == (1, 1)
    assert await coalescing.share("a", work) == (2, False)


async def test_its_failure_is_everybody_s():
    coalescing, work = Coalescing(), Work(ValueError("no"))
    tasks = await begun(coalescing.share("a", work), coalescing.share("a", work))
    work.end.set()
    for task in tasks:
        with pytest.raises(ValueError, match="no"):
            await task
    assert work.begun == 1


async def test_when_the_first_is_cancelled_the_next_does_it():
    coalescing, work = Coalescing(), Work()
    first, second, third = await begun(*(coalescing.share("a", work) for _ in range(3)))
    first.cancel()
    await begun()
    assert work.begun == 2
    work.end.set()
    assert await asyncio.gather(second, third) == [(2, False), (2, True)]
    assert first.cancelled()


async def test_who_waits_can_be_cancelled_alone():
    coalescing, work = Coalescing(), Work()
    first, second = await begun(*(coalescing.share("a", work) for _ in range(2)))
    second.cancel()
    await begun()
    work.end.set()
    assert await first == (1, False)


async def test_waiting_for_another_can_be_noticed():
    waiting = []

    @contextmanager
    def noticed():
        waiting.append(1)
        yield
        waiting.pop()

    coalescing, work = Coalescing(noticed), Work()
    tasks = await begun(*(coalescing.share("a", work) for _ in range(3)))
    assert len(waiting) == 2
    work.end.set()
    await asyncio.gather(*tasks)
    assert waiting == []


async def test_a_generator_that_is_thrown_away_leaves_nothing_behind():
    coalescing, work = Coalescing(), Work()
    abandoned = coalescing.share("a", work)
    abandoned.send(None)
    abandoned.close()
    work.end.set()
    assert await coalescing.share("a", work) == (2, False)
