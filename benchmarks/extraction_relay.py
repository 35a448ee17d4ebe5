"""Pages per second and processor time of ``httpResponseBody`` through the extraction service, beside a bare relay.

The relay (:mod:`rig.relay`) is an aiohttp server that gets what it is asked for with an aiohttp client, on uvloop as
the service is, and checks nothing. Both get the same pages from the same site. Where there is more than one core, each
of the two has the last one to itself while its turn lasts; the site and the sender have the others. ``ratio`` is the
rate of the service by that of the relay, ``cpu_ratio`` the same by processor time. Sizes are in KB.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from functools import partial

from rig.load import Load, request, send
from rig.processes import python
from rig.rounds import alternate, median, options, report


def main() -> None:
    given = options(
        __doc__,
        full={"kb": [10, 100], "pages": 4000, "connections": 16, "rounds": 5},
        quick={"kb": [10, 100], "pages": 400, "connections": 16, "rounds": 2},
    )
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[:-1])
    key = secrets.token_hex(16)
    found = {}
    with (
        tempfile.TemporaryDirectory() as data,
        python("-m", "rig.plain_page") as site,
        python("-m", "rig.relay") as relay,
    ):
        allowed = ("--allow-host", f"localhost:{site.said}", "--domain-requests", "64")
        options_ = ("--port", "0", "--data", data, "--exit-with-stdin", *allowed)
        keys = {"EXTRACT_API_KEY": key, "PLATFORM_API_KEY": secrets.token_hex(16)}
        with python("-m", "scrapy_ext.server", *options_, extra=keys) as server:
            ports = {
                "relay": (int(relay.said), relay.process.pid),
                "service": (int(server.said.rsplit(":", 1)[1]), server.process.pid),
            }
            for _, pid in ports.values():
                _pin(pid, cores[-1])
            for kb in given.kb:
                pages = max(given.pages // (1 + kb // 50), 100)
                body = json.dumps(
                    {"url": f"http://localhost:{site.said}/{kb * 1000}", "httpResponseBody": True}
                ).encode()
                asked = request("POST", "/v1/extract", key, body, Content_Type="application/json")
                each = [[asked] * (pages // given.connections)] * given.connections
                runs: dict[str, Callable[[], Load]] = {
                    name: partial(send, port, pid, each) for name, (port, pid) in ports.items()
                }
                alternate(1, runs)  # Warms up both servers.
                found[str(kb)] = _compared(alternate(given.rounds, runs), len(each) * len(each[0]))
    report("extraction_relay", rounds=given.rounds, connections=given.connections, by_kb=found)


def _pin(pid: int, core: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {core})


def _compared(loads: dict[str, list[Load]], pages: int) -> dict[str, object]:
    rate = {name: median(pages / load.seconds for load in each) for name, each in loads.items()}
    cpu = {name: median(1000 * load.cpu_seconds / pages for load in each) for name, each in loads.items()}
    return {
        "pages_per_second": {name: round(value) for name, value in rate.items()},
        "cpu_ms": {name: round(value, 3) for name, value in cpu.items()},
        "ratio": round(rate["service"] / rate["relay"], 2),
        "cpu_ratio": round(cpu["relay"] / cpu["service"], 2),
    }


if __name__ == "__main__":
    main()
