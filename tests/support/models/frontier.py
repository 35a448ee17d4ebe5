"""Frontiers: a slot takes each fingerprint once, gives its requests in order, and gives each until it is deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from scrapy_ext.api.platform.frontier import MAX_BATCH
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot, priority_of
from tests.support.models.history import UNKNOWN, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import HttpWorld, StoreWorld, accepted

SLOTS = ("0", "1")
FRONTIER = "f"


class Add(NamedTuple):
    """Requests as (fingerprint, priority)."""

    slot: str
    requests: tuple[tuple[int, int], ...]


class Read(NamedTuple):
    """``after``: which of the batches that were read before; then its ID."""

    slot: str
    mincount: int
    after: Any = None


class DeleteBatches(NamedTuple):
    """Choice of batches that were read before, of any slot; then their IDs."""

    slot: str
    batches: tuple[Any, ...]


class CountQueue(NamedTuple):
    slot: str


class Fingerprints(NamedTuple):
    slot: str


class DeleteSlot(NamedTuple):
    slot: str


class Slots(NamedTuple):
    pass


class Batch(NamedTuple):
    id: str
    priority: int
    fps: tuple[int, ...]


class State(NamedTuple):
    """A slot. ``queue``: (priority, fingerprint) in the order in which they are given; ``given``: the batches that were
    read and not deleted; ``gone``: the IDs of those that were."""

    known: frozenset[int] = frozenset()
    queue: tuple[tuple[int, int], ...] = ()
    given: frozenset[Batch] = frozenset()
    gone: frozenset[str] = frozenset()


_ALL = "slots"


class Frontier:
    """The model: each slot by itself, and which slots there are."""

    tables = ("frontier_batches", "frontier_slots")

    def initial(self, part: Any) -> Any:
        return frozenset() if part == _ALL else State()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        if not isinstance(call.operation, Slots):
            yield call.operation.slot, call
        if isinstance(call.operation, Slots | Add | DeleteSlot):
            yield _ALL, call

    def step(self, state: Any, operation: Any, result: Any) -> Iterator[Any]:
        if not isinstance(state, State):
            match operation:
                case Add(slot):
                    yield state | {slot}
                case DeleteSlot(slot):
                    yield state - {slot}
                case _:
                    yield from only(either(result, sorted(state)), state)
            return
        match operation:
            case Add(_, requests):
                new = {fp: priority for fp, priority in reversed(requests) if fp not in state.known}
                ordered = [(new[fp], fp) for fp in dict.fromkeys(fp for fp, _ in requests) if fp in new]
                queue = tuple(sorted([*state.queue, *ordered], key=lambda each: each[0]))
                yield from only(either(result, len(new)), state._replace(known=state.known.union(new), queue=queue))
            case Read():
                yield from self._read(state, operation, result)
            case DeleteBatches(_, ids):
                deleted = {batch for batch in state.given if batch.id in ids}
                fps = {fp for batch in deleted for fp in batch.fps}
                queue = tuple(each for each in state.queue if each[1] not in fps)
                gone = state.gone | {batch.id for batch in deleted}
                yield state._replace(queue=queue, given=state.given - deleted, gone=gone)
            case CountQueue():
                yield from only(either(result, len(state.queue)), state)
            case Fingerprints():
                expected = sorted(state.known, key=lambda fp: str(fp).encode())
                yield from only(either(result, expected), state)
            case DeleteSlot():
                yield State(gone=state.gone | {batch.id for batch in state.given})

    def _read(self, state: State, operation: Read, result: Any) -> Iterator[State]:
        if result is UNKNOWN:
            yield state
            return
        pairs = [(batch.priority, fp) for batch in result for fp in batch.fps]
        queue = list(state.queue)
        if operation.after is not None:
            before = next((batch for batch in state.given if batch.id == operation.after), None)
            if before is not None:
                queue = queue[queue.index((before.priority, before.fps[-1])) + 1 :]
            elif pairs:  # it is gone, so that its place is known to the store alone
                if pairs[0] not in queue:
                    return
                queue = queue[queue.index(pairs[0]) :]
            elif not result:
                yield state
                return
        if pairs != queue[: len(pairs)]:
            return
        enough = min(operation.mincount, len(queue))
        if len(pairs) < enough or (result and len(pairs) - len(result[-1].fps) >= operation.mincount):
            return
        if all(self._is_right(state, batch) for batch in result):
            yield state._replace(given=state.given | set(result))

    def _is_right(self, state: State, batch: Batch) -> bool:
        """An ID stands for the same requests for ever, and a request that was given stays in its batch."""
        same = [each for each in state.given if each.id == batch.id or not set(each.fps).isdisjoint(batch.fps)]
        return same in ([], [batch]) and batch.id not in state.gone and 1 <= len(batch.fps) <= MAX_BATCH

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        slots, fps = st.sampled_from(SLOTS), st.integers(0, 30)
        few = st.lists(st.tuples(fps, st.integers(-1, 1)), min_size=1, max_size=5).map(tuple)
        many = st.builds(
            lambda first, priority: tuple((fp, priority) for fp in range(first, first + MAX_BATCH + 20)),
            st.integers(0, 400),
            st.integers(0, 1),
        )
        counts = st.sampled_from([1, 2, 10, MAX_BATCH, MAX_BATCH + 1, 1000])
        some = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(tuple)
        adds, reads = made(Add, slots, few), made(Read, slots, counts)
        deletes = made(DeleteBatches, slots, some)
        return st.one_of(
            *(adds, adds, adds, made(Add, slots, many), reads, reads, deletes, deletes),
            made(Read, slots, counts, st.integers(0, 12)),
            *(made(CountQueue, slots), made(Fingerprints, slots), st.just(Slots())),
            made(DeleteSlot, slots),
        )


class _Remembering:
    """Batches that were read, the newest first."""

    def __init__(self) -> None:
        self._ids: dict[str, list[str]] = {slot: [] for slot in SLOTS}

    def resolved(self, operation: Any) -> Any:
        every = [each for ids in self._ids.values() for each in ids] or ["0" * 24]
        if isinstance(operation, Read) and operation.after is not None:
            ids = self._ids[operation.slot]
            return operation._replace(after=ids[operation.after % len(ids)] if ids else None)
        if isinstance(operation, DeleteBatches):
            ids = self._ids[operation.slot] or every
            # Every third is of any slot, or of none.
            chosen = [
                (every if place % 3 == 2 else ids)[place % len(every if place % 3 == 2 else ids)]
                for place in operation.batches
            ]
            return operation._replace(batches=tuple(chosen))
        return operation

    def read(self, slot: str, batches: Sequence[Batch]) -> list[Batch]:
        self._ids[slot] = list(dict.fromkeys([*(batch.id for batch in batches), *self._ids[slot]]))[:12]
        return list(batches)


class OnStores(_Remembering):
    """Operations of two stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        super().__init__()
        self._world, self._project, self._turn = world, project, 0

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store = self._world.stores[self._turn % 2].frontier
        if isinstance(operation, Slots):
            return await store.slots(self._project, FRONTIER)
        slot = Slot(self._project, FRONTIER, operation.slot)
        match operation:
            case Add(_, requests):
                return await store.add(
                    slot, [QueuedRequest(b"%d" % fp, b'["%d",%d]' % (fp, fp), None, p) for fp, p in requests]
                )
            case Read(name, mincount, after):
                batches = await store.read(slot, mincount, after)
                return self.read(name, [_batch(each.id, b"[" + each.requests + b"]") for each in batches])
            case DeleteBatches(_, ids):
                await store.delete_batches(slot, ids)
            case CountQueue():
                return (await store.count(slot)).count
            case Fingerprints():
                return [int(fp) for page in [page async for page in store.fingerprints(slot)] for fp in page]
            case DeleteSlot():
                await store.delete_slot(slot)
                await self._world.stores[self._turn % 2].purge()
        return None


def _batch(batch_id: str, requests: bytes) -> Batch:
    pairs = msgspec.json.decode(requests)
    assert all(fp == str(qdata) for fp, qdata in pairs)
    return Batch(batch_id, priority_of(batch_id), tuple(int(fp) for fp, _ in pairs))


class OverHttp(_Remembering):
    """The same over HTTP."""

    def __init__(self, world: HttpWorld, project: int) -> None:
        super().__init__()
        self._world, self._project = world, project

    async def make(self, operation: Any) -> Any:
        http = self._world.http
        frontier = f"/hcf/{self._project}/{FRONTIER}"
        if isinstance(operation, Slots):
            return accepted(await http.get(f"{frontier}/list")).json
        path = f"{frontier}/s/{operation.slot}"
        match operation:
            case Add(_, requests):
                body = [{"fp": str(fp), "qdata": fp, "p": priority} for fp, priority in requests]
                return accepted(await http.post(path, body)).json["newcount"]
            case Read(name, mincount, after):
                query = f"mincount={mincount}" + (f"&startafter={after}" if after else "")
                lines = accepted(await http.get(f"{path}/q?{query}")).lines
                batches = [_batch(line["id"], msgspec.json.encode(line["requests"])) for line in lines]
                return self.read(name, batches)
            case DeleteBatches(_, ids):
                accepted(await http.post(f"{path}/q/deleted", list(ids)))
            case CountQueue():
                return accepted(await http.get(f"{path}/q/count")).json["count"]
            case Fingerprints():
                return [int(line["fp"]) for line in accepted(await http.get(f"{path}/f")).lines]
            case DeleteSlot():
                accepted(await http.delete(path))
        return None
