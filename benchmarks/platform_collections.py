"""Records per second that collections store and return over HTTP, by the size of a collection.

Keys are random, records have 200 bytes to 1 KB. At each size: new records, 1000 a post; updates of random ones; reads
of 500 keys a request; reads by prefix, of some hundreds of records each; the count of the first 100,000; and small GETs
of one record. Beside it: a bare server on the same stack that checks the same lines as the first and throws them away;
and, in turns, the same new records in a collection of the same server that has as many as the first size, which is what
says how flat the curve is on a machine that does other things too (``by_small``, of processor time). ``--text 0``:
records of a key and a number, as those of a dupefilter. ``--minutes`` ends it before the last size. ``--store
postgresql``: the server stores in a PostgreSQL of its own, whose processor time is ``write_database_us``.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rig.load import Load, memory_now, request, send
from rig.processes import Running, python
from rig.rounds import median, options, report
from rig.services import Platform
from rig.stored import Stored, stored_in

_PER_POST = 1000
_PER_GROWING_POST = 10_000
_PER_GET = 500
#: Turns in which new records go to the collection and to the small one.
_TURNS = 4


def main() -> None:
    given = options(
        __doc__,
        full={
            "sizes": [10_000, 100_000, 1_000_000],
            "connections": 4,
            "measured": 40_000,
            "gets": 10_000,
            "text": 800,
            "minutes": 25.0,
            "store": "sqlite",
            "data": "",
        },
        quick={
            "sizes": [8_000, 16_000],
            "connections": 4,
            "measured": 4_000,
            "gets": 1_000,
            "text": 800,
            "minutes": 1.0,
            "store": "sqlite",
            "data": "",
        },
    )
    deadline = time.monotonic() + 60 * given.minutes
    found: list[dict[str, float]] = []
    with stored_in(given.store, given.data) as stored, python("-m", "rig.bare") as bare:
        collection = _Collection(stored.server, "c", given.connections, given.text)
        known = 0
        for size in given.sizes:
            known, longest = collection.grow(known, size - given.measured, deadline)
            small = _Collection(stored.server, f"small_{size}", given.connections, given.text)
            small.grow(0, min(given.sizes[0] - given.measured, known), deadline)
            found.append(
                _measured(stored, bare, collection, small, known=known, number=given.measured, gets=given.gets)
            )
            found[-1]["longest_growing"] = longest
            known += given.measured
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
            # The size reached by then is measured too.
            if time.monotonic() > deadline:
                break
    report(
        "platform_collections",
        store=given.store,
        connections=given.connections,
        measured=given.measured,
        sizes=found,
        write_ratio=round(median(each["write_rate"] / each["bare write_rate"] for each in found), 2),
        flat=found[-1]["by_small"],
    )


@dataclass(frozen=True)
class _Collection:
    """A collection of a server, in which record number ``n`` has the key of :func:`_key`."""

    server: Platform
    name: str
    connections: int
    #: Records have 100 characters of text, and up to so many more; 0 for none.
    text: int

    def grow(self, known: int, size: int, deadline: float) -> tuple[int, float]:
        """Add records up to a size, or until the deadline; return their number, and the seconds of the longest post."""
        # Connections take from one iterator: when all have ended, there are no gaps.
        firsts, taken = iter(range(known, size, _PER_GROWING_POST)), [known]

        def posts() -> Iterator[bytes]:
            while time.monotonic() < deadline and (first := next(firsts, None)) is not None:
                taken.append(end := min(first + _PER_GROWING_POST, size))
                yield request("POST", f"/collections/1/s/{self.name}", self.server.key, self._lines(range(first, end)))

        load = send(self.server.port, self.server.pid, [posts() for _ in range(self.connections)])
        return max(taken), round(load.longest, 3)

    def write(self, numbers: Sequence[int], letter: str = "x") -> Load:
        """Write records, 1000 a post."""
        path = f"/collections/1/s/{self.name}"
        posts = [
            request("POST", path, self.server.key, body, Content_Encoding="gzip")
            for body in self.bodies(numbers, letter)
        ]
        return send(self.server.port, self.server.pid, self._shared(posts))

    def get(self, paths: Sequence[str], *, connections: int | None = None) -> Load:
        """Read the paths, which follow the name of the collection."""
        gets = [request("GET", f"/collections/1/s/{self.name}{path}", self.server.key) for path in paths]
        return send(self.server.port, self.server.pid, self._shared(gets)[:connections])

    def bodies(self, numbers: Sequence[int], letter: str = "x") -> list[bytes]:
        """Return compressed bodies of 1000 records each."""
        parts = (numbers[first : first + _PER_POST] for first in range(0, len(numbers), _PER_POST))
        return [gzip.compress(self._lines(part, letter), 1) for part in parts]

    def _shared(self, requests: list[bytes]) -> list[list[bytes]]:
        return [requests[place :: self.connections] for place in range(self.connections)]

    def _lines(self, numbers: Sequence[int], letter: str = "x") -> bytes:
        if not self.text:
            return "\n".join(f'{{"_key": "{_key(n)}", "n": "{letter}{n}"}}' for n in numbers).encode()
        records = (
            {
                "_key": _key(n),
                "url": f"https://site.example/page/{n}",
                "n": n,
                "text": letter * (100 + n * 37 % self.text),
            }
            for n in numbers
        )
        return "\n".join(map(json.dumps, records)).encode()


def _measured(
    stored: Stored, bare: Running, collection: _Collection, small: _Collection, *, known: int, number: int, gets: int
) -> dict[str, float]:
    """Return the rates of a collection of a size, of a small one and of a bare server."""
    part = number // _TURNS
    writing, beside, database = [], [], 0.0
    for turn in range(_TURNS):
        before = stored.database_seconds()
        writing.append(collection.write(range(known + turn * part, known + (turn + 1) * part)))
        database += stored.database_seconds() - before
        # Keys that the small collection has not.
        beside.append(small.write(range(known + number + turn * part, known + number + (turn + 1) * part)))
    size = known + number
    again = random.Random(size).choices(range(size), k=number)
    groups = (again[first : first + _PER_GET] for first in range(0, number, _PER_GET))
    digits = max(len(f"{size // _PER_POST:x}") - 1, 0)
    prefixes = [f"{n % 16**digits:0{digits}x}"[:digits] for n in range(number // _PER_POST)]
    bodies = collection.bodies(range(known, size))
    posts = [request("POST", "/", "", body, Content_Encoding="gzip") for body in bodies]
    runs: dict[str, tuple[float, Callable[[], Load]]] = {
        "update": (number, lambda: collection.write(again, "y")),
        "read": (
            number,
            lambda: collection.get(["?" + "&".join(f"key={_key(n)}" for n in group) for group in groups]),
        ),
        "prefix": (
            # Keys are spread evenly.
            len(prefixes) * size / 16**digits,
            lambda: collection.get([f"?prefix={prefix}&meta=_key" for prefix in prefixes]),
        ),
        "count": (5 * min(size, 100_000), lambda: collection.get(["/count"] * 5, connections=1)),
        "get": (min(gets, number), lambda: collection.get([f"/{_key(n)}" for n in again[:gets]])),
        "bare write": (number, lambda: send(int(bare.said), bare.process.pid, [posts])),
    }
    loads = {name: (records, run()) for name, (records, run) in runs.items()}
    cpu, small_cpu = (sum(load.cpu_seconds for load in each) for each in (writing, beside))
    seconds = sum(load.seconds for load in writing)
    return {
        "records": size,
        "write_rate": round(number / seconds),
        "write_cpu_us": round(1e6 * cpu / number, 1),
        "write_database_us": round(1e6 * database / number, 1),
        "by_small": round(cpu / small_cpu, 2),
        "longest_write": round(max(load.longest for load in writing), 3),
        **{f"{name}_rate": round(records / load.seconds) for name, (records, load) in loads.items()},
        **{f"{name}_cpu_us": round(1e6 * load.cpu_seconds / records, 1) for name, (records, load) in loads.items()},
        "memory_mb": round(memory_now(stored.server.pid) / 1e6),
        "bytes_each": round(stored.disk() / size),
    }


def _key(number: int) -> str:
    return f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}"


if __name__ == "__main__":
    main()
