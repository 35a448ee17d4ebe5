"""Inputs of the model of cost (:mod:`rig.costs`): what a job, a commit and a page take of the server, PostgreSQL, disk
and network, and of a crawling process; of PostgreSQL also bytes of its write-ahead log, and transactions that write.

Three loads are played that differ in their parts of jobs, commits and pages: many crawls of one page, crawls of a page
every two seconds, and a few fast ones. What each part takes follows from the three. Idle servers are measured first. A
real crawl is measured at two rates. Chunks of records grow over thousands of commits, for which these loads are too
short: a long job shows what a commit and a page take of the disk, and how much more log a commit writes in it.
``--write`` replaces what was measured in ``costs.json``.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncpg
from rig.contenders import scrapy_ext
from rig.costs import INPUTS, load
from rig.crawls import Crawled, crawl
from rig.played import Tally
from rig.recording import recording
from rig.rounds import median, options, report
from rig.services import platform
from rig.site import site
from rig.spiders import varied_kilobyte
from rig.wire import Measured, Wire
from simulation import Deployment, Load, Outcome, bytes_by_table, deployed, run

Parts = tuple[float, float, float]
#: Pages of a commit of a long job that has many, and commits of a short job.
_MANY, _SHORT = 100, 40
#: Start and length of the window in which the log is measured, in parts of a load.
_WINDOW_FROM, _WINDOW_SHARE = 0.25, 0.65


def main() -> None:
    given = options(
        __doc__,
        full={
            "seconds": 60.0,
            "idle": 30.0,
            "long": 4000,
            "rounds": 3,
            "engines": ["sqlite", "postgresql"],
            "crawl": 1,
            "write": 0,
        },
        quick={
            "seconds": 6.0,
            "idle": 3.0,
            "long": 400,
            "rounds": 1,
            "engines": ["sqlite", "postgresql"],
            "crawl": 1,
            "write": 0,
        },
    )
    rounds = [{engine: _of_engine(engine, given) for engine in given.engines} for _ in range(given.rounds)]
    crawls = [_of_crawl(given.seconds) for _ in range(given.rounds if given.crawl else 0)]
    engines = {engine: _median([each[engine] for each in rounds]) for engine in given.engines}
    found = {
        "engines": {name: {key: of[key] for key in of if key != "wire"} for name, of in engines.items()},
        "wire": engines[given.engines[0]]["wire"],
        **({"crawl": _median(crawls)} if crawls else {}),
    }
    if given.write:
        inputs = load()
        inputs["engines"].update(found["engines"])
        inputs.update({name: found[name] for name in ("wire", "crawl") if name in found})
        INPUTS.write_text(json.dumps(inputs, indent=1) + "\n", "utf-8")
    report("cost_inputs", seconds=given.seconds, rounds=given.rounds, **found)


# ── servers ──


def _of_engine(engine: str, given: Namespace) -> dict[str, Any]:
    loads = (
        Load(crawls=10, rate=100.0, pages=1, seconds=given.seconds),
        Load(crawls=40, rate=0.5, pages=10_000, seconds=given.seconds),
        Load(crawls=4, rate=30.0, pages=10_000, seconds=given.seconds),
    )
    parts, cpu, disk, wire, written = list[Parts](), [], [], [], list[_Written]()
    window_parts = list[Parts]()
    idle, idle_written = 0.0, _Written(0.0, 0.0)
    for number, each in enumerate(loads):
        # Each on a database of its own, so that the bytes of each load are known.
        with deployed(engine, 1) as deployment:
            if number == 0:
                time.sleep(1)
                before, written_before = deployment.processors.seconds()[0], asyncio.run(_written(deployment))
                time.sleep(given.idle)
                idle = (deployment.processors.seconds()[0] - before) / given.idle
                idle_written = asyncio.run(_written(deployment)).since(written_before, 1 / given.idle)
            empty = asyncio.run(bytes_by_table(deployment, live=True))
            outcome, of_window, window = asyncio.run(_watched(deployment, each))
            window_parts.append(of_window)
            written.append(window.since(idle_written.since(_Written(0.0, 0.0), _WINDOW_SHARE * each.seconds)))
            if outcome.wrong or outcome.measured.errors:
                raise SystemExit(f"{engine}: {outcome.wrong[:3]} {outcome.measured.errors[:3]}")
            full = asyncio.run(bytes_by_table(deployment, live=True))
        parts.append(_parts(outcome))
        cpu.append((outcome.cpu[0] - idle * outcome.seconds, outcome.cpu[1]))
        disk.append(_kept(full) - _kept(empty))
        wire.append(outcome.measured.sent + outcome.measured.received)
    with deployed(engine, 1) as deployment:
        long = asyncio.run(_long(deployment, given.long))
    return {
        "idle_cores": idle,
        "server_cpu": _solved(parts, [each[0] for each in cpu]),
        "postgresql_cpu": _solved(parts, [each[1] for each in cpu]),
        "disk": _disk(parts[0], disk[0], long),
        "log": _with_more(_solved(window_parts, [each.log for each in written]), commit=long.more_log),
        "writes": _solved(window_parts, [each.transactions for each in written]),
        "wire": _solved(parts, wire),
    }


async def _watched(deployment: Deployment, load: Load) -> tuple[Outcome, Parts, _Written]:
    """Play a load; return also what it did and wrote in a window without the start and the end of all crawls."""
    tally, seen = Tally(), list[tuple[Parts, _Written]]()
    running = asyncio.create_task(run(deployment, load, tally))
    for share in (_WINDOW_FROM, _WINDOW_SHARE):
        await asyncio.sleep(share * load.seconds)
        seen.append(((len(tally.finished), tally.commits, tally.pages), await _written(deployment)))
    (before, wrote_before), (after, wrote) = seen
    return await running, (after[0] - before[0], after[1] - before[1], after[2] - before[2]), wrote.since(wrote_before)


class _Written(NamedTuple):
    """Bytes of PostgreSQL's write-ahead log, and transactions that have written to it."""

    log: float
    transactions: float

    def since(self, before: _Written, share: float = 1.0) -> _Written:
        return _Written(share * (self.log - before.log), share * (self.transactions - before.transactions))


async def _written(deployment: Deployment) -> _Written:
    """Return what was written so far; zeros on SQLite."""
    if deployment.database is None:
        return _Written(0.0, 0.0)
    connection = await asyncpg.connect(deployment.database)
    try:
        row = await connection.fetchrow(
            """SELECT (pg_current_wal_lsn() - '0/0')::float8,
                      pg_snapshot_xmax(pg_current_snapshot())::text::float8"""
        )
    finally:
        await connection.close()
    return _Written(*row)


class _Long(NamedTuple):
    """Bytes that a commit and a page add to the disk in a long job, and bytes of log that a commit of it writes on top
    of one of a short job."""

    commit: float
    page: float
    more_log: float


async def _long(deployment: Deployment, number: int) -> _Long:
    """Store items and request records of so many pages of a job one by one, and of another many at once."""
    server = deployment.servers[0]
    wire = Wire(server.port, server.key, Measured())
    disk, log, short_log = list[float](), 0.0, 0.0
    for each in (_MANY, 1):
        pushed = await wire.call("POST", "/jobq/1/push", json.dumps({"spider": "long", "state": "running"}).encode())
        job = json.loads(pushed)["key"]
        before, began = _kept(await bytes_by_table(deployment, live=True)), await _written(deployment)
        for start in range(0, number, each):
            pages = range(start, start + each)
            if start == _SHORT:
                short_log = (await _written(deployment)).since(began).log / (_SHORT / each)
            for kind, made in (("items", _item), ("requests", _request)):
                await wire.call("POST", f"/{kind}/{job}", b"".join(made(page) for page in pages), start=start)
        log = (await _written(deployment)).since(began).log / (number / each)
        disk.append(_kept(await bytes_by_table(deployment, live=True)) - before)
    wire.close()
    commit = max(disk[1] - disk[0], 0.0) / (number - number // _MANY)
    return _Long(commit, disk[0] / number - commit / _MANY, max(log - short_log, 0.0))


def _item(page: int) -> bytes:
    return json.dumps(varied_kilobyte(f"http://site.example/page/{page}", page)).encode() + b"\n"


def _request(page: int) -> bytes:
    record = {"time": 1_795_441_054_681 + page, "method": "GET", "url": f"http://site.example/page/{page}"}
    fingerprint = f"{random.getrandbits(160):040x}"
    return json.dumps({**record, "status": 200, "duration": 412, "rs": 100_000, "fp": fingerprint}).encode() + b"\n"


def _disk(parts: Parts, kept: float, long: _Long) -> dict[str, float]:
    """Return the bytes on disk of each part, by the jobs of one page and by the long one."""
    jobs, commits, pages = parts
    of_jobs = kept - commits * long.commit - pages * long.page
    return {"job": max(of_jobs / jobs, 0.0), "commit": long.commit, "page": long.page}


def _with_more(share: dict[str, float], **more: float) -> dict[str, float]:
    return {name: value + more.get(name, 0.0) for name, value in share.items()}


def _parts(outcome: Outcome) -> Parts:
    return len(outcome.tally.finished), outcome.tally.commits, outcome.tally.pages


def _kept(tables: Mapping[str, int]) -> int:
    """Return the bytes without those that are used again: free pages, the log, and what crawls remove at their end."""
    gone = (
        *("free", "log", "frontier_batches", "frontier_slots", "collection_records"),
        *("frontier_packed_fingerprints", "frontier_long_fingerprints", "frontier_fingerprint_data"),
    )
    return tables["all"] - sum(tables.get(name, 0) for name in gone)


def _solved(parts: Sequence[Parts], totals: Sequence[float]) -> dict[str, float]:
    """Return what a job, a commit and a page take, by Cramer's rule; nothing takes less than nothing."""
    matrix = [list(each) for each in parts]
    whole = _determinant(matrix)
    found = []
    for column in range(3):
        other = [[*row[:column], total, *row[column + 1 :]] for row, total in zip(matrix, totals, strict=True)]
        found.append(max(_determinant(other) / whole, 0.0))
    return dict(zip(("job", "commit", "page"), found, strict=True))


def _determinant(m: Sequence[Sequence[float]]) -> float:
    return (
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    )


# ── the crawling process ──


def _of_crawl(seconds: float) -> dict[str, Any]:
    """Measure real crawls of pages with an item of 1 KB: a page, as fast as it can, and a page a second."""
    with platform() as server, site(1_000_000, 20) as address:

        def crawled(pages: int, **more: Any) -> tuple[Crawled, Parts]:
            with recording(server.port) as calls:
                settings = {**scrapy_ext(calls.port, server.key), "CLOSESPIDER_PAGECOUNT": pages, **more}
                done = crawl("ShopPages", settings, site=address)
            commits = len(calls.kinds()["POST items"])
            return done, (1, commits, int(done.stats["response_received_count"]))

        found = [
            crawled(1),
            crawled(int(seconds), DOWNLOAD_DELAY=1, CONCURRENT_REQUESTS_PER_DOMAIN=1),
            crawled(int(50 * seconds)),
        ]
    cpu = _solved([parts for _, parts in found], [done.start_cpu_seconds + done.cpu_seconds for done, _ in found])
    return {"cpu": cpu, "memory": found[-1][0].peak_bytes}


def _median(found: Sequence[Any]) -> Any:
    """Return the medians of nested numbers."""
    if isinstance(found[0], dict):
        return {name: _median([each[name] for each in found]) for name in found[0]}
    value = median(found)
    return float(f"{value:.4g}")


if __name__ == "__main__":
    main()
