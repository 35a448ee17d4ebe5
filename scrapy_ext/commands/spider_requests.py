"""Requests of a spider outside of a crawl: those that one of its methods yields, and the form in which it stores them.

The spider and its fingerprinter are made as in a crawl, with the project's settings and add-ons, but nothing is
downloaded and no extension runs.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings, Settings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_ext.api.platform.feeding import Fed
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.commands.subcommand import CommandError
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.frontier.serialize import (
    NotSerializableError,
    UnreadableRequestError,
    request_from_json,
    request_to_json,
)

#: An address at which nothing listens: a crawl of a platform elsewhere begins no server.
_ELSEWHERE: Final = "http://127.0.0.1:9"
_encode: Final = msgspec.json.Encoder().encode


class RequestMaker:
    """Makes requests as a spider does. Its stored form may have members that only a crawl writes."""

    def __init__(self, spider: Spider, crawler: Crawler) -> None:
        self._spider = spider
        self._crawler = crawler

    @classmethod
    def of(cls, settings: BaseSettings, name: str) -> Self:
        """Return the maker of a spider of the project; raises :class:`CommandError`."""
        own = Settings()
        own.update(settings)  # with their priorities
        loader = SpiderLoader.from_settings(own)
        try:
            spider_class = loader.load(name)
        except KeyError:
            known = ", ".join(sorted(loader.list())) or "(none; run the command in a project)"
            raise CommandError(f"there is no spider {name!r}; use one of: {known}") from None
        own.set("PLATFORM_URL", _ELSEWHERE, priority="cmdline")
        crawler = Crawler(spider_class, own)
        crawler.addons.load_settings(crawler.settings)
        crawler.stats = load_object(crawler.settings["STATS_CLASS"])(crawler)
        fingerprinter = load_object(crawler.settings["REQUEST_FINGERPRINTER_CLASS"])
        crawler.request_fingerprinter = build_from_crawler(fingerprinter, crawler)
        return cls(spider_class.from_crawler(crawler), crawler)

    def record(self, request: Fed, place: str) -> bytes:
        """Return the line of a request with the fingerprint of the spider's crawl. Raises :class:`ContractError` if the
        spider cannot run it, as without its callback."""
        try:
            made = request_from_json(request.form, self._spider)
            fp = request.fp if request.names_fp else self._crawler.request_fingerprinter.fingerprint(made).hex()
        except UnreadableRequestError as error:
            raise ContractError(
                [Violation(place, f"cannot run: {error}", "Write a request that this spider can run, or leave it out.")]
            ) from None
        except Exception as error:  # A fingerprinter of the project's may raise anything.
            raise _no_fingerprint(place, error) from error
        return _encode({**request.form, "fp": fp})

    async def of_method(self, name: str) -> AsyncGenerator[bytes]:
        """Yield the requests of a method as lines; raises :class:`CommandError`."""
        method: object = getattr(self._spider, name, None)
        if not callable(method):
            raise CommandError(f"spider {self._spider.name!r} has no method {name!r}; name one that yields requests")
        made = method()
        if inspect.isawaitable(made):
            made = await made
        if isinstance(made, Request):
            made = [made]
        if hasattr(made, "__aiter__"):
            async for each in made:
                yield self._line(each, name)
        else:
            for each in made or ():
                yield self._line(each, name)

    def _line(self, request: object, method: str) -> bytes:
        if not isinstance(request, Request):
            raise CommandError(f"{method}() yields a {type(request).__name__}: only requests can be pushed")
        try:
            form = request_to_json(request, self._spider)
        except NotSerializableError as error:
            raise CommandError(f"{request} of {method}() cannot be pushed: {error}") from None
        try:
            fp = self._crawler.request_fingerprinter.fingerprint(request).hex()
        except Exception as error:  # as above
            raise CommandError(str(_no_fingerprint(f"{request} of {method}()", error))) from error
        return _encode({**form, "fp": fp})


def _no_fingerprint(place: str, error: Exception) -> ContractError:
    return ContractError(
        [
            Violation(
                place,
                f"has no fingerprint: {type(error).__name__}: {error}",
                "Correct REQUEST_FINGERPRINTER_CLASS, or leave the request out.",
            )
        ]
    )
