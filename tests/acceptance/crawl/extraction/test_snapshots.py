"""Pages whose callbacks raise are kept, with their screenshots: with the job, or in a folder without one."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.snapshots import Part
from tests.support.crawls import Crawl, Project, key
from tests.support.eventually import eventually
from tests.support.faulty_service import FaultyService, page, problem
from tests.support.planned_crawls import ALONE, IMPATIENT, KEY, WITH_FRONTIER
from tests.support.sites import Answer, ListeningSite

PNG = b"\x89PNG\r\n\x1a\n" + b"a screenshot"
HOSTILE = "<html><script>alert(1)</script><h1>Lämp</h1></html>"
SECRET = "a-key-of-the-shop"

SPIDER = """
import asyncio

import scrapy


class Failing(scrapy.Spider):
    name = "failing"
    site = ""
    many = "0"
    waits = ""

    async def start(self):
        cookies = {"session": "a-key-of-the-shop"}
        headers = {"Authorization": "a-key-of-the-shop"}
        meta = {"extract_api": {"browserHtml": True, "screenshot": True}}
        yield scrapy.Request("https://lamp.example/?token=a-key-of-the-shop", self.parse_lamp, cookies=cookies,
                             headers=headers, meta=meta)
        yield scrapy.Request("https://fine.example/", self.parse_fine)
        yield scrapy.Request("https://refused.example/", self.parse_fine, errback=self.refused)
        yield scrapy.Request("https://unreachable.example/", self.parse_fine, errback=self.refused)
        for number in range(int(self.many)):
            yield scrapy.Request(f"https://many.example/{number}", self.parse_many)
        if self.site:
            yield scrapy.Request(self.site, self.parse_many, meta={"extract_api": False})
        while self.waits:
            await asyncio.sleep(1)

    def parse_lamp(self, response):
        yield {"name": response.css("h1::text").get()}
        response.extract_result["product"]

    def parse_fine(self, response):
        yield {"url": response.url}

    def parse_many(self, response):
        raise ValueError(f"nothing at {response.url}")

    def refused(self, failure):
        raise IndexError("no page")
"""


class Shop(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, b"<p>by Scrapy itself</p>")


@pytest.fixture
def started(service: FaultyService, tmp_path: Path):
    service.plays("lamp.example", page(browserHtml=HOSTILE, screenshot=_base64(PNG)))
    service.plays("refused.example", page(b"<p>refused</p>", status=404))
    service.plays("unreachable.example", problem("/website/domain-unreachable"))

    def project(settings: str) -> Project:
        remote = f"EXTRACT_API_URL = {service.url!r}\nEXTRACT_API_KEY = {KEY!r}\n"
        policy = f"EXTRACT_API_RETRY_POLICY = {IMPATIENT!r}\n"
        return Project(tmp_path / "project", SPIDER, settings + remote + policy)

    return project


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def counts(crawl: Crawl) -> list[int]:
    return [crawl.stat(f"extract_api/snapshots/{name}") for name in ("stored", "skipped", "failed")]


async def read(client, job) -> dict[str, Any]:
    """The snapshots of a job with their pages and screenshots, by callback."""
    return {
        each.snapshot.callback: (each.snapshot, *[await client.snapshots.read(each, part) for part in Part])
        async for each in client.snapshots.list(job)
    }


def test_failed_pages_are_kept_with_the_job_and_deleted_with_it(started) -> None:
    project, shop = started(WITH_FRONTIER + "EXTRACT_API_SNAPSHOTS_ON_ERROR = True\n"), Shop()
    try:
        crawl = project.crawl("failing", "-a", f"site=http://127.0.0.1:{shop.port}/")
    finally:
        shop.close()
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert counts(crawl) == [3, 0, 0]
    job = key("1/1/1")

    async def read_and_delete(client, number):
        found = await read(client, job)
        stored = [record async for record in client.collections.iter(number, "cs", "scrapy_snapshots")]
        await client.jobs.delete(number, job)
        return found, stored, [record async for record in client.collections.iter(number, "cs", "scrapy_snapshots")]

    found, stored, left = project.stored(read_and_delete)
    lamp, html, screenshot = found.pop("parse_lamp")
    assert (html.decode(), screenshot) == (HOSTILE, PNG)
    assert (lamp.error, lamp.message) == ("KeyError", "'product'")
    assert lamp.url == "https://lamp.example/?token=(hidden)"
    refused, html, screenshot = found.pop("refused")
    assert (html, screenshot, refused.no_screenshot, refused.status) == (b"<p>refused</p>", None, "http", 404)
    direct, html, screenshot = found.pop("parse_many")
    assert (html, screenshot, direct.no_screenshot) == (b"<p>by Scrapy itself</p>", None, "direct")
    assert found == {}
    assert SECRET not in repr(stored)
    assert left == []


def test_without_a_job_failed_pages_are_files_up_to_the_most(started) -> None:
    project = started(ALONE)
    crawl = project.crawl("failing", "-a", "many=6", "-s", "EXTRACT_API_SNAPSHOTS_ON_ERROR=3")
    assert crawl.reason == "finished"
    assert counts(crawl) == [3, 5, 0]
    folder = project.folder / ".scrapy" / "snapshots" / "failing"
    assert len(list(folder.glob("*.snapshot.json"))) == 3
    assert crawl.log.count("3 are the most of a crawl") == 1


def test_a_place_that_takes_no_files_harms_no_crawl(started, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    project = started(ALONE + f"EXTRACT_API_SNAPSHOTS_DIR = {str(tmp_path / 'file')!r}\n")
    crawl = project.crawl("failing", "-a", "many=3", "-s", "EXTRACT_API_SNAPSHOTS_ON_ERROR=1")
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert counts(crawl) == [0, 0, 5]
    assert crawl.log.count("could not be stored") == 1
    assert crawl.stat("item_scraped_count") == 2


def test_by_default_nothing_is_kept(started) -> None:
    project = started(ALONE)
    crawl = project.crawl("failing")
    assert crawl.stat("spider_exceptions/count") == 3
    assert counts(crawl) == [0, 0, 0]
    assert not (project.folder / ".scrapy" / "snapshots").exists()


@pytest.mark.long
def test_a_crawl_that_is_killed_has_kept_its_failed_pages_and_its_successor_counts_them(started) -> None:
    project = started(WITH_FRONTIER + "EXTRACT_API_SNAPSHOTS_ON_ERROR = 3\n")
    crawl = project.start("failing", "-a", "waits=1")
    eventually(lambda: len(project.stored(lambda client, _: read(client, key("1/1/1")))) == 2, what="the failed pages")
    crawl.process.kill()
    crawl.process.wait()
    again = project.crawl("failing", "-a", "many=4", "-s", "PLATFORM_JOB=1/1/1")
    assert again.reason == "finished"
    stored, skipped, failed = counts(again)
    assert (stored, failed) == (1, 0)
    assert skipped >= 3
