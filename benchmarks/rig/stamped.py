"""Download handler that says in the header ``X-Sent`` when a request is sent, on the monotonic clock."""

from __future__ import annotations

import time

from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import Response


class Stamped(HTTP11DownloadHandler):
    """Scrapy's own handler. Scrapy calls it when the delay of the request's site is over."""

    async def download_request(self, request: Request) -> Response:
        request.headers["X-Sent"] = f"{time.monotonic():.6f}"
        return await super().download_request(request)
