"""Rates of the platform over HTTP on SQLite, on PostgreSQL, and with two server processes on PostgreSQL.

The same load on each, by clients at once, each with a job, slot and collection of its own: items of 1 KB, new requests
for the frontier and records of a collection, 1,000 gzip JSON lines a post; queues that are read and deleted, 1,000
requests at a time; one record of a collection, one call after the other. Of the microseconds of processor time for a
row (a call, for ``get``), the first is the servers' and the second PostgreSQL's. ``lock_waits`` is the share of the
time of PostgreSQL's transactions in which they waited for one another. Clients, servers and PostgreSQL share the
machine: what grows with clients stops where its processors are in use.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncpg
from rig.load import Connection, children_cpu_seconds, cpu_seconds, request
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform

from tests.support.postgresql import Cluster, cluster

_ROWS = 1000
_SAMPLES_EACH = 0.02
_WAITS = """SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) FROM pg_stat_activity
            WHERE application_name LIKE 'scrapy-ext %' AND state <> 'idle'"""

Work = Callable[[Connection, str, int, int], int]


@dataclass(frozen=True)
class Engine:
    """Server processes on one database."""

    servers: Sequence[Platform]
    database: str | None = None
    postgres: int = 0


@dataclass(frozen=True)
class Result:
    """Result of one load: rows per second, processor time per row (µs), share of time in lock waits."""

    rate: float
    server_us: float
    postgres_us: float
    lock_waits: float


def main() -> None:
    given = options(
        __doc__,
        full={"calls": 96, "clients": [1, 2, 4, 8], "gets": 4000, "rounds": 3},
        quick={"calls": 8, "clients": [1, 4], "gets": 200, "rounds": 1},
    )
    numbers = count(1)
    with cluster() as postgresql, ExitStack() as stack:
        engines = {
            "sqlite": Engine([stack.enter_context(platform())]),
            "postgresql": _on_postgresql(stack, postgresql, 1),
            "2 x postgresql": _on_postgresql(stack, postgresql, 2),
        }
        runs = {
            f"{name}, {clients}": lambda engine=engine, clients=clients: _measure(engine, clients, given, numbers)
            for clients in given.clients
            for name, engine in engines.items()
        }
        found = alternate(given.rounds, runs)
    report(
        "platform_engines",
        rows=given.calls * _ROWS,
        rounds=given.rounds,
        clients={clients: {name: _told(found[f"{name}, {clients}"]) for name in engines} for clients in given.clients},
    )


def _on_postgresql(stack: ExitStack, postgresql: Cluster, processes: int) -> Engine:
    database = postgresql.database()
    first = stack.enter_context(platform(database=database))
    others = [stack.enter_context(platform(database=database, key=first.key)) for _ in range(processes - 1)]
    assert postgresql.process is not None
    return Engine([first, *others], database, postgresql.process.pid)


def _told(rounds: Sequence[dict[str, Result]]) -> dict[str, dict[str, float | list[float]]]:
    def middle(work: str, of: Callable[[Result], float]) -> float:
        return median(of(results[work]) for results in rounds)

    return {
        work: {
            "per_second": round(middle(work, lambda result: result.rate)),
            "cpu_us": [
                round(middle(work, lambda result: result.server_us), 1),
                round(middle(work, lambda result: result.postgres_us), 1),
            ],
            "lock_waits": round(middle(work, lambda result: result.lock_waits), 3),
        }
        for work in rounds[0]
    }


def _measure(engine: Engine, clients: int, given: Namespace, numbers: count[int]) -> dict[str, Result]:
    mine = [next(numbers) for _ in range(clients)]
    return {
        name: _load(engine, mine, work, (given.calls if rows > 1 else given.gets) // clients, rows)
        for name, (work, rows) in LOADS.items()
    }


def _load(engine: Engine, mine: Sequence[int], work: Work, calls: int, rows: int) -> Result:
    failures: list[BaseException] = []

    def client(place: int, number: int, first: int, last: int) -> None:
        server = engine.servers[place % len(engine.servers)]
        try:
            with Connection(server.port) as connection:
                for call in range(first, last):
                    work(connection, server.key, number, call)
        except BaseException as error:
            failures.append(error)

    def all_clients(first: int, last: int) -> None:
        threads = [threading.Thread(target=client, args=(*each, first, last)) for each in enumerate(mine)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    all_clients(0, 1)  # Creates connections, slots and collections first.
    with _lock_waits(engine.database) as waits:
        before = _cpu(engine)
        began = time.perf_counter()
        all_clients(1, calls + 1)
        seconds = time.perf_counter() - began
        after = _cpu(engine)
    if failures:
        raise failures[0]
    total = calls * rows * len(mine)
    waiting, active = map(sum, zip(*waits, strict=True)) if waits else (0, 0)
    used = [1e6 * (end - start) / total for start, end in zip(before, after, strict=True)]
    return Result(total / seconds, *used, waiting / active if active else 0.0)


def _cpu(engine: Engine) -> tuple[float, float]:
    """Return the processor seconds of the servers and of PostgreSQL, whose connections last between loads."""
    servers = sum(cpu_seconds(server.pid) for server in engine.servers)
    return servers, children_cpu_seconds(engine.postgres) if engine.postgres else 0.0


@contextmanager
def _lock_waits(database: str | None) -> Generator[list[tuple[int, int]]]:
    """Sample the numbers of waiting and of all transactions repeatedly."""
    samples: list[tuple[int, int]] = []
    ended = threading.Event()

    async def watch() -> None:
        connection = await asyncpg.connect(database)
        while not ended.is_set():
            samples.append(tuple(await connection.fetchrow(_WAITS)))
            await asyncio.sleep(_SAMPLES_EACH)
        await connection.close()

    if database is None:
        yield samples
        return
    watching = threading.Thread(target=asyncio.run, args=(watch(),))
    watching.start()
    try:
        yield samples
    finally:
        ended.set()
        watching.join()


# ── loads ──


def _post(connection: Connection, path: str, key: str, body: bytes) -> bytes:
    return connection.ask(request("POST", path, key, body, Content_Encoding="gzip"))


def _packed(records: Sequence[object]) -> bytes:
    return gzip.compress(b"\n".join(json.dumps(record).encode() for record in records), 1)


_chance = random.Random(1)
_ITEMS = _packed(
    [
        {"url": f"http://shop.example/{n}", "name": f"Thing {n}", "text": _chance.randbytes(440).hex(), "price": n}
        for n in range(_ROWS)
    ]
)


def _items(connection: Connection, key: str, number: int, call: int) -> int:
    return len(_post(connection, f"/items/1/{number}/1?start={call * _ROWS}", key, _ITEMS))


def _add(connection: Connection, key: str, number: int, call: int) -> int:
    new = [{"fp": os.urandom(10).hex(), "qdata": {"url": f"/page/{call}/{n}"}, "p": 0} for n in range(_ROWS)]
    answer = json.loads(_post(connection, f"/hcf/1/f/s/{number}", key, _packed(new)))
    assert answer["newcount"] == _ROWS
    return _ROWS


def _consume(connection: Connection, key: str, number: int, _call: int) -> int:
    path = f"/hcf/1/f/s/{number}/q"
    read = connection.ask(request("GET", f"{path}?mincount={_ROWS}", key))
    ids = [json.loads(line)["id"] for line in read.splitlines()]
    assert len(ids) == _ROWS // 100
    return len(connection.ask(request("POST", f"{path}/deleted", key, json.dumps(ids).encode())))


def _records(connection: Connection, key: str, number: int, call: int) -> int:
    records = [{"_key": f"{call:04}-{n:04}", "url": f"/page/{n}", "n": n, "text": "x" * 60} for n in range(_ROWS)]
    return len(_post(connection, f"/collections/1/s/c{number}", key, _packed(records)))


def _get(connection: Connection, key: str, number: int, call: int) -> int:
    return len(connection.ask(request("GET", f"/collections/1/s/c{number}/0000-{call % _ROWS:04}", key)))


#: The loads, with the rows of a call.
LOADS: dict[str, tuple[Work, int]] = {
    "items": (_items, _ROWS),
    "add": (_add, _ROWS),
    "read and delete": (_consume, _ROWS),
    "records": (_records, _ROWS),
    "get": (_get, 1),
}


if __name__ == "__main__":
    main()
