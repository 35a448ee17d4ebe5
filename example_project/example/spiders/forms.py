"""Plain HTTP through the service: a form sent with POST, and custom headers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar
from urllib.parse import urlencode

from scrapy import Request
from scrapy.http import JsonRequest, Response

from example.items import SearchResult, SentHeaders
from example.spiders import SiteSpider


class FormsSpider(SiteSpider):
    """``scrapy crawl forms``, or with other queries: ``-a queries=kettle,oak``."""

    name = "forms"
    # robots.txt disallows /echo/, which is made for this spider.
    custom_settings: ClassVar[dict[str, Any]] = {"ROBOTSTXT_OBEY": False}

    def __init__(self, *args: Any, queries: str = "lantern,folding,ochre", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._queries = [query.strip() for query in queries.split(",") if query.strip()]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.address("/search"), callback=self.parse)
        yield Request(
            self.address("/echo/headers"),
            method="PUT",
            headers={"X-Shop-Client": "example", "Accept-Language": "en-GB"},
            callback=self.parse_headers,
        )

    def parse(self, response: Response) -> Iterator[Request]:
        form = response.css("form#search")
        hidden = {field.attrib["name"]: field.attrib["value"] for field in form.css("input[type=hidden]")}
        for query in self._queries:
            yield Request(
                response.urljoin(form.attrib["action"]),
                method=form.attrib["method"].upper(),
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                body=urlencode({**hidden, "q": query}),
                callback=self.parse_results,
                cb_kwargs={"hidden": hidden},
            )

    def parse_results(self, response: Response, hidden: dict[str, str]) -> Iterator[Any]:
        found = response.json()
        for row in found["results"]:
            yield SearchResult(query=found["query"], **row)
        if found["next"] is not None:
            # The same search understands JSON.
            data = {**hidden, "q": found["query"], "page": found["next"]}
            yield JsonRequest(response.url, data=data, callback=self.parse_results, cb_kwargs={"hidden": hidden})

    def parse_headers(self, response: Response) -> Iterator[SentHeaders]:
        yield SentHeaders(**response.json())
