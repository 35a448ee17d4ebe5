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

from tests.support.eventually import eventually
from tests.support.group_crawls import Workers, responses
from tests.support.servers import RunningServer
from tests.support.sites import Answer, ListeningSite

DIRECT = "EXTRACT_API_ENABLED = False\n"


class Noting(ListeningSite):
    """A site that notes the start of each request, and the most that were open at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.starts: list[float] = []
        self.open = self.most_open = 0
        self._notes = threading.Lock()
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}"

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


@pytest.mark.long
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
        crawls = Workers(tmp_path, server, site.url, pages, DIRECT + settings).end()
        assert (crawls[0].reason, len(site.hits)) == ("finished", pages)
        assert all(responses(crawls)), responses(crawls)
        assert site.most_open <= most_open
        assert site.least_gap >= least_gap


@pytest.mark.long
def test_the_permits_of_a_killed_worker_are_not_used_twice(tmp_path: Path, server: RunningServer) -> None:
    settings = "DOWNLOAD_DELAY = 0.3\nRANDOMIZE_DOWNLOAD_DELAY = False\nCONCURRENT_REQUESTS_PER_DOMAIN = 2\n"
    with closing(Noting(0.2)) as site:
        workers = Workers(tmp_path, server, site.url, 50, DIRECT + settings)
        eventually(lambda: len(site.starts) > 15, what="some pages")
        killed = workers.running.pop(0)
        killed.process.kill()
        killed.process.wait()
        assert killed.process.returncode == -signal.SIGKILL
        (crawl,) = workers.end()
        assert (crawl.reason, len(site.hits)) == ("finished", 50)
        assert site.most_open <= 2
        assert site.least_gap >= 0.15
