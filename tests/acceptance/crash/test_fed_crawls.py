"""Crawls into which others push requests: each request that was accepted is done once, whoever is killed meanwhile."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound, PlatformError
from tests.support.crash.lives import Platform
from tests.support.crawls import Crawl, Project, Running, ask_server, collect, key
from tests.support.eventually import TIMEOUT, eventually
from tests.support.faults import FaultProxy, KillPoint, Step, When
from tests.support.sites import Answer, ListeningSite

SPIDER = """
import scrapy

class Fed(scrapy.Spider):
    name = "fed"

    async def start(self):
        yield scrapy.Request(self.site + "/start")

    def parse(self, response):
        yield {"path": response.url.removeprefix(self.site)}
        if "child" not in response.url:
            yield response.follow(response.url + "/child", dont_filter="again" in response.url)
"""
SETTINGS = """
EXTRACT_API_ENABLED = False
ROBOTSTXT_OBEY = False
LOG_LEVEL = "INFO"
PLATFORM_FLUSH_INTERVAL = 0.2
FRONTIER_POLL_INTERVAL = 0.2
"""
#: Seconds without work after which a crawl ends: longer than a killed one takes to begin again on a busy machine.
KEPT = 10
#: Requests of a push, and every how many of them has dont_filter.
REQUESTS, AGAIN = 120, 10


class EmptySite(ListeningSite):
    """Pages without anything."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, b"<p>page</p>")


@pytest.fixture
def site() -> Iterator[EmptySite]:
    site = EmptySite()
    yield site
    site.close()


class Fed:
    """Crawls of one frontier, and pushes into it; all of them may be killed and started again."""

    def __init__(self, folder: Path, platform: Platform, site: EmptySite) -> None:
        self.platform = platform
        self.site = site
        self.project = Project(
            folder / "project", SPIDER, SETTINGS + f"PLATFORM_API_KEY = {platform.key!r}\n", is_forked=False
        )
        self._file = folder / "requests.jsonl"
        self.jobs: list[str] = []

    def ask(self, ask: Callable[[PlatformClient], object]) -> object:
        return ask_server(self.platform.url, self.platform.key, ask)

    def start(self, url: str, *arguments: str) -> Running:
        return self.project.start("fed", "-a", f"site={self.site.url}", "-s", f"PLATFORM_URL={url}", *arguments)

    def lines(self, prefix: str) -> list[str]:
        """Lines of a push; some are for the same page."""
        lines = []
        for number in range(REQUESTS):
            fields = {"url": f"{self.site.url}/{prefix}/{number}", "priority": number % 3}
            if number % AGAIN == 0:
                fields = {"url": f"{self.site.url}/{prefix}/again", "dont_filter": True}
            # Their children are in the slot of the host, which another worker may own.
            lines.append(json.dumps({**fields, "meta": {"frontier_slot": number}}))
        return lines

    def expected(self, prefix: str) -> Counter[str]:
        """Items of a push."""
        again = REQUESTS // AGAIN
        paths = Counter({f"/{prefix}/{number}": 1 for number in range(REQUESTS) if number % AGAIN})
        paths[f"/{prefix}/again"] = again
        return paths + Counter({f"{path}/child": number for path, number in paths.items()})

    def push(self, frontier: str, prefix: str, size: int = 20) -> None:
        """Push in batches, each until it is accepted."""
        lines = self.lines(prefix)
        for start in range(0, len(lines), size):
            body = "\n".join(lines[start : start + size]).encode()

            async def once(client: PlatformClient, body: bytes = body, start: int = start) -> bool:
                try:
                    await client.frontier.push(1, frontier, body, push=prefix, start=start)
                except PlatformError as error:
                    if not error.retryable:
                        raise
                    return False
                return True

            eventually(lambda once=once: self.ask(once), what="the push is accepted")

    def add(self, url: str, *arguments: str, proxy: FaultProxy | None = None) -> int:
        """Run `scrapy platform frontier add`; returns its exit code."""
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "platform", "frontier", "add", *arguments, "-s", f"PLATFORM_URL={url}"],
            cwd=self.project.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if proxy is not None:
            proxy.victim = process.pid
        return process.wait(TIMEOUT)

    def file(self, prefix: str) -> str:
        self._file.write_text("\n".join(self.lines(prefix)))
        return str(self._file)

    def is_open(self, frontier: str) -> bool:
        """True while a crawl takes pushes."""

        async def read(client: PlatformClient) -> bool:
            try:
                feed = await client.frontier.feed(1, frontier)
            except NotFound:
                return False
            return feed.open and feed.slots is not None

        return bool(self.ask(read))

    def items(self) -> Counter[str]:
        async def read(client: PlatformClient) -> Counter[str]:
            items = [item for job in self.jobs for item in await collect(client.items.iter(key(job)))]
            return Counter(item["path"] for item in items)

        return self.ask(read)

    def check(self, *prefixes: str) -> None:
        expected = Counter({"/start": 1, "/start/child": 1})
        for prefix in prefixes:
            expected += self.expected(prefix)
        found = self.items()
        assert found == expected, f"missing {expected - found}; too many {found - expected}"


@pytest.fixture
def fed(tmp_path: Path, platform: Platform, site: EmptySite) -> Fed:
    return Fed(tmp_path, platform, site)


def job_of(running: Running) -> str:
    """Wait until a crawl has a job."""

    def found() -> str | None:
        words = [line.split("Job ")[1].split()[0] for line in running.log.read_text().splitlines() if ": Job " in line]
        return words[0] if words else None

    return eventually(found, what="the crawl has a job")


def finished(running: Running) -> None:
    crawl: Crawl = running.end()
    assert (crawl.returncode, crawl.reason) == (0, "finished"), crawl.log[-3000:]


def in_background(work: Callable[[], None]) -> Callable[[], None]:
    """Begin work; the result waits for it, and raises its error."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join() -> None:
        thread.join(TIMEOUT)
        assert not errors, errors[0]

    return join


#: Steps of a crawl that works on pushed requests, and the moments of its death.
_STEPS = (Step.READ, Step.CHILDREN, Step.JOURNAL, Step.ITEMS, Step.ACKNOWLEDGE)
_WHEN = (When.BEFORE, When.LOST_REPLY, When.AFTER)
_ALL = [KillPoint(step, when, number) for step, when, number in itertools.product(_STEPS, _WHEN, (1, 4))]
_NORMAL = (KillPoint(Step.ITEMS, When.LOST_REPLY, 1),)
POINTS = [pytest.param(point, id=str(point), marks=() if point in _NORMAL else pytest.mark.full) for point in _ALL]


@pytest.mark.parametrize("point", POINTS)
def test_a_crawl_that_is_killed_does_each_pushed_request_once(fed: Fed, platform: Platform, point: KillPoint) -> None:
    kept = ("-s", f"FRONTIER_KEEP_ALIVE={KEPT}")
    with FaultProxy(platform.url, kill_at=point) as proxy:
        first = fed.start(proxy.url, *kept)
        proxy.victim = first.process.pid
        job = job_of(first)
        fed.jobs.append(job)
        frontier = f"job-{'-'.join(job.split('/')[1:])}"
        # A crawl that is killed before it takes pushes is begun again first.
        eventually(lambda: fed.is_open(frontier) or first.process.poll(), what="the crawl takes pushes")
        early = None if fed.is_open(frontier) else fed.start(platform.url, *kept, "-s", f"PLATFORM_JOB={job}")
        eventually(lambda: fed.is_open(frontier), what="the crawl takes pushes")
        join = in_background(lambda: fed.push(frontier, "pushed"))
        code = first.process.wait(TIMEOUT)
        # A late call may not be needed: a fast crawl stores everything in fewer.
        assert code == -signal.SIGKILL or (code == 0 and point.number > 1), first.log.read_text()[-3000:]
    if code == 0:
        join()
        fed.check("pushed")
        return
    # What is pushed while no process runs is kept.
    join()
    finished(early or fed.start(platform.url, "-s", "FRONTIER_KEEP_ALIVE=2", "-s", f"PLATFORM_JOB={job}"))
    fed.check("pushed")


def test_a_server_that_is_killed_loses_no_pushed_request(tmp_path: Path, site: EmptySite) -> None:
    platform = Platform(tmp_path / "platform")
    try:
        fed = Fed(tmp_path, platform, site)
        crawl = fed.start(platform.url, "-s", "FRONTIER_NAME=fed", "-s", "FRONTIER_KEEP_ALIVE=True")
        fed.jobs.append(job_of(crawl))
        join = in_background(lambda: fed.push("fed", "pushed", size=10))
        for hits in (2, REQUESTS // 2):
            eventually(lambda hits=hits: site.hits.total() > hits, what="pushed requests are crawled")
            platform.start_again()
        join()
        # The start request and its child, too.
        wanted = fed.expected("pushed").total() + 2
        eventually(lambda: fed.items().total() >= wanted, what="all is crawled")
        crawl.process.send_signal(signal.SIGTERM)
        assert crawl.end().reason == "shutdown"
        fed.check("pushed")
    finally:
        platform.close()


@pytest.mark.parametrize(
    "point",
    [
        KillPoint(Step.OTHER, When.LOST_REPLY, 0),
        pytest.param(KillPoint(Step.OTHER, When.BEFORE, 0), marks=pytest.mark.full),
        pytest.param(KillPoint(Step.OTHER, When.AFTER, 0), marks=pytest.mark.full),
    ],
    ids=str,
)
def test_a_push_that_is_killed_and_repeated_queues_nothing_twice(
    fed: Fed, platform: Platform, point: KillPoint
) -> None:
    frontier = f"killed-push-{point}"
    with FaultProxy(platform.url, kill_at=point) as proxy:
        arguments = (frontier, "--file", fed.file("pushed"), "--push-id", "today")
        assert fed.add(proxy.url, *arguments, proxy=proxy) == -signal.SIGKILL
    assert fed.add(platform.url, *arguments) == 0
    crawl = fed.start(platform.url, "-s", f"FRONTIER_NAME={frontier}")
    fed.jobs.append(job_of(crawl))
    finished(crawl)
    fed.check("pushed")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_workers_that_are_killed_in_turn_do_each_pushed_request_once(fed: Fed, platform: Platform, seed: int) -> None:
    frontier = f"workers-{seed}"

    def start(worker: int, *resumed: str) -> Running:
        named = ("-s", f"FRONTIER_NAME={frontier}", "-s", f"FRONTIER_WORKER={worker}/2")
        return fed.start(platform.url, *named, "-s", f"FRONTIER_KEEP_ALIVE={KEPT}", *resumed)

    running = [start(worker) for worker in (0, 1)]
    fed.jobs += map(job_of, running)
    join = in_background(lambda: fed.push(frontier, "pushed", size=5 + seed))
    for turn in range(4):
        worker = (turn + seed) % 2
        hits = fed.site.hits.total() + 10
        eventually(lambda hits=hits: fed.site.hits.total() > hits, what="pushed requests are crawled")
        running[worker].process.kill()
        running[worker].process.wait()
        running[worker] = start(worker, "-s", f"PLATFORM_JOB={fed.jobs[worker]}")
    join()
    for crawl in running:
        finished(crawl)
    fed.check("pushed")
