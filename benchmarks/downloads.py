"""Items per second that the server sends in each format of a download, and the memory that it takes for it.

A job has items of about 300 bytes: text, numbers, a list and an object. Each format is read whole over one connection;
every ratio is to JSON lines, which is reading alone. ``memory_mb`` is the peak of the server's memory during the first
download of a format, with the library that it loads, above its memory before all of them; Parquet, with the largest,
is the last. ``later_mb`` is the largest of the peaks during later downloads, above the memory just before.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from rig.load import Load, memory, memory_now, request, send
from rig.rounds import median, options, report
from rig.services import platform

_PER_POST = 5000
_JOB = "1/1/1"
_FIELDS = "name,url,price,currency,sku,tags,offer,description"
_FORMATS = {
    "jl": "format=jl",
    "json": "format=json",
    "csv": f"format=csv&fields={_FIELDS}",
    "xml": "format=xml",
    "xlsx": "format=xlsx",
    "parquet": "format=parquet",
}


def main() -> None:
    given = options(
        __doc__,
        full={"items": 1_000_000, "rounds": 3, "data": ""},
        quick={"items": 20_000, "rounds": 1, "data": ""},
    )
    with platform(Path(given.data) if given.data else None) as server:
        push = request("POST", "/jobq/1/push", server.key, b'{"spider": "shop", "state": "running"}')
        posts = [
            request(
                "POST", f"/items/{_JOB}?start={first}", server.key, _body(first, given.items), Content_Encoding="gzip"
            )
            for first in range(0, given.items, _PER_POST)
        ]
        send(server.port, server.pid, [[push, *posts]])
        # The first reads fill caches of the server.
        _read(server.port, server.pid, server.key, "jl")
        before = memory_now(server.pid)
        loads: dict[str, list[Load]] = {name: [] for name in _FORMATS}
        peaks: dict[str, list[int]] = {name: [] for name in _FORMATS}
        rises: dict[str, list[int]] = {name: [] for name in _FORMATS}
        for _ in range(given.rounds):
            for name in _FORMATS:
                # Resets the peak (proc(5)).
                Path(f"/proc/{server.pid}/clear_refs").write_text("5")
                at_first = memory_now(server.pid)
                loads[name].append(_read(server.port, server.pid, server.key, name))
                peaks[name].append(memory(server.pid) - before)
                rises[name].append(memory(server.pid) - at_first)
    rates = {name: given.items / median(load.seconds for load in found) for name, found in loads.items()}
    report(
        "downloads",
        items=given.items,
        rate={name: round(rate) for name, rate in rates.items()},
        ratio={name: round(rate / rates["jl"], 3) for name, rate in rates.items()},
        cpu_us={
            name: round(1e6 * median(load.cpu_seconds for load in found) / given.items, 1)
            for name, found in loads.items()
        },
        sent_mb={name: round(found[0].received / 1e6, 1) for name, found in loads.items()},
        memory_mb={name: round(found[0] / 1e6, 1) for name, found in peaks.items()},
        later_mb={name: round(max(found[1:], default=0) / 1e6, 1) for name, found in rises.items()},
    )


def _read(port: int, pid: int, key: str, name: str) -> Load:
    return send(port, pid, [[request("GET", f"/items/{_JOB}?{_FORMATS[name]}", key)]])


def _body(first: int, items: int) -> bytes:
    return gzip.compress("\n".join(map(_item, range(first, min(first + _PER_POST, items)))).encode(), 1)


def _item(n: int) -> str:
    item = {
        "name": f"Product {n}",
        "url": f"https://shop.example/products/{n}",
        "price": n % 1000 / 4,
        "currency": "EUR",
        "sku": f"{n * 2654435761 % 2**32:08x}",
        "tags": ["new", f"group {n % 50}"],
        "offer": {"available": n % 3 == 0, "left": n % 17},
        "description": "text of a product " * (n % 8),
    }
    return json.dumps(item)


if __name__ == "__main__":
    main()
