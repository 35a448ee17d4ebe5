"""Requests per second that the frontier accepts, and that it returns and deletes, over HTTP, by its size.

Several connections add 1000 requests a post, each to a slot of its own; then batches are read, 1000 requests at a
time, and deleted before the next read. The same again at each size of the slots together, from ``--start`` to ``--to``,
about three times as many each; it grows in between over the same path. ``--minutes`` ends it before. Beside it, in
turns: the same additions to slots of the same server that know ``--start`` together, which is what says how flat the
curve is on a machine that does other things too; and a bare server on the same stack that checks the same lines and
throws them away. ``--store postgresql``: the server stores in a PostgreSQL of its own, whose processor time is
``add_database_us`` and ``read_database_us``.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice

from rig.load import Connection, Load, cpu_seconds, memory_now, request, send
from rig.processes import Running, python
from rig.rounds import median, options, report
from rig.services import Platform
from rig.stored import Stored, stored_in

_PER_POST = 1000
_PER_GROWING_POST = 10_000
#: Rounds of one measurement.
_TURNS = 4
#: Sizes: one and three, and their powers of ten.
_STEPS = [digit * 10**power for power in range(3, 12) for digit in (1, 3)]


def main() -> None:
    given = options(
        __doc__,
        full={
            "start": 100_000.0,
            "to": 10_000_000.0,
            "connections": 4,
            "measured": 100_000,
            "minutes": 25.0,
            "store": "sqlite",
            "data": "",
        },
        quick={
            "start": 20_000.0,
            "to": 60_000.0,
            "connections": 4,
            "measured": 20_000,
            "minutes": 1.0,
            "store": "sqlite",
            "data": "",
        },
    )
    deadline = time.monotonic() + 60 * given.minutes
    sizes = sorted({given.start, given.to, *(step for step in _STEPS if given.start < step < given.to)})
    found = []
    with stored_in(given.store, given.data) as stored, python("-m", "rig.bare") as bare:
        server = stored.server
        added = 0
        for size in map(int, sizes):
            growth = _grow(server, added, size - given.measured, given.connections, deadline=deadline)
            added = growth[0]
            measured = _measured(
                stored, bare, added, small=int(given.start), number=given.measured, connections=given.connections
            )
            found.append(measured | {"longest_growing": growth[1]})
            added += given.measured
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
            # The size reached by then is measured too.
            if time.monotonic() > deadline:
                break
    report(
        "platform_frontier",
        store=given.store,
        connections=given.connections,
        measured=given.measured,
        sizes=found,
        ended_at=added,
        ratio=round(median(each["ratio"] for each in found), 2),
        flat=found[-1]["by_small"],
    )


def _measured(
    stored: Stored, bare: Running, known: int, *, small: int, number: int, connections: int
) -> dict[str, float]:
    """Return the rates at this size, of small slots and of a bare server."""
    server = stored.server
    _grow(server, 0, small - number, connections, slots=f"{known}-")
    part = number // _TURNS
    adding, beside, database_adding = [], [], 0.0
    for turn in range(_TURNS):
        before = stored.database_seconds()
        adding.append(_add(server, known + turn * part, part, connections))
        database_adding += stored.database_seconds() - before
        beside.append(_add(server, max(small - number, 0) + turn * part, part, connections, f"{known}-"))
    before = stored.database_seconds()
    reading, reading_cpu = _read(server, number, connections)
    database_reading = stored.database_seconds() - before
    posts = [request("POST", "/", "", _body(0, n), Content_Encoding="gzip") for n in range(number // _PER_POST)]
    taken = send(int(bare.said), bare.process.pid, [posts[place::connections] for place in range(connections)])
    seconds, small_seconds = (sum(load.seconds for load in loads) for loads in (adding, beside))
    cpu, small_cpu = (sum(load.cpu_seconds for load in loads) for loads in (adding, beside))
    return {
        "known": known + number,
        "adds": round(number / seconds),
        "add_cpu_us": round(1e6 * cpu / number, 1),
        "add_database_us": round(1e6 * database_adding / number, 1),
        "small_adds": round(number / small_seconds),
        "small_add_cpu_us": round(1e6 * small_cpu / number, 1),
        "by_small": round(cpu / small_cpu, 2),
        "longest": round(max(load.longest for load in adding), 3),
        "reads": round(number / reading),
        "read_cpu_us": round(1e6 * reading_cpu / number, 1),
        "read_database_us": round(1e6 * database_reading / number, 1),
        "bare": round(number / taken.seconds),
        "bare_cpu_us": round(1e6 * taken.cpu_seconds / number, 1),
        "ratio": round(taken.seconds / seconds, 2),
        "bytes_each": round(stored.disk() / (known + number), 1),
        "memory_mb": round(memory_now(server.pid) / 1e6),
    }


def _fingerprint(number: int, connection: int) -> str:
    # Unordered, as in crawls.
    return f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}{connection}"


def _lines(connection: int, numbers: range) -> bytes:
    return "\n".join(
        f'{{"fp": "{_fingerprint(n, connection)}", "qdata": {{"url": "/page/{n}"}}, "p": 0}}' for n in numbers
    ).encode()


def _body(connection: int, post: int) -> bytes:
    return gzip.compress(_lines(connection, range(post * _PER_POST, (post + 1) * _PER_POST)), 1)


def _add(server: Platform, known: int, number: int, connections: int, slots: str = "") -> Load:
    """Add ``count`` unseen requests."""
    first, posts = known // connections // _PER_POST, number // connections // _PER_POST

    def requests(connection: int) -> list[bytes]:
        path = f"/hcf/1/f/s/{slots}{connection}"
        return [
            request("POST", path, server.key, _body(connection, n), Content_Encoding="gzip")
            for n in range(first, first + posts)
        ]

    return send(server.port, server.pid, [requests(connection) for connection in range(connections)])


def _grow(
    server: Platform, known: int, size: int, connections: int, *, deadline: float = math.inf, slots: str = ""
) -> tuple[int, float]:
    """Add requests up to a size; return the size, and the seconds of the longest addition."""
    first, end = known // connections, max(size, 0) // connections // _PER_POST * _PER_POST
    ends = [first] * connections

    def requests(connection: int) -> Iterator[bytes]:
        while (place := ends[connection]) < end and time.monotonic() < deadline:
            ends[connection] = min(place + _PER_GROWING_POST, end)
            lines = _lines(connection, range(place, ends[connection]))
            yield request("POST", f"/hcf/1/f/s/{slots}{connection}", server.key, lines)

    load = send(server.port, server.pid, [requests(connection) for connection in range(connections)])
    if len(set(ends)) > 1:  # the deadline found them apart; what is measured next must be new to every slot
        return _grow(server, min(ends) * connections, max(ends) * connections, connections, slots=slots)
    return ends[0] * connections, round(load.longest, 3)


def _read(server: Platform, number: int, connections: int) -> tuple[float, float]:
    """Return the seconds, by the clock and of the server's processor time, to read and delete requests with one reader
    per slot."""

    def work(slot: int) -> None:
        path = f"/hcf/1/f/s/{slot}/q"
        read = request("GET", f"{path}?mincount={_PER_POST}", server.key)
        with Connection(server.port) as connection:
            for _ in islice(range(number), number // connections // _PER_POST):
                batches = [json.loads(line)["id"] for line in connection.ask(read).splitlines()]
                connection.ask(request("POST", f"{path}/deleted", server.key, json.dumps(batches).encode()))

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(connections)]
    cpu, began = cpu_seconds(server.pid), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began, cpu_seconds(server.pid) - cpu


if __name__ == "__main__":
    main()
