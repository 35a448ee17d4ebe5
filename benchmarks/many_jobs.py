"""Calls of a project by its number of jobs, on SQLite and on PostgreSQL: clock and processor time of each.

A project of 200 spiders is filled with finished jobs of some items, requests and lines of log each (their totals and
counts; no chunks), of which some were deleted, a few wait and a few run. At each size every call is made many times
over HTTP, and at least three times. ``ms``: the median on the clock; ``cpu_ms``: processor time of server and database
for a call; ``bend``: processor time at the largest size by that at the smallest. ``cycle`` is a job that is pushed as
running and finished; ``next`` a job that is pushed, started and finished. ``retention``: milliseconds of a page of 500
jobs, and seconds of a whole pass over a project in which a rule finds nothing to remove. ``usage``: seconds until the
use of storage is counted. ``index``: one job with 1,000 times ``--chunks`` items, in chunks with equal bodies.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from rig.load import Connection, request
from rig.processors import Processors
from rig.rounds import median, options, report
from rig.services import Platform, platform

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.retention import NewRule
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.states import Move, count_moves
from scrapy_ext.server.store.usage import UsageStore
from tests.support.postgresql import cluster

_SPIDERS = 200
_AT_ONCE = 10_000
_PENDING, _RUNNING = 100, 200
#: Milliseconds between the ends of two jobs: a million of them are a year.
_APART = 31_536
_KINDS = ("items", "requests", "logs")
_SECONDS, _MOST, _LEAST = 1.0, 200, 3

Call = Callable[[Connection, str, int], Any]


def main() -> None:
    given = options(
        __doc__,
        full={"sizes": [10_000, 100_000, 1_000_000], "chunks": 1_000_000, "engines": ["sqlite", "postgresql"]},
        quick={"sizes": [1_000, 5_000], "chunks": 2_000, "engines": ["sqlite", "postgresql"]},
    )
    found = {}
    if "sqlite" in given.engines:
        with platform() as server:
            found["sqlite"] = asyncio.run(_measure(server, server.data, Processors([server.pid]), given))
    if "postgresql" in given.engines:
        with cluster() as postgresql:
            database = postgresql.database()
            assert postgresql.process is not None
            with platform(database=database) as server:
                processors = Processors([server.pid], postgresql.process.pid)
                found["postgresql"] = asyncio.run(_measure(server, DatabaseUrl(database), processors, given))
    report("many_jobs", sizes=given.sizes, chunks=given.chunks, **found)


async def _measure(
    server: Platform, where: Path | DatabaseUrl, processors: Processors, given: Namespace
) -> dict[str, Any]:
    store = await Store.open(where)
    try:
        by_size: dict[int, dict[str, Any]] = {}
        filled, fill_seconds = 0, 0.0
        for size in given.sizes:
            began = time.monotonic()
            await _fill(store, filled, size)
            fill_seconds += time.monotonic() - began
            filled = size
            if isinstance(where, DatabaseUrl):
                await store._engine.vacuum()  # as autovacuum would, some minutes later
            by_size[size] = {
                "calls": await asyncio.to_thread(_calls, server, processors, size),
                "retention": await _retention(store),
                "usage": await _usage(store, processors),
            }
        began = time.monotonic()
        is_postgresql = isinstance(where, DatabaseUrl)
        index = await _index(store, server, processors, given.chunks, is_postgresql=is_postgresql)
        smallest, largest = (by_size[size]["calls"] for size in (given.sizes[0], given.sizes[-1]))
        return {
            "bend": {name: round(largest[name]["cpu_ms"] / max(smallest[name]["cpu_ms"], 0.1), 1) for name in largest},
            "jobs": by_size,
            "index": index,
            "fill_seconds": [round(fill_seconds), round(time.monotonic() - began)],
            "bytes": await store.size(),
        }
    finally:
        await store.close()


# ── filling ──


async def _fill(store: Store, first: int, last: int) -> None:
    now = store.clock()
    await store._engine.write(_fill_spiders, now)
    for start in range(first, last, _AT_ONCE):
        await store._engine.write(_fill_jobs, range(start, min(start + _AT_ONCE, last)), now)
    await store._engine.write(_fill_counters, last)


async def _fill_spiders(tx: Transaction, now: int) -> None:
    await tx.execute_many(
        "INSERT INTO spiders (project, name, spider, created) VALUES (1, $1, $2, $3) ON CONFLICT DO NOTHING",
        [(f"spider-{number}", number, now) for number in range(1, _SPIDERS + 1)],
    )
    await _set_counter(tx, "spider", _SPIDERS)


async def _fill_counters(tx: Transaction, size: int) -> None:
    for spider in range(1, _SPIDERS + 1):
        await _set_counter(tx, f"job {spider}", size // _SPIDERS + 100_000)
    await _set_counter(tx, "queue", size + 100_000)


async def _set_counter(tx: Transaction, name: str, value: int) -> None:
    await tx.execute(
        """INSERT INTO counters (project, name, value) VALUES (1, $1, $2)
           ON CONFLICT (project, name) DO UPDATE SET value = excluded.value""",
        name,
        value,
    )


def _state(number: int) -> str:
    if number < _PENDING:
        return "pending"
    if number < _PENDING + _RUNNING:
        return "running"
    return "deleted" if number % 100 == 99 else "finished"


async def _fill_jobs(tx: Transaction, numbers: range, now: int) -> None:
    jobs, tags, totals, counts, moves = [], [], [], [], []
    for number in numbers:
        spider, job, state = number % _SPIDERS + 1, number // _SPIDERS + 1, _state(number)
        changed = now - (1_000_000 - number) * _APART
        metadata = _metadata(spider, state, changed)
        jobs.append((spider, job, f"spider-{spider}", state, changed, metadata, number))
        moves.append(Move(spider, None, JobState(state)))
        tags += [("daily", spider, job)] + ([("rare", spider, job)] if number % 1000 == 7 else [])
        if state == "deleted":
            continue
        for kind, records in zip(_KINDS, (100, 120, 20), strict=True):
            totals.append((kind, spider, job, records, records * 500, records * 80))
        counts += [("items", spider, job, field, 100) for field in ("url", "name", "price")]
        counts.append(("logs", spider, job, "20", 20))
    await tx.execute_many(
        """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, metadata, queued, since)
           VALUES (1, $1, $2, $3, $4, $5, $5, $6, $7, $5)""",
        jobs,
    )
    await count_moves(tx, 1, moves)
    await tx.execute_many("INSERT INTO job_tags (project, tag, spider, job) VALUES (1, $1, $2, $3)", tags)
    await tx.execute_many(
        """INSERT INTO record_totals (project, kind, spider, job, records, bytes, stored)
           VALUES (1, $1, $2, $3, $4, $5, $6)""",
        totals,
    )
    await tx.execute_many(
        """INSERT INTO record_counts (project, kind, spider, job, field, occurrences)
           VALUES (1, $1, $2, $3, $4, $5)""",
        counts,
    )


def _metadata(spider: int, state: str, changed: int) -> bytes:
    stats = {f"downloader/response_status_count/{status}": status for status in range(200, 212)}
    return msgspec.json.encode(
        {
            "project": 1,
            "spider": f"spider-{spider}",
            "state": state,
            "priority": 2,
            "units": 1,
            "tags": ["daily"],
            "pending_time": changed - 2000,
            "running_time": changed - 1000,
            "finished_time": changed,
            "close_reason": "finished",
            "frameworkstats": {"platform/items/count": 100, "start_time": changed - 1000, **stats},
        }
    )


# ── calls ──


def _get(path: str) -> Call:
    return lambda connection, key, _: connection.skip(request("GET", path, key))


def _post(connection: Connection, key: str, path: str, body: object) -> bytes:
    return connection.ask(request("POST", path, key, json.dumps(body).encode()))


def _cycle(connection: Connection, key: str, number: int) -> None:
    spider = f"spider-{number % _SPIDERS + 1}"
    job = json.loads(_post(connection, key, "/jobq/1/push", {"spider": spider, "state": "running"}))["key"]
    _finish(connection, key, job)


def _next(connection: Connection, key: str, number: int) -> None:
    _post(connection, key, "/jobq/1/push", {"spider": f"spider-{number % _SPIDERS + 1}"})
    _finish(connection, key, json.loads(_post(connection, key, "/jobq/1/startjob", {}))["key"])


def _finish(connection: Connection, key: str, job: str) -> None:
    _post(connection, key, "/jobq/1/update", {"key": job, "state": "finished", "close_reason": "finished"})


def _paths(size: int) -> dict[str, Call]:
    first = f"key=1/7/1&key=1/8/{size // _SPIDERS // 2}"
    return {
        "cycle": _cycle,
        "next": _next,
        "list": _get("/jobq/1/list?count=50"),
        "list, of a spider": _get("/jobq/1/list?count=50&spider=spider-7"),
        "list, rare tag": _get("/jobq/1/list?count=50&has_tag=rare"),
        "list, common tag": _get("/jobq/1/list?count=50&has_tag=daily"),
        "list, without a common tag": _get("/jobq/1/list?count=50&lacks_tag=rare"),
        "list, running": _get("/jobq/1/list?count=50&state=running"),
        "list, since": _get(f"/jobq/1/list?count=50&startts={int(time.time() * 1000) - 3_600_000}"),
        "list, offset of a half": _get(f"/jobq/1/list?count=50&start={size // 2}"),
        "list up to a job": _get(f"/jobq/1/list?count=50&stop=1/7/{size // _SPIDERS - 1}"),
        "list.json": _get("/api/jobs/list.json?project=1&count=50"),
        "list.json of a spider": _get("/api/jobs/list.json?project=1&count=50&spider=spider-7"),
        "named jobs": _get(f"/jobq/1/jobsummary?{first}"),
        "count": _get("/jobq/1/count"),
        "count, of a spider": _get("/jobq/1/count?spider=spider-7"),
        "count, rare tag": _get("/jobq/1/count?has_tag=rare"),
        "count, common tag": _get("/jobq/1/count?has_tag=daily"),
        "summary": _get("/jobq/1/summary"),
        "summary of a spider": _get("/jobq/1/7/summary"),
        "numbers of a project": _get("/projects/1/jobsummary"),
        "numbers of all projects": _get("/projects/jobsummaries"),
        "last jobs of spiders": _get("/spiders/1/lastjobsummary?count=50"),
        "spiders": _get("/api/spiders/list.json?project=1"),
        "metadata of a job": _get("/jobs/1/7/2"),
        "metrics": _get("/metrics"),
        "page of jobs": _get("/ui/1/jobs"),
        "page of jobs, of a spider": _get("/ui/1/jobs?spider=spider-77"),
        "page of jobs, common tag": _get("/ui/1/jobs?tag=daily"),
        "page of jobs, rare tag": _get("/ui/1/jobs?tag=rare"),
        "page of jobs, oldest first": _get("/ui/1/jobs?sort=changed"),
        "page of jobs, by duration": _get("/ui/1/jobs?sort=-took"),
        "page of jobs, by items": _get("/ui/1/jobs?sort=-items"),
        "page of jobs, failed": _get("/ui/1/jobs?outcome=failed"),
        "page of jobs, failed, of a spider": _get("/ui/1/jobs?outcome=failed&spider=spider-77"),
        "page of jobs, of a day": _get(f"/ui/1/jobs?from={_day(40)}&to={_day(40)}"),
        "page of spiders": _get("/ui/1"),
        "page of a spider": _get("/ui/1/spiders/7"),
        "page of two jobs": _get(f"/ui/1/compare?b=1/7/{size // _SPIDERS - 1}"),
        "page of projects": _get("/ui/projects"),
        "page of periodic jobs": _get("/ui/1/periodic"),
    }


def _day(ago: int) -> str:
    return datetime.fromtimestamp(time.time() - 86_400 * ago, timezone.utc).strftime("%Y-%m-%d")


def _calls(server: Platform, processors: Processors, size: int) -> dict[str, dict[str, float]]:
    return {name: _timed(server, processors, call) for name, call in _paths(size).items()}


def _timed(server: Platform, processors: Processors, call: Call) -> dict[str, float]:
    """Make a call repeatedly; return medians."""
    with Connection(server.port) as connection:
        call(connection, server.key, 0)
        times: list[float] = []
        before, began = processors.seconds(), time.perf_counter()
        while len(times) < _LEAST or (len(times) < _MOST and time.perf_counter() - began < _SECONDS):
            at = time.perf_counter()
            call(connection, server.key, len(times) + 1)
            times.append(time.perf_counter() - at)
        used = sum(processors.seconds()) - sum(before)
    return {
        "ms": round(1e3 * median(times), 2),
        "longest_ms": round(1e3 * max(times), 1),
        "cpu_ms": round(1e3 * used / len(times), 2),
    }


# ── background work ──


async def _retention(store: Store) -> dict[str, float]:
    """Pass over all jobs with a rule that matches none: they have the wanted records for another 10,000 days."""
    rule = store.retention._rows.unstored(1, NewRule(what=("samples",), older_than=1))
    began, pages, longest, after = time.perf_counter(), 0, 0.0, None
    while True:
        at = time.perf_counter()
        page = await (store.retention.page(rule, 1) if after is None else store.retention.page(rule, 1, after))
        longest, pages, after = max(longest, time.perf_counter() - at), pages + 1, page.after
        assert not page.matches
        if after is None:
            break
    seconds = time.perf_counter() - began
    return {
        "page_ms": round(1e3 * seconds / pages, 2),
        "longest_ms": round(1e3 * longest, 1),
        "pass_s": round(seconds, 2),
    }


async def _usage(store: Store, processors: Processors) -> dict[str, float]:
    """Count the use of storage anew."""
    usage = UsageStore(store._engine, store.clock)
    before, began = sum(processors.seconds()) + time.process_time(), time.perf_counter()
    while (await usage.of_project(1)).counted is None:
        pass
    return {
        "counted_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(sum(processors.seconds()) + time.process_time() - before, 2),
    }


# ── the index of many items ──

_CHUNK_ITEMS = 1000


async def _index(
    store: Store, server: Platform, processors: Processors, chunks: int, *, is_postgresql: bool
) -> dict[str, Any]:
    """Fill jobs with chunks of small items, whose bodies are equal; measure reads of each."""
    from scrapy_ext.server.store.records.chunks import ITEMS, Packer

    lines = [b'{"n":%d}' % (number % 10) for number in range(_CHUNK_ITEMS)]
    packer = Packer(ITEMS)
    packed = [*packer.add(lines, [json.loads(line) for line in lines]), packer.rest()]
    (body,) = [chunk.body for chunk in packed if chunk is not None]
    found, chance = {}, random.Random(1)
    for size in sorted({max(chunks // 100, 1), max(chunks // 10, 1), chunks}):
        with Connection(server.port) as connection:
            pushed = _post(connection, server.key, "/jobq/1/push", {"spider": "spider-1", "state": "running"})
        job, items = int(json.loads(pushed)["key"].rpartition("/")[2]), size * _CHUNK_ITEMS
        for start in range(0, size, _AT_ONCE):
            await store._engine.write(_fill_chunks, job, range(start, min(start + _AT_ONCE, size)), body)
        if is_postgresql:
            await store._engine.vacuum()  # as autovacuum would, some minutes later
        found[items] = {
            name: await asyncio.to_thread(_timed, server, processors, call)
            for name, call in _reads(f"/items/1/1/{job}", items, chance).items()
        }
    return found


def _reads(path: str, items: int, chance: random.Random) -> dict[str, Call]:
    def at_random(form: str) -> Call:
        return lambda connection, key, _: connection.skip(
            request("GET", form.format(path=path, number=chance.randrange(items)), key)
        )

    def append(connection: Connection, key: str, _: int) -> None:
        body = b"\n".join(b'{"n":%d}' % number for number in range(100))
        connection.ask(request("POST", path, key, body))

    return {
        "item by number": at_random("{path}/{number}"),
        "100 items from an offset": at_random("{path}?start=1/1/" + path.rpartition("/")[2] + "/{number}&count=100"),
        "100 items, filtered": _get(f"{path}?count=100&filter=%5B%22n%22%2C%22=%22%2C%5B3%5D%5D"),
        "stats": _get(f"{path}/stats"),
        "100 items appended": append,
        "page of items, the last": _get(f"/ui{path.replace('/items', '')}/items?start={items - 50}"),
        "page of a job": _get(f"/ui{path.replace('/items', '')}"),
    }


async def _fill_chunks(tx: Transaction, job: int, numbers: range, body: bytes) -> None:
    await tx.execute_many(
        """INSERT INTO record_chunks (project, kind, spider, job, start, records, ts, body)
           VALUES (1, 'items', 1, $1, $2, $3, $4, $5)""",
        [(job, number * _CHUNK_ITEMS, _CHUNK_ITEMS, 1, body) for number in numbers],
    )
    records = (numbers[-1] + 1) * _CHUNK_ITEMS
    await tx.execute(
        """INSERT INTO record_totals (project, kind, spider, job, records, bytes, stored)
           VALUES (1, 'items', 1, $1, $2, $3, $4)
           ON CONFLICT (project, kind, spider, job)
           DO UPDATE SET records = excluded.records, bytes = excluded.bytes, stored = excluded.stored""",
        job,
        records,
        records * 8,
        len(body) * (numbers[-1] + 1),
    )


if __name__ == "__main__":
    main()
