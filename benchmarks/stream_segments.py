"""Bytes of the database for a change of the writer of request records, and microseconds, by how segments are stored.

So many workers write records of a job in turn, each some at a time, as drawn; each time the writer changes, its stream
has a segment more. ``packed`` is the store; ``rows`` is a row for each segment, as those of the newest are. ``bytes``
of a change are those of the table and its index after ``--changes`` of them, written as they are then. ``write_us`` are
those of ``--appends`` further ones as the store makes them, many in a transaction, without records and without syncing
each. ``find_us`` is the time to find the places of 64 parents, drawn from all.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.rounds import options, report

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records import parents, streams
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.stream_segments import StreamSegment, packed_row
from tests.support.postgresql import cluster

#: Changes, and inserted rows, in a transaction.
_AT_ONCE: Final = 500
_INSERTS: Final = 20_000
#: Most records of a write.
_MOST: Final = 60
_PARENTS: Final = 64
_FINDS: Final = 50
_OWNER: Final = RecordOwner(1, "requests", 1, 1)


def main() -> None:
    given = options(
        __doc__,
        full={"changes": 1_000_000, "appends": 20_000, "workers": 32},
        quick={"changes": 30_000, "appends": 1000, "workers": 8},
    )
    with cluster() as postgresql:
        found = {
            engine: {
                how: asyncio.run(_measure(engine, how, given, postgresql.database())) for how in ("rows", "packed")
            }
            for engine in ("sqlite", "postgresql")
        }
    report("stream_segments", workers=given.workers, changes=given.changes, engines=found)


async def _measure(engine: str, how: str, given: Namespace, database: str) -> dict[str, float]:
    plain = streams._PLAIN
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(Path(folder) if engine == "sqlite" else DatabaseUrl(database))
        if how == "rows":
            streams._PLAIN = sys.maxsize  # type: ignore[misc]
        try:
            job = _Job(given.workers)
            await job.fill(store, given.changes)
            size = await (_on_sqlite if engine == "sqlite" else _on_postgresql)(store)
            find = await _find(store, job.ends)
            began = perf_counter()
            await job.append(store, given.appends)
            write = perf_counter() - began
            return {
                "bytes": round(size / given.changes, 2),
                "write_us": round(1e6 * write / given.appends, 1),
                "find_us": find,
            }
        finally:
            streams._PLAIN = plain  # type: ignore[misc]
            await store.close()


class _Job:
    """Streams of workers that write in turn."""

    def __init__(self, workers: int) -> None:
        self._drawn = random.Random(1)
        self._turn = self._end = 0
        self.ends = [0] * workers

    def _next(self) -> tuple[int, StreamSegment]:
        worker, records = self._turn % len(self.ends), self._drawn.randint(1, _MOST)
        segment = StreamSegment(self.ends[worker], self._end, records)
        self._turn += 1
        self._end += records
        self.ends[worker] += records
        return worker, segment

    async def fill(self, store: Store, changes: int) -> None:
        """Write the rows that a stream has after so many changes."""
        segments = defaultdict[int, list[StreamSegment]](list)
        for _ in range(changes):
            worker, segment = self._next()
            segments[worker].append(segment)
        rows = [(*_OWNER, worker + 1, *row) for worker, found in segments.items() for row in _rows(found)]

        async def write(tx: Transaction, part: Sequence[tuple[Any, ...]]) -> None:
            await tx.execute_many(
                """INSERT INTO record_streams
                   (project, kind, spider, job, writer, start, place, records, packed, number)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)""",
                part,
            )

        for first in range(0, len(rows), _INSERTS):
            await store._engine.write(write, rows[first : first + _INSERTS])

    async def append(self, store: Store, changes: int) -> None:
        """Make changes as the store does."""

        async def write(tx: Transaction) -> None:
            for _ in range(_AT_ONCE):
                worker, segment = self._next()
                stream = streams.RecordStream(_OWNER, worker + 1)
                newest = await streams._newest(tx, stream)
                await streams._append(tx, stream, newest, segment.records, segment.place)

        for _ in range(0, changes, _AT_ONCE):
            await store._engine.write(write)


def _rows(segments: Sequence[StreamSegment]) -> Iterator[tuple[int, int, int, bytes | None, int]]:
    """Return the rows of a stream: of packed segments, then of the newest ones."""
    packed = max(len(segments) - streams._PLAIN, 0) // streams._PACKED * streams._PACKED
    for first in range(0, packed, streams._PACKED):
        yield (*packed_row(segments[first : first + streams._PACKED]), first)
    for number, segment in enumerate(segments[packed:], packed):
        yield (*segment, None, number)


async def _find(store: Store, ends: list[int]) -> float:
    """Return the microseconds in which 64 parents are found."""
    drawn = random.Random(2)
    named = [(1 + (worker := drawn.randrange(len(ends))), drawn.randrange(ends[worker])) for _ in range(_PARENTS)]

    async def find(tx: Transaction) -> float:
        began = perf_counter()
        for _ in range(_FINDS):
            if len(await parents._places(tx, _OWNER, named)) != len(set(named)):
                raise SystemExit("some parents are not found")
        return perf_counter() - began

    return round(1e6 * await store._engine.write(find) / _FINDS)


async def _on_sqlite(store: Store) -> float:
    async def size(tx: Transaction) -> Any:
        return await tx.fetch("SELECT sum(pgsize) FROM dbstat WHERE name = 'record_streams'")

    return float((await store._engine.write(size))[0][0])


async def _on_postgresql(store: Store) -> float:
    async def size(tx: Transaction) -> Any:
        return await tx.fetch("SELECT pg_total_relation_size('record_streams')")

    return float((await store._engine.write(size))[0][0])


if __name__ == "__main__":
    main()
