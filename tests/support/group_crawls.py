"""Crawls by two workers of one job, as processes beside a server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scrapy_ext.client.platform import PlatformClient
from tests.support.crawls import Crawl, Project, Running, ask_server, collect, key
from tests.support.servers import RunningServer

SPIDER = """
import time

import scrapy

class Numbered(scrapy.Spider):
    name = "numbered"

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.site}/{number}")

    def parse(self, response):
        if response.url.endswith("/0"):
            time.sleep(float(self.block))
        yield {"url": response.url}
"""
SETTINGS = """
ROBOTSTXT_OBEY = False
FRONTIER_POLL_INTERVAL = 0.5
PLATFORM_FLUSH_INTERVAL = 0.1
FRONTIER_LEASE_TIME = 6
"""


class Workers:
    """Two workers of one job, which requests ``pages`` of a site. The callback of the first page blocks for ``block``
    seconds."""

    def __init__(
        self, folder: Path, server: RunningServer, site: str, pages: int, settings: str, *, block: float = 0.0
    ) -> None:
        keys = f"PLATFORM_URL = {server.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\n"
        self._project = Project(folder / "project", SPIDER, SETTINGS + keys + settings)
        self._server = server
        self._arguments = ("-a", f"pages={pages}", "-a", f"site={site}", "-a", f"block={block}")

        async def push(client: PlatformClient) -> str:
            return (await client.jobq.push(1, "numbered", state="running", spider_type="manual")).key

        self._job = ask_server(server.url, server.platform_key, push)
        self.running = [self.start(), self.start()]

    def start(self) -> Running:
        given = ("-s", f"PLATFORM_JOB={self._job}", "-s", "CRAWL_GROUP=2")
        return self._project.start("numbered", *given, *self._arguments)

    def end(self) -> list[Crawl]:
        """Wait until all have ended, for one reason."""
        crawls = [running.end() for running in self.running]
        (reason,) = {crawl.reason for crawl in crawls}
        assert self.metadata()["close_reason"] == reason
        return crawls

    def items(self) -> list[dict]:
        async def read(client: PlatformClient) -> list[dict]:
            return await collect(client.items.iter(key(self._job)))

        return ask_server(self._server.url, self._server.platform_key, read)

    def metadata(self) -> dict:
        async def read(client: PlatformClient) -> dict:
            return await client.jobs.metadata(key(self._job))

        return ask_server(self._server.url, self._server.platform_key, read)


def responses(crawls: Iterable[Crawl]) -> list[int]:
    """Number of responses of each worker."""
    return [crawl.stat("downloader/response_count") for crawl in crawls]
