"""Downloader middleware that adds the dependencies of page objects to their request, for a single extraction.

scrapy-poet calls its providers after the response, when further data would need a second request. This middleware
resolves the dependencies of a callback before its request is sent.

This module does not import scrapy-poet, which is optional: :class:`~scrapy_ext.poet.provider.ExtractProvider`
registers the lookup.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakMethod

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.extraction.fields import MIN_PROBABILITY
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.extraction.content import need
from scrapy_ext.crawl.extraction.rule_files import SiteRules

logger = logging.getLogger(__name__)
_CACHED: Final = (
    "Scrapy's HTTP cache is on, and %s not count in it for items that only page objects request: empty the cache after "
    "a change of %s, or such items are still those of before"
)
_CACHED_RULES: Final = ("the files of rules of sites do", "the rules")
_CACHED_PROBABILITY: Final = (f"{MIN_PROBABILITY} of EXTRACT_API_PARAMS does", "it")

#: Maps a request to the fields that its dependencies need.
Lookup = Callable[[Request], Mapping[str, Any]]

#: The provider refers to the crawler, so both sides are weak.
_lookups: WeakKeyDictionary[Crawler, WeakMethod[Lookup]] = WeakKeyDictionary()


def set_lookup(crawler: Crawler, lookup: Lookup) -> None:
    """Register the lookup of dependencies for this crawl."""
    _lookups[crawler] = WeakMethod(lookup)


class PoetMiddleware:
    """Downloader middleware between scrapy-poet's ``InjectionMiddleware`` and
    :class:`~scrapy_ext.downloadermiddlewares.ExtractMiddleware`, disabled without the former."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        method = _lookups.get(crawler)
        lookup = None if method is None else method()
        if lookup is None:
            raise NotConfigured
        if crawler.settings.getbool("HTTPCACHE_ENABLED"):
            _warn_of_cache(crawler.settings)
        return cls(lookup)

    def process_request(self, request: Request) -> None:
        fields = self._lookup(request)
        if fields:
            need(request, fields)


def _warn_of_cache(settings: BaseSettings) -> None:
    """Warn of settings that change items in the cache which no field of their requests names."""
    if SiteRules.of(settings):
        logger.warning(_CACHED, *_CACHED_RULES)
    if MIN_PROBABILITY in names.EXTRACT_API_PARAMS.read(settings):
        logger.warning(_CACHED, *_CACHED_PROBABILITY)
