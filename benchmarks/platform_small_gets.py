"""Processor time (µs) of the server for small GETs of the platform, over kept HTTP connections, on SQLite and on
PostgreSQL.

Beside it: a bare server on the same stack that answers with bytes which it already has. ``item`` is one record of a
chunk of ten, ``item of 1000`` one of a full chunk, each time another one. On PostgreSQL, the time of the database
itself is not counted. ``--database sqlite`` leaves it out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.load import Connection, Load, request, send
from rig.processes import python
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform

from tests.support.postgresql import cluster

_FULL_CHUNK = 1000
_RECORDS = 1000
_BATCHES = 10


def main() -> None:
    given = options(
        __doc__,
        full={"gets": 20_000, "connections": 4, "rounds": 5, "database": ["sqlite", "postgresql"]},
        quick={"gets": 2_000, "connections": 4, "rounds": 2, "database": ["sqlite", "postgresql"]},
    )
    with ExitStack() as stack:
        bare = stack.enter_context(python("-m", "rig.bare"))
        bare_port, bare_pid = int(bare.said), bare.process.pid

        def shared(paths: list[str], key: str = "") -> list[list[bytes]]:
            requests = [request("GET", path, key) for path in paths]
            each = [requests[number % len(requests)] for number in range(given.gets)]
            return [each[place :: given.connections] for place in range(given.connections)]

        def load(server: Platform, paths: list[str]) -> Callable[[], Load]:
            requests = shared(paths, server.key)
            return lambda: send(server.port, server.pid, requests)

        bare_requests = shared(["/"])
        runs: dict[str, Callable[[], Load]] = {"bare": lambda: send(bare_port, bare_pid, bare_requests)}
        for database in given.database:
            server = stack.enter_context(_server(database))
            _fill(server)
            runs |= {f"{database}: {name}": load(server, paths) for name, paths in _PATHS.items()}
        loads = alternate(given.rounds, runs)
    cpu = {name: median(1e6 * load.cpu_seconds / given.gets for load in found) for name, found in loads.items()}
    report(
        "platform_small_gets",
        gets=given.gets,
        connections=given.connections,
        rounds=given.rounds,
        bare_cpu_us=round(cpu["bare"], 1),
        cpu_us={database: _of(database, cpu) for database in given.database},
        ratio={
            database: {name: round(each / cpu["bare"], 2) for name, each in _of(database, cpu).items()}
            for database in given.database
        },
    )


def _of(database: str, cpu: dict[str, float]) -> dict[str, float]:
    return {name: round(cpu[f"{database}: {name}"], 1) for name in _PATHS}


@contextmanager
def _server(database: str) -> Generator[Platform]:
    if database == "sqlite":
        with platform() as server:
            yield server
    else:
        with cluster() as postgresql, platform(database=postgresql.database()) as server:
            yield server


_PATHS = {
    "time": ["/system/ts"],
    "job metadata": ["/jobs/1/1/1"],
    "job field": ["/jobs/1/1/1/state"],
    "item": [f"/items/1/1/1/{number}" for number in range(10)],
    "item of 1000": [f"/items/1/1/2/{number}" for number in range(_FULL_CHUNK)],
    "stats": ["/items/1/1/1/stats"],
    "collection record": [f"/collections/1/s/c/{number:05}" for number in range(_RECORDS)],
    "collection by keys": [f"/collections/1/s/c?key={number:05}&key={number + 1:05}" for number in range(_RECORDS - 1)],
    "collection count": ["/collections/1/s/c/count?key=00005"],
    "frontier read": ["/hcf/1/f/s/0/q?mincount=1"],
    "frontier count": ["/hcf/1/f/s/0/q/count"],
    "job count": ["/jobq/1/count?state=pending"],
    "spider number": ["/ids/1/spider/spider"],
    "project summary": ["/projects/1/jobsummary"],
    "project setting": ["/projects/1/settings/name"],
}


def _fill(server: Platform) -> None:
    lines: dict[str, Iterable[dict[str, object]]] = {
        "/jobq/1/push": ({"spider": "spider", "tags": ["a"], "spider_args": {"a": "b"}} for _ in range(2)),
        "/items/1/1/1": map(_item, range(10)),
        "/items/1/1/2": map(_item, range(_FULL_CHUNK)),
        "/collections/1/s/c": ({"_key": f"{number:05}", **_item(number)} for number in range(_RECORDS)),
        "/hcf/1/f/s/0": ({"fp": f"/page/{number}", "qdata": {"depth": 1}} for number in range(100 * _BATCHES)),
        "/projects/1/settings": [{"name": "value"}],
    }
    with Connection(server.port) as connection:
        for path, records in lines.items():
            body = "\n".join(map(json.dumps, records)).encode()
            connection.ask(request("POST", path, server.key, body))


def _item(number: int) -> dict[str, object]:
    page = f"https://site.example/page/{number}"
    return {"url": page, "name": f"product {number}", "price": number, "text": "x" * 100}


if __name__ == "__main__":
    main()
