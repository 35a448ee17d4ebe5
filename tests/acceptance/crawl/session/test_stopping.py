from __future__ import annotations

import asyncio
import base64
import signal

import pytest

from tests.support.crawls import Project
from tests.support.played_server import PlayedServer, Reply, json_reply

KEY = "0123456789abcdef0123456789abcdef"
SPIDERS = """
import scrapy


class Spider(scrapy.Spider):
    name = "spider"

    async def start(self):
        for number in range(6):
            yield scrapy.Request(f"http://a.example/{number}")

    def parse(self, response):
        self.crawler.stats.inc_value("pages")
"""
SETTINGS = """
PLATFORM_ENABLED = FRONTIER_ENABLED = False
CONCURRENT_REQUESTS_PER_DOMAIN = 4
EXTRACT_API_STOP_GRACE = 1.0
JOBDIR = "job"
SCHEDULER_START_DISK_QUEUE = "scrapy.squeues.PickleFifoDiskQueue"
"""


@pytest.fixture
async def server():
    server = PlayedServer()
    await server.start()
    yield server
    await server.stop()


@pytest.mark.long
@pytest.mark.parametrize("pause_at", [None, 20], ids=["no answer", "an answer without an end"])
async def test_one_ctrl_c_ends_a_crawl_whose_service_does_not_answer_and_nothing_is_lost(server, tmp_path, pause_at):
    page = {"url": "http://a.example/", "statusCode": 200, "httpResponseBody": base64.b64encode(b"<p>").decode()}
    posts, never = asyncio.Event(), asyncio.Event()

    def silent(request):
        if request.method != "POST":
            return Reply(204)
        if sum(each.method == "POST" for each in server.requests) == 4:
            posts.set()
        return json_reply(page, until=never, pause_at=pause_at)

    server.script = silent
    project = Project(tmp_path / "crawl", SPIDERS, SETTINGS)
    environment = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": KEY}
    running = project.start("spider", environment=environment)
    await asyncio.wait_for(posts.wait(), 120)
    running.process.send_signal(signal.SIGINT)
    # DOWNLOAD_TIMEOUT is 180 seconds.
    crawl = await asyncio.to_thread(running.end, 120)
    assert crawl.reason == "shutdown"
    assert (
        # Two more waited for their turn, and returned to the queue at once.
        "4 requests have no answer of the extraction service 1 s after the stop (EXTRACT_API_STOP_GRACE)" in crawl.log
    )
    assert not crawl.errors

    never.set()
    server.script = [json_reply(page)]
    again = await asyncio.to_thread(project.crawl, "spider", environment=environment)
    assert again.reason == "finished"
    assert again.stat("pages") >= 6
