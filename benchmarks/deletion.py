"""Cost of deleting a job of a million items for other writers, and the disk space before and after, without HTTP.

A writer stores 100 items of 1 KB at a time in another job, as fast as it can, in turns alone and while the deleted job
is purged (``while_purged``: the median of the rates by those alone before and after, and the longest write in
milliseconds), and then while free space is returned. ``scan``: seconds of reading all other items of the project,
alone and right after the deletion, when the deleted chunks are still there. ``delete``: milliseconds until the
deletion is committed. ``file``: bytes of the database with a second job of as many items, after it was deleted and
purged, and after free space was returned. ``auto_vacuum``: rate of such a writer on SQLite files that can return space
by that on files that cannot, in turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from rig.rounds import alternate, median, options, report

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.records.chunks import ITEMS, Packer, RecordChunk
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.store.removals import purge
from tests.support.postgresql import cluster

_ROWS = 1000
_SMALL = 100
#: Jobs that stay.
_OTHERS = 10
#: Turns of the writer beside a purge, at most.
_TURNS = 5


def main() -> None:
    given = options(
        __doc__,
        full={"items": 1_000_000, "seconds": 5.0, "writes": 300, "rounds": 3},
        quick={"items": 50_000, "seconds": 1.0, "writes": 50, "rounds": 1},
    )
    with tempfile.TemporaryDirectory() as folder:
        found = {"sqlite": asyncio.run(_measure(Path(folder), given.items, given.seconds))}
    with cluster() as postgresql:
        where = DatabaseUrl(postgresql.database())
        found["postgresql"] = asyncio.run(_measure(where, given.items, given.seconds))
    rates = alternate(
        given.rounds,
        {"with": lambda: _written(given.writes, "INCREMENTAL"), "without": lambda: _written(given.writes, "NONE")},
    )
    report(
        "deletion",
        **found,
        auto_vacuum=round(median(each / other for each, other in zip(rates["with"], rates["without"], strict=True)), 3),
    )


def _chunks(rows: int, seed: int = 1) -> list[RecordChunk]:
    chance = random.Random(seed)
    records = [
        {"url": f"http://shop.example/{n}", "name": f"Thing {n}", "text": chance.randbytes(440).hex(), "price": n}
        for n in range(rows)
    ]
    packer = Packer(ITEMS)
    lines = [msgspec.json.encode(record) for record in records]
    return [chunk for chunk in (*packer.add(lines, records), packer.rest()) if chunk is not None]


async def _measure(where: Path | DatabaseUrl, items: int, seconds: float) -> dict[str, Any]:
    store = await Store.open(where)
    jobs = [NewJob("s", JobState.FINISHED, {})] * (_OTHERS + 1)
    large, *others = [key for key in await store.jobs.add(1, jobs, "x") if isinstance(key, JobKey)]
    writer, second = [key for key in await store.jobs.add(2, jobs[:2], "x") if isinstance(key, JobKey)]
    chunks = _chunks(_ROWS)
    for key in (large, *others):
        for start in range(0, items if key is large else _ROWS, _ROWS):
            await store.items.write(key, start, chunks)
    scan = await _scan(store, others[0])
    began = perf_counter()
    await store.jobs.delete(1, [large], "x")
    deleted = perf_counter() - began
    scan_deleted = await _scan(store, large)
    alone = [await _rate(store, writer, seconds=seconds)]
    beside = []
    while (await store.usage.of_project(1)).deleted.owners and len(beside) < _TURNS:
        purging = asyncio.create_task(store.purge())
        beside.append(await _rate(store, writer, seconds=seconds, beside=purging))
        purging.cancel()
        await asyncio.gather(purging, return_exceptions=True)
        alone.append(await _rate(store, writer, seconds=seconds))
    rates = [
        2 * each.rate / (before.rate + after.rate)
        for each, (before, after) in zip(beside, pairwise(alone), strict=True)
    ]
    await purge(store._engine, pause=False)
    # The writer has taken the space of the first job; nobody takes that of the second.
    for start in range(0, items, _ROWS):
        await store.items.write(second, start, chunks)
    sizes = [await _settled(store)]
    await store.jobs.delete(2, [second], "x")
    await purge(store._engine, pause=False)
    sizes.append(await _settled(store))
    returning = asyncio.create_task(store.return_space())
    returned = await _rate(store, writer, seconds=seconds, beside=returning)
    await returning
    sizes.append(await _settled(store))
    await store.close()
    return {
        "delete": round(1000 * deleted, 1),
        "writes": round(median([each.rate for each in alone]), 1),
        "longest_alone": round(max(each.longest for each in alone), 1),
        "while_purged": {
            "rate": round(median(rates), 3),
            "rates": [round(rate, 2) for rate in rates],
            "longest": round(max(each.longest for each in beside), 1),
        },
        "while_returned": {
            "rate": round(returned.rate / alone[-1].rate, 3),
            "longest": round(returned.longest, 1),
        },
        "scan": {"alone": round(scan, 3), "deleted": round(scan_deleted, 3)},
        "file": sizes,
    }


class _Rate(NamedTuple):
    """Writes per second, the longest of them in milliseconds, and the seconds in all."""

    rate: float
    longest: float
    seconds: float


async def _rate(
    store: Store, key: JobKey, *, seconds: float = float("inf"), beside: asyncio.Task[Any] | None = None
) -> _Rate:
    """Write for some seconds, at most until a task ends."""
    small, longest, number, began = _chunks(_SMALL), 0.0, 0, perf_counter()
    while perf_counter() - began < seconds and not (beside and beside.done()):
        at = perf_counter()
        await store.items.write(key, None, small)
        longest, number = max(longest, perf_counter() - at), number + 1
    taken = perf_counter() - began
    return _Rate(number / taken, 1000 * longest, taken)


async def _scan(store: Store, first: JobKey) -> float:
    """Read the items of the project from a job on; return the seconds."""
    began, number = perf_counter(), 0
    async for part in store.items.scan(Span(1), (first.spider, first.job, 0)):
        number += len(part.lines)
    assert number == _OTHERS * _ROWS
    return perf_counter() - began


async def _settled(store: Store) -> int:
    """Return the size once the log is written back."""
    size = await store.size()
    for _ in range(100):
        await asyncio.sleep(0.05)
        if (now := await store.size()) == size:
            break
        size = now
    return size


def _written(writes: int, mode: str) -> float:
    """Return the writes a second of 1,000 items each into a new SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.closing(sqlite3.connect(Path(folder) / FILE)) as file:
            # Before its first table: the store does not change the mode of a file that has one.
            file.execute(f"PRAGMA auto_vacuum = {mode}")
            file.execute("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, opened BIGINT)")

        async def write() -> float:
            store, chunks = await Store.open(Path(folder)), _chunks(_ROWS)
            began = perf_counter()
            for start in range(0, writes * _ROWS, _ROWS):
                await store.items.write(JobKey(1, 1, 1), start, chunks)
            seconds = perf_counter() - began
            await store.close()
            return writes / seconds

        return asyncio.run(write())


if __name__ == "__main__":
    main()
