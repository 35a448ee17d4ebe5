"""``Addon``: one line in ``settings.py`` switches everything on, in the right order."""

from __future__ import annotations

import importlib.util
import logging
from typing import Final, Self

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.client.extraction.fingerprint import ExtractRequestFingerprinter
from scrapy_ext.crawl.purpose import command_of
from scrapy_ext.downloadermiddlewares import ExtractMiddleware, OwnHeadersMiddleware
from scrapy_ext.dupefilters import CollectionDupeFilter
from scrapy_ext.extensions import FrozenStartup, LogUploader, PlatformJob, RequestLog
from scrapy_ext.pipelines import ItemStoragePipeline
from scrapy_ext.poet import PoetMiddleware
from scrapy_ext.pqueues import DomainPriorityQueue
from scrapy_ext.scheduler import FrontierScheduler
from scrapy_ext.settings import SettingError
from scrapy_ext.spidermiddlewares import ParentMiddleware

_PRIORITY: Final = "addon"

#: The first before Scrapy adds headers of its own (400); the second nearest to the downloader, behind the HTTP cache
#: (900), so that cached pages cost nothing.
_DOWNLOADER_MIDDLEWARES: Final = ((OwnHeadersMiddleware, 390), (ExtractMiddleware, 1000))
#: Just before the extraction middleware, in projects that use scrapy-poet.
_POET_ORDER: Final = 999
#: Named and not imported: scrapy-poet does that in projects that use it.
_PROVIDER: Final = "scrapy_ext.providers.ExtractProvider"
#: Behind the providers of scrapy-poet itself.
_PROVIDER_ORDER: Final = 1100
#: Behind the user's pipelines, so that what is stored is what they made of the item.
_ITEMS_ORDER: Final = 1000
#: Nearest to the engine, so that it sees what the other spider middlewares leave.
_PARENT_ORDER: Final = 0

#: Scrapy starts so many tasks for each response, and its default of 100 takes most of the engine's time. Fewer than
#: this are no faster, and slow a callback with many items down whose pipelines wait for something.
_CONCURRENT_ITEMS: Final = 8

#: The command of Scrapy that the add-on leaves alone.
_BENCHMARK: Final = "bench"

_EXTENSIONS: Final = (PlatformJob, RequestLog, LogUploader)


class _OneLine(logging.Filter):
    """Tells a wrong setting in one line. Scrapy leaves an error at the start to the event loop, which logs it
    with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, SettingError):
            record.name = __name__
            record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True


_one_line = _OneLine()


class Addon:
    """``ADDONS = {"scrapy_ext.Addon": 500}``.

    Switches, each True unless set: ``EXTRACT_API_ENABLED`` (requests go through the extraction API),
    ``PLATFORM_ENABLED`` (job record, items, request records, log), ``FRONTIER_ENABLED`` (the scheduler). What
    the project or the spider sets itself stays as it is.

    Commands of Scrapy that fetch single pages (``check``, ``fetch``, ``parse``, ``shell``, ``view``) fetch them as a
    crawl would, and leave nothing behind: no job, no queue, no answers kept for a resumed crawl. ``bench`` measures
    Scrapy alone.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._command = command_of(crawler) if crawler is not None else None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy when a crawl starts."""
        if self._command == _BENCHMARK:
            return
        for name in ("asyncio", "twisted"):
            logging.getLogger(name).addFilter(_one_line)
        if names.EXTRACT_API_ENABLED.read(settings):
            _default(settings, "EXTRACT_API_TRANSPARENT_MODE", True)
            _set_fingerprinter(settings)
            _set_provider(settings)
            _default(settings, "SCHEDULER_PRIORITY_QUEUE", DomainPriorityQueue)
            # The service knows best which headers keep a site from banning it.
            _default(settings, "REFERRER_POLICY", "no-referrer")
            for middleware, order in _DOWNLOADER_MIDDLEWARES:
                settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", middleware, order)
        if self._command is not None:
            # Over what the project sets for its crawls.
            settings.set("EXTRACT_API_LEDGER", False, priority="spider")
            return
        if names.PLATFORM_ENABLED.read(settings):
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", ItemStoragePipeline, _ITEMS_ORDER)
            for extension in _EXTENSIONS:
                settings.setdefault_in_component_priority_dict("EXTENSIONS", extension, 0)
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ParentMiddleware, _PARENT_ORDER)
        if names.FRONTIER_ENABLED.read(settings):
            _default(settings, "SCHEDULER", FrontierScheduler)
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ParentMiddleware, _PARENT_ORDER)
        elif names.DUPEFILTER_COLLECTION.read(settings):
            _default(settings, "DUPEFILTER_CLASS", CollectionDupeFilter)
        # One request at a time keeps Scrapy's order to the letter: how many outputs of a callback are handled at once
        # decides which of its requests is the newest when the next one is taken.
        if settings.getint("CONCURRENT_REQUESTS") != 1:
            _default(settings, "CONCURRENT_ITEMS", _CONCURRENT_ITEMS)
        settings.setdefault_in_component_priority_dict("EXTENSIONS", FrozenStartup, 0)


def _set_fingerprinter(settings: BaseSettings) -> None:
    """That of scrapy-poet, whose add-on may come before this one or after it, adds what page objects need to ours."""
    if getattr(settings["REQUEST_FINGERPRINTER_CLASS"], "__name__", "") != "ScrapyPoetRequestFingerprinter":
        _default(settings, "REQUEST_FINGERPRINTER_CLASS", ExtractRequestFingerprinter)
    _default(settings, "SCRAPY_POET_REQUEST_FINGERPRINTER_BASE_CLASS", ExtractRequestFingerprinter)


def _set_provider(settings: BaseSettings) -> None:
    if importlib.util.find_spec("scrapy_poet") is None:
        return
    settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", PoetMiddleware, _POET_ORDER)
    name = "SCRAPY_POET_PROVIDERS"
    providers = settings.getdict(name)
    given = (each if isinstance(each, str) else f"{each.__module__}.{each.__qualname__}" for each in providers)
    if _PROVIDER not in given:
        settings.set(name, {**providers, _PROVIDER: _PROVIDER_ORDER}, settings.getpriority(name) or 0)


def _default(settings: BaseSettings, name: str, value: object) -> None:
    settings.set(name, value, priority=_PRIORITY)
