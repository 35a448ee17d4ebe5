"""One crawl by many workers on several servers, of which workers are killed: whether each page is there once, its rate.

``--servers`` servers share a PostgreSQL, each with a node; a job with ``--workers`` workers crawls ``--pages`` pages of
10 KB of a site on loopback, with an item each. A page links to ten further ones and to two that are known. Every
``--kill-every`` seconds the worker that has begun first is killed with SIGKILL. ``base`` is the same crawl of
``--base-pages`` pages by two workers on one server, of which none is killed: what the processors of this machine can
do, since workers, servers, database and site share them. ``ratio`` is the rate by that of the base. ``points`` are
seconds and items. ``most_between`` is the longest time between two points with new items.

The script ends with status 1 if a page is missing or there twice, or if the job does not finish.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.extraction import extraction
from rig.processes import python
from rig.rounds import options, report

from tests.support.postgresql import cluster

_KEY: Final = "0" * 32
#: Seconds between two points, and after which a job without new items has failed.
_POINT: Final = 2.0
_STUCK: Final = 120.0
_LINKS: Final = 10
_SETTINGS: Final = """
BOT_NAME = "large"
SPIDER_MODULES = ["large.spiders"]
ADDONS = {"scrapy_ext.Addon": 500}
EXTRACT_API_ENABLED = False
ROBOTSTXT_OBEY = False
LOG_LEVEL = "INFO"
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 256
"""
_SPIDER: Final = """
import os
from pathlib import Path

import scrapy
from scrapy import signals


class Large(scrapy.Spider):
    name = "large"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.began, signal=signals.engine_started)
        crawler.signals.connect(spider.ended, signal=signals.spider_closed)
        return spider

    def began(self):
        Path(self.folder, f"worker-{os.getpid()}").touch()

    def ended(self):
        Path(self.folder, f"worker-{os.getpid()}").unlink()

    async def start(self):
        yield scrapy.Request(f"{self.site}/page/0")

    def parse(self, response):
        number = int(response.url.rpartition("/")[2])
        yield {"number": number}
        further = range(LINKS * number + 1, LINKS * number + LINKS + 1)
        for link in (number // 2, number // 3, *further):
            if link < int(self.pages):
                yield scrapy.Request(f"{self.site}/page/{link}")
"""


@dataclass
class Crawled:
    """``rate`` in pages a second, from a tenth of the pages to nine tenths."""

    rate: float
    seconds: float
    killed: int
    most_between: float
    points: list[tuple[float, int]]


def main() -> None:
    given = options(
        __doc__,
        full={"servers": 3, "workers": 6, "pages": 1_000_000, "kill_every": 60.0, "base_pages": 100_000},
        quick={"servers": 2, "workers": 3, "pages": 4000, "kill_every": 5.0, "base_pages": 0},
    )
    with extraction(10_000) as at:
        base = _crawl(at.site, 1, 2, given.base_pages, None) if given.base_pages else None
        found = _crawl(at.site, given.servers, given.workers, given.pages, given.kill_every)
    ratio = round(found.rate / base.rate, 2) if base else None
    report(
        "large_crawl",
        **{name: getattr(given, name) for name in ("servers", "workers", "pages", "base_pages")},
        **{**asdict(found), "points": found.points[:: max(1, len(found.points) // 100)]},
        base=base and base.rate,
        ratio=ratio,
    )


def _crawl(site: str, servers: int, workers: int, pages: int, kill_every: float | None) -> Crawled:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(cluster()).database()
        keys = {"PLATFORM_API_KEY": _KEY, "EXTRACT_API_KEY": _KEY[:-1] + "1", "SERVER_DATABASE": database}
        project, units = _project(folder / "project"), str(-(-workers // servers))
        urls = [
            stack.enter_context(
                python(
                    *("-m", "scrapy_ext.server", "--port", "0", "--exit-with-stdin", "--units", units),
                    *("--local-project", str(project)),
                    extra=keys,
                )
            ).said.split()[-1]
            for _ in range(servers)
        ]
        (begun := folder / "begun").mkdir()
        arguments = {"site": site, "pages": pages, "folder": begun}
        fields = {"project": 1, "spider": "large", "job_workers": workers, **arguments}
        job = next(_lines(urls[0], "/api/run.json", urllib.parse.urlencode(fields).encode()))["jobid"]
        return _watched(urls[0], job, pages, _Killer(begun, kill_every))


class _Killer:
    """Kills the worker that has begun first, every so many seconds; None: never."""

    def __init__(self, begun: Path, every: float | None) -> None:
        self._begun = begun
        self._every = every
        self._due = time.monotonic() + (every or 0.0)
        self.killed = set[int]()

    def look(self) -> None:
        if self._every is None or time.monotonic() < self._due:
            return
        self._due += self._every
        files = sorted(self._begun.iterdir(), key=lambda file: file.stat().st_mtime)
        for pid in (int(file.name.partition("-")[2]) for file in files):
            if pid in self.killed:
                continue
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed.add(pid)
            return


def _watched(server: str, job: str, pages: int, killer: _Killer) -> Crawled:
    began, points = time.monotonic(), list[tuple[float, int]]()
    while (found := next(_lines(server, f"/jobs/{job}")))["state"] != "finished":
        now = time.monotonic()
        items = next(_lines(server, f"/items/{job}/stats")).get("totals", {}).get("input_values", 0)
        if not points or items != points[-1][1]:
            points.append((round(now - began, 1), items))
        elif now - began > points[-1][0] + _STUCK:
            raise SystemExit(f"no items for {_STUCK:.0f} s: {found}")
        killer.look()
        time.sleep(_POINT)
    if found["close_reason"] != "finished":
        raise SystemExit(f"the job has ended with {found['close_reason']}")
    _check(server, job, pages)
    first = next(point for point in points if point[1] >= 0.1 * pages)
    last = next((point for point in points if point[1] >= 0.9 * pages), points[-1])
    between = max((after[0] - before[0] for before, after in pairwise(points)), default=0.0)
    rate = (last[1] - first[1]) / max(last[0] - first[0], _POINT)
    return Crawled(round(rate, 1), points[-1][0], len(killer.killed), round(between, 1), points)


def _check(server: str, job: str, pages: int) -> None:
    """Raise :class:`SystemExit` unless the items are those of each page, once."""
    seen = bytearray(pages)
    twice = 0
    for item in _lines(server, f"/items/{job}"):
        twice += seen[item["number"]]
        seen[item["number"]] = 1
    missing = seen.count(0)
    if twice or missing:
        raise SystemExit(f"{twice} pages are there twice, {missing} are missing of {pages}")


def _lines(server: str, path: str, body: bytes | None = None) -> Iterator[Any]:
    """Yield the JSON lines of an answer."""
    credentials = b64encode(f"{_KEY}:".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Accept": "application/x-jsonlines"}
    with urllib.request.urlopen(urllib.request.Request(server + path, body, headers), timeout=60) as answer:
        yield from map(json.loads, filter(None, answer))


def _project(folder: Path) -> Path:
    package = folder / "large"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = large.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(_SETTINGS)
    (package / "spiders.py").write_text(_SPIDER.replace("LINKS", str(_LINKS)))
    return folder


if __name__ == "__main__":
    main()
