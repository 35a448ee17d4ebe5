"""Workers of ``CRAWL_WORKERS`` that are forked: seconds and processor time until they can crawl, and their memory.

Each round is one ``scrapy crawl`` with the embedded server, in which each worker takes at least 1,000 pages of a site.
A worker is measured from its fork until its engine starts: it has joined, and its frontier is open. Its memory is the
proportional set size (PSS) at its last page: what it shares with the template and other workers counts in part. The
worker of the command, which shares none, is measured beside. It needs Linux.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from rig.processes import environment
from rig.rounds import median, options, report
from rig.site import site

#: Seconds after which a crawl has failed.
_LIMIT: Final = 600
_SETTINGS: Final = """
BOT_NAME = "forking"
SPIDER_MODULES = ["forking.spiders"]
ADDONS = {"scrapy_ext.Addon": 500}
EXTRACT_API_ENABLED = False
"""
_SPIDER: Final = """
import json
import os
import time
from pathlib import Path

import scrapy
from scrapy import signals


def age():
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def memory():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


class Forked(scrapy.Spider):
    name = "forked"
    pages = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.began, signal=signals.engine_started)
        return spider

    def began(self):
        self.start_figures = {"seconds": age(), "cpu_seconds": time.process_time(), "start_mb": memory() / 1e6}

    async def start(self):
        for chain in range(32):
            yield self.page(chain, 0)

    def page(self, chain, number):
        return scrapy.Request(f"{self.url}/{chain}/{number}", meta={"frontier_slot": str(chain % 8)})

    def parse(self, response):
        yield {"url": response.url}
        self.pages += 1
        if self.pages == int(self.least):
            found = {**self.start_figures, "mb": memory() / 1e6}
            Path(f"worker-{os.getpid()}").write_text(json.dumps(found))
        if len(list(Path().glob("worker-*"))) < int(self.workers):
            chain, number = map(int, response.url.split("/")[-2:])
            yield self.page(chain, number + 1)
"""


def main() -> None:
    full = {"rounds": 5, "workers": 4, "pages": 1000}
    given = options(__doc__, full=full, quick={"rounds": 1, "workers": 2, "pages": 50})
    first, others = [], []
    with tempfile.TemporaryDirectory() as text, site(100) as url:
        for number in range(given.rounds):
            own, forked = _crawl(_project(Path(text, str(number))), url, given.workers, given.pages)
            first.append(own)
            others += forked
    sizes = {"rounds": given.rounds, "workers": given.workers, "pages": given.pages}
    report("forked_workers", **sizes, first=_medians(first), forked=_medians(others))


def _medians(figures: Iterable[dict[str, float]]) -> dict[str, float]:
    listed = list(figures)
    return {name: round(median(each[name] for each in listed), 3) for name in listed[0]}


def _project(folder: Path) -> Path:
    package = folder / "forking"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = forking.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(_SETTINGS)
    (package / "spiders.py").write_text(_SPIDER)
    return folder


def _crawl(project: Path, url: str, workers: int, pages: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the figures of the worker of the command, and of those that were forked."""
    arguments = ["-a", f"url={url}", "-a", f"workers={workers}", "-a", f"least={pages}"]
    settings = ["-s", f"CRAWL_WORKERS={workers}", "-s", "LOG_FILE=log"]
    crawl = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", "forked", *arguments, *settings],
        cwd=project,
        env=environment(),
    )
    status = crawl.wait(_LIMIT)
    found = {int(path.name.partition("-")[2]): json.loads(path.read_text()) for path in project.glob("worker-*")}
    if status or len(found) != workers:
        raise SystemExit(f"the crawl failed:\n{(project / 'log').read_text()[-4000:]}")
    return found.pop(crawl.pid), list(found.values())


if __name__ == "__main__":
    main()
