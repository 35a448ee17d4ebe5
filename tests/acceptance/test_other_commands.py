"""Scrapy's commands that fetch a page or two do what they do without the add-on, and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.commands.bench import _BenchSpider
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.spider import DefaultSpider

from scrapy_ext import Addon
from scrapy_ext.crawl.session.project import command_of
from tests.support import forked
from tests.support.crawls import Project, ask_server
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Site

SPIDERS = """
import scrapy
from scrapy.utils.engine import get_engine_status

class Walk(scrapy.Spider):
    name = "walk"

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        '''A page.

        @url {url}/page/1
        @returns items 1 1
        @returns requests 7 7
        '''
        yield {{"page": response.css("h1::text").get()}}
        yield from response.follow_all(css="a")

class Status(scrapy.Spider):
    name = "status"
    start_urls = ["data:,"]

    def parse(self, response):
        for i in range(3):
            yield scrapy.Request(f"data:,{{i}}", self.show, priority=-i)

    def show(self, response):
        for name, value in get_engine_status(self.crawler.engine):
            self.logger.info("Status: %s = %s", name, value)

class Shown:
    def process_item(self, item):
        print("through the pipeline:", item)
        return item
"""
SETTINGS = """
ITEM_PIPELINES = {"project.spiders.Shown": 300}
DUPEFILTER_CLASS = "scrapy.dupefilters.RFPDupeFilter"
LOGSTATS_INTERVAL = 30
FRONTIER_NAME = "shared"
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("server"), allow_hosts=[site.host]) as server:
        yield server


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Project:
    return Project(tmp_path_factory.mktemp("project") / "walk", SPIDERS.format(url=site.url), SETTINGS)


def run(project: Project, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", *arguments]
    return forked.run(command, cwd=project.folder, env={**os.environ, **environment})


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("arguments", "shown", "said"),
    [
        (("fetch", "--headers"), ("> User-Agent: Scrapy/", "< Content-Type: text/html"), ""),
        (("parse", "--spider", "walk", "--pipelines"), ("through the pipeline: {'page': '1'}", "/page/8>"), ""),
        (("check", "walk"), (), "Ran 2 contracts in"),
        (("shell", "-c", "response.css('h1::text').get()"), ("1\n",), ""),
    ],
    ids=lambda value: value[0] if value and isinstance(value, tuple) and value[0].isalpha() else "",
)
def test_a_command_makes_no_job_and_no_warning(project, server, site, arguments, shown, said) -> None:
    remote = {
        "PLATFORM_URL": server.url,
        "PLATFORM_API_KEY": server.platform_key,
        "EXTRACT_API_URL": f"{server.url}/v1",
        "EXTRACT_API_KEY": server.extract_key,
    }
    page = () if arguments[0] == "check" else (f"{site.url}/page/1",)
    done = run(project, *arguments, *page, **remote)
    assert done.returncode == 0, done.stderr
    assert all(words in done.stdout for words in shown), done.stdout
    assert said in done.stderr
    warned = [line for line in done.stderr.splitlines() if "WARNING" in line or "ERROR" in line]
    # Scrapy says this of its own command.
    assert not [line for line in warned if "returned a Deferred" not in line and "log_count" not in line]
    assert ask_server(server.url, server.platform_key, lambda client: client.jobq.count(1, state=STATES)) == 0
    assert not list(project.folder.rglob(".scrapy"))


STATES = ["pending", "running", "finished"]


def test_a_command_with_embedded_services_leaves_no_store(project, site) -> None:
    done = run(project, "fetch", f"{site.url}/page/1", "-s", f"SERVER_ALLOW_HOSTS={site.host}")
    assert done.stdout.strip().encode() == site.page(1)
    assert not list(project.folder.rglob(".scrapy"))


def crawler_of(spider: type[Spider], **of_project: object) -> Crawler:
    settings = Settings()
    settings.setdict({"ADDONS": {Addon: 500}, **of_project}, priority="project")
    return Crawler(spider, settings)


def test_the_benchmark_runs_without_the_add_on() -> None:
    crawler = crawler_of(_BenchSpider)
    crawler.crawling = True
    before = crawler.settings.copy_to_dict()
    crawler.addons.load_settings(crawler.settings)
    assert crawler.settings.copy_to_dict() == before


def test_the_shell_is_known_whatever_the_project_sets() -> None:
    from scrapy.commands.shell import Command

    # Both are all that the shell of Scrapy 2.18 sets.
    assert command_of(crawler_of(DefaultSpider, DUPEFILTER_CLASS="mine")) is None
    crawler = crawler_of(DefaultSpider, DUPEFILTER_CLASS="mine", LOGSTATS_INTERVAL=30)
    crawler.settings.setdict(Command.default_settings, priority="command")
    assert command_of(crawler) == "shell"
    # As a script's process may have them that crawls.
    crawler.crawling = True
    assert command_of(crawler) is None


def test_a_crawl_has_no_command() -> None:
    crawler = crawler_of(DefaultSpider)
    crawler.crawling = True
    assert command_of(crawler) is None


@pytest.mark.long
def test_est_of_the_telnet_console_shows_every_line(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", SPIDERS.format(url=""), "EXTRACT_API_ENABLED = False\n")
    crawl = project.crawl("status", "-s", "CONCURRENT_REQUESTS=1")
    status = [line.partition("Status: ")[2] for line in crawl.log.splitlines() if "Status: " in line]
    assert len(status) >= 3 * 14
    assert not [line for line in status if "exception" in line]
    in_memory = [int(line.rpartition(" = ")[2]) for line in status if "mqs" in line]
    assert (max(in_memory) > 0, in_memory[-1]) == (True, 0)
