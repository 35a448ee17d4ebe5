"""Cost of running jobs: delay of a spider's first request against ``scrapy crawl``, time to pick the next of 10,000
pending jobs, and whether as many jobs as there are units all finish, none twice.

A start-up is from the call of ``run.json``, or from the start of the command, until the spider gives its first request.
Both take turns. The pick is that of the store, with a node that has room for one job.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

from rig.processes import python
from rig.rounds import median, options, report

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode

_KEY = "0" * 32
_SPIDER = """
import time
from pathlib import Path

import scrapy


class Timed(scrapy.Spider):
    name = "timed"

    async def start(self):
        Path(self.time_file).write_text(str(time.time()))
        yield scrapy.Request("data:,page")

    def parse(self, response):
        yield {"time_file": self.time_file}
"""


def main() -> None:
    given = options(
        __doc__,
        full={"rounds": 7, "at_once": 50, "waiting": 10_000},
        quick={"rounds": 2, "at_once": 6, "waiting": 500},
    )
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        project = _project(folder / "project")
        command = [
            *("-m", "scrapy_ext.server", "--port", "0", "--data", str(folder / "data"), "--exit-with-stdin"),
            *("--local-project", str(project), "--units", str(given.at_once)),
        ]
        with python(*command, extra={"PLATFORM_API_KEY": _KEY, "EXTRACT_API_KEY": _KEY[:-1] + "1"}) as running:
            server = _Server(running.said.split()[-1])
            own, jobs = [], []
            for number in range(given.rounds):
                own.append(_crawl(project, folder / f"own-{number}"))
                jobs.append(server.start_up(folder / f"job-{number}"))
            seconds, whole = server.many(folder, given.at_once)
    few, many = asyncio.run(_picks(10)), asyncio.run(_picks(given.waiting))
    report(
        "jobs",
        rounds=given.rounds,
        first_request_s={"scrapy_crawl": round(median(own), 2), "job": round(median(jobs), 2)},
        later_s=round(median(jobs) - median(own), 2),
        pick_ms={"10": round(1000 * few, 2), str(given.waiting): round(1000 * many, 2)},
        pick_ratio=round(many / few, 2),
        at_once=given.at_once,
        at_once_s=round(seconds, 1),
        all_finished_at_first=whole,
    )


def _project(folder: Path) -> Path:
    package = folder / "timing"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = timing.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text('BOT_NAME = "timing"\nSPIDER_MODULES = ["timing.spiders"]\n')
    (package / "spiders.py").write_text(_SPIDER)
    return folder


def _crawl(project: Path, time_file: Path) -> float:
    began = time.time()
    arguments = ["timed", "-a", f"time_file={time_file}", "-s", "LOG_ENABLED=False"]
    command = [sys.executable, "-m", "scrapy", "crawl", *arguments]
    subprocess.run(command, cwd=project, check=True, timeout=120)
    return float(time_file.read_text()) - began


class _Server:
    def __init__(self, url: str) -> None:
        self._url = url

    def start_up(self, time_file: Path) -> float:
        began = time.time()
        job = self._run(time_file)
        self._ended([job])
        return float(time_file.read_text()) - began

    def many(self, folder: Path, count: int) -> tuple[float, bool]:
        """Return the seconds until ``count`` jobs have finished, and whether each did at its first attempt."""
        began = time.time()
        jobs = [self._run(folder / f"many-{number}") for number in range(count)]
        ended = self._ended(jobs)
        whole = all((each["close_reason"], each["attempt"]) == ("finished", 1) for each in ended)
        return time.time() - began, whole

    def _run(self, time_file: Path) -> str:
        form = {"project": "1", "spider": "timed", "time_file": str(time_file)}
        return str(self._call("/api/run.json", urllib.parse.urlencode(form).encode())["jobid"])

    def _ended(self, jobs: list[str]) -> list[dict[str, Any]]:
        ended = []
        for job in jobs:
            while (metadata := self._call(f"/jobs/{job}"))["state"] != "finished":
                time.sleep(0.1)
            ended.append(metadata)
        return ended

    def _call(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        credentials = b64encode(f"{_KEY}:".encode()).decode()
        request = urllib.request.Request(self._url + path, body, {"Authorization": f"Basic {credentials}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


async def _picks(waiting: int) -> float:
    """Return the seconds of a pick with ``count`` pending jobs."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(Path(folder))
        await store.nodes.join(StoredNode("node", "host", 1, frozenset(), 1, 1, 1, draining=False))
        jobs = [NewJob("spider", JobState.PENDING, {"priority": number % 5}) for number in range(waiting)]
        await store.jobs.add(1, jobs, "bench")
        for _ in range(min(waiting, 100)):
            began = time.perf_counter()
            (placed,) = await store.attempts.place()
            times.append(time.perf_counter() - began)
            await store.attempts.end(Attempt(*placed), "finished")
        await store.close()
    return median(times)


if __name__ == "__main__":
    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
    main()
