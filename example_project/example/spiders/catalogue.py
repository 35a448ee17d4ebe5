"""Products of a shop: listings are plain pages, product pages are extracted by the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from example.spiders import SiteSpider

#: Extraction from the HTTP response, which is much cheaper than from a browser.
PRODUCT = {"extract_api": {"product": True, "extractFrom": "httpResponseBody"}}


class CatalogueSpider(SiteSpider):
    """``scrapy crawl catalogue``, or a part of it: ``-a categories=tents,flasks``."""

    name = "catalogue"

    def __init__(self, *args: Any, categories: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._categories = [slug.strip() for slug in categories.split(",") if slug.strip()]

    async def start(self) -> AsyncIterator[Any]:
        if not self._categories:
            yield Request(self.address("/"), callback=self.parse)
        for slug in self._categories:
            yield Request(self.address(f"/c/{slug}"), callback=self.parse_listing)

    def parse(self, response: Response) -> Iterator[Request]:
        yield from response.follow_all(css="a.category", callback=self.parse_listing)

    def parse_listing(self, response: Response) -> Iterator[Request]:
        # A card links to its product up to three times, and the two pagers write the same URL in two ways; the
        # frontier keeps one of each.
        yield from response.follow_all(css=".card a", callback=self.parse_product, meta=PRODUCT)
        yield from response.follow_all(css=".pager a", callback=self.parse_listing)

    def parse_product(self, response: Response) -> Iterator[dict[str, Any]]:
        yield response.extract_result["product"]
