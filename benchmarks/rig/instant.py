"""Download handlers without a network, for measurements that exclude downloading."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from rig.pages import page

_BODY: Final = b"<html><body><h1>A page</h1></body></html>"


class InstantHandler(BaseDownloadHandler):
    """Answers every request at once with a small page."""

    async def download_request(self, request: Request) -> Response:
        return HtmlResponse(request.url, body=_BODY, encoding="utf-8", request=request)


class GatedHandler(InstantHandler):
    """Holds all responses but the first until ``BENCH_GATE_SECONDS`` have passed since that."""

    _opens: float | None = None

    async def download_request(self, request: Request) -> Response:
        if self._opens is None:
            self._opens = time.monotonic() + self.crawler.settings.getfloat("BENCH_GATE_SECONDS")
        else:
            await asyncio.sleep(max(self._opens - time.monotonic(), 0))
        return await super().download_request(request)


class PageHandler(BaseDownloadHandler):
    """Answers every request at once with a page of ``BENCH_PAGE_SIZE`` bytes."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._body = page(crawler.settings.getint("BENCH_PAGE_SIZE"), seed=0)

    async def download_request(self, request: Request) -> Response:
        return HtmlResponse(request.url, body=self._body, encoding="utf-8", request=request)
