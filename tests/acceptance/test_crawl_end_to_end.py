"""Real crawls of an existing project with the ADDONS line alone and the embedded services."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.support.crawls import Project, collect, key
from tests.support.eventually import eventually
from tests.support.sites import Site

SPIDERS = '''
import asyncio

import scrapy
from scrapy.exceptions import CloseSpider

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        yield scrapy.Request(self.site + "/", meta=self.direct())

    def direct(self):
        return {}

    def parse(self, response):
        yield {"url": response.url, "number": int(response.css("h1::text").get()), "flags": response.flags}
        for link in response.css("a.next"):
            yield response.follow(link, meta=self.direct())


class Direct(Pages):
    name = "direct"

    def direct(self):
        return {"extract_api": False}


class Uneven(scrapy.Spider):
    """Many pages of a host that takes one request each five seconds, and of one that takes any number."""
    name = "uneven"
    custom_settings = {
        "DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 5, "concurrency": 1}},
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
    }

    async def start(self):
        for host in (f"127.0.0.1:{self.slow}", f"localhost:{self.fast}"):
            for number in range(600):
                yield scrapy.Request(f"http://{host}/page/{number % 60}?{number}")

    async def parse(self, response):
        await asyncio.sleep(0.1)
        yield {"url": response.url}


class Corners(scrapy.Spider):
    """What may happen to a request, each once."""
    name = "corners"
    custom_settings = {"EXTRACT_API_ENABLED": False, "RETRY_TIMES": 2}

    async def start(self):
        for path in ("/moved/1", "/flaky/2", "/gone", "/page/3"):
            yield scrapy.Request(self.site + path, self.parse, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}
        if response.url.endswith("/page/3"):
            yield response.follow("/moved/1")
            yield response.follow("/page/1")
            yield response.follow("/page/4?again", self.parse, meta=response.meta)
            yield response.follow("/page/5", lambda response: {"url": response.url})
            yield response.request.replace(url=self.site + "/page/6", dont_filter=True)
            yield response.request.replace(url=self.site + "/page/6", dont_filter=True)
            raise ValueError("after its output")

    def failed(self, failure):
        yield {"url": failure.request.url, "failed": failure.value.response.status}


class FailsOnce(scrapy.Spider):
    """Its first page fails once, after the requests that it has made."""
    name = "fails_once"
    custom_settings = {"EXTRACT_API_ENABLED": False}
    has_failed = False

    async def start(self):
        yield scrapy.Request(self.site + "/page/1")

    def parse(self, response):
        for _ in range(2):
            yield response.follow("/page/2", self.last, dont_filter=True)
        if not self.has_failed:
            self.has_failed = True
            raise ValueError("once")
        yield response.follow("/page/3", self.last, dont_filter=True)
        yield {"url": response.url}

    def last(self, response):
        yield {"url": response.url}


class SlowPipeline:
    async def process_item(self, item):
        await asyncio.sleep(1)
        return item


class Enough(scrapy.Spider):
    name = "enough"
    custom_settings = {"ITEM_PIPELINES": {SlowPipeline: 100}}

    async def start(self):
        yield {"of": "start"}
        raise CloseSpider("enough")
'''


@pytest.fixture
def project(tmp_path, site):
    return Project(tmp_path, SPIDERS, f"SERVER_ALLOW_HOSTS = [{site.host!r}]\nROBOTSTXT_OBEY = False\n")


def test_one_addons_line_stores_everything_without_account_key_or_server(project, site):
    crawl = project.crawl("pages", "-a", f"site={site.url}")
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    job = key("1/1/1")

    async def ask(client, number):
        return (
            await client.jobs.metadata(job),
            await collect(client.items.iter(job)),
            await collect(client.requests.iter(job, meta=["_key"])),
            await collect(client.logs.iter(job)),
            await client.frontier.frontiers(number),
        )

    metadata, items, requests, logs, frontiers = project.stored(ask)
    assert sorted(item["number"] for item in items) == sorted([0, *range(site.pages)])
    assert all(item["flags"] == ["extract-api"] for item in items)
    assert (metadata["state"], metadata["close_reason"], metadata["spider"]) == ("finished", "finished", "pages")
    assert metadata["frameworkstats"]["item_scraped_count"] == site.pages + 1
    assert len(requests) == site.pages + 1
    first, *others = requests
    assert "parent" not in first
    assert all(requests[request["parent"]]["status"] == 200 for request in others)
    assert any("Spider opened" in line["message"] for line in logs)
    assert any("Spider closed (finished)" in line["message"] for line in logs)
    assert frontiers == [], "the frontier of a finished job is removed"


@pytest.mark.long
def test_a_second_crawl_is_a_second_job_beside_the_first(project, site):
    for _ in range(2):
        crawl = project.crawl("direct", "-a", f"site={site.url}")
        assert (crawl.returncode, crawl.stat("item_scraped_count")) == (0, site.pages + 1)

    async def ask(client, number):
        return (await client.jobs.list(number)).jobs

    jobs = project.stored(ask)
    assert sorted(job.id for job in jobs) == ["1/1/1", "1/1/2"]
    assert {job.items_scraped for job in jobs} == {site.pages + 1}


@pytest.mark.long
def test_two_crawls_at_once_share_a_data_directory(project, site):
    started = [project.start("direct", "-a", f"site={site.url}") for _ in range(2)]
    assert [crawl.end().returncode for crawl in started] == [0, 0]
    stored = [sorted(item["number"] for item in project.items(job)) for job in ("1/1/1", "1/1/2")]
    assert stored == [sorted([0, *range(site.pages)])] * 2


def test_redirects_retries_failures_and_repeats_end_as_in_plain_scrapy(project, site):
    plain = project.crawl("corners", "-a", f"site={site.url}", "-s", "ADDONS={}", "-o", "plain.jsonl")
    expected = [json.loads(line) for line in (project.folder / "plain.jsonl").read_text().splitlines()]
    site.hits.clear()
    # Scrapy does not run a callback again.
    crawl = project.crawl("corners", "-a", f"site={site.url}", "-s", "FRONTIER_MAX_ATTEMPTS=1")
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert sorted(map(str, project.items("1/1/1"))) == sorted(map(str, expected))
    for stat in ("item_scraped_count", "retry/count", "spider_exceptions/ValueError", "dupefilter/filtered"):
        assert crawl.stat(stat) == plain.stat(stat), stat
    assert crawl.stat("scheduler/unserializable") == 1, "the callback that is no method of the spider"
    with closing(sqlite3.connect(project.folder / ".scrapy" / "platform" / "platform.db")) as database:
        (reasons,) = database.execute("SELECT reasons FROM job_verdicts").fetchone()
        assert (database.execute("SELECT count(*) FROM monitor_queue").fetchone(), "in the log" in str(reasons)) == (
            (0,),
            True,
        ), "the server of the crawl judges its job before it stops"


def test_a_callback_that_fails_once_does_not_run_its_requests_twice(project, site):
    crawl = project.crawl("fails_once", "-a", f"site={site.url}", "-s", "FRONTIER_MAX_ATTEMPTS=3")
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    numbers = sorted(item["url"].rpartition("/")[2] for item in project.items("1/1/1"))
    assert numbers == ["1", "2", "2", "3"]
    assert [site.hits[f"/page/{number}"] for number in (1, 2, 3)] == [2, 2, 1]


@pytest.mark.long
@pytest.mark.scrapy(oldest="2.18", why="CloseSpider in start()")
def test_a_spider_that_closes_in_start_ends_when_its_items_have_passed_a_slow_pipeline(project):
    """Scrapy 2.19 alone waits for ever."""
    crawl = project.crawl("enough")
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "enough", [])

    async def ask(client, number):
        return await collect(client.items.iter(key("1/1/1")))

    assert project.stored(ask) == [{"of": "start"}]


def test_reactorless_mode_crawls_the_same(project, site):
    crawl = project.crawl("pages", "-a", f"site={site.url}", "-s", "TWISTED_REACTOR_ENABLED=0")
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert crawl.stat("item_scraped_count") == site.pages + 1


@pytest.mark.long
def test_pages_that_a_crawl_has_stored_are_skipped_by_the_next_only_if_asked(project, site):
    again = ("direct", "-a", f"site={site.url}", "-s", "DUPEFILTER_COLLECTION=seen")
    assert project.crawl(*again).stat("item_scraped_count") == site.pages + 1
    second = project.crawl(*again)
    assert (second.reason, second.stat("item_scraped_count")) == ("finished", 1), "only the start request"
    assert second.stat("dupefilter/collection/hits") > 0
    assert project.crawl("direct", "-a", f"site={site.url}").stat("item_scraped_count") == site.pages + 1


@pytest.mark.long
def test_switches_turn_parts_off(project, site):
    alone = ("pages", "-a", f"site={site.url}", "-s", "PLATFORM_ENABLED=0", "-s", "FRONTIER_ENABLED=0")
    crawl = project.crawl(*alone, "-s", "EXTRACT_API_ENABLED=0")
    assert (crawl.returncode, crawl.stat("item_scraped_count")) == (0, site.pages + 1)
    assert not (project.folder / ".scrapy").exists(), "no server was started for nothing"
    crawl = project.crawl(*alone)
    assert crawl.stat("extract_api/success") == site.pages + 1
    assert crawl.stat("platform/items/count") == 0


@pytest.mark.long
def test_the_other_commands_of_scrapy_work_with_the_add_on(project, site):
    said = project.command(
        "shell", site.url + "/page/3", typed="print('GOT', response.css('h1::text').get())\nexit()\n"
    )
    assert "GOT 3" in said
    parsed = project.command("parse", "--spider", "pages", "-a", f"site={site.url}", site.url + "/page/4")
    assert "'number': 4" in parsed
    assert "<h1>5</h1>" in project.command("fetch", "--nolog", site.url + "/page/5")
    assert "pages" in project.command("list")


@pytest.mark.long
def test_a_script_runs_crawls_one_beside_the_other_in_one_process(project, site):
    script = project.folder / "run.py"
    script.write_text(
        "from scrapy.crawler import CrawlerProcess\n"
        "from scrapy.utils.project import get_project_settings\n"
        "process = CrawlerProcess(get_project_settings())\n"
        f"for spider in ('direct', 'pages'):\n    process.crawl(spider, site={site.url!r})\n"
        "process.start()\n"
    )
    project.run("run.py")

    async def ask(client, number):
        return (await client.jobs.list(number)).jobs

    jobs = project.stored(ask)
    assert sorted(job.spider for job in jobs) == ["direct", "pages"]
    assert {(job.state, job.close_reason, job.items_scraped) for job in jobs} == {
        ("finished", "finished", site.pages + 1)
    }


@pytest.mark.long
def test_a_slow_host_and_slow_callbacks_do_not_hold_up_another(project, site):
    with closing(Site()) as slow:
        arguments = ("-a", f"slow={slow.port}", "-a", f"fast={site.port}", "-s", "EXTRACT_API_ENABLED=0")
        running = project.start("uneven", *arguments)
        try:
            eventually(site.hits.total, lambda pages: pages >= 270, details=lambda: running.log.read_text()[-3000:])
            assert slow.hits.total() < 30, "the fast host was not brought down to the pace of the slow one"
        finally:
            running.process.kill()
            running.end()
