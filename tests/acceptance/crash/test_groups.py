"""Workers of one job: whichever of them are killed, the job is that of one undisturbed crawl."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest

from scrapy_ext.client.platform import PlatformClient
from tests.support.crash.lives import Crawls, Life, Worker, finished, until
from tests.support.crash.maze import children_of
from tests.support.crawls import collect, key
from tests.support.eventually import TIMEOUT
from tests.support.faults import KillPoint, Step, When

START_ITEMS = 3
#: Slow enough that a second worker gets slots while the first one is at work.
SETTINGS = "DOWNLOAD_DELAY = 0.2\nFRONTIER_POLL_INTERVAL = 0.5\nPLATFORM_FLUSH_INTERVAL = 0.05\n"
SETTINGS += "FRONTIER_LEASE_TIME = 6\n"
STEPS = (
    Step.READ,
    Step.CHILDREN,
    Step.PAYLOAD,
    Step.JOURNAL,
    Step.ITEMS,
    Step.ACKNOWLEDGE,
    Step.ASSIGNMENT,
    Step.REPORT,
)
DEATHS = (When.BEFORE, When.LOST_REPLY, When.AFTER)
LONG = {KillPoint(Step.JOURNAL, When.LOST_REPLY, 2), KillPoint(Step.REPORT, When.AFTER, 0)}


@pytest.fixture
def crawls(make_crawls):
    return make_crawls(pages=36, settings=SETTINGS)


class Stored:
    """A job as it is on the platform."""

    def __init__(self, crawls: Crawls) -> None:
        (self.job,) = crawls.jobs

        async def read(client: PlatformClient) -> None:
            job = key(self.job)
            self.metadata = await client.jobs.metadata(job)
            self.items = await collect(client.items.keyed(job))
            self.requests = await collect(client.requests.keyed(job))
            self.logs = await collect(client.logs.keyed(job))

        crawls.ask(read)
        self.paths = [urlsplit(record["url"]).path for _, record in self.requests]
        self.stats = self.metadata["frameworkstats"]


def check(crawls: Crawls, runs: int = 1) -> Stored:
    """The job has each item once, a record of each page with its parent, no gaps, and one end."""
    crawls.check(START_ITEMS)
    stored = Stored(crawls)
    for records in (stored.items, stored.requests, stored.logs):
        assert [int(place.rpartition("/")[2]) for place, _ in records] == list(range(len(records)))
    assert set(stored.paths) >= {path for path in crawls.expected(START_ITEMS).hits if not path.startswith("/closed")}
    assert not Counter(stored.paths) - crawls.maze.hits
    check_parents(stored, crawls.maze.pages)
    assert all(line["message"].startswith("[") for _, line in stored.logs)
    # A run that was killed before its stats were stored has no row.
    reasons = [run.get("close_reason") for run in stored.metadata["runs"]]
    assert len(reasons) <= runs
    assert reasons[-1] == "finished"
    return stored


def check_parents(stored: Stored, pages: int) -> None:
    for (_, record), path in zip(stored.requests, stored.paths, strict=True):
        kind, number = path.split("/")[1:3]
        if kind not in ("page", "moved") or number == "0":
            continue
        parent = stored.paths[record["parent"]]
        assert int(number) in children_of(int(parent.rpartition("/")[2]), pages), (path, parent)


def together(workers: list[Worker], points: dict[Worker, KillPoint] | None = None) -> list[Life]:
    """Start workers at the same time, some of them with a place to be killed at."""
    return [worker.start((points or {}).get(worker)) for worker in workers]


def survive(crawls: Crawls, plans: dict[Worker, list[KillPoint]], *, replaced: bool = True) -> None:
    """Run workers until their job is finished. Each is killed at its points, one a life, and replaced each time."""
    points = {worker: iter(plan) for worker, plan in plans.items()}
    lives = {worker: worker.start(next(points[worker], None)) for worker in plans}
    deadline = time.monotonic() + TIMEOUT
    while lives:
        assert time.monotonic() < deadline, "\n".join(life.log[-2000:] for life in lives.values())
        for worker, life in list(lives.items()):
            if not life.is_over:
                continue
            del lives[worker]
            crawl = life.end()
            was_killed = crawl.returncode == -signal.SIGKILL
            if was_killed and not replaced:
                continue
            # On a machine that stands still for seconds, the others may consider a live one dead.
            if not was_killed and crawl.reason != "frontier_lease_lost":
                # One that comes when the others have just finished is refused.
                assert (crawl.returncode, crawl.reason) == (0, "finished") or worker.is_done, crawl.log[-3000:]
            elif not worker.is_done:
                lives[worker] = worker.start(next(points[worker], None))
        time.sleep(0.02)


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.long)])
def test_the_workers_of_a_job_are_one_crawl(crawls, count):
    workers = crawls.group(count, start_items=START_ITEMS)
    crawl = [finished(life) for life in together(workers)]
    stored = check(crawls)
    for name in ("item_scraped_count", "downloader/response_count", "platform/requests/count"):
        assert stored.stats[name] == sum(each.stat(name) for each in crawl)
        assert sum(each.stat(name) > 0 for each in crawl) > 1
    assert stored.stats["platform/requests/count"] == len(stored.requests)
    assert {line["message"][:4] for _, line in stored.logs} == {f"[{number}] " for number in range(count)}
    assert crawls.ask(lambda client: client.workers.list(1, key(stored.job))) == []
    crawls.check_hits()


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, id=str(point), marks=pytest.mark.long if point in LONG else pytest.mark.full)
        for point in itertools.starmap(KillPoint, itertools.product(STEPS, DEATHS, (0, 2)))
    ],
)
def test_the_others_go_on_where_a_worker_was_killed(crawls, point):
    first, second = crawls.group(2, start_items=START_ITEMS)
    survive(crawls, {first: [point], second: []}, replaced=False)
    first.is_given_up = True
    check(crawls)


@pytest.mark.full
@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("seed", range(4), ids="seed-{}".format)
def test_workers_that_are_killed_anywhere_and_replaced_lose_and_double_nothing(make_crawls, seed, count):
    crawls = make_crawls(pages=48, settings=SETTINGS + "CONCURRENT_REQUESTS = 4\n")
    randoms = random.Random(seed)

    def point() -> KillPoint:
        return KillPoint(Step.ANY, randoms.choice(DEATHS), randoms.randrange(4, 80))

    workers = crawls.group(count, start_items=START_ITEMS)
    survive(crawls, {worker: [point() for _ in range(randoms.randrange(2))] for worker in workers})
    check(crawls)


@pytest.mark.full
def test_a_worker_that_slept_writes_nothing_more(crawls):
    first, second = crawls.group(2, start_items=START_ITEMS)
    asleep, other = lives = together([first, second])
    until(lambda: all(life.proxy.steps[Step.ASSIGNMENT] for life in lives), "both are there", *lives)
    asleep.send(signal.SIGSTOP)
    first.is_given_up = True
    finished(other)
    asleep.send(signal.SIGCONT)
    crawl = asleep.end()
    assert crawl.returncode != 0
    assert crawl.reason == "frontier_lease_lost"
    check(crawls)


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
def test_a_job_whose_workers_have_all_ended_is_resumed_by_another_number(crawls, number):
    workers = crawls.group(2, start_items=START_ITEMS)
    lives = together(workers)
    until(lambda: all(life.proxy.steps[Step.ITEMS] for life in lives), "both are at work", *lives)
    for life in lives:
        life.send(number)
    for life in lives:
        life.end()
    finished(workers[0].start(arguments=("-s", "CRAWL_GROUP=resume 1")))
    check(crawls, runs=2)


@pytest.mark.full
@pytest.mark.parametrize("number", [0, 1])
def test_a_stop_of_one_worker_stops_all(crawls, number):
    workers = crawls.group(2)
    lives = together(workers)
    until(lambda: all(life.proxy.steps[Step.READ] > 2 for life in lives), "both are at work", *lives)
    lives[number].send(signal.SIGINT)
    assert [life.end().reason for life in lives] == ["shutdown", "shutdown"]
    assert crawls.state_of(crawls.jobs[0]) == ("finished", "shutdown")
