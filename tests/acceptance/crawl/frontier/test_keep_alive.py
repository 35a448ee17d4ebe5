"""Crawls that wait for requests: what is pushed is crawled within seconds, and they end in time, or when stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.client.platform.errors import BadRequest
from tests.support.crawls import Project, Running, ask_server, collect, key
from tests.support.eventually import eventually
from tests.support.servers import ForkedServer, RunningServer

SPIDERS = """
import time
from pathlib import Path

import scrapy

from scrapy_ext.crawl.frontier.keep_alive import KeepAlive


class Clock:
    # Stands still as long as the test is not done with what it does during the wait, on however loaded a machine.

    def __init__(self):
        self.now, self.read_at, self.is_held = 0.0, time.monotonic(), False

    def __call__(self):
        at, was_held, self.is_held = time.monotonic(), self.is_held, Path("held").exists()
        if not (was_held or self.is_held):
            self.now += at - self.read_at
        self.read_at = at
        return self.now


KeepAlive.__init__.__defaults__ = (Clock(),)


class Fed(scrapy.Spider):
    name = "fed"
    custom_settings = {"EXTRACT_API_ENABLED": False, "FRONTIER_POLL_INTERVAL": 0.2}

    def parse(self, response):
        yield {"page": response.text}

    def more(self, response, n):
        yield {"page": response.text, "n": n}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    server = ForkedServer(tmp_path_factory.mktemp("data"))
    yield server
    server.stop()


class Fed:
    """Crawls of the spider on the server."""

    def __init__(self, folder: Path, server: RunningServer) -> None:
        self._server = server
        keys = f"PLATFORM_URL = {server.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\n"
        self._project = Project(folder / "project", SPIDERS, keys)
        self._held = folder / "project" / "held"
        self._running: list[Running] = []

    def hold(self) -> None:
        """Let the time of waits stand still."""
        self._held.touch()

    def go_on(self) -> None:
        self._held.unlink()

    def start(self, **settings: object) -> Running:
        options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        running = self._project.start("fed", *options)
        self._running.append(running)
        return running

    def ask(self, ask: Any) -> Any:
        return ask_server(self._server.url, self._server.platform_key, ask)

    def push(self, frontier: str, *lines: str) -> Any:
        return self.ask(lambda client: client.frontier.push(1, frontier, "\n".join(lines).encode(), push="p"))

    def job(self, running: Running) -> str:
        """Wait until a crawl waits for requests; return its job."""

        def waiting() -> str | None:
            lines = [line for line in running.log.read_text().splitlines() if ": Job " in line]
            if not lines:
                return None
            job = lines[0].split("Job ")[1].split()[0]
            metadata = self.ask(lambda client: client.jobs.metadata(key(job)))
            return job if metadata.get("waits_since") else None

        return eventually(waiting, what="the crawl waits")

    def pages(self, job: str) -> list[str]:
        items = self.ask(lambda client: collect(client.items.iter(key(job))))
        return sorted(item["page"] for item in items)

    def close(self) -> None:
        for running in self._running:
            running.process.kill()
            running.process.wait()


@pytest.fixture
def fed(tmp_path: Path, server: RunningServer) -> Iterator[Fed]:
    fed = Fed(tmp_path, server)
    yield fed
    fed.close()


def frontier_of(job: str) -> str:
    return "job-" + "-".join(job.split("/")[1:])


def test_a_crawl_takes_requests_while_it_waits_and_ends_when_none_have_come_for_its_time(fed: Fed) -> None:
    fed.hold()
    running = fed.start(FRONTIER_KEEP_ALIVE=4)
    job = fed.job(running)
    frontier = frontier_of(job)
    assert fed.push(frontier, "data:,a", '{"url": "data:,b", "callback": "more", "cb_kwargs": {"n": 1}}').new == 2
    eventually(lambda: fed.pages(job) == ["a", "b"], what="the pushed requests are crawled")
    fed.go_on()
    crawl = running.end()
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert fed.pages(job) == ["a", "b"]
    with pytest.raises(BadRequest, match="takes no more requests, since the job has ended"):
        fed.push(frontier, "data:,c")
    assert frontier not in fed.ask(lambda client: client.frontier.frontiers(1))
    assert 0 < crawl.stat("frontier/keep_alive/polls") < 100


@pytest.mark.long
def test_a_crawl_that_waits_for_ever_is_stopped_cleanly_and_resumed_with_what_it_had(fed: Fed) -> None:
    running = fed.start(FRONTIER_KEEP_ALIVE=True)
    job = fed.job(running)
    running.process.send_signal(signal.SIGTERM)
    crawl = running.end()
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "shutdown", [])
    metadata = fed.ask(lambda client: client.jobs.metadata(key(job)))
    assert metadata["waits_since"] is None
    with pytest.raises(BadRequest, match="since the job has ended"):
        fed.push(frontier_of(job), "data:,late")
    fed.hold()
    resumed = fed.start(FRONTIER_KEEP_ALIVE=3, PLATFORM_JOB=job)
    assert fed.job(resumed) == job
    assert fed.push(frontier_of(job), "data:,again").new == 1
    fed.go_on()
    assert resumed.end().reason == "finished"
    assert fed.pages(job) == ["again"]


@pytest.mark.long
def test_a_named_frontier_keeps_what_is_pushed_between_crawls(fed: Fed) -> None:
    assert fed.push("between", "data:,a").new == 1
    first = fed.start(FRONTIER_NAME="between")
    assert first.end().reason == "finished"
    assert fed.push("between", "data:,a", "data:,b").new == 1
    fed.hold()
    second = fed.start(FRONTIER_NAME="between", FRONTIER_KEEP_ALIVE=2)
    job = fed.job(second)
    assert fed.push("between", "data:,c").new == 1
    fed.go_on()
    assert second.end().reason == "finished"
    assert fed.pages(job) == ["b", "c"]


@pytest.mark.long
def test_workers_wait_together_and_end_together(fed: Fed) -> None:
    shared = {"FRONTIER_NAME": "together", "FRONTIER_KEEP_ALIVE": 3}
    fed.hold()
    running = [fed.start(FRONTIER_WORKER=worker, **shared) for worker in ("0/2", "1/2")]
    jobs = [fed.job(each) for each in running]
    lines = [f'{{"url": "data:,{number}", "meta": {{"frontier_slot": {number}}}}}' for number in range(16)]
    assert fed.push("together", *lines).new == 16
    fed.go_on()
    crawls = [each.end() for each in running]
    assert [(crawl.returncode, crawl.reason) for crawl in crawls] == [(0, "finished")] * 2
    pages = [fed.pages(job) for job in jobs]
    assert [len(each) for each in pages] == [8, 8], "each worker has done those of its slots"
    assert sorted(chain(*pages)) == sorted(map(str, range(16)))


@pytest.mark.long
def test_workers_that_come_and_go_share_what_is_pushed(fed: Fed) -> None:
    shared = {"FRONTIER_NAME": "auto", "FRONTIER_KEEP_ALIVE": 6, "FRONTIER_WORKER": "auto", "FRONTIER_LEASE_TIME": 3}
    fed.hold()
    running = [fed.start(**shared) for _ in range(2)]
    jobs = [fed.job(each) for each in running]
    lines = [f'{{"url": "data:,{number}", "meta": {{"frontier_slot": {number}}}}}' for number in range(16)]
    fed.push("auto", *lines[:8])
    running[0].process.kill()
    running[0].process.wait()
    fed.push("auto", *lines)
    fed.go_on()
    assert running[1].end().reason == "finished"
    assert sorted(chain(*map(fed.pages, jobs))) == sorted(map(str, range(16)))


@pytest.mark.long
def test_a_waiting_crawl_polls_little_and_still_takes_a_request_within_its_worst_delay(fed: Fed) -> None:
    running = fed.start(FRONTIER_KEEP_ALIVE=True, FRONTIER_POLL_INTERVAL=1)
    job = fed.job(running)
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 12, what="the pauses have grown to their longest")
    fed.push(frontier_of(job), "data:,late")
    eventually(lambda: fed.pages(job) == ["late"], what="the request is crawled")
    running.process.send_signal(signal.SIGTERM)
    polls = running.end().stat("frontier/keep_alive/polls")
    # One in five seconds, and a few more until they are so far apart, at the beginning and after the request.
    assert polls <= 12 + (time.monotonic() - began) / 5


@pytest.mark.long
def test_a_waiting_crawl_ends_when_another_job_takes_its_frontier_over(fed: Fed) -> None:
    first = fed.start(FRONTIER_KEEP_ALIVE=True, FRONTIER_NAME="taken")
    fed.job(first)
    fed.push("taken", "data:,a")
    second = fed.start(FRONTIER_KEEP_ALIVE=True, FRONTIER_NAME="taken")
    job = fed.job(second)
    crawl = first.end()  # Nothing is pushed meanwhile.
    assert crawl.reason == "frontier_lease_lost"
    fed.push("taken", "data:,b")
    eventually(lambda: "b" in fed.pages(job), what="the second crawl has the frontier")
