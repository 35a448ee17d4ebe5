"""Asks for an article of each page of a list; run by test_real_pages.py with ``scrapy runspider``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.http import Response


class ArticlesSpider(Spider):
    name = "articles"
    custom_settings: ClassVar[dict[str, Any]] = {"ADDONS": {"scrapy_ext.Addon": 500}}

    def __init__(self, pages: str, extract_from: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pages: list[str] = json.loads(Path(pages).read_text())
        self._fields = {"article": True, "extractFrom": extract_from}

    async def start(self) -> AsyncIterator[Any]:
        for url in self._pages:
            yield Request(url, meta={"extract_api": self._fields}, cb_kwargs={"asked": url})

    def parse(self, response: Response, asked: str) -> Iterator[dict[str, Any]]:
        yield {"asked": asked, **response.extract_result["article"]}
