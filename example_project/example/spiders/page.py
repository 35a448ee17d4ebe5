"""One page of any site."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response

from example.items import Page

KINDS = ("article", "product", "pageContent")


class PageSpider(Spider):
    """``scrapy crawl page -a url=https://…``; ``-a kind=product`` or ``pageContent``; ``-a browser=yes``."""

    name = "page"

    def __init__(self, *args: Any, url: str = "", kind: str = "article", browser: str = "no", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not url:
            raise ValueError("Name the page: scrapy crawl page -a url=https://example.com/")
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        self._url, self._kind = url, kind
        self._extract_from = "browserHtml" if browser.lower() in ("yes", "1", "true") else "httpResponseBody"

    async def start(self) -> AsyncIterator[Any]:
        fields = {self._kind: True, "extractFrom": self._extract_from}
        yield Request(self._url, meta={"extract_api": fields}, callback=self.parse)

    def parse(self, response: Response) -> Iterator[Page]:
        yield Page(url=response.url, kind=self._kind, data=response.extract_result[self._kind])
