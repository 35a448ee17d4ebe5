"""Calls for the slots of one frontier: a call for each, or one for all that are wanted at the same time.

The contract has calls for one slot (:class:`EachSlot`). Workers of one job send to all slots and read several, a few
requests each, so that the calls would cost more than the requests. Their platform has calls for several slots
(:class:`Together`): those that are made in one step of the event loop go as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from scrapy_ext.api.platform.frontier import Batch, ProcessedBatches, SlotRead
from scrapy_ext.client.platform.errors import TooLarge
from scrapy_ext.client.platform.frontier import Frontier

T = TypeVar("T")
R = TypeVar("R")

#: No batches.
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
#: Bytes of requests of several slots in one call.
_MAX_BYTES: Final = 1024 * 1024


class SlotCalls(Protocol):
    """Slots of one frontier. The calls are those of :class:`~scrapy_ext.client.platform.frontier.Frontier`.

    ``are_joint``: whether one call may be for several slots.
    """

    are_joint: bool

    async def add(self, slot: str, body: bytes) -> int:
        """Enqueue requests, with one attempt; return the number of new ones."""

    async def read(self, slot: str, mincount: int, known: Mapping[str, int] = NOTHING) -> list[Batch]:
        """Return the batches at the head of a queue that are not known."""

    async def delete_batches(self, slot: str, ids: Iterable[str]) -> None:
        """Mark batches as completed, with one attempt."""


class EachSlot:
    """A call for each slot, as the contract has them."""

    are_joint = False

    def __init__(self, frontier: Frontier, project: int, name: str) -> None:
        self._frontier = frontier
        self._project = project
        self._name = name

    async def add(self, slot: str, body: bytes) -> int:
        return await self._frontier.add(self._project, self._name, slot, body, attempts=1)

    async def read(self, slot: str, mincount: int, known: Mapping[str, int] = NOTHING) -> list[Batch]:
        return await self._frontier.read(self._project, self._name, slot, mincount, known=known)

    async def delete_batches(self, slot: str, ids: Iterable[str]) -> None:
        await self._frontier.delete_batches(self._project, self._name, slot, ids, attempts=1)


class _Added(NamedTuple):
    slot: str
    body: bytes


class Together:
    """One call for all slots that are wanted in one step of the event loop."""

    are_joint = True

    def __init__(self, frontier: Frontier, project: int, name: str) -> None:
        self._frontier = frontier
        self._project = project
        self._name = name
        self._each = EachSlot(frontier, project, name)
        self._adding = _Joint(self._add)
        self._reading = _Joint(self._read)
        self._deleting = _Joint(self._delete)

    async def add(self, slot: str, body: bytes) -> int:
        return await self._adding.call(_Added(slot, body))

    async def read(self, slot: str, mincount: int, known: Mapping[str, int] = NOTHING) -> list[Batch]:
        return await self._reading.call(SlotRead(slot, mincount, [*known]))

    async def delete_batches(self, slot: str, ids: Iterable[str]) -> None:
        await self._deleting.call(ProcessedBatches(slot, [*ids]))

    async def _add(self, added: Sequence[_Added]) -> list[int]:
        counts: list[int] = []
        for some in _pieces(added):
            try:
                counts += await self._frontier.add_to_slots(self._project, self._name, some)
            except TooLarge:
                # Some proxies accept smaller bodies than the platform: each writer finds its own limit.
                if len(some) == 1:
                    raise
                counts += [await self._each.add(*each) for each in some]
        return counts

    async def _read(self, asked: Sequence[SlotRead]) -> list[list[Batch]]:
        found = await self._frontier.read_slots(self._project, self._name, asked)
        return [[batch for batch in found if batch.slot == read.slot] for read in asked]

    async def _delete(self, processed: Sequence[ProcessedBatches]) -> list[None]:
        await self._frontier.delete_of_slots(self._project, self._name, processed)
        return [None] * len(processed)


def _pieces(added: Sequence[_Added]) -> Iterable[list[_Added]]:
    """Yield the requests in pieces of limited size, each slot once in a piece."""
    piece, size = dict[str, _Added](), 0
    for each in added:
        if piece and (each.slot in piece or size + len(each.body) > _MAX_BYTES):
            yield [*piece.values()]
            piece, size = {}, 0
        piece[each.slot] = each
        size += len(each.body)
    yield [*piece.values()]


class _Joint(Generic[T, R]):
    """Calls that are made in one step of the event loop, as one: ``make`` returns a result for each."""

    def __init__(self, make: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._make = make
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, asked: T) -> R:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._begin)
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((asked, future))
        return await future

    def _begin(self) -> None:
        waiting = [(asked, future) for asked, future in self._waiting if not future.done()]
        self._waiting = []
        if not waiting:
            return
        task = asyncio.ensure_future(self._answer(waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for _, future in waiting:
            future.add_done_callback(lambda _: _cancel_unwanted(task, waiting))

    async def _answer(self, waiting: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._make([asked for asked, _ in waiting])
        except Exception as error:
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(waiting, results, strict=True):
            if not future.done():
                future.set_result(result)


def _cancel_unwanted(task: asyncio.Task[None], waiting: Sequence[tuple[object, asyncio.Future[R]]]) -> None:
    """Cancel the task of a call without a waiting caller."""
    if all(future.cancelled() for _, future in waiting):
        task.cancel()
