"""Rows per second that the platform stores, and megabytes per second that it reads back, over HTTP.

Items of 1 KB, gzip JSON lines of 1000 a post, over several connections at once, each answered after a synced commit.
Beside it: a bare server on the same stack that unpacks, checks and throws away. Then one job is read, in JSON lines,
not compressed and compressed, and what memory that takes is reported. Beside it the bare server sends as many bytes as
go over the wire, in pieces of 256 KB, of which it has one in memory and makes none. Every ratio is of one run, on the
clock and of the servers' processor time, for the machine may have other work. ``gzip`` is of a job that the package's
client compressed, which is passed on as it came in; ``gzip, recompressed`` of one that another program compressed.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

from rig.load import Load, memory, request, send
from rig.processes import python
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform

from scrapy_ext.api import compression

_LINES = 1000


def main() -> None:
    given = options(
        __doc__,
        full={"posts": 400, "connections": 8, "rounds": 5, "read": 1_000_000},
        quick={"posts": 64, "connections": 8, "rounds": 2, "read": 64_000},
    )
    texts = [_items(seed) for seed in range(8)]
    bodies = [gzip.compress(text, 1) for text in texts]
    own = [compression.gzip(text) for text in texts]
    with platform() as server, python("-m", "rig.bare") as bare:
        port, pid = int(bare.said), bare.process.pid
        jobs = count(1)
        runs: dict[str, Callable[[], Load]] = {
            "scrapy_ext": lambda: _write(server, bodies, given.posts, list(islice(jobs, given.connections))),
            "bare": lambda: send(port, pid, _shared(bodies, given.posts, given.connections)),
        }
        written = alternate(given.rounds, runs)
        rows = given.posts * _LINES
        rates = {name: median(rows / load.seconds for load in loads) for name, loads in written.items()}
        cpu = {name: median(1e6 * load.cpu_seconds / rows for load in loads) for name, loads in written.items()}

        job, foreign = next(jobs), next(jobs)
        for filled, sent in ((job, own), (foreign, bodies)):
            for first in range(0, given.read // _LINES, given.posts):
                posts = min(given.posts, given.read // _LINES - first)
                _write(server, sent, posts, [filled], first=first)
        # A short part first, so that the rest shows the effect of length.
        taken = [memory(server.pid)]
        for coding in ("identity", "gzip"):
            short = request("GET", f"/items/1/1/{job}?count=30000", server.key, Accept_Encoding=coding)
            send(server.port, server.pid, [[short]])
        taken.append(memory(server.pid))
        reads = {"identity": (job, "identity"), "gzip": (job, "gzip"), "gzip, recompressed": (foreign, "gzip")}
        read = {
            name: _read(server, Bare(port, pid), f"/items/1/1/{number}", coding, given.rounds)
            for name, (number, coding) in reads.items()
        }
        report(
            "platform_ingest",
            rows=rows,
            connections=given.connections,
            rounds=given.rounds,
            rows_per_second={name: round(rate) for name, rate in rates.items()},
            cpu_us_per_row={name: round(each, 2) for name, each in cpu.items()},
            ratio=round(rates["scrapy_ext"] / rates["bare"], 2),
            cpu_ratio=round(cpu["bare"] / cpu["scrapy_ext"], 2),
            read_rows=given.read,
            read=read,
            read_memory_mb={
                "first 30000 rows": round((taken[1] - taken[0]) / 1e6, 1),
                "all the rest": round((memory(server.pid) - taken[1]) / 1e6, 1),
            },
        )


class Bare(NamedTuple):
    """Run the bare server."""

    port: int
    pid: int


def _read(server: Platform, bare: Bare, path: str, coding: str, rounds: int) -> dict[str, Any]:
    """Read a result, and as many bytes from the bare server, in turns."""
    get = request("GET", path, server.key, Accept_Encoding=coding)
    same = request("GET", f"/{send(server.port, server.pid, [[get]]).received}", "")
    loads = alternate(
        rounds,
        {
            "scrapy_ext": partial(send, server.port, server.pid, [[get]]),
            "bare": partial(send, bare.port, bare.pid, [[same]]),
        },
    )
    speeds = {name: median(load.received / load.seconds / 1e6 for load in each) for name, each in loads.items()}
    cpu = {name: median(1e9 * load.cpu_seconds / load.received for load in each) for name, each in loads.items()}
    return {
        "wire_mb_per_second": {name: round(speed) for name, speed in speeds.items()},
        "cpu_ms_per_mb": {name: round(each, 2) for name, each in cpu.items()},
        "ratio": round(speeds["scrapy_ext"] / speeds["bare"], 2),
        "cpu_ratio": round(cpu["bare"] / cpu["scrapy_ext"], 2),
    }


def _items(seed: int) -> bytes:
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(3000)]

    def text(length: int) -> str:
        return " ".join(chance.choices(words, k=length))

    return b"".join(
        json.dumps(
            {
                "url": f"https://shop.example/p/{chance.getrandbits(48)}",
                "name": text(6),
                "price": chance.randint(100, 99999) / 100,
                "currency": "EUR",
                "sku": f"{chance.getrandbits(64):x}",
                "inStock": chance.random() < 0.5,
                "brand": {"name": text(1)},
                "breadcrumbs": [{"name": text(2), "url": f"/c/{n}"} for n in range(3)],
                "images": [f"https://img.example/{chance.getrandbits(64):x}.jpg" for _ in range(3)],
                "description": text(60),
                "rating": {"value": chance.randint(10, 50) / 10, "count": chance.randint(0, 900)},
            }
        ).encode()
        + b"\n"
        for _ in range(_LINES)
    )


def _post(path: str, key: str, body: bytes) -> bytes:
    return request("POST", path, key, body, Content_Encoding="gzip")


def _shared(bodies: list[bytes], posts: int, connections: int) -> list[list[bytes]]:
    requests = [_post("/", "", bodies[n % len(bodies)]) for n in range(posts)]
    return [requests[place::connections] for place in range(connections)]


def _write(server: Platform, bodies: list[bytes], posts: int, jobs: list[int], *, first: int = 0) -> Load:
    """Fill one job per connection."""

    def requests(job: int) -> list[bytes]:
        return [
            _post(f"/items/1/1/{job}?start={(first + n) * _LINES}", server.key, bodies[n % len(bodies)])
            for n in range(posts // len(jobs))
        ]

    return send(server.port, server.pid, map(requests, jobs))


if __name__ == "__main__":
    main()
