from __future__ import annotations

import asyncio

import pytest

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.http.limits import Limited


async def _value(waits: int) -> int:
    for _ in range(waits):
        await asyncio.sleep(0.001)
    return waits


@pytest.mark.parametrize("waits", [0, 1, 3])
def test_returns_the_result_whether_the_work_waits_or_not(waits: int) -> None:
    async def main() -> int:
        return await Limited(_value(waits), 30)

    assert asyncio.run(main()) == waits


def test_ends_work_that_waits_too_long_and_lets_it_clean_up() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    async def main() -> None:
        with pytest.raises(TIMEOUT_ERRORS):
            await Limited(work(), 0.01)

    asyncio.run(main())
    assert ended


@pytest.mark.parametrize("waits", [0, 1])
def test_raises_the_error_of_the_work(waits: int) -> None:
    async def work() -> None:
        await _value(waits)
        raise ValueError("wrong")

    async def main() -> None:
        with pytest.raises(ValueError, match="wrong"):
            await Limited(work(), 30)

    asyncio.run(main())


def test_passes_a_cancellation_on() -> None:
    cancelled = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main() -> None:
        async def limited() -> None:
            await Limited(work(), 30)

        task = asyncio.create_task(limited())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert cancelled
