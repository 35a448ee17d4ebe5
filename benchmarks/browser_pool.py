"""Cost of a page in the browser of the extraction service, and its memory after many pages.

The page is local: 50 KB of HTML, two style sheets, a script, ten pictures (:mod:`rig.page_site`). ``service`` is the
package's server, asked for ``browserHtml`` over HTTP; ``screenshot`` the same with a picture of the page, so that
nothing of it may be left out; ``playwright`` is a context for each page, the load event and its HTML, with nothing
around it. ``settled`` is Playwright with the conditions of ``service``: no images, and half a second without requests
(``networkidle``) before the HTML is read. They take turns, ``--at-once`` pages at a time. Processor time is that of the
whole tree of processes: server or script, Playwright's driver, Chromium. ``ratio`` is ``service`` by ``playwright``,
``settled_ratio`` is ``service`` by ``settled``.

Then ``--soak`` pages come from the service, or as many as ``--soak-seconds`` allow: memory of its tree at the start
(after a tenth), in the middle and at the end, as PSS where that can be read, and contexts opened and closed. Linux.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rig.processes import python
from rig.rounds import alternate, median, options, report

from scrapy_ext.server.extraction.browser import find_browser

_TICKS = os.sysconf("SC_CLK_TCK")
_KEY = secrets.token_hex(16)


class _Run(NamedTuple):
    seconds: float
    cpu: float


class _Service:
    """The package's server with its callers."""

    def __init__(self, port: int, pid: int) -> None:
        self._port, self.pid = port, pid

    def load(self, url: str, pages: int, at_once: int, fields: dict[str, Any], until: float | None = None) -> float:
        left = itertools.count()
        failures: list[bytes] = []

        def some() -> None:
            while not failures and (number := next(left)) < pages and (until is None or time.monotonic() < until):
                status, body = self._call("POST", "/v1/extract", {"url": f"{url}?{number}", **fields})
                if status != 200 or ("browserHtml" in fields and b"end of the page" not in body):
                    failures.append(body[:300])

        begun = time.perf_counter()
        callers = [threading.Thread(target=some) for _ in range(at_once)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        if failures:
            raise SystemExit(f"the service: {failures[0]!r}")
        return time.perf_counter() - begun

    def counted(self, name: str) -> int:
        _, body = self._call("GET", "/metrics", None)
        found = re.search(rf"^scrapy_ext_{name} (\S+)$", body.decode(), re.MULTILINE)
        return int(float(found[1])) if found else 0

    def _call(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=150)
        key = base64.b64encode(f"{_KEY}:".encode()).decode()
        try:
            connection.request(method, path, json.dumps(body), {"Authorization": f"Basic {key}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def main() -> None:
    given = options(
        __doc__,
        full={"at_once": [2, 4], "pages": 60, "rounds": 5, "soak": 2000, "soak_seconds": 900},
        quick={"at_once": [2], "pages": 8, "rounds": 1, "soak": 16, "soak_seconds": 20},
    )
    program = str(find_browser(None, os.environ, Path("none")))
    keys = {"EXTRACT_API_KEY": _KEY, "PLATFORM_API_KEY": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory() as folder, python("-m", "rig.page_site") as site:
        host = f"localhost:{site.said}"
        url = f"http://{host}/page"
        arguments = ("--port", "0", "--allow-host", host, "--browser", program, "--exit-with-stdin", "--open-metrics")
        with (
            python("-m", "scrapy_ext.server", *arguments, "--data", folder, extra=keys) as server,
            python("-m", "rig.bare_browser", program) as bare,
        ):
            service = _Service(int(server.said.rsplit(":", 1)[1]), server.process.pid)

            def by_service(pages: int, at_once: int, **fields: Any) -> _Run:
                return _timed(service.pid, lambda: service.load(url, pages, at_once, fields))

            def by_playwright(pages: int, at_once: int, until: str) -> _Run:
                return _timed(bare.process.pid, lambda: float(bare.ask(f"{url} {pages} {at_once} {until}")))

            found = {}
            for at_once in given.at_once:
                runs: dict[str, Callable[[], _Run]] = {
                    "playwright": partial(by_playwright, given.pages, at_once, "load"),
                    "settled": partial(by_playwright, given.pages, at_once, "networkidle"),
                    "service": partial(by_service, given.pages, at_once, browserHtml=True),
                    "screenshot": partial(by_service, given.pages, at_once, screenshot=True),
                }
                for run in runs.values():
                    run()
                found[str(at_once)] = _compared(alternate(given.rounds, runs), given.pages)
            soak = _soak(service, url, given.soak, max(given.at_once), given.soak_seconds)
    report("browser_pool", rounds=given.rounds, pages=given.pages, at_once=found, soak=soak)


def _timed(pid: int, run: Callable[[], float]) -> _Run:
    before = _cpu(pid)
    seconds = run()
    return _Run(seconds, _cpu(pid) - before)


def _compared(results: dict[str, list[_Run]], pages: int) -> dict[str, Any]:
    rates = {name: median(pages / run.seconds for run in runs) for name, runs in results.items()}
    costs = {name: median(1000 * run.cpu / pages for run in runs) for name, runs in results.items()}
    return {
        "pages_per_second": {
            **{name: round(rate, 2) for name, rate in rates.items()},
            "ratio": round(rates["service"] / rates["playwright"], 2),
            "settled_ratio": round(rates["service"] / rates["settled"], 2),
        },
        "cpu_ms": {
            **{name: round(cost) for name, cost in costs.items()},
            "ratio": round(costs["service"] / costs["playwright"], 2),
            "settled_ratio": round(costs["service"] / costs["settled"], 2),
        },
    }


def _soak(service: _Service, url: str, pages: int, at_once: int, seconds: int) -> dict[str, Any]:
    until = time.monotonic() + seconds
    opened = service.counted("browser_contexts_opened_total")
    service.load(url, max(pages // 10, 1), at_once, {"browserHtml": True}, until)
    memory = [_memory(service.pid)]
    for _ in range(2):
        service.load(url, pages * 9 // 20, at_once, {"browserHtml": True}, until)
        memory.append(_memory(service.pid))
    names = ("opened", "closed")
    totals = {name: service.counted(f"browser_contexts_{name}_total") for name in names}
    return {
        "pages": totals["opened"] - opened,
        "memory_mib": dict(zip(("start", "middle", "end"), memory, strict=True)),
        "contexts": totals,
        "launches": service.counted("browser_launches_total"),
    }


def _tree(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (stat := _stat(int(folder.name))):
            parents.setdefault(int(stat[1]), []).append(int(folder.name))
    below = [pid]
    for parent in below:
        below.extend(parents.get(parent, ()))
    return below


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu(pid: int) -> float:
    """Return the processor seconds of a tree, including processes that ended in it."""
    stats = (_stat(each) for each in _tree(pid))
    return sum(sum(map(int, stat[11:15])) for stat in stats if stat) / _TICKS


def _memory(pid: int) -> int:
    """Return the MiB of a tree, with memory shared by its processes counted once."""
    total = 0
    for each in _tree(pid):
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(map(int, re.findall(r"^Pss: +(\d+)", text, re.MULTILINE)))
    return round(total / 1024)


if __name__ == "__main__":
    main()
