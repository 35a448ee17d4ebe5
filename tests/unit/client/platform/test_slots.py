"""Calls for slots that are made at the same time go as one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scrapy_ext.api.platform.frontier import ProcessedBatches, SlotBatch
from scrapy_ext.client.platform.errors import TooLarge, Unreachable
from scrapy_ext.client.platform.slots import Together


class Calls:
    """The calls of a client for a frontier. ``fails``: raised by the next call for several slots."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.fails: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def _called(self, call: Any) -> None:
        self.made.append(call)
        await self.gate.wait()
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error

    async def add_to_slots(self, project: int, name: str, bodies: list[tuple[str, bytes]]) -> list[int]:
        await self._called([tuple(each) for each in bodies])
        return [body.count(b"\n") for _, body in bodies]

    async def add(self, project: int, name: str, slot: str, body: bytes, *, attempts: int) -> int:
        self.made.append((slot, body, attempts))
        return 1

    async def read_slots(self, project: int, name: str, reads: list[Any]) -> list[SlotBatch]:
        await self._called([(read.slot, read.mincount, read.known) for read in reads])
        return [SlotBatch(id=f"{read.slot}-1", requests=[], slot=read.slot) for read in reads]

    async def delete_of_slots(self, project: int, name: str, processed: list[ProcessedBatches]) -> None:
        await self._called([(each.slot, each.ids) for each in processed])


@pytest.fixture
async def calls() -> Calls:
    return Calls()


@pytest.fixture
async def slots(calls: Calls) -> Together:
    client: Any = calls
    return Together(client, 1, "news")


async def test_calls_of_one_step_go_as_one_and_each_gets_its_result(slots: Together, calls: Calls) -> None:
    assert await asyncio.gather(slots.add("0", b"a\nb\n"), slots.add("1", b"c\n")) == [2, 1]
    assert calls.made.pop() == [("0", b"a\nb\n"), ("1", b"c\n")]
    read = await asyncio.gather(slots.read("0", 5, {"x": 1}), slots.read("1", 6))
    assert [[batch.id for batch in batches] for batches in read] == [["0-1"], ["1-1"]]
    assert calls.made.pop() == [("0", 5, ["x"]), ("1", 6, [])]
    await asyncio.gather(slots.delete_batches("0", ["a"]), slots.delete_batches("1", ["b"]))
    assert calls.made == [[("0", ["a"]), ("1", ["b"])]]


async def test_calls_of_later_steps_go_by_themselves(slots: Together, calls: Calls) -> None:
    calls.gate.clear()
    first = asyncio.ensure_future(slots.add("0", b"a\n"))
    await asyncio.sleep(0.01)
    second = asyncio.ensure_future(slots.add("1", b"b\n"))
    await asyncio.sleep(0.01)
    calls.gate.set()
    assert await asyncio.gather(first, second) == [1, 1]
    assert calls.made == [[("0", b"a\n")], [("1", b"b\n")]]


async def test_large_requests_go_in_several_calls_and_a_slot_is_once_in_each(slots: Together, calls: Calls) -> None:
    large = b"x" * 700_000 + b"\n"
    assert await asyncio.gather(*(slots.add(slot, large) for slot in "012"), slots.add("2", b"y\n")) == [1] * 4
    assert [[slot for slot, _ in made] for made in calls.made] == [["0"], ["1"], ["2"], ["2"]]


async def test_each_caller_gets_the_error_of_the_call(slots: Together, calls: Calls) -> None:
    calls.fails = Unreachable("no answer")
    results = await asyncio.gather(slots.read("0", 1), slots.read("1", 1), return_exceptions=True)
    assert [type(result) for result in results] == [Unreachable, Unreachable]
    assert [batch.id for batch in await slots.read("0", 1)] == ["0-1"]


async def test_what_is_too_large_for_a_proxy_together_goes_apart(slots: Together, calls: Calls) -> None:
    calls.fails = TooLarge("413")
    assert await asyncio.gather(slots.add("0", b"a\n"), slots.add("1", b"b\n")) == [1, 1]
    assert calls.made[1:] == [("0", b"a\n", 1), ("1", b"b\n", 1)]
    calls.fails = TooLarge("413")
    with pytest.raises(TooLarge):
        await slots.add("0", b"a\n")


async def test_a_call_ends_when_nobody_waits_for_it_any_more(slots: Together, calls: Calls) -> None:
    calls.gate.clear()
    waiting = [asyncio.ensure_future(slots.read(slot, 1)) for slot in "01"]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    assert slots._reading._tasks
    waiting[1].cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0.01)
    assert not slots._reading._tasks


async def test_a_call_that_is_given_up_before_it_begins_is_not_made(slots: Together, calls: Calls) -> None:
    waiting = asyncio.ensure_future(slots.read("0", 1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0.01)
    assert calls.made == []
