"""Records a second that collections take and give, over HTTP: written 1000 a post, read by scans and by prefixes.

Beside it: a bare server on the same stack that checks the same lines and throws them away, and that sends bytes which
it already has. Small GETs of one record are measured by the server's processor time.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

from rig.load import Load, request, send
from rig.processes import python
from rig.rounds import alternate, median, options, report
from rig.services import platform

_PER_POST = 1000


def main() -> None:
    given = options(
        __doc__,
        full={"records": 200_000, "connections": 4, "rounds": 5, "gets": 20_000},
        quick={"records": 20_000, "connections": 4, "rounds": 2, "gets": 2_000},
    )
    posts = given.records // _PER_POST
    bodies = [_body(n) for n in range(posts)]
    with platform() as server, python("-m", "rig.bare") as bare:
        bare_port, bare_pid = int(bare.said), bare.process.pid

        def shared(requests: list[bytes]) -> list[list[bytes]]:
            return [requests[place :: given.connections] for place in range(given.connections)]

        writes = [request("POST", "/collections/1/s/c", server.key, body, Content_Encoding="gzip") for body in bodies]
        bare_writes = [request("POST", "/", "", body, Content_Encoding="gzip") for body in bodies]
        scans = [request("GET", f"/collections/1/s/c?prefix={n:06}&meta=_key", server.key) for n in range(posts)]
        first = send(server.port, server.pid, shared(writes))
        size = send(server.port, server.pid, shared(scans)).received // posts
        bare_scans = [request("GET", f"/{size}", "") for _ in range(posts)]
        gets = [request("GET", f"/collections/1/s/c/{n % posts:06}-00500", server.key) for n in range(given.gets)]
        runs: dict[str, Callable[[], Load]] = {
            "write": lambda: send(server.port, server.pid, shared(writes)),
            "bare write": lambda: send(bare_port, bare_pid, shared(bare_writes)),
            "read": lambda: send(server.port, server.pid, shared(scans)),
            "bare read": lambda: send(bare_port, bare_pid, shared(bare_scans)),
            "get": lambda: send(server.port, server.pid, shared(gets)),
        }
        loads = alternate(given.rounds, runs)
    rates = {name: median(given.records / load.seconds for load in found) for name, found in loads.items()}
    report(
        "platform_collections",
        records=given.records,
        connections=given.connections,
        rounds=given.rounds,
        first_written_per_second=round(given.records / first.seconds),
        per_second={name: round(rate) for name, rate in rates.items() if name != "get"},
        write_cpu_us=round(median(1e6 * load.cpu_seconds / given.records for load in loads["write"]), 1),
        get_cpu_us=round(median(1e6 * load.cpu_seconds / given.gets for load in loads["get"]), 1),
        write_ratio=round(rates["write"] / rates["bare write"], 2),
        read_ratio=round(rates["read"] / rates["bare read"], 2),
    )


def _body(post: int) -> bytes:
    lines = (
        json.dumps(
            {"_key": f"{post:06}-{n:05}", "url": f"https://site.example/page/{post}/{n}", "n": n, "text": "x" * 60}
        )
        for n in range(_PER_POST)
    )
    return gzip.compress("\n".join(lines).encode(), 1)


if __name__ == "__main__":
    main()
