"""Reviews that appear only after JavaScript and a click, with a screenshot of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.http import Response

from example.items import ProductReviews
from example.spiders import SiteSpider

BROWSER = {
    "extract_api": {
        "browserHtml": True,
        "actions": [{"action": "click", "selector": {"type": "css", "value": "#show-reviews"}}],
        "screenshot": True,
        "screenshotOptions": {"fullPage": True},
    }
}


class ReviewsSpider(SiteSpider):
    """``scrapy crawl reviews``; with ``-a screenshots=FOLDER`` the pictures are written to that folder."""

    name = "reviews"

    def __init__(self, *args: Any, screenshots: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._folder = Path(screenshots) if screenshots else None

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.address("/best"), callback=self.parse)

    def parse(self, response: Response) -> Iterator[Request]:
        yield from response.follow_all(css=".card h3 a", callback=self.parse_product, meta=BROWSER)

    def parse_product(self, response: Response) -> Iterator[ProductReviews]:
        picture = response.screenshot
        yield ProductReviews(
            url=response.url,
            name=response.css("h1::text").get(default=""),
            reviews=[
                {
                    "id": review.attrib["id"],
                    "rating": int(review.attrib["data-rating"]),
                    "title": review.css(".title::text").get(),
                    "text": review.css(".text::text").get(),
                }
                for review in response.css(".reviews li")
            ],
            screenshot_bytes=len(picture),
            screenshot_file=self._written(response.url, picture),
        )

    def _written(self, url: str, picture: bytes) -> str | None:
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{url.rpartition('/')[2]}.jpg"
        file.write_bytes(picture)
        return str(file)
