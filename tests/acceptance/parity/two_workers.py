"""Run spiders by ``scrapy crawl`` with two workers, and compare what both do together with what plain Scrapy does.

Compared is what has a meaning for several processes: items, requests that the site gets, errors, close reason and
whether the command fails. Their order has none.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from scrapy_ext.client.platform import PlatformClient
from tests.acceptance.parity.comparison import Comparison
from tests.acceptance.parity.outcome import differences, fields
from tests.acceptance.parity.recorder import FOLDER
from tests.acceptance.parity.recording import SETTINGS
from tests.acceptance.parity.site import Sites
from tests.acceptance.parity.spiders import SPIDERS
from tests.acceptance.parity.wirings import PLAIN, WIRINGS
from tests.support import forked
from tests.support.crawls import ask_server, collect, key
from tests.support.servers import ForkedServer, RunningServer, without_keys

#: Crawls at once: most of their time they wait for each other's reports.
_AT_ONCE: Final = 8
#: Seconds for one crawl.
_TIMEOUT: Final = 300
#: Errors of the crawl. Handlers of signals are called in each worker.
_ERROR: Final = re.compile(r"(ERROR|CRITICAL) (?!scrapy\.utils\.signal:)")
_SETTINGS: Final = """
import sys
sys.path.insert(0, {root!r})
from tests.acceptance.parity.recorder import Recorder
from tests.acceptance.parity.wirings import WIRINGS
SPIDER_MODULES = ["tests.acceptance.parity.spiders"]
ADDONS = WIRINGS["platform"]["ADDONS"] | {{Recorder: 100}}
CRAWL_WORKERS = 2
FRONTIER_POLL_INTERVAL = 1
EXTRACT_API_ENABLED = False
"""


class TwoWorkers:
    """The outcomes of spiders with plain Scrapy, and with two workers."""

    def __init__(self, spiders: Sequence[str], folder: Path) -> None:
        self._spiders = spiders
        self._folder = folder
        self._outcomes: dict[str, dict[str, Any]] = {}
        with Comparison(spiders, folder / "plain", {PLAIN: WIRINGS[PLAIN]}) as self._plain:
            sites = Sites(len(spiders))
            try:
                self._run(sites)
            finally:
                sites.close()

    def differences(self, spider: str) -> dict[str, tuple[Any, Any]]:
        """Fields that are not what they are with plain Scrapy, with both values."""
        return differences(_of_crawl(self._plain.outcome(spider, PLAIN)), _of_crawl(self._outcomes[spider]))

    def _run(self, sites: Sites) -> None:
        with ForkedServer(self._folder / "data") as server, ThreadPoolExecutor(_AT_ONCE) as pool:
            runs = {
                spider: pool.submit(_Crawl(spider, self._folder / spider, port, server).run)
                for spider, port in zip(self._spiders, sites.ports, strict=True)
            }
            written = {spider: run.result() for spider, run in runs.items()}
        for (spider, text), port in zip(written.items(), sites.ports, strict=True):
            folder = str(self._folder / spider)
            self._outcomes[spider] = fields(text, sites.visits[port], port, folder)


class _Crawl:
    """The crawls of one spider."""

    def __init__(self, spider: str, folder: Path, port: int, server: RunningServer) -> None:
        self._spider = spider
        self._folder = folder
        self._port = port
        self._server = server

    def run(self) -> str:
        """Crawl as often as the spider is to run; returns the record of all runs as JSON."""
        package = self._folder / "project"
        package.mkdir(parents=True)
        (self._folder / "scrapy.cfg").write_text("[settings]\ndefault = project.settings\n")
        (package / "settings.py").write_text(_SETTINGS.format(root=str(Path(__file__).parents[3])))
        runs = [self._crawl(number) for number in range(SPIDERS[self._spider].runs)]
        files = {
            str(path.relative_to(self._folder)): path.read_bytes().decode("latin-1")
            for path in sorted(self._folder.glob("out/**/*"))
            if path.is_file()
        }
        return json.dumps({"runs": runs, "files": files})

    def _crawl(self, number: int) -> dict[str, Any]:
        records, log = self._folder / f"records-{number}", self._folder / f"log-{number}"
        records.mkdir()
        settings = {
            **SETTINGS,
            "PLATFORM_URL": self._server.url,
            "PLATFORM_API_KEY": self._server.platform_key,
            FOLDER: str(records),
        }
        words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        arguments = ("-a", f"site=http://localhost:{self._port}", "-a", f"run={number}")
        with log.open("wb") as errors:
            process = forked.start(
                [sys.executable, "-m", "scrapy", "crawl", self._spider, *arguments, *words],
                cwd=self._folder,
                env=without_keys(),
                stderr=errors,
                start_new_session=True,
            )
        try:
            status = process.wait(_TIMEOUT)
        finally:
            _kill_all(process.pid)
        workers = [json.loads(path.read_text()) for path in records.iterdir()]
        return self._together(workers, status)

    def _together(self, workers: Sequence[Mapping[str, Any]], status: int) -> dict[str, Any]:
        """One record of both workers, with what the platform has of their job."""
        job = next((worker["job"] for worker in workers if worker["job"]), None)
        stored, metadata = ask_server(self._server.url, self._server.platform_key, _reader(job)) if job else (None, {})
        return {
            "stored": stored,
            "raised": status != 0,
            "reason": metadata.get("close_reason", next((worker["reason"] for worker in workers), None)),
            "stats": metadata.get("frameworkstats", {}),
            "settings": {"CONCURRENT_REQUESTS": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 0},
            **{name: [each for worker in workers for each in worker[name]] for name in ("items", "storable", "notes")},
            **{name: sum((Counter(worker[name]) for worker in workers), Counter()) for name in ("signals", "log")},
        }


def _kill_all(session: int) -> None:
    """End the workers that are left of a crawl that did not end in time."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _reader(job: str) -> Any:
    async def read(client: PlatformClient) -> tuple[list[Any], dict[str, Any]]:
        return await collect(client.items.iter(key(job))), await client.jobs.metadata(key(job))

    return read


def _of_crawl(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a meaning for a crawl of several processes."""
    return dict(_meaningful(fields))


def _meaningful(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        run, colon, field = name.rpartition(": ")
        if field in ("items", "hits", "reason") or field.startswith("items of the platform"):
            yield name, value
        elif field == "raised":
            yield f"{run}{colon}fails", bool(value)
        elif field == "log":
            yield f"{run}{colon}errors", {line: count for line, count in value.items() if _ERROR.match(line)}
