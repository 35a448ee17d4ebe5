"""Several servers and workers on one PostgreSQL: what their sessions wait for, and the statements that cost most.

Each worker runs a crawl, whose items and requests it stores itself. Meanwhile clients of all servers post items,
requests of frontiers and records of collections, read queues, and read single records: the loads of
``platform_engines``, all at once, two clients of each kind.

``waits``: of the samples of sessions that ran a statement or held a transaction open, the share by what they waited
for. ``running`` waited for nothing that PostgreSQL knows, which includes the processor; ``held`` waited for their
server.
``connections``: the most that were open at once, by kind of process. ``statements``: those that took most time by
``pg_stat_statements``, with calls, how many of these were planned, mean times (ms), and the share of all. ``dead``:
tables by their share of dead rows, with the number of vacuums. ``scans``: tables that were read as a whole, with the
rows of each scan. ``updates``: tables by their updates, with the share of those that changed no index (HOT), and KiB.
All processes share the machine.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncpg
from platform_engines import LOADS
from rig.load import Connection, request
from rig.rounds import options, report

from tests.support.postgresql import Cluster
from tests.support.servers import RunningServer

_SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": 2000,
    "pg_stat_statements.track_planning": "on",
    "track_io_timing": "on",
    "max_connections": 200,
}
_SAMPLE_SECONDS = 0.02
_SPIDER = """
import scrapy


class Steady(scrapy.Spider):
    name = "steady"
    start_urls = ["data:,0"]
    custom_settings = {"DOWNLOAD_DELAY": 0.02, "RANDOMIZE_DOWNLOAD_DELAY": False}

    def parse(self, response):
        number = int(response.text)
        yield from ({"number": number, "n": n, "text": "x" * 900} for n in range(10))
        yield scrapy.Request(f"data:,{number + 1}")
"""
_ACTIVITY = """SELECT application_name, state, wait_event_type, wait_event FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_STATEMENTS = """SELECT query, calls, mean_exec_time, mean_plan_time, rows,
        (total_exec_time + total_plan_time) / sum(total_exec_time + total_plan_time) OVER (),
        shared_blks_read, wal_bytes, stddev_exec_time, plans
    FROM pg_stat_statements WHERE calls > 5 ORDER BY total_exec_time + total_plan_time DESC LIMIT $1"""
_DEAD = """SELECT relname, n_dead_tup::float8 / (n_dead_tup + n_live_tup), autovacuum_count, n_dead_tup
    FROM pg_stat_user_tables WHERE n_dead_tup + n_live_tup > 1000 ORDER BY 2 DESC LIMIT 5"""

_UPDATES = """SELECT relname, n_tup_upd, n_tup_hot_upd::float8 / n_tup_upd, pg_relation_size(relid) / 1024
    FROM pg_stat_user_tables WHERE n_tup_upd > 50 ORDER BY n_tup_upd DESC LIMIT 8"""
_SCANS = """SELECT relname, seq_scan, seq_tup_read::float8 / seq_scan FROM pg_stat_user_tables
    WHERE seq_scan > 10 AND seq_tup_read > 100 * seq_scan ORDER BY seq_tup_read DESC LIMIT 8"""


def main() -> None:
    given = options(
        __doc__,
        full={"servers": 3, "workers": 6, "seconds": 30.0, "statements": 15},
        quick={"servers": 2, "workers": 1, "seconds": 3.0, "statements": 5},
    )
    cluster = Cluster(_SETTINGS)
    try:
        report(
            "postgresql_shared",
            servers=given.servers,
            workers=given.workers,
            seconds=given.seconds,
            **_measure(cluster, given.servers, given.workers, given.seconds, given.statements),
        )
    finally:
        cluster.remove()


def _measure(cluster: Cluster, servers: int, workers: int, seconds: float, statements: int) -> dict[str, Any]:
    database = cluster.database()
    cluster.query(database, "CREATE EXTENSION pg_stat_statements")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        project = _project(folder)
        first = stack.enter_context(RunningServer(folder, database=database, options=["--no-runner"]))
        same = ["--no-runner", "--platform-key", first.platform_key]
        all_servers = [first]
        all_servers += [
            stack.enter_context(RunningServer(folder, database=database, options=same, keys=False))
            for _ in range(servers - 1)
        ]
        options = ["--local-project", str(project), "--units", "1"]
        for _ in range(workers):
            stack.enter_context(RunningServer(folder, database=database, options=options, worker=True))
        ports = [int(each.url.rpartition(":")[2]) for each in all_servers]
        kinds = {str(each.process.pid): "server" for each in all_servers}
        _run_jobs(ports[0], first.platform_key, workers)
        _load(ports, first.platform_key, 1.0)  # Creates slots and collections, and prepares statements.
        cluster.query(database, "SELECT pg_stat_statements_reset()")
        with _sampled(database, kinds) as samples:
            rows = _load(ports, first.platform_key, seconds)
        found = asyncio.run(_found(database, statements))
    return {"rows_per_second": rows, **samples, **found}


def _project(folder: Path) -> Path:
    package = folder / "project" / "shop"
    package.mkdir(parents=True)
    (folder / "project" / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text('BOT_NAME = "shop"\nSPIDER_MODULES = ["shop.spiders"]\n')
    (package / "spiders.py").write_text(_SPIDER)
    return folder / "project"


def _run_jobs(port: int, key: str, count: int) -> None:
    with Connection(port) as connection:
        for number in range(count):
            form = f"project=1&spider=steady&number={number}".encode()
            kind = "application/x-www-form-urlencoded"
            connection.ask(request("POST", "/api/run.json", key, form, Content_Type=kind))
        deadline = time.monotonic() + 120
        while connection.ask(request("GET", "/jobq/1/count?state=running", key)).strip() != b"%d" % count:
            if time.monotonic() > deadline:
                raise SystemExit("The jobs did not start within 120 s.")
            time.sleep(0.2)


def _load(ports: list[int], key: str, seconds: float) -> Mapping[str, int]:
    """Run all loads at once; return the rows of each in a second."""
    ends = time.monotonic() + seconds
    rows: Counter[str] = Counter()
    failures: list[BaseException] = []

    def client(name: str, number: int) -> None:
        work, each = _WORKS[name]
        try:
            with Connection(ports[number % len(ports)]) as connection:
                call = _calls[name, number]
                if not call:
                    LOADS["records"][0](connection, key, number, 0)
                while time.monotonic() < ends:
                    work(connection, key, number, call)
                    call += 1
                    rows[name] += each
                _calls[name, number] = call
        except BaseException as error:
            failures.append(error)

    clients = [(name, _FIRST + 2 * place + second) for place, name in enumerate(_WORKS) for second in range(2)]
    threads = [threading.Thread(target=client, args=each) for each in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return {name: round(count / seconds) for name, count in rows.items()}


def _through(connection: Connection, key: str, number: int, call: int) -> int:
    add, consume = LOADS["add"][0], LOADS["read and delete"][0]
    return add(connection, key, number, call) + consume(connection, key, number, call)


#: Number of the first client; lower ones are the crawls' spiders.
_FIRST = 100
_WORKS = {**LOADS, "read and delete": (_through, 1000)}
_calls: Counter[tuple[str, int]] = Counter()


@contextmanager
def _sampled(database: str, kinds: Mapping[str, str]) -> Generator[dict[str, Any]]:
    """Sample what the sessions wait for; the result is there at the end."""
    result: dict[str, Any] = {}
    waits: Counter[str] = Counter()
    most: Counter[str] = Counter()
    ended = threading.Event()

    def kind_of(application: str) -> str:
        process = application.rpartition(" ")[2]
        return kinds.get(process, "worker" if process.isdigit() else "queue")

    async def watch() -> None:
        connection = await asyncpg.connect(database)
        while not ended.is_set():
            rows = await connection.fetch(_ACTIVITY)
            for kind, count in Counter(kind_of(row[0]) for row in rows).items():
                most[kind] = max(most[kind], count)
            most["all"] = max(most["all"], len(rows))
            for _, state, kind, event in rows:
                if state == "active":
                    waits["running" if kind is None else f"{kind}: {event}"] += 1
                elif state == "idle in transaction":
                    waits["held"] += 1
            await asyncio.sleep(_SAMPLE_SECONDS)
        await connection.close()

    watching = threading.Thread(target=asyncio.run, args=(watch(),))
    watching.start()
    try:
        yield result
    finally:
        ended.set()
        watching.join()
    total = waits.total() or 1
    result["waits"] = {name: round(count / total, 4) for name, count in waits.most_common(12)}
    result["connections"] = dict(most)


async def _found(database: str, statements: int) -> dict[str, Any]:
    connection = await asyncpg.connect(database)
    try:
        shown = [
            {
                "sql": " ".join(row[0].split())[:140],
                "calls": row[1],
                "ms": round(row[2], 3),
                "plan_ms": round(row[3], 3),
                "planned": row[9],
                "rows": row[4],
                "share": round(row[5], 3),
                "read": row[6],
                "wal": int(row[7]),
            }
            for row in await connection.fetch(_STATEMENTS, statements)
        ]
        dead = [[row[0], round(row[1], 3), row[2], row[3]] for row in await connection.fetch(_DEAD)]
        scans = [[row[0], row[1], round(row[2])] for row in await connection.fetch(_SCANS)]
        updates = [[row[0], row[1], round(row[2], 2), row[3]] for row in await connection.fetch(_UPDATES)]
    finally:
        await connection.close()
    return {"statements": shown, "dead": dead, "scans": scans, "updates": updates}


if __name__ == "__main__":
    main()
