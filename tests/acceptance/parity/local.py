"""The spider that those of this folder are made of."""

from __future__ import annotations

from typing import Any, ClassVar

import scrapy
from scrapy.http import Response
from twisted.python.failure import Failure

#: One request at a time: then Scrapy's order is the same in each run, and is compared.
ONE_AT_A_TIME = {"CONCURRENT_REQUESTS": 1}


class LocalSpider(scrapy.Spider):
    """A spider of the local site. ``run`` is the number of this run, from 0, of ``runs`` in the same folder."""

    #: Where it starts.
    paths: ClassVar[list[str]] = ["/"]
    runs: ClassVar[int] = 1

    def __init__(self, site: str, run: int | str = 0, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.site = site
        # A command has text.
        self.run = int(run)
        self.start_urls = [self.url(path) for path in self.paths]
        #: What happened beside items, compared as they are.
        self.notes: list[str] = []

    def url(self, path: str) -> str:
        return self.site + path

    def note(self, *parts: object) -> None:
        self.notes.append(" ".join(str(part) for part in parts))

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield {"url": response.url, "status": response.status, "title": response.css("h1::text").get()}

    def failed(self, failure: Failure) -> None:
        self.note("errback", public_class(failure.type), failure.request.url)


def public_class(error: type) -> str:
    """The first base of a class that is not this package's: what ``failure.check`` is written with."""
    return next(cls.__name__ for cls in error.__mro__ if not cls.__module__.startswith("scrapy_ext"))


def response_class(response: Response) -> str:
    """The class of a response as ``isinstance`` sees it."""
    return public_class(type(response))
