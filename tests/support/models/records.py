"""Records of jobs: what is appended has a place of its own, what is sent again changes nothing, and stats are exact.

What was deleted is not read again, and nothing is added to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.records.chunks import ITEMS, LOGS, REQUESTS, RecordKind
from scrapy_ext.server.store.records.records import Span
from tests.support.models.history import REFUSED, Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import HttpWorld, StoreWorld, accepted
from tests.support.packing import pack_chunk

#: Each job has records of one kind, so that one machine has all of them.
KINDS = {1: ITEMS, 2: LOGS, 3: REQUESTS}


class Append(NamedTuple):
    job: int
    records: tuple[int, ...]


class Write(NamedTuple):
    job: int
    start: int
    records: tuple[int, ...]
    may_skip: bool


class Read(NamedTuple):
    job: int
    start: int
    count: int


class At(NamedTuple):
    job: int
    number: int


class Stats(NamedTuple):
    job: int


class Delete(NamedTuple):
    job: int


def content(kind: RecordKind, number: int) -> dict[str, Any]:
    """The record of a number, different from all others."""
    if kind is LOGS:
        return {"time": number, "level": 10 * (number % 5 + 1), "message": f"ü{number}"}
    if kind is REQUESTS:
        fields = {"time": number, "method": "GET", "url": f"u{number}", "status": 200, "duration": 1, "rs": 1}
        return {**fields, "fp": str(number)} if number % 2 else fields
    return {"n": number, f"field{number % 3}": "x" * (number % 7)}


def number_of(record: dict[str, Any]) -> int:
    number: int = record["n"] if "n" in record else record["time"]
    return number


def stats_of(kind: RecordKind, numbers: Sequence[int]) -> tuple[dict[str, int], int, int]:
    """Counts, bytes and number, as the platform counts them."""
    records = [content(kind, number) for number in numbers]
    if kind is LOGS:
        counts = Counter(str(record["level"]) for record in records)
        return dict(counts), sum(len(record["message"].encode()) + 1 for record in records), len(records)
    counts = Counter(name for record in records for name in record if kind is ITEMS or name != "time")
    return dict(counts), sum(len(msgspec.msgpack.encode(record)) for record in records), len(records)


#: Indexes and the numbers of their records, in order.
State = tuple[tuple[int, int], ...]


#: The state after a deletion.
DELETED: State = ((-1, -1),)


class Records:
    """The model: the records of a job by their indexes."""

    tables = ("record_chunks", "record_totals")

    def initial(self, part: Any) -> State:
        return ()

    def parts(self, call: Call) -> Iterator[tuple[int, Call]]:
        yield call.operation.job, call

    def step(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        end = state[-1][0] + 1 if state else 0
        if isinstance(operation, Delete):
            yield from only(either(result, int(state not in ((), DELETED))), DELETED if state else state)
            return
        if state == DELETED:
            # The stores return no record for a read by index, and zeros for the stats.
            nothing = {At: (None,), Stats: (({}, 0, 0),)}.get(type(operation), ())
            yield from only(either(result, REFUSED, *nothing), state)
            return
        match operation:
            case Append(_, records):
                yield from only(either(result, end, None), written(state, end, records))
            case Write(_, start, records, may_skip):
                if start <= end or (may_skip and not state):
                    yield from only(either(result, start, None), written(state, start, records))
                else:
                    yield from only(either(result, REFUSED), state)
            case Read(_, start, count):
                expected = [pair for pair in state if pair[0] >= start][:count]
                yield from only(either(result, expected), state)
            case At(_, number):
                yield from only(either(result, dict(state).get(number)), state)
            case Stats(job):
                yield from only(either(result, stats_of(KINDS[job], [record for _, record in state])), state)

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        jobs, indexes = st.sampled_from(list(KINDS)), st.integers(0, 12)
        records = st.lists(st.integers(0, 60), min_size=1, max_size=4).map(tuple)
        writes = [made(Append, jobs, records), made(Write, jobs, indexes, records, st.booleans())]
        reads: list[st.SearchStrategy[Any]] = [made(At, jobs, indexes), made(Stats, jobs)]
        if not at_once:  # a stream of pages is no call that takes effect at once
            reads.append(made(Read, jobs, indexes, st.integers(1, 30)))
        return st.one_of(*writes, *writes, *reads, made(Delete, jobs))


def written(state: State, start: int, records: Sequence[int]) -> State:
    return tuple(sorted({**dict(state), **dict(enumerate(records, start))}.items()))


class OnStores:
    """Operations of two stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0

    def resolved(self, operation: Any) -> Any:
        return operation

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store, kind = self._world.stores[self._turn % 2], KINDS[operation.job]
        records = {ITEMS: store.items, LOGS: store.logs, REQUESTS: store.requests}[kind]
        key = JobKey(self._project, 1, operation.job)

        def chunk(numbers: Sequence[int]) -> Any:
            contents = [content(kind, number) for number in numbers]
            return pack_chunk(kind, [msgspec.json.encode(record) for record in contents], contents)

        match operation:
            case Append(_, numbers):
                return await records.write(key, None, [chunk(numbers)])
            case Write(_, start, numbers, may_skip):
                return await records.write(key, start, [chunk(numbers)], may_skip=may_skip)
            case Read(_, start, count):
                found = []
                async for part in records.scan(Span(*key), (1, operation.job, start), count):
                    found += [(part.start + place, decoded(line)) for place, line in enumerate(part.lines)]
                return found
            case At(_, number):
                parts = await records.at(key, [number])
                return decoded(parts[0].lines[0]) if parts else None
            case Delete():
                return await store.jobs.delete(self._project, [key], "someone")
            case Stats():
                stats = await records.stats(key)
                return dict(stats.counts), stats.totals.input_bytes, stats.totals.input_values
        return None


def decoded(line: bytes) -> int:
    return number_of(msgspec.json.decode(line))


class OverHttp:
    """The same over HTTP."""

    def __init__(self, world: HttpWorld, project: int) -> None:
        self._world, self._project = world, project

    def resolved(self, operation: Any) -> Any:
        return operation

    async def make(self, operation: Any) -> Any:
        http, kind = self._world.http, KINDS[operation.job]
        path = f"/{kind.name}/{self._project}/1/{operation.job}"
        match operation:
            case Append(_, numbers):
                accepted(await http.post(path, [content(kind, number) for number in numbers]), 410)
            case Write(_, start, numbers, may_skip):
                body = [content(kind, number) for number in numbers]
                if may_skip:
                    accepted(await http.post(path, body, Content_Range=f"items {start}-/*"), 400, 410)
                else:
                    accepted(await http.post(f"{path}?start={start}", body), 400, 410)
            case Read(_, start, count):
                key = f"{self._project}/1/{operation.job}/{start}"
                answer = accepted(await http.get(f"{path}?start={key}&count={count}&meta=_key"), 410)
                return [(int(line["_key"].rpartition("/")[2]), number_of(line)) for line in answer.lines]
            case At(_, number):
                answer = await http.get(f"{path}/{number}")
                return None if answer.status == 404 else number_of(accepted(answer, 410).lines[0])
            case Delete(job):
                form = {"project": str(self._project), "job": f"{self._project}/1/{job}"}
                return accepted(await http.post("/api/jobs/delete.json", form)).json["count"]
            case Stats():
                stats = accepted(await http.get(f"{path}/stats"), 410).json
                return stats["counts"], stats["totals"]["input_bytes"], stats["totals"]["input_values"]
        return None
