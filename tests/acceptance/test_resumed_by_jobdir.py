"""JOBDIR resumes a crawl with the frontier, and what requests shared is reported when it has to be copied."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.session.arguments import marks_of
from scrapy_ext.crawl.session.job import JobFile
from tests.support.crawls import Project, key
from tests.support.eventually import TIMEOUT

#: Earlier versions download the twenty pages of a fast site after a limit of two items.
ENDS_SOON = pytest.mark.scrapy(oldest="2.18", why="CLOSESPIDER_ITEMCOUNT soon ends a crawl")
SPIDERS = """
import os
import signal

import scrapy


class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {"EXTRACT_API_ENABLED": False, "CONCURRENT_REQUESTS": 1}

    async def start(self):
        yield scrapy.Request(self.site + "/", dont_filter=True)

    def parse(self, response):
        together = {}
        for number in range(20):
            yield response.follow(f"/page/{number}", self.parse_page, cb_kwargs={"together": together})

    def parse_page(self, response, together):
        together[response.url] = True
        yield {"url": response.url, "filled": len(together)}
        if response.url.endswith("/page/0"):
            yield response.follow("/")  # where it began, and no duplicate of that


class Killed(Pages):
    name = "killed"

    def parse_page(self, response, together):
        yield {"url": response.url}
        if os.environ.get("KILLED"):
            os.kill(os.getpid(), signal.SIGKILL)


class LoggedIn(scrapy.Spider):
    name = "logged_in"
    custom_settings = {"EXTRACT_API_ENABLED": False, "CONCURRENT_REQUESTS": 1, "CLOSESPIDER_PAGECOUNT": 1}

    async def start(self):
        cookies = {"session": "1"} if self.cookies == "yes" else None
        yield scrapy.Request(self.site + "/", cookies=cookies, dont_filter=True)

    def parse(self, response):
        yield from response.follow_all([f"/page/{number}" for number in range(2)], self.parse_page)

    def parse_page(self, response):
        pass


class Failing(scrapy.Spider):
    name = "failing"
    custom_settings = {"EXTRACT_API_ENABLED": False, "FRONTIER_MAX_ATTEMPTS": 2}

    async def start(self):
        yield scrapy.Request(self.site + "/page/1")
        yield scrapy.Request(self.site + "/page/2", meta={"frontier_max_attempts": 3})
        yield scrapy.Request(self.site + "/page/3", meta={"frontier_max_attempts": 1})

    def parse(self, response):
        raise ValueError("always")
"""


@pytest.mark.long
def test_the_same_command_goes_on_with_its_jobdir_and_starts_anew_when_the_job_is_finished(site, tmp_path):
    project = Project(tmp_path / "project", SPIDERS)
    arguments = ("pages", "-a", f"site={site.url}", "-s", "JOBDIR=job")
    first = project.crawl(*arguments, "-s", "CLOSESPIDER_ITEMCOUNT=8")
    assert first.reason == "closespider_itemcount"
    assert first.log.count("Requests share the object in cb_kwargs['together']") == 1
    assert "parse_page (spiders.py, line 20)" in first.log
    second = project.crawl(*arguments)
    assert "Job 1/1/1 resumed" in second.log
    assert (second.reason, len(project.items("1/1/1"))) == ("finished", 20)
    assert "Requests share" not in second.log
    third = project.crawl(*arguments)
    assert "Job 1/1/2 started" in third.log
    assert third.reason == "finished"
    items = project.items("1/1/2")
    assert [item["filled"] for item in items] == list(range(1, 21)), "they fill one object"
    assert [item["url"].rpartition("/")[2] for item in items] == [str(number) for number in range(19, -1, -1)]
    # Each crawl, two that were one and the third, asked for the first page at its start, and again for the link.
    assert site.hits["/"] == 4


@pytest.mark.parametrize("cookies", ["yes", "no"])
def test_a_crawl_that_lost_the_cookies_of_its_login_says_so(site, tmp_path, cookies):
    project = Project(tmp_path / "project", SPIDERS)
    arguments = ("logged_in", "-a", f"site={site.url}", "-a", f"cookies={cookies}")
    assert project.crawl(*arguments).reason == "closespider_pagecount"
    second = project.crawl(*arguments, "-s", "PLATFORM_JOB=1/1/1", "-s", "CLOSESPIDER_PAGECOUNT=0")
    assert second.reason == "finished"
    lost = "Job 1/1/1 goes on without the cookies of its former run (1)"
    assert (lost in second.log) == (cookies == "yes")


def test_a_crawl_that_is_resumed_with_other_arguments_names_them(site, tmp_path):
    project = Project(tmp_path / "project", SPIDERS)
    first = project.crawl("pages", "-a", f"site={site.url}", "-s", "JOBDIR=job", "-s", "CLOSESPIDER_ITEMCOUNT=2")
    assert first.reason == "closespider_itemcount"
    other = project.crawl(
        "pages",
        *("-a", f"site={site.url}/", "-a", "password=hidden", "-s", "JOBDIR=job"),
        *("-s", "CLOSESPIDER_ITEMCOUNT=2"),
    )
    changed = (
        "Job 1/1/1 is resumed with other spider arguments than its last run: password is new, site has another value"
    )
    assert changed in other.log
    same = project.crawl("pages", "-a", f"site={site.url}/", "-a", "password=hidden", "-s", "JOBDIR=job")
    assert "other spider arguments" not in same.log
    last = project.crawl("pages", "-a", f"site={site.url}", "-s", "JOBDIR=job")
    assert "other spider arguments" not in last.log, "it is a new job"


@ENDS_SOON
def test_a_crawl_that_was_killed_after_its_first_item_is_compared_as_well(site, tmp_path):
    project = Project(tmp_path / "project", SPIDERS)
    given = ("killed", "-a", f"site={site.url}", "-s", "JOBDIR=job")
    killed = {"KILLED": "1"}
    changed = "Job 1/1/1 is resumed with other spider arguments than its last run: page "
    first = project.start(*given, "-a", "page=1", environment=killed)
    assert first.process.wait(TIMEOUT) == -9
    other = project.start(*given, "-a", "page=2", environment=killed)
    assert other.process.wait(TIMEOUT) == -9
    assert f"{changed}has another value" in other.log.read_text()
    same = project.crawl(*given, "-a", "page=2", "-s", "CLOSESPIDER_ITEMCOUNT=2")
    assert "other spider arguments" not in same.log
    last = project.start(*given, environment=killed)
    assert last.process.wait(TIMEOUT) == -9
    assert f"{changed}is missing" in last.log.read_text()
    assert project.crawl(*given).reason == "finished"
    metadata = project.stored(lambda client, _: client.jobs.metadata(key("1/1/1")))
    runs = metadata["runs"]
    assert [run.get("close_reason") for run in runs] == [None, None, "closespider_itemcount", None, "finished"]
    assert sum(run["items"] for run in runs) == 20
    assert sum(run["responses"] for run in runs) == metadata["frameworkstats"]["response_received_count"]


def test_a_callback_that_raises_runs_as_often_as_was_asked_for(site, tmp_path):
    project = Project(tmp_path / "project", SPIDERS)
    crawl = project.crawl("failing", "-a", f"site={site.url}")
    assert site.hits == {"/page/1": 2, "/page/2": 3, "/page/3": 1}
    assert crawl.stat("frontier/dead_letters") == 3
    assert crawl.reason == "finished"


def test_requests_that_scrapys_own_scheduler_left_in_the_directory_are_reported(tmp_path, caplog):
    file = JobFile(str(tmp_path))
    (tmp_path / "requests.queue").mkdir()
    file.warn_of_other_queue()
    assert caplog.messages == []
    (tmp_path / "requests.queue" / "example.com").mkdir()
    file.warn_of_other_queue()
    assert [message.partition(".")[0] for message in caplog.messages] == [
        f"JOBDIR {tmp_path} has requests of a crawl with Scrapy's own scheduler"
    ]
    file.write(JobKey(1, 1, 1))
    file.warn_of_other_queue()
    assert len(caplog.messages) == 1


SCRIPT = """
import sys

from scrapy.crawler import {runner}
from scrapy.utils.project import get_project_settings

site, page, *given = sys.argv[1:]
settings = get_project_settings()
for each in given:
    name, _, value = each.partition("=")
    settings.set(name, value, priority="cmdline")
{run}
"""
RUNS_OF_SCRIPTS = {
    "CrawlerProcess": """
process = CrawlerProcess(settings)
process.crawl("pages", site=site, page=int(page), log=print)
process.start()
""",
    "CrawlerRunner": """
from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from twisted.internet import reactor
configure_logging(settings)
ended = CrawlerRunner(settings).crawl("pages", site=site, page=int(page), log=print)
ended.addBoth(lambda _: reactor.stop())
reactor.run()
""",
}


@pytest.mark.parametrize("runner", RUNS_OF_SCRIPTS)
def test_a_script_that_resumes_a_crawl_with_other_arguments_names_them(site, tmp_path, runner):
    project = Project(tmp_path / "project", SPIDERS)
    script = project.folder / "run.py"
    script.write_text(SCRIPT.format(runner=runner, run=RUNS_OF_SCRIPTS[runner]))

    def run(page: str, *given: str) -> str:
        command = [sys.executable, str(script), site.url, page, "JOBDIR=job", *given]
        done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, timeout=TIMEOUT, check=True)
        return done.stderr

    changed = "Job 1/1/1 is resumed with other spider arguments than its last run: page has another value. Requests"
    assert "other spider arguments" not in run("1", "CLOSESPIDER_ITEMCOUNT=2")
    assert changed in run("2", "CLOSESPIDER_ITEMCOUNT=2")
    assert "other spider arguments" not in run("2")


@ENDS_SOON
def test_a_group_of_workers_that_is_resumed_with_other_arguments_names_them(site, tmp_path):
    project = Project(tmp_path / "project", SPIDERS)
    given = ("pages", "-a", f"site={site.url}", "-s", "JOBDIR=job", "-s", "CRAWL_WORKERS=2")
    # Workers learn of the limit by reports, and the pages are to last for four runs.
    few = ("-s", "CLOSESPIDER_ITEMCOUNT=2", "-s", "DOWNLOAD_DELAY=0.7")
    changed = "Job 1/1/1 is resumed with other spider arguments than its last run: page "
    assert "other spider arguments" not in project.crawl(*given, "-a", "page=1", *few).log
    assert project.crawl(*given, "-a", "page=2", *few).log.count(f"{changed}has another value") == 1
    # A single worker is compared with the group, and a group with it.
    alone = (*given, "-s", "CRAWL_WORKERS=1")
    assert "other spider arguments" not in project.crawl(*alone, "-a", "page=2", *few).log
    assert f"{changed}is missing" in project.crawl(*given, *few).log


def test_a_run_without_intervals_of_stats_has_its_row_while_it_runs(site, tmp_path):
    project = Project(tmp_path / "project", SPIDERS)
    given = ("killed", "-a", f"site={site.url}", "-s", "JOBDIR=job", "-s", "PLATFORM_STATS_INTERVAL=0")
    for page in ("1", "2"):
        running = project.start(*given, "-a", f"page={page}", environment={"KILLED": "1"})
        assert running.process.wait(TIMEOUT) == -9

    async def rows(client, _project):
        return (await client.jobs.metadata(key("1/1/1")))["runs"]

    first, second = project.stored(rows)
    assert (first["arguments"], second["arguments"]) == (marks_of_pages(site, "1"), marks_of_pages(site, "2"))
    assert "close_reason" not in second


def marks_of_pages(site, page):
    return marks_of({"site": site.url, "page": page})
