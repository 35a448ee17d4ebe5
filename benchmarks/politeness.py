"""Politeness of a crawl by several workers, of which some are killed, as the site sees it; beside one worker.

A site on loopback notes when each request arrives and how many are open then (:mod:`rig.watched_site`). Each request
says when it was sent, so that what the network and the scheduling of this machine add to the distance of two requests
is known. There are four crawls of that site:

- ``delay``: with ``DOWNLOAD_DELAY``; ``random``: the same with ``RANDOMIZE_DOWNLOAD_DELAY``.
- ``concurrency``: with ``CONCURRENT_REQUESTS_PER_DOMAIN`` and pages that take half a second.
- ``pause``: with the delay, and a 429 with ``Retry-After`` now and then.

Each runs with ``--workers`` workers, of which one is killed every ``--kill-every`` seconds, ``--kills`` times at most,
and with one. ``gaps`` are the distances between requests as they arrive, in quarters of the delay; the last number is
of those of three delays and more. ``short`` are those below half of the delay: as they arrive, and as they were sent.
``open`` is the most requests at once. ``late`` are the requests that were sent in a pause, once the report that the
workers send every two seconds has reached all of them; ``first`` those before that.

The script ends with status 1 if several workers have more requests open than the limit or send some in a pause, if
requests were sent at less than half of the delay after another, or if a crawl lacks a page. A server that answers a
report late makes gaps differ by as much (``docs/architecture/workers.rst``), so ``--slack`` milliseconds are allowed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from rig.contenders import COMMON, scrapy_ext
from rig.processes import environment
from rig.rounds import options, report
from rig.services import Platform, platform
from rig.watched_site import Visit, WatchedSite, watched_site

#: Seconds after which a crawl has failed.
_LIMIT: Final = 300
#: Requests at once, and seconds of a page of the crawl that has them.
_AT_ONCE: Final = 4
_PAGE_SECONDS: Final = 0.5
#: Seconds between the end of a pause and the next one, and those of a pause.
_PAUSE_EVERY: Final = 6.0
_PAUSE: Final = 5
#: Seconds until a pause is known to all workers: a report of each, and its answer.
_REPORT: Final = 2.5
_SHORT: Final = 0.5
#: Parts of a delay and number of the bars of the histogram.
_PART: Final = 4
_PARTS: Final = 12
_SPIDER: Final = """
import os
from pathlib import Path

import scrapy
from scrapy import signals


class Polite(scrapy.Spider):
    name = "polite"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.began, signal=signals.engine_started)
        return spider

    def began(self):
        Path(f"worker-{os.getpid()}").touch()

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.site}/{number}")

    def parse(self, response):
        with open("pages", "a") as file:
            file.write(response.url.rpartition("/")[2] + "\\n")
        yield {"url": response.url}
"""


def main() -> None:
    sizes = {"kills": 3, "kill_every": 6.0, "slack": 25}
    given = options(
        __doc__,
        full={"workers": 4, "delay": 0.1, "pages": 250, **sizes},
        quick={"workers": 2, "delay": 0.1, "pages": 60, **sizes, "kills": 1, "kill_every": 2.0},
    )
    with platform() as server, watched_site() as site:
        found = {
            kind: {str(workers): _crawl(kind, given, server, site, workers) for workers in (1, given.workers)}
            for kind in ("delay", "random", "concurrency", "pause")
        }
    report("politeness", workers=given.workers, delay=given.delay, pages=given.pages, limit=_AT_ONCE, crawls=found)
    if faults := [fault for kind, crawls in found.items() for fault in _faults(kind, crawls)]:
        raise SystemExit("\n".join(faults))


def _faults(kind: str, crawls: dict[str, Any]) -> list[str]:
    faults = []
    for workers, found in crawls.items():
        name = f"{kind} with {workers} workers"
        # One worker is what the others are compared with: its downloads are Scrapy's own.
        if found["open"] > _AT_ONCE and workers != "1":
            faults.append(f"{name}: {found['open']} requests at once, not {_AT_ONCE}")
        if found.get("too_short"):
            faults.append(f"{name}: {found['too_short']} requests were sent too early after another")
        if found.get("late") and workers != "1":
            faults.append(f"{name}: {found['late']} requests were sent in a pause")
        if found["missing"]:
            faults.append(f"{name}: {found['missing']} pages are missing")
    return faults


# ── a crawl ──


def _crawl(kind: str, given: Namespace, server: Platform, site: WatchedSite, workers: int) -> dict[str, Any]:
    pauses = (_PAUSE_EVERY, _PAUSE) if kind == "pause" else (0.0, 0)
    site.begin(_PAGE_SECONDS if kind == "concurrency" else 0.0, *pauses)
    own: dict[str, Any] = {"CRAWL_WORKERS": workers, "CONCURRENT_REQUESTS_PER_DOMAIN": _AT_ONCE}
    if kind != "concurrency":
        own |= {"DOWNLOAD_DELAY": given.delay, "RANDOMIZE_DOWNLOAD_DELAY": kind == "random"}
    with tempfile.TemporaryDirectory() as text:
        project = _project(Path(text), {**scrapy_ext(server.port, server.key), **own})
        line = [sys.executable, "-m", "scrapy", "crawl", "polite", "-a", f"site={site.url}"]
        line += ["-a", f"pages={given.pages}", "-s", "LOG_FILE=log"]
        crawl = subprocess.Popen(line, cwd=project, env=environment())
        killed = _wait(crawl, project, given, kills=given.kills if workers > 1 else 0)
        if crawl.returncode or not (project / "pages").exists():
            raise SystemExit(f"the crawl failed:\n{(project / 'log').read_text()[-4000:]}")
        pages = set((project / "pages").read_text().split())
    found = {"killed": killed, "missing": given.pages - len(pages)}
    visits = site.visits()
    return {**found, **_figures(visits, 0.0 if kind == "concurrency" else given.delay, given.slack / 1000)}


def _wait(crawl: subprocess.Popen[bytes], project: Path, given: Namespace, *, kills: int) -> int:
    """Wait for the end of a crawl, and kill workers meanwhile, the one that has begun first each time; return how many
    were. The worker of the command is not among them."""
    killed, deadline = set[int](), time.monotonic() + _LIMIT
    due = None
    while crawl.poll() is None:
        if time.monotonic() > deadline:
            crawl.kill()
            raise SystemExit(f"a crawl has not ended:\n{(project / 'log').read_text()[-4000:]}")
        time.sleep(0.1)
        files = sorted(project.glob("worker-*"), key=lambda path: path.stat().st_mtime)
        alive = [pid for file in files if (pid := int(file.name.partition("-")[2])) not in {*killed, crawl.pid}]
        if due is None and alive:
            due = time.monotonic() + given.kill_every
        if len(killed) < kills and alive and due is not None and time.monotonic() > due:
            os.kill(alive[0], signal.SIGKILL)
            killed.add(alive[0])
            due += given.kill_every
    return len(killed)


def _project(folder: Path, settings: dict[str, Any]) -> Path:
    package = folder / "politely"
    package.mkdir(parents=True)
    handlers = {"DOWNLOAD_HANDLERS": {"http": "rig.stamped.Stamped"}}
    lines = {**COMMON, "BOT_NAME": "politely", "SPIDER_MODULES": ["politely.spiders"], **handlers, **settings}
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = politely.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text("".join(f"{name} = {value!r}\n" for name, value in lines.items()))
    (package / "spiders.py").write_text(_SPIDER)
    return folder


# ── figures ──


def _figures(visits: Sequence[Visit], delay: float, slack: float) -> dict[str, Any]:
    """Return the figures of a crawl. ``delay`` and ``slack`` in seconds; no delay: no gaps."""
    seconds = visits[-1].arrived - visits[0].arrived
    found: dict[str, Any] = {
        "requests": len(visits),
        "per_second": round((len(visits) - 1) / seconds, 2),
        "open": max(visit.open for visit in visits),
    }
    if not delay:
        return found
    arrived = _gaps([visit.arrived for visit in visits], delay)
    sent = _gaps(sorted(visit.sent for visit in visits), delay)
    return {
        **found,
        "gaps": [sum(min(int(gap * _PART), _PARTS) == part for gap in arrived) for part in range(_PARTS + 1)],
        "short": {name: sum(gap < _SHORT for gap in gaps) for name, gaps in (("arrived", arrived), ("sent", sent))},
        "shortest": {"arrived": round(min(arrived), 2), "sent": round(min(sent), 2)},
        "way_ms": [round(1000 * at, 1) for at in _ends([visit.arrived - visit.sent for visit in visits])],
        "too_short": sum(gap < _SHORT - slack / delay for gap in sent),
        **_in_pauses(visits),
    }


def _gaps(times: Sequence[float], delay: float) -> list[float]:
    return [(later - earlier) / delay for earlier, later in pairwise(times)]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _in_pauses(visits: Sequence[Visit]) -> dict[str, int]:
    begun = [visit.arrived for visit in visits if visit.is_refused]
    after = [visit.sent - at for visit in visits for at in begun if 0 < visit.sent - at < _PAUSE]
    return {
        "pauses": len(begun),
        "first": sum(seconds <= _REPORT for seconds in after),
        "late": sum(seconds > _REPORT for seconds in after),
    }


if __name__ == "__main__":
    main()
