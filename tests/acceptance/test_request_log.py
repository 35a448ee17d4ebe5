"""The request records of real crawls: one for each answer, with its true time and the request that led to it."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from tests.support.crawls import Project, ask_server, collect, key
from tests.support.eventually import TIMEOUT, eventually
from tests.support.faults import Fault, FaultProxy, KillPoint, Step, When
from tests.support.servers import ForkedServer
from tests.support.sites import Answer, Site

SPIDERS = """
import scrapy

class Walk(scrapy.Spider):
    name = "walk"
    custom_settings = {"EXTRACT_API_ENABLED": False, "RETRY_TIMES": 1, "ROBOTSTXT_OBEY": False}

    async def start(self):
        for path in ("/page/1", "/moved/2", "/flaky/3", "/gone", "/slow"):
            yield scrapy.Request(self.site + path, self.parse, errback=self.failed)
        yield scrapy.Request(self.closed_port, self.parse, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url, "meta": sorted(response.meta)}
        if response.url.endswith(("/page/1", "/page/2")):
            yield response.follow("/child-of" + response.url[-2:], self.parse, meta=response.meta)
            yield response.follow("/moved/4" if response.url.endswith("1") else "/flaky/5", self.parse)

    def failed(self, failure):
        yield scrapy.Request(self.site + "/after" + failure.request.url[-5:], self.parse)


class Chain(scrapy.Spider):
    name = "chain"
    custom_settings = {
        "EXTRACT_API_ENABLED": False, "ROBOTSTXT_OBEY": False, "RETRY_ENABLED": False
    }

    async def start(self):
        yield scrapy.Request(self.site + "/step/0", self.parse)

    def parse(self, response):
        number = int(response.url.rpartition("/")[2])
        yield {"number": number}
        if number < 40:
            yield response.follow(f"/step/{number + 1}", self.parse, meta=response.meta)


class Listed(scrapy.Spider):
    name = "listed"
    custom_settings = {"EXTRACT_API_ENABLED": False, "ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}

    async def start(self):
        for number in range(41):
            yield scrapy.Request(f"{self.site}/step/{number}")

    def parse(self, response):
        return {"number": int(response.url.rpartition("/")[2])}
"""
#: Seconds that the slow page takes.
SLOW = 0.6


class Walked(Site):
    """As :class:`Site`, with a slow page, a chain of pages, and pages that are reached from others only.

    The chain's page 15 is answered when ``gate`` is open."""

    def __init__(self):
        self.gate = threading.Event()
        #: When the slow page was asked for, in seconds since the epoch.
        self.slow_at = 0.0
        super().__init__()

    def respond(self, path, seen, body):
        if path == "/step/15":
            self.gate.wait()
        if path == "/slow":
            self.slow_at = time.time()
            time.sleep(SLOW)
            return Answer(200, b"at last")
        if path.startswith(("/step/", "/child-of/", "/after")):
            return Answer(200, b"here")
        return super().respond(path, seen, body)


def records_of(project, job):
    return project.stored(lambda client, _project: collect(client.requests.iter(key(job))))


@pytest.fixture
def site():
    site = Walked()
    yield site
    site.gate.set()
    site.close()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, SPIDERS)


@pytest.fixture
def walked(project, site):
    """The crawl, its records, and when it was."""
    began = time.time()
    crawl = project.crawl("walk", "-a", f"site={site.url}", "-a", "closed_port=http://127.0.0.1:1/x")
    assert crawl.reason == "finished", crawl.log[-3000:]
    assert all("Gave up retrying <GET http://127.0.0.1:1/x>" in line for line in crawl.errors)
    records = records_of(project, "1/1/1")
    return crawl, [(record["url"].removeprefix(site.url), record) for record in records], (began, time.time())


def test_each_answer_has_a_record_and_nothing_else_has(walked, site):
    crawl, records, (began, ended) = walked
    statuses = sorted((path, record["status"]) for path, record in records)
    assert statuses == sorted(
        [
            ("/page/1", 200),
            ("/moved/2", 302),
            ("/page/2", 200),
            ("/flaky/3", 503),
            ("/flaky/3", 200),
            ("/gone", 404),
            ("/slow", 200),
            ("/child-of/1", 200),
            ("/child-of/2", 200),
            ("/moved/4", 302),
            ("/page/4", 200),
            ("/flaky/5", 503),
            ("/flaky/5", 200),
            ("/after/gone", 200),
            ("/after1:1/x", 200),
        ]
    )
    assert len(records) == sum(site.hits.values()) == crawl.stat("platform/requests/count")

    # The port that is closed was tried twice.
    assert crawl.stat("platform/requests/no_answer") == 2

    check_parents(records)
    for path, record in records:
        assert began * 1000 - 1 <= record["time"] <= record["time"] + record["duration"] <= ended * 1000 + 1, path
    (slow,) = (record for path, record in records if path == "/slow")
    assert slow["duration"] >= SLOW * 1000
    assert slow["rs"] == len(b"at last")
    # It began before the site was asked for it, and not when its answer came.
    assert slow["time"] <= site.slow_at * 1000 + 1
    for (_, first), (_, retried) in zip(*[iter(r for r in records if r[0] == "/flaky/3")] * 2, strict=True):
        assert (first["status"], retried["status"]) == (503, 200)
        assert first["time"] + first["duration"] <= retried["time"] + 1


def check_parents(records):
    place = {}
    for number, (path, _) in enumerate(records):
        place.setdefault(path, []).append(number)
    parents = {path: {record.get("parent") for name, record in records if name == path} for path in place}
    one, two = place["/page/1"][0], place["/page/2"][0]
    for path in ("/page/1", "/moved/2", "/page/2", "/flaky/3", "/gone", "/slow"):
        assert parents[path] == {None}, path
    assert parents["/child-of/1"] == parents["/moved/4"] == parents["/page/4"] == {one}
    assert parents["/child-of/2"] == parents["/flaky/5"] == {two}


@pytest.mark.full
def test_parents_are_right_with_scrapys_own_queues_on_disk(project, site):
    switches = ("-s", "FRONTIER_ENABLED=False", "-s", "JOBDIR=job")
    crawl = project.crawl("walk", "-a", f"site={site.url}", "-a", "closed_port=http://127.0.0.1:1/x", *switches)
    assert crawl.reason == "finished", crawl.log[-3000:]
    check_parents([(each["url"].removeprefix(site.url), each) for each in records_of(project, "1/1/1")])
    assert not [item for item in project.items("1/1/1") if any(name.startswith("_") for name in item["meta"])]


@pytest.mark.long
@pytest.mark.parametrize("flush_interval", [pytest.param(0.1, marks=pytest.mark.full), 60])
def test_parents_are_right_after_a_kill_and_a_resume(tmp_path, site, flush_interval):
    with ForkedServer(tmp_path / "platform") as platform:
        where = f'PLATFORM_URL = "{platform.url}"\nPLATFORM_API_KEY = "{platform.platform_key}"\n'
        project = Project(tmp_path / "crawl", SPIDERS, f"{where}PLATFORM_FLUSH_INTERVAL = {flush_interval}\n")
        job = key("1/1/1")

        def ask(resource):
            return ask_server(
                platform.url, platform.platform_key, lambda client: collect(getattr(client, resource).iter(job))
            )

        running = project.start("chain", "-a", f"site={site.url}")
        eventually(
            lambda: site.hits["/step/15"] and len(ask("requests")) >= 15,
            details=lambda: running.log.read_text()[-3000:],
        )
        running.process.kill()
        running.process.wait()
        site.gate.set()
        crawl = project.crawl("chain", "-a", f"site={site.url}", "-s", "PLATFORM_JOB=1/1/1")
        assert crawl.reason == "finished", crawl.log[-3000:]
        records, items = ask("requests"), ask("items")

    # The last of them may have been answered twice.
    steps = [int(record["url"].rpartition("/")[2]) for record in records]
    assert set(steps) == set(range(41))
    parents = [record.get("parent") for record in records]
    assert [None if parent is None else steps[parent] for parent in parents] == [
        step - 1 if step else None for step in steps
    ]
    assert sorted(item["number"] for item in items) == list(range(41))


@pytest.mark.long
def test_the_items_of_a_killed_crawl_are_stored_after_the_records_of_their_answers(tmp_path, site):
    """A committed request does not run again, so its record would be missing for ever."""
    site.gate.set()

    refused = []

    def late_records(_method, path, _number):
        if path.startswith("/requests/") and proxy.steps[Step.ITEMS] and len(refused) < 3:
            refused.append(path)
            return Fault.UNAVAILABLE
        return None

    with ForkedServer(tmp_path / "platform") as platform:
        project = Project(tmp_path / "crawl", SPIDERS, f'PLATFORM_API_KEY = "{platform.platform_key}"\n')

        def ask(resource):
            return ask_server(
                platform.url,
                platform.platform_key,
                lambda client: collect(getattr(client, resource).iter(key("1/1/1"))),
            )

        def crawl(url, *more):
            where = (
                "-s",
                f"PLATFORM_URL={url}",
                "-s",
                "PLATFORM_FLUSH_INTERVAL=0.1",
                "-s",
                "DOWNLOAD_DELAY=0.05",
                *more,
            )
            return project.start("listed", "-a", f"site={site.url}", *where)

        with FaultProxy(platform.url, late_records, kill_at=KillPoint(Step.ITEMS, When.LOST_REPLY, 1)) as proxy:
            killed = crawl(proxy.url)
            proxy.victim = killed.process.pid
            assert killed.process.wait(TIMEOUT) == -signal.SIGKILL, killed.log.read_text()[-3000:]
        stored = {item["number"] for item in ask("items")}
        assert refused
        assert stored
        assert stored <= {int(record["url"].rpartition("/")[2]) for record in ask("requests")}
        resumed = crawl(platform.url, "-s", "PLATFORM_JOB=1/1/1").end()
        assert resumed.reason == "finished", resumed.log[-3000:]
        assert {int(record["url"].rpartition("/")[2]) for record in ask("requests")} == set(range(41))
        assert sorted(item["number"] for item in ask("items")) == list(range(41))


@pytest.mark.long
@pytest.mark.parametrize("setting", ["SCHEDULER=scrapy.core.scheduler.Scheduler", "PLATFORM_ITEMS_MODE=streaming"])
def test_items_that_are_written_as_they_come_are_stored_after_the_records_of_their_answers(tmp_path, site, setting):
    """The pages of a running job would have more items than responses."""
    site.gate.set()
    refused = []

    def late_records(_method, path, _number):
        if path.startswith("/requests/") and len(refused) < 3:
            refused.append(path)
            return Fault.UNAVAILABLE
        return None

    with ForkedServer(tmp_path / "platform") as platform:
        project = Project(tmp_path / "crawl", SPIDERS, f'PLATFORM_API_KEY = "{platform.platform_key}"\n')

        def stored(resource):
            return ask_server(
                platform.url,
                platform.platform_key,
                lambda client: collect(getattr(client, resource).iter(key("1/1/1"))),
            )

        options = (setting, "PLATFORM_FLUSH_INTERVAL=0.1", "DOWNLOAD_DELAY=0.05")
        with FaultProxy(platform.url, late_records, kill_at=KillPoint(Step.ITEMS, When.LOST_REPLY, 1)) as proxy:
            given = [word for option in (f"PLATFORM_URL={proxy.url}", *options) for word in ("-s", option)]
            killed = project.start("listed", "-a", f"site={site.url}", *given)
            proxy.victim = killed.process.pid
            assert killed.process.wait(TIMEOUT) == -signal.SIGKILL, killed.log.read_text()[-3000:]
        items = {item["number"] for item in stored("items")}
        assert refused
        assert items
        assert items <= {int(record["url"].rpartition("/")[2]) for record in stored("requests")}
