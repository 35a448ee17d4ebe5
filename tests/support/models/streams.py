"""Streams: a record of a writer has one place in the job, whoever writes it again, and the places have no gaps.

An attempt writes to its own stream, and to those of attempts that are over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.records.chunks import ITEMS, REQUESTS, RecordKind
from scrapy_ext.server.store.records.records import Span
from tests.support.attempts import add_workers, end_worker
from tests.support.models.history import REFUSED, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import StoreWorld
from tests.support.packing import pack_chunk

#: Each job has records of one kind.
KINDS = {1: ITEMS, 2: REQUESTS}
#: Attempts of each job, and one whose number was not given yet.
ATTEMPTS = (1, 2, 3)
LATER = 4


class Write(NamedTuple):
    """``start``: as drawn, the distance from the end of the stream; negative: a gap."""

    job: int
    caller: int
    writer: int
    start: int
    records: tuple[int, ...]


class Append(NamedTuple):
    """A write at the end of the job, without a stream."""

    job: int
    records: tuple[int, ...]


class End(NamedTuple):
    job: int
    attempt: int


class Read(NamedTuple):
    job: int


class At(NamedTuple):
    job: int
    number: int


class Stats(NamedTuple):
    job: int


class Delete(NamedTuple):
    job: int


class State(NamedTuple):
    """``records``: their numbers and parents; ``streams``: the places of each writer's records; ``over``: attempts."""

    records: tuple[tuple[int, int | None], ...] = ()
    streams: tuple[tuple[int, ...], ...] = ((),) * len(ATTEMPTS)
    over: frozenset[int] = frozenset()
    deleted: bool = False

    def may_write(self, caller: int, writer: int) -> bool:
        return caller not in self.over and (writer == caller or writer in self.over)

    def place(self, parent: tuple[int, int]) -> int | None:
        writer, index = parent
        stream = self.streams[writer - 1] if writer in ATTEMPTS else ()
        return stream[index] if index < len(stream) else None

    def written(self, kind: RecordKind, writer: int, start: int, numbers: Sequence[int]) -> State:
        stream, end = self.streams[writer - 1], len(self.records)
        added = max(start + len(numbers) - len(stream), 0)
        stream += tuple(range(end, end + added))
        grown = self._replace(streams=(*self.streams[: writer - 1], stream, *self.streams[writer:]))
        records = [*self.records, *[(0, None)] * added]
        for place, number in zip(stream[start:], numbers, strict=False):
            parent = named(kind, number)
            records[place] = (number, parent and grown.place(parent))
        return grown._replace(records=tuple(records))

    def places(self, writer: int, start: int, length: int) -> list[int]:
        return list(self.streams[writer - 1][start : start + length])


def named(kind: RecordKind, number: int) -> tuple[int, int] | None:
    """The parent that a record names by writer and index; None if it has none."""
    return (number % 5, number // 5) if kind is REQUESTS and number % 3 else None


def content(kind: RecordKind, number: int, parent: int | str | None) -> dict[str, Any]:
    if kind is ITEMS:
        return {"n": number, f"field{number % 3}": "x" * (number % 7)}
    fields = {"time": number, "method": "GET", "url": f"u{number}", "status": 200, "duration": 1, "rs": 1}
    return fields if parent is None else {**fields, "parent": parent}


def sent(kind: RecordKind, number: int) -> dict[str, Any]:
    parent = named(kind, number)
    return content(kind, number, parent and "{}:{}".format(*parent))


def stats_of(kind: RecordKind, state: State) -> tuple[dict[str, int], int, int]:
    records = [content(kind, *record) for record in state.records]
    counts = Counter(name for record in records for name in record if kind is ITEMS or name != "time")
    return dict(counts), sum(len(msgspec.msgpack.encode(record)) for record in records), len(records)


class Streams:
    """The model: the records of a job, and where those of each writer are."""

    tables = ("record_chunks", "record_streams", "record_totals", "attempts")

    def initial(self, part: Any) -> State:
        return State()

    def parts(self, call: Call) -> Iterator[tuple[int, Call]]:
        yield call.operation.job, call

    def step(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        kind = KINDS[operation.job]
        match operation:
            case Delete():
                deletes = bool(state.records) and not state.deleted
                yield from only(either(result, int(deletes)), state._replace(deleted=state.deleted or deletes))
            case End(_, attempt):
                over = state._replace(over=state.over | {attempt})
                yield from only(either(result, attempt not in state.over), over)
            case _ if state.deleted:
                nothing = {At: (None,), Stats: (({}, 0, 0),)}.get(type(operation), ())
                yield from only(either(result, REFUSED, *nothing), state)
            case Write():
                yield from self._written(state, operation, result)
            case Append(_, numbers):
                records = (*state.records, *((number, None) for number in numbers))
                yield from only(either(result, len(state.records)), state._replace(records=records))
            case Read():
                yield from only(either(result, list(state.records)), state)
            case At(_, number):
                expected = state.records[number] if number < len(state.records) else None
                yield from only(either(result, expected), state)
            case Stats():
                yield from only(either(result, stats_of(kind, state)), state)

    def _written(self, state: State, write: Write, result: Any) -> Iterator[State]:
        kind, length = KINDS[write.job], len(write.records)
        if not state.may_write(write.caller, write.writer) or write.start > len(state.streams[write.writer - 1]):
            yield from only(either(result, REFUSED), state)
            return
        after = state.written(kind, write.writer, write.start, write.records)
        parents = [parent for number in write.records if (parent := named(kind, number))]
        unknown = sum(after.place(parent) is None for parent in parents)
        expected = (after.places(write.writer, write.start, length), unknown)
        yield from only(either(result, expected), after)

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        jobs, attempts = st.sampled_from(list(KINDS)), st.sampled_from(ATTEMPTS)
        records = st.lists(st.integers(0, 40), min_size=1, max_size=5).map(tuple)
        start = st.sampled_from((0, 0, 0, 0, 1, 2, 5, 12, -1))
        own = st.tuples(jobs, attempts, start, records).map(lambda given: Write(*given[:2], *given[1:]))
        other = made(Write, jobs, attempts, st.sampled_from((*ATTEMPTS, LATER)), start, records)
        reads: list[st.SearchStrategy[Any]] = [made(At, jobs, st.integers(0, 30)), made(Stats, jobs)]
        if not at_once:
            reads.append(made(Read, jobs))
        ends = made(End, jobs, st.sampled_from((1, 2)))
        rare = st.integers(0, 19).flatmap(lambda chance: ends if chance < 4 else made(Delete, jobs))
        others = st.integers(0, 9).flatmap(lambda chance: rare if chance == 0 else made(Append, jobs, records))
        return st.one_of(own, own, own, own, other, others, *reads)


class OnStores:
    """Operations of two stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0
        #: Records of each writer that are known to be stored.
        self._ends: dict[tuple[int, int], int] = {}
        for job in KINDS:
            world.run(add_workers(world.stores[0], self._key(job), ATTEMPTS))

    def _key(self, job: int) -> JobKey:
        return JobKey(self._project, 1, job)

    def resolved(self, operation: Any) -> Any:
        if isinstance(operation, Write):
            end = self._ends.get((operation.job, operation.writer), 0)
            return operation._replace(start=max(end - operation.start, 0))
        return operation

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store, kind, key = self._world.stores[self._turn % 2], KINDS[operation.job], self._key(operation.job)
        records = {ITEMS: store.items, REQUESTS: store.requests}[kind]
        match operation:
            case Write(_, caller, writer, start, numbers):
                chunk = packed(kind, [sent(kind, number) for number in numbers])
                attempt = Attempt(key, caller)
                answer = await records.write_stream(key, writer, start, [chunk], attempt=attempt)
                known = self._ends.get((operation.job, writer), 0)
                self._ends[operation.job, writer] = max(known, start + len(numbers))
                return indexes(answer.places, start, len(numbers)), answer.parents_unknown
            case Append(_, numbers):
                return await records.write(
                    key, None, [packed(kind, [content(kind, number, None) for number in numbers])]
                )
            case End(_, attempt):
                return await end_worker(store, key, attempt)
            case Read():
                return [decoded(line) async for part in records.scan(Span(*key), (0, 0, 0)) for line in part.lines]
            case At(_, number):
                parts = await records.at(key, [number])
                return decoded(parts[0].lines[0]) if parts else None
            case Delete():
                return await store.jobs.delete(self._project, [key], "someone")
            case Stats():
                stats = await records.stats(key)
                return dict(stats.counts), stats.totals.input_bytes, stats.totals.input_values
        return None


def packed(kind: RecordKind, contents: Sequence[dict[str, Any]]) -> Any:
    return pack_chunk(kind, [msgspec.json.encode(record) for record in contents], contents)


def indexes(places: Sequence[tuple[int, int]], start: int, length: int) -> list[int]:
    """The indexes in the job of records from ``start`` on of a stream."""
    found: list[int] = []
    for (first, place), (end, _) in zip(places, [*places[1:], (start + length, 0)], strict=True):
        found += range(place, place + end - first)
    return found


def decoded(line: bytes) -> tuple[int, int | None]:
    record = msgspec.json.decode(line)
    return record.get("n", record.get("time")), record.get("parent")
