"""Pages a second of one crawl by its number of workers, for pages of 10 KB, each with an item.

``direct`` downloads from a site, ``extraction`` gets the same pages from an extraction service, both with all of the
package: scheduler, items, request records and log on its server, which is a process of its own. ``scrapy_redis`` is
that project's scheduler, dupefilter and item pipeline on redis-server, with as many commands at once. ``scrapy`` is
one process with the in-memory scheduler. Site, extraction service, server and workers share the processors of this
machine. ``--servers`` ``sqlite``, or ``postgresql``.

The rate is that between the first and the last tenth of the pages, by the times of all workers, which have one clock.
``ratio`` is that of several workers by that of one, of the same contender. ``cpu_us`` is the processor time of a page
in the workers, ``others_cpu_us`` that of the package's server. ``share`` is the part of the pages of the worker with
the most. ``missing`` are pages that the crawl lacks or has twice: with any of the package's, the script ends with
status 1; scrapy-redis may end while a request is under way in another process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.contenders import COMMON, Settings, everything, scrapy_ext, scrapy_redis
from rig.extraction import extraction
from rig.processes import environment
from rig.processors import Processors
from rig.rounds import alternate, median, options, report
from rig.services import platform, redis

from tests.support.postgresql import cluster

#: Seconds after which a crawl has failed.
_LIMIT: Final = 900
_ENDS: Final = 0.1
_SPIDER: Final = """
import json
import os
import time
from pathlib import Path

import scrapy
from scrapy import signals


class Pages(scrapy.Spider):
    name = "pages"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.times = []
        crawler.signals.connect(spider.write, signal=signals.spider_closed)
        return spider

    async def start(self):
        for chain in range(int(self.chains)):
            yield scrapy.Request(f"{self.site}/page/{chain}-0")

    def parse(self, response):
        if not self.times:
            self.cpu = time.process_time()
        self.times.append(time.monotonic())
        if len(response.body) != 10_000:
            raise scrapy.exceptions.CloseSpider(f"not the page: {response!r}")
        yield {"url": response.url, "size": len(response.body)}
        chain, number = map(int, response.url.rpartition("/")[2].split("-"))
        if number + 1 < int(self.depth):
            yield scrapy.Request(f"{self.site}/page/{chain}-{number + 1}")

    def write(self):
        found = {"times": self.times, "cpu": time.process_time() - self.cpu if self.times else 0}
        Path(f"worker-{os.getpid()}").write_text(json.dumps(found))
"""


@dataclass(frozen=True)
class Crawled:
    """``rate`` in pages a second, processor time in microseconds a page."""

    rate: float
    cpu_us: float
    others_cpu_us: float
    share: float
    missing: int


def main() -> None:
    given = options(
        __doc__,
        full={"servers": ["sqlite"], "workers": [1, 2], "pages": 12_800, "chains": 512, "rounds": 3},
        quick={"servers": ["sqlite"], "workers": [1, 2], "pages": 512, "chains": 64, "rounds": 1},
    )
    with extraction(10_000) as at:
        found = {kind: _on(kind, given, at.site, at.service) for kind in given.servers}
    report("worker_rate", workers=given.workers, pages=given.pages, rounds=given.rounds, by_server=found)


def _on(kind: str, given: Namespace, site: str, service: str) -> dict[str, Any]:
    with ExitStack() as stack:
        database, main_process = None, 0
        if kind == "postgresql":
            postgresql = stack.enter_context(cluster())
            assert postgresql.process is not None
            database, main_process = postgresql.database(), postgresql.process.pid
        server = stack.enter_context(platform(database=database))
        used = Processors([server.pid], main_process)
        port = stack.enter_context(redis())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        crawl = partial(_crawl, given, site, folder)
        runs: dict[str, Callable[[], Crawled]] = {"scrapy 1": partial(crawl, {})}
        for workers in given.workers:
            shared = {"CRAWL_WORKERS": workers}
            direct = {**scrapy_ext(server.port, server.key), **shared}
            routed = {**everything(server.port, server.key, service), **shared}
            runs[f"direct {workers}"] = partial(crawl, direct, used=used)
            runs[f"extraction {workers}"] = partial(crawl, routed, used=used)
            # Each command would empty the queue at its start.
            redis_settings = {**scrapy_redis(port), "SCHEDULER_FLUSH_ON_START": False, "SCHEDULER_IDLE_BEFORE_CLOSE": 2}
            runs[f"scrapy_redis {workers}"] = partial(crawl, redis_settings, commands=workers, redis_port=port)
        return _compared(alternate(given.rounds, runs))


def _crawl(
    given: Namespace,
    site: str,
    folder: Path,
    settings: Settings,
    *,
    commands: int = 1,
    used: Processors | None = None,
    redis_port: int | None = None,
) -> Crawled:
    if redis_port is not None:
        subprocess.run(["redis-cli", "-p", str(redis_port), "flushall"], check=True, stdout=subprocess.DEVNULL)
    before = sum(used.seconds()) if used else 0
    with tempfile.TemporaryDirectory(dir=folder) as text:
        project = _project(Path(text), settings)
        depth = given.pages // given.chains
        arguments = ["-a", f"site={site}", "-a", f"chains={given.chains}", "-a", f"depth={depth}"]
        logs = [Path(project, f"log-{number}") for number in range(commands)]
        line = [sys.executable, "-m", "scrapy", "crawl", "pages", *arguments]
        crawls = [subprocess.Popen([*line, "-s", f"LOG_FILE={log}"], cwd=project, env=environment()) for log in logs]
        statuses = [crawl.wait(_LIMIT) for crawl in crawls]
        found = [json.loads(path.read_text()) for path in project.glob("worker-*")]
        pages = sorted(time for each in found for time in each["times"])
        missing = abs(depth * given.chains - len(pages))
        if any(statuses) or (missing and redis_port is None):
            texts = "\n".join(log.read_text()[-4000:] for log in logs)
            raise SystemExit(f"{len(pages)} pages, not {depth * given.chains}:\n{texts}")
    return _figures(found, pages, missing, (sum(used.seconds()) if used else 0) - before)


def _figures(found: Sequence[dict[str, Any]], pages: Sequence[float], missing: int, others: float) -> Crawled:
    first = int(_ENDS * len(pages))
    last = len(pages) - 1 - first
    return Crawled(
        rate=(last - first) / (pages[last] - pages[first]),
        cpu_us=1e6 * sum(each["cpu"] for each in found) / len(pages),
        others_cpu_us=1e6 * others / len(pages),
        share=max(len(each["times"]) for each in found) / len(pages),
        missing=missing,
    )


def _project(folder: Path, settings: Settings) -> Path:
    package = folder / "pages"
    package.mkdir(parents=True)
    lines = {**COMMON, "BOT_NAME": "pages", "SPIDER_MODULES": ["pages.spiders"], **settings}
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = pages.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text("".join(f"{name} = {value!r}\n" for name, value in lines.items()))
    (package / "spiders.py").write_text(_SPIDER)
    return folder


def _compared(results: dict[str, list[Crawled]]) -> dict[str, Any]:
    def medians(name: str) -> dict[str, float]:
        return {run: round(median(getattr(each, name) for each in found), 3) for run, found in results.items()}

    rates = medians("rate")
    bases = {run: f"{run.split()[0]} 1" for run in rates if not run.endswith(" 1")}
    return {
        "pages_per_second": rates,
        "ratio": {run: round(rates[run] / rates[base], 2) for run, base in bases.items() if base in rates},
        **{name: medians(name) for name in ("cpu_us", "others_cpu_us", "share")},
        "missing": {run: [each.missing for each in found] for run, found in results.items()},
    }


if __name__ == "__main__":
    main()
