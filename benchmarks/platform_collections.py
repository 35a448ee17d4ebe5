"""Records per second that collections store and return over HTTP, by the size of a collection.

Keys are random, records have 200 bytes to 1 KB. At each size: new records, 1000 a post; updates of random ones; reads
of 500 keys a request; reads by prefix, of some hundreds of records each; the count of the first 100,000; and small GETs
of one record. Beside it: a bare server on the same stack that checks the same lines as the first and throws them away.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

from rig.load import Load, memory_now, request, send
from rig.processes import python
from rig.rounds import median, options, report
from rig.services import platform

_PER_POST = 1000
_PER_GET = 500
_COLLECTION = "/collections/1/s/c"


def main() -> None:
    given = options(
        __doc__,
        full={"sizes": [10_000, 100_000, 1_000_000], "connections": 4, "measured": 40_000, "gets": 10_000, "data": ""},
        quick={"sizes": [8_000, 16_000], "connections": 4, "measured": 4_000, "gets": 1_000, "data": ""},
    )
    found = []
    with (
        platform(Path(given.data) if given.data else None) as server,
        python("-m", "rig.bare") as bare,
    ):
        bare_port, bare_pid = int(bare.said), bare.process.pid

        def shared(requests: list[bytes]) -> list[list[bytes]]:
            return [requests[place :: given.connections] for place in range(given.connections)]

        def write(bodies: list[bytes]) -> Load:
            posts = [request("POST", _COLLECTION, server.key, body, Content_Encoding="gzip") for body in bodies]
            return send(server.port, server.pid, shared(posts))

        stored = 0
        for size in given.sizes:
            for first in range(stored, size - given.measured, 50_000):
                write(_bodies(range(first, min(first + 50_000, size - given.measured))))
            numbers = range(max(size - given.measured, 0), size)
            stored, number = size, len(numbers)
            bodies, chance = _bodies(numbers), random.Random(size)
            again = [chance.randrange(size) for _ in numbers]
            groups = [again[first : first + _PER_GET] for first in range(0, number, _PER_GET)]
            keyed = ["&".join(f"key={_key(n)}" for n in group) for group in groups]
            digits = max(len(f"{size // _PER_POST:x}") - 1, 0)
            prefixes = [f"{n % 16**digits:0{digits}x}"[:digits] for n in range(number // _PER_POST)]
            scans = [_get(server.key, f"?prefix={prefix}&meta=_key") for prefix in prefixes]
            runs: dict[str, Callable[[], Load]] = {
                "write": lambda bodies=bodies: write(bodies),
                "update": lambda again=again: write(_bodies(again, "y")),
                "read": lambda keyed=keyed: send(
                    server.port, server.pid, shared([_get(server.key, f"?{k}") for k in keyed])
                ),
                "prefix": lambda scans=scans: send(server.port, server.pid, shared(scans)),
                "count": lambda: send(server.port, server.pid, [[_get(server.key, "/count")] * 5]),
                "get": lambda again=again: send(
                    server.port, server.pid, shared([_get(server.key, f"/{_key(n)}") for n in again[: given.gets]])
                ),
                "bare write": lambda bodies=bodies: send(
                    bare_port,
                    bare_pid,
                    shared([request("POST", "/", "", body, Content_Encoding="gzip") for body in bodies]),
                ),
            }
            loads = {name: run() for name, run in runs.items()}
            scanned = sum(_matching(size, prefix) for prefix in prefixes)
            of = {"prefix": scanned, "count": 5 * min(size, 100_000), "get": min(given.gets, number)}
            found.append(
                {"records": size}
                | {f"{name}_rate": round(of.get(name, number) / load.seconds) for name, load in loads.items()}
                | {
                    f"{name}_cpu_us": round(1e6 * load.cpu_seconds / of.get(name, number), 1)
                    for name, load in loads.items()
                }
                | {"longest_write": round(loads["write"].longest, 3)}
                | {"memory_mb": round(memory_now(server.pid) / 1e6), "bytes_each": round(server.disk() / size)}
            )
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    report(
        "platform_collections",
        connections=given.connections,
        measured=given.measured,
        sizes=found,
        write_ratio=round(median(each["write_rate"] / each["bare write_rate"] for each in found), 2),
        flat=round(found[-1]["write_rate"] / found[0]["write_rate"], 2),
    )


def _get(key: str, rest: str) -> bytes:
    return request("GET", _COLLECTION + rest, key)


def _key(number: int) -> str:
    return f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}"


def _matching(size: int, prefix: str) -> int:
    """Return the approximate number of keys with a prefix: they are spread evenly."""
    return round(size / 16 ** len(prefix))


def _bodies(numbers: range | list[int], letter: str = "x") -> list[bytes]:
    def line(n: int) -> str:
        text = letter * (100 + n * 37 % 800)
        return json.dumps({"_key": _key(n), "url": f"https://site.example/page/{n}", "n": n, "text": text})

    return [
        gzip.compress("\n".join(map(line, numbers[first : first + _PER_POST])).encode(), 1)
        for first in range(0, len(numbers), _PER_POST)
    ]


if __name__ == "__main__":
    main()
