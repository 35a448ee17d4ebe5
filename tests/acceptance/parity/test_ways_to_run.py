"""The ways in which Scrapy is run: a crawl does the same with the add-on by each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.parity.site import Sites
from tests.support.crawls import Project

pytestmark = pytest.mark.long

SPIDERS = """
import scrapy

class Titles(scrapy.Spider):
    name = "titles"

    async def start(self):
        yield scrapy.Request(self.site + "/")

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a", callback=self.parse)


class Statuses(scrapy.Spider):
    name = "statuses"
    handle_httpstatus_list = [404]

    async def start(self):
        for status in (200, 404):
            yield scrapy.Request(f"{self.site}/status/{status}")

    def parse(self, response):
        yield {"status": response.status}
"""

EXPECTED = {"titles": ["index", *(f"page {number}" for number in range(10))], "statuses": [200, 404]}

#: Scripts that crawl with both spiders. SITE is put in.
SCRIPTS = {
    "two at once in a CrawlerProcess": """
from scrapy.crawler import CrawlerProcess
process = CrawlerProcess(settings)
for spider in (Titles, Statuses):
    process.crawl(spider, site=SITE)
process.start()
""",
    "two at once in an AsyncCrawlerProcess without Twisted's reactor": """
from scrapy.crawler import AsyncCrawlerProcess
settings.set("TWISTED_REACTOR_ENABLED", False)
process = AsyncCrawlerProcess(settings)
for spider in (Titles, Statuses):
    process.crawl(spider, site=SITE)
process.start()
""",
    "one after another in a running loop, as in a notebook": """
import asyncio
from scrapy.crawler import AsyncCrawlerRunner
settings.set("TWISTED_REACTOR_ENABLED", False)

async def cell(spider):
    await AsyncCrawlerRunner(settings).crawl(spider, site=SITE)

async def notebook():
    for spider in (Titles, Statuses, Titles):
        await asyncio.create_task(cell(spider))

asyncio.run(notebook())
""",
    "one after another by a CrawlerRunner in Twisted's reactor": """
from scrapy.crawler import CrawlerRunner
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from twisted.internet.defer import inlineCallbacks
from twisted.internet.task import react

@inlineCallbacks
def crawl(reactor):
    runner = CrawlerRunner(settings)
    yield runner.crawl(Titles, site=SITE)
    yield runner.crawl(Statuses, site=SITE)

react(crawl)
""",
}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    sites = Sites(1)
    yield f"localhost:{sites.ports[0]}"
    sites.close()


@pytest.fixture
def project(tmp_path: Path, site: str) -> Project:
    feeds = 'FEEDS = {"%(name)s.jsonl": {"format": "jsonlines", "overwrite": True}}\n'
    return Project(tmp_path / "p", SPIDERS, f'SERVER_ALLOW_HOSTS = ["{site}"]\n{feeds}')


def _brought(folder: Path, spider: str) -> list[object]:
    lines = (folder / f"{spider}.jsonl").read_text().splitlines()
    return sorted((value for line in lines for value in json.loads(line).values()), key=str)


@pytest.mark.full
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_crawls_the_same(project: Project, site: str, script: str) -> None:
    (project.folder / "run.py").write_text(
        "from scrapy.utils.project import get_project_settings\n"
        "from project.spiders import Statuses, Titles\n"
        f"settings = get_project_settings()\nSITE = 'http://{site}'\n{SCRIPTS[script]}"
    )
    project.run("run.py")
    assert {spider: _brought(project.folder, spider) for spider in EXPECTED} == {
        spider: sorted(values, key=str) for spider, values in EXPECTED.items()
    }

    async def ask(client, number):
        return (await client.jobs.list(number)).jobs

    jobs = project.stored(ask)
    assert {job.spider for job in jobs} == set(EXPECTED)
    assert {(job.state, job.close_reason) for job in jobs} == {("finished", "finished")}


@pytest.mark.full
def test_a_spider_of_its_own_file_crawls_the_same(project: Project, site: str) -> None:
    own = project.folder / "alone.py"
    own.write_text(SPIDERS.partition("class Statuses")[0].replace('"titles"', '"alone"'))
    said = project.run("-m", "scrapy", "runspider", "alone.py", "-a", f"site=http://{site}", "-o", "-:jsonlines")
    titles = sorted(re.findall(r'"title": "([^"]*)"', said))
    assert titles == sorted(EXPECTED["titles"])


@pytest.mark.full
@pytest.mark.parametrize("setting", ["TWISTED_REACTOR_ENABLED=0", "FORCE_CRAWLER_PROCESS=1"])
def test_the_command_crawls_the_same(project: Project, site: str, setting: str) -> None:
    crawl = project.crawl("titles", "-a", f"site=http://{site}", "-s", setting)
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert _brought(project.folder, "titles") == sorted(EXPECTED["titles"])


@pytest.mark.full
@pytest.mark.parametrize("services", ["", "EXTRACT_API_ENABLED = False\n", "PLATFORM_ENABLED = False\n"])
def test_a_module_of_settings_without_a_scrapy_cfg_is_enough(project: Project, site: str, services: str) -> None:
    (project.folder / "scrapy.cfg").unlink()
    settings = project.folder / "project" / "settings.py"
    settings.write_text(settings.read_text() + services)
    (project.folder / "run.py").write_text(
        "import os\n"
        'os.environ["SCRAPY_SETTINGS_MODULE"] = "project.settings"\n'
        "from scrapy.crawler import CrawlerProcess\n"
        "from scrapy.utils.project import get_project_settings\n"
        "process = CrawlerProcess(get_project_settings())\n"
        f"process.crawl('titles', site='http://{site}')\n"
        "process.start()\n"
    )
    project.run("run.py")
    assert _brought(project.folder, "titles") == sorted(EXPECTED["titles"])
