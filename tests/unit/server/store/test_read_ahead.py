"""Work on the parts of a stream before they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from scrapy_ext.server.store.read_ahead import ahead


class FaultError(Exception):
    """Error of these tests."""


async def _parts(count: int, *, fault: bool = False) -> AsyncIterator[int]:
    for part in range(count):
        yield part
    if fault:
        raise FaultError


class Work:
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[int]] = []

    def begin(self, part: int) -> asyncio.Future[int]:
        self.begun.append(asyncio.get_running_loop().create_future())
        return self.begun[-1]


def _done(part: int) -> asyncio.Future[int]:
    result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    if part == 3:
        result.set_exception(FaultError())
    else:
        result.set_result(part)
    return result


@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_everything_comes_in_order(count: int) -> None:
    assert [part async for part in ahead(_parts(count), _done, 2)] == list(range(count))


async def test_no_more_is_begun_than_was_said_however_slow_the_reader() -> None:
    work = Work()
    results = ahead(_parts(10), work.begin, 2)
    first = asyncio.ensure_future(anext(results))
    await asyncio.sleep(0)
    assert len(work.begun) == 3
    work.begun[1].set_result(1)  # the second is ready first, and waits for its turn
    work.begun[0].set_result(0)
    assert await first == 0
    assert len(work.begun) == 3
    await results.aclose()
    assert work.begun[2].cancelled()


@pytest.mark.parametrize(("count", "fault"), [(3, True), (5, False)], ids=["the source fails", "a part fails"])
async def test_what_comes_before_a_fault_is_delivered(count: int, fault: bool) -> None:
    results = ahead(_parts(count, fault=fault), _done, 2)
    assert [await anext(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(FaultError):
        await anext(results)
