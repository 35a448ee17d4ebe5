"""Articles of a newspaper, extracted by the service; no line here knows the layout of an article."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from example.spiders import SiteSpider

ARTICLE = {"extract_api": {"article": True, "extractFrom": "httpResponseBody"}}


class NewsSpider(SiteSpider):
    """``scrapy crawl news``, or one section: ``-a section=harbour``."""

    name = "news"

    def __init__(self, *args: Any, section: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._section = section

    async def start(self) -> AsyncIterator[Any]:
        if self._section:
            yield Request(self.address(f"/news/{self._section}/"), callback=self.parse_section)
        else:
            yield Request(self.address("/news/"), callback=self.parse)

    def parse(self, response: Response) -> Iterator[Request]:
        yield from response.follow_all(css="a.section", callback=self.parse_section)

    def parse_section(self, response: Response) -> Iterator[Request]:
        yield from response.follow_all(css="a.headline", callback=self.parse_article, meta=ARTICLE)
        yield from response.follow_all(css=".pager a", callback=self.parse_section)

    def parse_article(self, response: Response) -> Iterator[dict[str, Any]]:
        yield response.extract_result["article"]
