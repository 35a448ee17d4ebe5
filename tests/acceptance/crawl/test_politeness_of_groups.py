"""The workers of one job keep the limits of a site together, by the notes of the site."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from scrapy_ext.client.platform import PlatformClient
from tests.support.crawls import Project, Running, ask_server
from tests.support.eventually import eventually
from tests.support.servers import RunningServer
from tests.support.sites import Answer, ListeningSite

#: Requests of one host in many slots, so that each worker has some.
SPIDER = """
import scrapy

class Polite(scrapy.Spider):
    name = "polite"

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.site}/{number}", meta={"frontier_slot": number % 8})

    def parse(self, response):
        yield {"url": response.url}
"""
SETTINGS = """
EXTRACT_API_ENABLED = False
ROBOTSTXT_OBEY = False
FRONTIER_POLL_INTERVAL = 0.5
PLATFORM_FLUSH_INTERVAL = 0.1
"""


class Noting(ListeningSite):
    """A site that notes the start of each request, and the most that were open at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.starts: list[float] = []
        self.open = self.most_open = 0
        self._notes = threading.Lock()
        super().__init__()

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        with self._notes:
            self.starts.append(time.monotonic())
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        time.sleep(self.seconds)
        with self._notes:
            self.open -= 1
        return Answer(200, path.encode())

    @property
    def least_gap(self) -> float:
        return min(later - sooner for sooner, later in pairwise(sorted(self.starts)))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path / "data") as server:
        yield server


class Workers:
    """Two workers of one job."""

    def __init__(self, folder: Path, server: RunningServer, site: Noting, pages: int, settings: str) -> None:
        keys = f"PLATFORM_URL = {server.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\n"
        self._project = Project(folder / "project", SPIDER, SETTINGS + keys + settings)
        self.site, self.pages = site, pages

        async def push(client: PlatformClient) -> str:
            return (await client.jobq.push(1, "polite", state="running", spider_type="manual")).key

        self._job = ask_server(server.url, server.platform_key, push)
        self.running = [self.start(), self.start()]

    def start(self) -> Running:
        given = ("-s", f"PLATFORM_JOB={self._job}", "-s", "CRAWL_GROUP=2", "-a", f"pages={self.pages}")
        return self._project.start("polite", *given, "-a", f"site=http://127.0.0.1:{self.site.port}")

    def end(self) -> list[int]:
        """Wait until all have ended; return the number of responses of each."""
        crawls = [running.end() for running in self.running]
        assert [crawl.reason for crawl in crawls] == ["finished"] * len(crawls), crawls[0].log[-3000:]
        assert set(self.site.hits) == {f"/{number}" for number in range(self.pages)}
        return [crawl.stat("downloader/response_count") for crawl in crawls]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("settings", "seconds", "pages", "most_open", "least_gap"),
    [
        pytest.param("CONCURRENT_REQUESTS_PER_DOMAIN = 3\n", 0.2, 60, 3, 0.0, id="concurrency"),
        pytest.param("DOWNLOAD_DELAY = 0.4\nRANDOMIZE_DOWNLOAD_DELAY = False\n", 0.0, 30, 8, 0.2, id="delay"),
    ],
)
def test_two_workers_keep_the_limits_of_one(
    tmp_path: Path,
    server: RunningServer,
    settings: str,
    seconds: float,
    pages: int,
    most_open: int,
    least_gap: float,
) -> None:
    with closing(Noting(seconds)) as site:
        workers = Workers(tmp_path, server, site, pages, settings)
        responses = workers.end()
        assert all(responses), responses
        assert site.most_open <= most_open
        assert site.least_gap >= least_gap


@pytest.mark.long
def test_the_permits_of_a_killed_worker_are_not_used_twice(tmp_path: Path, server: RunningServer) -> None:
    settings = "DOWNLOAD_DELAY = 0.3\nRANDOMIZE_DOWNLOAD_DELAY = False\nCONCURRENT_REQUESTS_PER_DOMAIN = 2\n"
    with closing(Noting(0.2)) as site:
        workers = Workers(tmp_path, server, site, 50, settings)
        eventually(lambda: len(site.starts) > 15, what="some pages")
        killed = workers.running.pop(0)
        killed.process.kill()
        killed.process.wait()
        assert killed.process.returncode == -signal.SIGKILL
        workers.end()
        assert site.most_open <= 2
        assert site.least_gap >= 0.15
