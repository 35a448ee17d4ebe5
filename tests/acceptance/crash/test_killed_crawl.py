"""A crawl that is killed goes on where it was, and leaves no process behind."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.support.crawls import Project
from tests.support.eventually import eventually
from tests.support.sites import Site

SPIDERS = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {"EXTRACT_API_ENABLED": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 4, "DOWNLOAD_DELAY": 0.005}

    async def start(self):
        yield scrapy.Request(self.site + "/")

    def parse(self, response):
        yield {"number": int(response.css("h1::text").get()), "path": response.url}
        yield from response.follow_all(css="a.next")
"""
PAGES = 400


@pytest.fixture
def wide_site():
    site = Site(pages=PAGES)
    yield site
    site.close()


def descendants(pid: int) -> list[int]:
    """Processes started by a process, directly or not."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_crawl_loses_nothing_when_it_is_resumed(tmp_path, wide_site, kill_after):
    project = Project(tmp_path, SPIDERS, "ROBOTSTXT_OBEY = False\n", is_forked=False)
    arguments = ("pages", "-a", f"site={wide_site.url}")
    running = project.start(*arguments)
    process = running.process
    eventually(lambda: wide_site.hits.total() > PAGES * kill_after // 100, what="the crawl is under way")
    helpers = descendants(process.pid)
    assert helpers, "the crawl has an embedded server"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    eventually(lambda: not any(map(is_alive, helpers)), what="the embedded server has ended with the crawl")

    resumed = project.crawl(*arguments, "-s", "PLATFORM_JOB=1/1/1")
    assert (resumed.returncode, resumed.reason) == (0, "finished")
    stored = Counter(item["path"] for item in project.items("1/1/1"))
    assert len(stored) == PAGES + 1, "every page has its item"
    assert set(stored.values()) == {1}, "once"
    # What was done and not committed is done again: a commit is due when 100 requests are finished.
    repeated = wide_site.hits.total() - (PAGES + 1)
    assert repeated <= 300, f"{repeated} pages were fetched again"


def test_a_crawl_that_is_stopped_repeats_nothing_when_it_is_resumed(tmp_path, wide_site):
    project = Project(tmp_path, SPIDERS, "ROBOTSTXT_OBEY = False\n", is_forked=False)
    arguments = ("pages", "-a", f"site={wide_site.url}")
    running = project.start(*arguments)
    eventually(lambda: wide_site.hits.total() > PAGES // 3, what="the crawl is under way")
    running.process.send_signal(signal.SIGTERM)
    assert "PLATFORM_JOB=1/1/1" in running.end().log
    done = wide_site.hits.total()
    assert done < PAGES
    resumed = project.crawl(*arguments, "-s", "PLATFORM_JOB=1/1/1")
    assert (resumed.returncode, resumed.reason) == (0, "finished")
    stored = Counter(item["path"] for item in project.items("1/1/1"))
    assert len(stored) == PAGES + 1
    assert set(stored.values()) == {1}
    assert resumed.stat("downloader/request_count") == PAGES + 1 - done


def test_an_embedded_server_that_is_killed_is_started_again_and_the_crawl_goes_on(tmp_path, wide_site):
    project = Project(tmp_path, SPIDERS, "ROBOTSTXT_OBEY = False\n", is_forked=False)
    running = project.start("pages", "-a", f"site={wide_site.url}")
    eventually(lambda: wide_site.hits.total() > PAGES // 3, what="the crawl is under way")
    (server,) = [
        pid
        for pid in descendants(running.process.pid)
        if b"scrapy_ext.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(server, signal.SIGKILL)
    crawl = running.end()
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert "is started again" in crawl.log
    stored = Counter(item["path"] for item in project.items("1/1/1"))
    assert len(stored) == PAGES + 1
    assert set(stored.values()) == {1}
