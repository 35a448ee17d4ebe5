"""What page objects need goes into the request that they are made from, so that one extraction serves them all.

scrapy-poet asks its providers when a response is there. By then a second request would be needed for what the first
did not ask for. Here the dependencies of a callback are looked up before its request is sent.

This module does not import scrapy-poet, which projects may have without using it:
:class:`~scrapy_ext.poet.provider.ExtractProvider` tells the middleware how to look them up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self
from weakref import WeakKeyDictionary, WeakMethod

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_ext.crawl.extraction.translate import need

#: From a request to the fields that its dependencies need.
Lookup = Callable[[Request], Mapping[str, Any]]

#: Methods of what knows its crawler itself, so that both sides have to be weak.
_lookups: WeakKeyDictionary[Crawler, WeakMethod[Lookup]] = WeakKeyDictionary()


def set_lookup(crawler: Crawler, lookup: Lookup) -> None:
    """Tell by which method dependencies are looked up in this crawl."""
    _lookups[crawler] = WeakMethod(lookup)


class PoetMiddleware:
    """A downloader middleware just before :class:`~scrapy_ext.downloadermiddlewares.ExtractMiddleware`, and behind
    scrapy-poet's ``InjectionMiddleware``. Without that one it is disabled."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        method = _lookups.get(crawler)
        lookup = None if method is None else method()
        if lookup is None:
            raise NotConfigured
        return cls(lookup)

    def process_request(self, request: Request) -> None:
        """Called by Scrapy."""
        fields = self._lookup(request)
        if fields:
            need(request, fields)
