"""Requests a second that the frontier takes, and that it gives out and deletes, over HTTP, by how many it knows.

Several connections add 1000 requests a post, each to a slot of its own; then batches are read, 1000 requests at a
time, and deleted before the next read. The same again for each size of the slots together. Beside it: a bare server on
the same stack that checks the same lines and throws them away.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from itertools import islice

from rig.load import Connection, Load, request, send
from rig.processes import python
from rig.rounds import median, options, report
from rig.services import Platform, platform

_PER_POST = 1000


def main() -> None:
    given = options(
        __doc__,
        full={"sizes": [100_000, 1_000_000, 10_000_000], "connections": 4, "measured": 100_000},
        quick={"sizes": [20_000, 60_000], "connections": 4, "measured": 20_000},
    )
    adds, reads, cpu, bare_adds = {}, {}, {}, []
    with platform() as server, python("-m", "rig.bare") as bare:
        port, pid = int(bare.said), bare.process.pid
        added = 0
        for size in given.sizes:
            added = _grow(server, added, size - given.measured, given.connections)
            load = _add(server, added, given.measured, given.connections)
            added += given.measured
            adds[size] = given.measured / load.seconds
            cpu[size] = 1e6 * load.cpu_seconds / given.measured
            reads[size] = _read(server, given.measured, given.connections)
            posts = [
                request("POST", "/", "", _body(0, n), Content_Encoding="gzip") for n in range(given.measured // 1000)
            ]
            taken = send(port, pid, [posts[place :: given.connections] for place in range(given.connections)])
            bare_adds.append(given.measured / taken.seconds)
    report(
        "platform_frontier",
        connections=given.connections,
        measured=given.measured,
        added_per_second={size: round(rate) for size, rate in adds.items()},
        add_cpu_us={size: round(each, 1) for size, each in cpu.items()},
        read_and_deleted_per_second={size: round(rate) for size, rate in reads.items()},
        bare_per_second=round(median(bare_adds)),
        ratio=round(median(adds.values()) / median(bare_adds), 2),
        flat=round(adds[given.sizes[-1]] / adds[given.sizes[0]], 2),
    )


def _body(connection: int, post: int) -> bytes:
    # Fingerprints as crawls have them: not in order.
    lines = (
        json.dumps(
            {"fp": f"{(n * 0x9E3779B97F4A7C15) % 2**64:016x}{connection}", "qdata": {"url": f"/page/{n}"}, "p": 0}
        )
        for n in range(post * _PER_POST, (post + 1) * _PER_POST)
    )
    return gzip.compress("\n".join(lines).encode(), 1)


def _add(server: Platform, known: int, number: int, connections: int) -> Load:
    """Add so many requests that the slots do not know."""
    first, posts = known // connections // _PER_POST, number // connections // _PER_POST

    def requests(connection: int) -> list[bytes]:
        path = f"/hcf/1/f/s/{connection}"
        return [
            request("POST", path, server.key, _body(connection, n), Content_Encoding="gzip")
            for n in range(first, first + posts)
        ]

    return send(server.port, server.pid, [requests(connection) for connection in range(connections)])


def _grow(server: Platform, known: int, size: int, connections: int) -> int:
    step = 100 * _PER_POST * connections
    while known < size:
        part = min(step, size - known)
        _add(server, known, part, connections)
        known += part
    return max(known, size)


def _read(server: Platform, number: int, connections: int) -> float:
    """Requests a second that are read and deleted, by as many readers at once as there are slots."""

    def work(slot: int) -> None:
        path = f"/hcf/1/f/s/{slot}/q"
        read = request("GET", f"{path}?mincount={_PER_POST}", server.key)
        with Connection(server.port) as connection:
            for _ in islice(range(number), number // connections // _PER_POST):
                batches = [json.loads(line)["id"] for line in connection.ask(read).splitlines()]
                connection.ask(request("POST", f"{path}/deleted", server.key, json.dumps(batches).encode()))

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(connections)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return number / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
