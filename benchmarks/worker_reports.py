"""Reports of the workers of one job, and their writes of items, over HTTP, by how many workers hurry at once.

Each worker has a connection, and sends one report after the other: ten domains, five counts of its queue, and with
every fifth report 60 stats. All of them take the lock of one row (``worker_groups``). Then each writes ten items at a
time to its own stream of the job, which takes the lock of another row (``record_totals``). ``cpu_ms`` is the processor
time of a call in the server and in PostgreSQL; ``longest_ms`` is the longest wait for an answer; ``per_second`` are the
calls of all workers. In a crawl, a worker sends a report every two seconds, and one every 200 ms at most, so
``per_second`` by five is the number of workers that may all hurry, and half of that the number which may all be calm.
"""

from __future__ import annotations

import json
import secrets
import sys
import urllib.error
import urllib.request
from argparse import Namespace
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.load import request, send
from rig.processors import Processors
from rig.rounds import options, report
from rig.services import Platform, platform

from tests.support.postgresql import cluster

_DOMAINS: Final = 10
_STATS: Final = 60
_STATS_EVERY: Final = 5
_ITEMS: Final = 10


def main() -> None:
    given = options(
        __doc__,
        full={"workers": [2, 8, 32, 100], "calls": 1500},
        quick={"workers": [2, 8], "calls": 100},
    )
    with cluster() as postgresql, ExitStack() as stack:
        assert postgresql.process is not None
        on_sqlite = stack.enter_context(platform())
        on_postgresql = stack.enter_context(platform(database=postgresql.database()))
        engines = {
            "sqlite": (on_sqlite, Processors([on_sqlite.pid])),
            "postgresql": (on_postgresql, Processors([on_postgresql.pid], postgresql.process.pid)),
        }
        found = {
            name: {str(workers): _measure(given, server, used, workers) for workers in given.workers}
            for name, (server, used) in engines.items()
        }
    report("worker_reports", calls=given.calls, engines=found)


def _measure(given: Namespace, server: Platform, used: Processors, workers: int) -> dict[str, dict[str, Any]]:
    api = _Api(server)
    job = api.call("/jobq/1/push", {"spider": "crawl", "state": "running"})["key"]
    joined = [api.joined(job, workers) for _ in range(workers)]
    each = max(given.calls // workers, 2)
    reports = [_reports(job, attempt, token, each) for attempt, token in joined]
    writes = [_writes(job, attempt, token, each) for attempt, token in joined]
    return {
        "report": _sent(server, used, [list(calls) for calls in reports]),
        "write": _sent(server, used, [list(calls) for calls in writes]),
    }


def _sent(server: Platform, used: Processors, connections: list[list[bytes]]) -> dict[str, Any]:
    before, calls = used.seconds(), sum(map(len, connections))
    load = send(server.port, server.pid, connections)
    spent = [now - then for now, then in zip(used.seconds(), before, strict=True)]
    return {
        "cpu_ms": [round(1000 * seconds / calls, 2) for seconds in spent],
        "longest_ms": round(1000 * load.longest),
        "per_second": round(calls / load.seconds),
    }


def _reports(job: str, attempt: int, token: str, number: int) -> Iterator[bytes]:
    domains = {f"site-{site}.example": {"limit": 8, "want": 4, "held": 1} for site in range(_DOMAINS)}
    stats = {f"downloader/response_status_count/{place}": ["sum", place] for place in range(_STATS)}
    for each in range(2, number + 2):
        queue = {"memory": each % 50, "more": True, "active": 16}
        body: dict[str, Any] = {"job": job, "attempt": attempt, "number": each, "queue": queue, "domains": domains}
        body["counts"] = {"items": each, "responses": each}
        if each % _STATS_EVERY == 0:
            body["stats"] = stats
        yield request("POST", "/jobq/1/report", token, json.dumps(body).encode())


def _writes(job: str, attempt: int, token: str, number: int) -> Iterable[bytes]:
    items = [json.dumps({"url": f"https://site.example/{place}", "text": "x" * 300}) for place in range(_ITEMS)]
    body = "\n".join(items).encode()
    for each in range(number):
        yield request("POST", f"/items/{job}?writer={attempt}&start={each * _ITEMS}", token, body)


class _Api:
    def __init__(self, server: Platform) -> None:
        self._server = server

    def joined(self, job: str, workers: int) -> tuple[int, str]:
        """Let a worker join a job; return its attempt and its token."""
        body = {"job": job, "nonce": secrets.token_hex(16), "number": 1, "workers": str(workers)}
        answer = self.call("/jobq/1/report", body)
        return answer["attempt"], answer["token"]

    def call(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a POST."""
        credentials = b64encode(f"{self._server.key}:".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}"}
        call = urllib.request.Request(f"http://127.0.0.1:{self._server.port}{path}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(call, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path}: {error.read().decode()}") from None


if __name__ == "__main__":
    main()
