"""Workers of a job over time: a platform with a node gives it more while requests wait, and fewer when they are few.

A job with ``--bounds`` workers crawls a site on loopback whose pages take ``--page`` seconds; each worker has four
requests at once. At first ``--requests`` wait, and each fourth page adds two, not one, until the job has had as many
workers as it may for ten seconds. Then no page adds any, and the queue drains. At last a chain of single requests is
left, for ``--chain`` seconds, which one worker could crawl alone. ``points`` are the seconds since the first worker's
report, the number of workers, the requests that wait or are under way, and the pages a second since the point before.

The script ends with status 1 if the workers do not reach the upper bound, if they are not fewer at the end, or if the
job does not finish with each page once.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from argparse import Namespace
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rig.processes import python
from rig.rounds import options, report
from rig.watched_site import watched_site

from scrapy_ext.api.platform.worker_bounds import bounds_of

_KEY: Final = "0" * 32
#: Seconds between two points, and after which the job has failed.
_POINT: Final = 2.0
_LIMIT: Final = 600
#: Seconds with all workers until no page adds any more.
_FULL: Final = 10.0
#: Seconds, workers, requests, pages a second.
_Point = tuple[float, int, int, float]
_SETTINGS: Final = """
BOT_NAME = "growing"
SPIDER_MODULES = ["growing.spiders"]
ADDONS = {"scrapy_ext.Addon": 500}
EXTRACT_API_ENABLED = False
ROBOTSTXT_OBEY = False
CONCURRENT_REQUESTS = 4
CONCURRENT_REQUESTS_PER_DOMAIN = 64
DOWNLOAD_DELAY = 0
"""
_SPIDER: Final = """
import time
from pathlib import Path

import scrapy


class Growing(scrapy.Spider):
    name = "growing"

    async def start(self):
        for number in range(int(self.requests)):
            yield scrapy.Request(f"{self.site}/many/{number}-0", priority=1)
        yield scrapy.Request(f"{self.site}/chain/0", self.parse_chain)

    def parse(self, response):
        chain, number = response.url.rpartition("/")[2].split("-")
        adds = not Path(self.file).exists()
        # A branch of its own in each fourth page of a chain.
        paths = [f"{chain}-{int(number) + 1}", *[f"{chain}.{number}-1"] * (int(number) % 4 == 3)] if adds else []
        yield {"url": response.url, "adds": len(paths)}
        for path in paths:
            yield scrapy.Request(f"{self.site}/many/{path}", priority=1)

    def parse_chain(self, response):
        began = response.meta.get("began", time.time())
        adds = not Path(self.file).exists() or time.time() < began + float(self.chain)
        yield {"url": response.url, "adds": int(adds)}
        if adds:
            began = time.time() if not Path(self.file).exists() else began
            number = int(response.url.rpartition("/")[2]) + 1
            meta = {"began": began}
            yield scrapy.Request(f"{self.site}/chain/{number}", self.parse_chain, meta=meta)
"""


def main() -> None:
    given = options(
        __doc__,
        full={"bounds": "1..4", "requests": 100, "page": 0.5, "chain": 100.0},
        quick={"bounds": "1..2", "requests": 50, "page": 0.2, "chain": 1.0},
    )
    most = bounds_of(given.bounds).most
    with tempfile.TemporaryDirectory() as text, watched_site() as site:
        site.begin(given.page)
        points, reason, urls, left = _run(Path(text), given, site.url)
    numbers = [workers for _, workers, _, _ in points]
    found = {"points": points, "most": max(numbers), "last": numbers[-1], "close_reason": reason, "pages": len(urls)}
    report("worker_growth", bounds=given.bounds, **found)
    faults = [
        max(numbers) < most and f"the job had {max(numbers)} workers at most",
        not given.quick and numbers[-1] >= max(numbers) and "no worker has left",
        reason != "finished" and f"the job has ended with {reason}",
        len(set(urls)) != len(urls) and f"{len(urls)} items are of {len(set(urls))} pages",
        left and f"{left} pages are missing",
    ]
    if any(faults):
        raise SystemExit("\n".join(filter(None, faults)))


def _run(folder: Path, given: Namespace, site: str) -> tuple[list[_Point], str, list[str], int]:
    """Return the points, the close reason, the pages, and how many are missing."""
    most, enough = bounds_of(given.bounds).most, folder / "enough"
    command = [
        *("-m", "scrapy_ext.server", "--port", "0", "--data", str(folder / "data"), "--exit-with-stdin"),
        *("--local-project", str(_project(folder / "project")), "--units", str(most)),
    ]
    with python(*command, extra={"PLATFORM_API_KEY": _KEY, "EXTRACT_API_KEY": _KEY[:-1] + "1"}) as running:
        server = _Server(running.said.split()[-1])
        arguments = {"site": site, "requests": given.requests, "chain": given.chain, "file": enough}
        fields = {"project": 1, "spider": "growing", "job_workers": given.bounds, **arguments}
        job = server.lines("/api/run.json", urllib.parse.urlencode(fields).encode())[0]["jobid"]
        watched = _Watched(server, job, given.requests + 1)
        full_since = None
        deadline = time.monotonic() + _LIMIT
        while (found := server.lines(f"/jobs/{job}")[0])["state"] != "finished":
            if time.monotonic() > deadline:
                raise SystemExit(f"the job has not ended: {found}")
            if found["state"] == "running" and watched.look() == most:
                full_since = full_since or time.monotonic()
                if time.monotonic() > full_since + _FULL:
                    enough.touch()
            time.sleep(_POINT)
        watched.read()
    return watched.points, found["close_reason"], watched.urls, watched.left


class _Watched:
    """A job: its points, and the pages of its items."""

    def __init__(self, server: _Server, job: str, requests: int) -> None:
        self._server, self._job = server, job
        self.points: list[_Point] = []
        self.urls: list[str] = []
        self.left = requests
        self._began = self._at = 0.0

    def look(self) -> int:
        """Add a point; return the number of workers."""
        listed = self._server.lines(f"/jobq/1/workers?job={self._job}")
        now, workers = time.monotonic(), sum(each["number"] > 0 for each in listed)
        if not (self._began or workers):
            return 0
        pages = self.read()
        self._began = self._began or now
        rate = pages / (now - self._at) if self.points else 0.0
        if workers:
            self.points.append((round(now - self._began, 1), workers, self.left, round(rate, 1)))
        self._at = now
        return workers

    def read(self) -> int:
        """Read the items that are new; return their number."""
        new = self._server.lines(f"/items/{self._job}?start={self._job}/{len(self.urls)}")
        self.urls += [each["url"] for each in new]
        self.left += sum(each["adds"] for each in new) - len(new)
        return len(new)


class _Server:
    def __init__(self, url: str) -> None:
        self._url = url

    def lines(self, path: str, body: bytes | None = None) -> Sequence[Any]:
        """Return the answer to a call: JSON lines."""
        credentials = b64encode(f"{_KEY}:".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Accept": "application/x-jsonlines"}
        with urllib.request.urlopen(urllib.request.Request(self._url + path, body, headers), timeout=60) as answer:
            return [json.loads(line) for line in answer.read().splitlines() if line]


def _project(folder: Path) -> Path:
    package = folder / "growing"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = growing.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(_SETTINGS)
    (package / "spiders.py").write_text(_SPIDER)
    return folder


if __name__ == "__main__":
    sys.exit(main())
