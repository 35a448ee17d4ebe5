"""Load of many crawls on real servers, played on the wire, and its cost: what a month of pages takes.

``--crawls`` crawls run at once, each with ``--rate`` pages a second and ``--pages`` pages in all; when one has
finished, the next begins. The defaults are 5·10^7 pages a month (19.3 a second) by 200 crawls. For a fifth of the time,
the rate is ``--peak`` times as high. ``--servers`` server processes share the database. The load ends after
``--seconds``: crawls that run then finish with the pages that they have.

``cpu_s_per_1000_pages``: processor seconds of servers and of PostgreSQL; ``cores``: these by the clock. ``ms``:
medians, 95th and 99th of a hundred, and the longest, of each call. ``bytes_a_page``: by table, with its indexes, and
over the wire. ``stored_right``: whether each job has as many items and request records as were sent, and jobs and
queues are as they should be. ``errors`` are calls without 200. It ends with status 1 if there are errors, or if counts
differ.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncpg
from rig.played import Plan, Tally, play
from rig.processors import Processors
from rig.rounds import options, percentile, report
from rig.services import Platform, platform
from rig.wire import Measured, Wire

from tests.support.postgresql import cluster

_SAMPLE_SECONDS = 1.0
#: Seconds that crawls may take to finish after the last page.
_REST = 120.0


@dataclass
class Deployment:
    """Servers on one database."""

    servers: Sequence[Platform]
    processors: Processors
    database: str | None = None


@dataclass
class Load:
    """Crawls at once, pages a second of each, pages of a crawl, seconds, and the rate's multiple in a fifth of them."""

    crawls: int
    rate: float
    pages: int
    seconds: float
    peak: float = 1.0
    new: int = 1


@dataclass
class Outcome:
    """Calls of a load, and their cost; processor seconds are (servers, PostgreSQL)."""

    seconds: float
    measured: Measured
    tally: Tally
    cpu: tuple[float, float]
    memory: tuple[int, int]
    player_cpu: float
    wrong: list[str] = field(default_factory=list)


def main() -> None:
    given = options(
        __doc__,
        full={
            "crawls": 200,
            "rate": 0.0965,
            "pages": 20,
            "seconds": 300.0,
            "peak": 5.0,
            "servers": 1,
            "engine": "sqlite",
        },
        quick={"crawls": 20, "rate": 1.0, "pages": 10, "seconds": 10.0, "peak": 2.0, "servers": 1, "engine": "sqlite"},
    )
    load = Load(given.crawls, given.rate, given.pages, given.seconds, given.peak)
    with deployed(given.engine, given.servers) as deployment:
        outcome = asyncio.run(run(deployment, load))
        tables = asyncio.run(bytes_by_table(deployment))
    described = describe(outcome, tables)
    report("simulation", engine=given.engine, servers=given.servers, load=vars(load), **described)
    if described["errors"] or not described["stored_right"]:
        raise SystemExit(1)


@contextmanager
def deployed(engine: str, servers: int) -> Generator[Deployment]:
    """Run so many servers on a new database; end them."""
    with ExitStack() as stack:
        if engine == "sqlite":
            if servers != 1:
                raise SystemExit("several servers need PostgreSQL: --engine postgresql")
            server = stack.enter_context(platform())
            yield Deployment([server], Processors([server.pid]))
            return
        postgresql = stack.enter_context(cluster())
        assert postgresql.process is not None
        database = postgresql.database()
        first = stack.enter_context(platform(database=database))
        others = [stack.enter_context(platform(database=database, key=first.key)) for _ in range(servers - 1)]
        running = [first, *others]
        yield Deployment(running, Processors([each.pid for each in running], postgresql.process.pid), database)


async def run(deployment: Deployment, load: Load, tally: Tally | None = None) -> Outcome:
    """Play the crawls, and compare what is stored with what was sent; ``tally`` counts it meanwhile."""
    measured, numbers = Measured(), itertools.count()
    tally = Tally() if tally is None else tally
    began = time.monotonic()
    until = began + load.seconds
    rate = _rate(load, began)

    async def one_after_the_other(place: int) -> None:
        server = deployment.servers[place % len(deployment.servers)]
        # Crawls are at different places of their ways, as they would be after a while.
        pages = max(load.pages * (place + 1) // load.crawls, 1)
        while time.monotonic() < until:
            plan = Plan(pages, rate, load.new, until=until)
            await play(server, plan, measured, tally, next(numbers))
            pages = load.pages

    before, player = deployment.processors.seconds(), time.process_time()
    sampling = asyncio.create_task(_sample(deployment.processors))
    crawls = [asyncio.create_task(one_after_the_other(place)) for place in range(load.crawls)]
    done, late = await asyncio.wait(crawls, timeout=load.seconds + _REST)
    seconds = time.monotonic() - began
    after = deployment.processors.seconds()
    cpu = (after[0] - before[0], after[1] - before[1])
    sampling.cancel()
    outcome = Outcome(seconds, measured, tally, cpu, deployment.processors.memory(), time.process_time() - player)
    for task in late:
        task.cancel()
    outcome.wrong += [f"{len(late)} crawls did not finish"] if late else []
    outcome.wrong += [repr(task.exception()) for task in done if task.exception() is not None]
    outcome.wrong += await _differences(deployment.servers[0], tally)
    return outcome


def _rate(load: Load, began: float) -> Callable[[], float]:
    """Return the rate of a crawl by the time: the mean over the whole is that of the load."""
    low = load.rate / (0.8 + 0.2 * load.peak)

    def rate() -> float:
        share = (time.monotonic() - began) / load.seconds
        return low * (load.peak if 0.4 <= share < 0.6 else 1.0)

    return rate


async def _sample(processors: Processors) -> None:
    """Look at the connections of PostgreSQL again and again: the time of ended ones is known only until then."""
    while True:
        await asyncio.sleep(_SAMPLE_SECONDS)
        processors.seconds()


async def _differences(server: Platform, tally: Tally) -> list[str]:
    """Return what is stored otherwise than it was sent."""
    wire, wrong = Wire(server.port, server.key, Measured()), list[str]()
    try:
        for job, pages in tally.finished.items():
            for kind in ("items", "requests"):
                stats = json.loads(await wire.call("GET", f"/{kind}/{job}/stats") or b"{}")
                stored = stats.get("totals", {}).get("input_values")
                if stored != pages:
                    wrong.append(f"job {job} has {stored} {kind} of {pages}")
        finished = int(await wire.call("GET", "/jobq/1/count") or -1)
        if finished != len(tally.finished):
            wrong.append(f"{finished} jobs of {len(tally.finished)} have finished")
        frontiers = json.loads(await wire.call("GET", "/hcf/1/list") or b"[]")
        if any(tally.finished) and frontiers:
            wrong.append(f"{len(frontiers)} frontiers of finished jobs are left")
        counted = json.loads(await wire.call("GET", "/collections/1/s/scrapy_commits/count") or b"{}")
    except ValueError as error:
        return [*wrong, repr(error)]
    finally:
        wire.close()
    if counted.get("count") != 0:
        wrong.append(f"payloads of finished jobs are left: {counted}")
    return wrong


# ── results ──


def describe(outcome: Outcome, tables: dict[str, int]) -> dict[str, Any]:
    pages, measured = max(outcome.tally.pages, 1), outcome.measured
    calls = {kind: len(seconds) for kind, seconds in measured.seconds.items()}
    return {
        "pages": outcome.tally.pages,
        "commits": outcome.tally.commits,
        "jobs": len(outcome.tally.finished),
        "pages_per_second": round(pages / outcome.seconds, 2),
        "cpu_s_per_1000_pages": {
            name: round(1000 * seconds / pages, 2)
            for name, seconds in zip(("servers", "postgresql"), outcome.cpu, strict=True)
        },
        "cores": [round(seconds / outcome.seconds, 3) for seconds in outcome.cpu],
        "player_cores": round(outcome.player_cpu / outcome.seconds, 3),
        "memory_mb": [round(size / 2**20) for size in outcome.memory],
        "bytes_a_page": {
            "wire_in": round(measured.sent / pages),
            "wire_out": round(measured.received / pages),
            "disk": {name: round(size / pages, 1) for name, size in tables.items()},
        },
        "calls_a_page": {kind: round(count / pages, 3) for kind, count in sorted(calls.items())},
        "ms": {kind: _quantiles(seconds) for kind, seconds in sorted(measured.seconds.items())},
        "errors": measured.errors[:5],
        "stored_right": not outcome.wrong,
        "wrong": outcome.wrong[:5],
    }


def _quantiles(seconds: Sequence[float]) -> list[float]:
    return [round(1000 * percentile(seconds, share), 1) for share in (0.5, 0.95, 0.99, 1)]


async def bytes_by_table(deployment: Deployment, *, live: bool = False) -> dict[str, int]:
    """Return the bytes of tables with their indexes, the largest first, and those of all of them; ``live``: on
    PostgreSQL, without rows that were changed or deleted."""
    if deployment.database is None:
        folder = deployment.servers[0].data
        with closing(sqlite3.connect(folder / "platform.db")) as file:
            owners = dict(file.execute("SELECT name, tbl_name FROM sqlite_master"))
            found: dict[str, int] = defaultdict(int)
            for name, size in file.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
                found[owners.get(name, name)] += size
            (free,) = file.execute("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
        found["free"] = free[0]
        found["log"] = os.stat(folder / "platform.db-wal").st_size
    else:
        found = await _of_postgresql(deployment.database, live=live)
    total = sum(found.values())
    largest = sorted(found.items(), key=lambda each: -each[1])[:8]
    return {**dict(largest), "all": total}


async def _of_postgresql(database: str, *, live: bool) -> dict[str, int]:
    connection = await asyncpg.connect(database)
    try:
        if live:
            await connection.execute("VACUUM FULL")
        rows = await connection.fetch(
            """SELECT COALESCE(p.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
               LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
               WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace GROUP BY 1"""
        )
    finally:
        await connection.close()
    return {row[0]: row[1] for row in rows}


if __name__ == "__main__":
    main()
