"""Articles per second of automatic extraction by ``--extraction-processes``, over HTTP, for pages of 60 to 160 KB.

The pages are articles of a sample of WCXB (``--labelled``: the folder that ``quality`` reads; without it, nothing is
measured), which a local site serves. Servers with one process, two and so on take turns. ``cpu_ms`` is the processor
time of a page, of the server and its processes together.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial

from rig.load import Load, children_cpu_seconds, request, send
from rig.processes import Running, python
from rig.rounds import alternate, median, options, report


def main() -> None:
    given = options(
        __doc__,
        full={"processes": [1, 2, 4], "pages": 40, "repeats": 4, "connections": 8, "rounds": 3, "labelled": ""},
        quick={"processes": [1, 2], "pages": 2, "repeats": 2, "connections": 2, "rounds": 1, "labelled": ""},
    )
    if not given.labelled:
        note = {"benchmark": "extraction_processes", "measured": False, "give": "--labelled, a folder of pages"}
        print(json.dumps(note))
        return
    key = secrets.token_hex(16)
    with ExitStack() as stack:
        site = stack.enter_context(python("-m", "rig.labelled_site", given.labelled, str(given.pages)))
        servers = {number: stack.enter_context(_server(number, site.said, key)) for number in given.processes}
        asked = [_asked(site.said, number, key) for number in range(given.pages)] * given.repeats
        each = [asked[place :: given.connections] for place in range(given.connections)]
        runs = {str(number): partial(_measured, server, each) for number, server in servers.items()}
        alternate(1, runs)  # The processes begin with their first pages.
        found = alternate(given.rounds, runs)
    rates = {number: median(len(asked) / load.seconds for load in loads) for number, loads in found.items()}
    first = rates[str(given.processes[0])]
    report(
        "extraction_processes",
        rounds=given.rounds,
        connections=given.connections,
        processors=len(os.sched_getaffinity(0)),
        by_processes={
            number: {
                "pages_per_second": round(rates[number], 1),
                "ratio": round(rates[number] / first, 2),
                "cpu_ms": round(median(1000 * load.cpu_seconds / len(asked) for load in loads), 1),
            }
            for number, loads in found.items()
        },
    )


@contextmanager
def _server(processes: int, site: str, key: str) -> Generator[Running]:
    keys = {"EXTRACT_API_KEY": key, "PLATFORM_API_KEY": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory() as data:
        options_ = ("--port", "0", "--data", data, "--exit-with-stdin", "--allow-host", f"localhost:{site}")
        limits = ("--domain-requests", "64", "--extraction-processes", str(processes))
        with python("-m", "scrapy_ext.server", *options_, *limits, extra=keys) as server:
            yield server


def _asked(site: str, number: int, key: str) -> bytes:
    body = {"url": f"http://localhost:{site}/{number}", "article": True, "extractFrom": "httpResponseBody"}
    return request("POST", "/v1/extract", key, json.dumps(body).encode(), Content_Type="application/json")


def _measured(server: Running, each: list[list[bytes]]) -> Load:
    pid = server.process.pid
    before = children_cpu_seconds(pid)
    load = send(int(server.said.rsplit(":", 1)[1]), pid, each)
    return Load(load.seconds, load.cpu_seconds + children_cpu_seconds(pid) - before, load.received, load.longest)


if __name__ == "__main__":
    main()
