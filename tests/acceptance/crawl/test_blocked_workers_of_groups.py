"""A callback that blocks the event loop of a worker does not end the crawl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.group_crawls import Workers
from tests.support.servers import RunningServer
from tests.support.sites import Answer, ListeningSite

PAGES = 12
SETTINGS = "EXTRACT_API_ENABLED = False\n"


class Pages(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, b"<p>")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path / "data") as server:
        yield server


@pytest.mark.long
@pytest.mark.parametrize(
    ("lease_time", "block", "lost"),
    [pytest.param(60, 8, 0, id="shorter"), pytest.param(6, 13, 1, id="longer", marks=pytest.mark.full)],
)
def test_a_callback_blocks_for_a_time_shorter_or_longer_than_the_lease(
    tmp_path: Path, server: RunningServer, lease_time: int, block: int, lost: int
) -> None:
    with closing(Pages()) as site:
        url = f"http://127.0.0.1:{site.port}"
        settings = f"{SETTINGS}FRONTIER_LEASE_TIME = {lease_time}\n"
        workers = Workers(tmp_path, server, url, PAGES, settings, block=block)
        crawls = [running.end() for running in workers.running]
    log = "\n".join(crawl.log for crawl in crawls)
    assert sorted(crawl.reason for crawl in crawls) == ["finished"] * (2 - lost) + ["frontier_lease_lost"] * lost, log
    assert workers.metadata()["close_reason"] == "finished"
    assert sorted(item["url"] for item in workers.items()) == sorted(f"{url}/{page}" for page in range(PAGES))
    assert log.count("No report for 6 s (FRONTIER_LEASE_TIME)") == lost
    assert ("a callback has blocked the event loop" in log) == bool(lost)
