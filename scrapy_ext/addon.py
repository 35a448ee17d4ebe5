"""``Addon``: enables all components in the right order.

Functions import the components that they enable: that takes a third of a second, in which the embedded server, begun
before it, starts as well; and commands that do not crawl load the add-on, too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
from typing import Final

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ext import settings as names
from scrapy_ext.api.platform.worker_bounds import GROUP_SETTING
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.session.embedded import begin_early
from scrapy_ext.crawl.session.forked import is_forked
from scrapy_ext.crawl.session.project import command_of
from scrapy_ext.logformatter import QuietLogFormatter
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

_PRIORITY: Final = "addon"

#: Positions of the extraction middlewares: the first before Scrapy adds headers of its own (400); the second behind the
#: HTTP cache (900), so that cached pages cost nothing, and behind all of the project (:func:`_last`).
_OWN_HEADERS_ORDER: Final = 390
_EXTRACT_ORDER: Final = 1000
#: Just before the extraction middleware, in projects that use scrapy-poet.
_POET_ORDER: Final = 999
#: An import path, since only projects with scrapy-poet can import it.
_PROVIDER: Final = "scrapy_ext.poet.provider.ExtractProvider"
#: After the providers of scrapy-poet itself.
_PROVIDER_ORDER: Final = 1100
#: After the user's pipelines (:func:`_last`), so that the final item is stored.
_ITEMS_ORDER: Final = 1000
#: Nearest to the engine, to see the output of all other spider middlewares.
_PARENT_ORDER: Final = 0

#: Scrapy's command that the add-on ignores.
_BENCHMARK: Final = "bench"


class _SettingErrorFilter(logging.Filter):
    """Log filter that reports a wrong setting in one line. Scrapy leaves an error at the start to the event loop, which
    logs a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, SettingError):
            record.name = __name__
            record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True


_setting_error_filter = _SettingErrorFilter()


class Addon:
    """``ADDONS = {"scrapy_ext.Addon": 500}``.

    Switches, each True unless set: ``EXTRACT_API_ENABLED`` (requests go through the extraction API),
    ``PLATFORM_ENABLED`` (job record, items, request records, log), ``FRONTIER_ENABLED`` (the scheduler). Values of the
    project and the spider take precedence.

    Scrapy's commands for single pages (``check``, ``fetch``, ``parse``, ``shell``, ``view``) fetch them like a crawl,
    but without job, queue or stored answers. ``bench`` measures Scrapy alone.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._crawler = crawler
        self._command = command_of(crawler) if crawler is not None else None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy when a crawl starts. Raises :class:`SettingError`."""
        if self._command == _BENCHMARK:
            return
        for name in ("asyncio", "twisted"):
            logging.getLogger(name).addFilter(_setting_error_filter)
        if self._command is not None:
            # This overrides the project's settings for its crawls.
            settings.set("EXTRACT_API_LEDGER", False, priority="spider")
        if self._crawler is not None and self._command is None:
            _warn_of_start_requests(self._crawler.spidercls)
        self._begin_server(settings)
        self._import_handler(settings)
        self._begin_workers()
        if names.EXTRACT_API_ENABLED.read(settings):
            _enable_extraction(settings)
        if self._command is not None:
            return
        if names.PLATFORM_ENABLED.read(settings):
            _enable_platform(settings)
        _enable_queue(settings)
        _default(settings, "LOG_FORMATTER", QuietLogFormatter)
        if settings.get(GROUP_SETTING):
            from scrapy_ext.crawl.session.close_limits import take_over

            take_over(settings)
        if names.EXTRACT_API_SNAPSHOTS_ON_ERROR.read(settings):
            from scrapy_ext.extensions import ErrorSnapshots

            settings.setdefault_in_component_priority_dict("EXTENSIONS", ErrorSnapshots, 0)

    def _import_handler(self, settings: BaseSettings) -> None:
        """Import Scrapy's download handler for https, as Scrapy does later.

        With each deprecated class in its modules, Scrapy searches the modules of all callers among all that are loaded
        (``inspect.stack()``). Here callers and modules are fewer, which saves 0.15 s.
        """
        if self._crawler is None or not self._crawler.crawling:
            return
        handler = settings.getwithbase("DOWNLOAD_HANDLERS").get("https")
        if isinstance(handler, str) and handler.startswith("scrapy."):
            with contextlib.suppress(Exception):  # Scrapy reports it.
                load_object(handler)

    def _begin_workers(self) -> None:
        if self._crawler is not None and self._crawler.crawling and self._command is None:
            from scrapy_ext.crawl.session.workers import begin_workers

            begin_workers(self._crawler)

    def _begin_server(self, settings: BaseSettings) -> None:
        """Begin the embedded server of a crawl; ``scrapy shell``, which crawls nothing, may never need it."""
        if self._crawler is None or not self._crawler.crawling or is_forked(settings):
            return
        needed = (names.PLATFORM_ENABLED, names.FRONTIER_ENABLED, names.DUPEFILTER_COLLECTION)
        begin_early(
            self._crawler,
            extraction=names.EXTRACT_API_ENABLED.read(settings),
            platform=self._command is None and any(setting.read(settings) for setting in needed),
        )


def _warn_of_start_requests(spider: type[Spider]) -> None:
    """Warn of a spider whose first requests are in ``start_requests()``: Scrapy from 2.16 on ignores it without a word.

    Spiders that make their requests when the crawl is idle, as those of scrapy-redis, need none.
    """
    is_called = hasattr(Spider, "start_requests") or not hasattr(spider, "start_requests")
    if is_called or spider.start is not Spider.start or hasattr(spider, "spider_idle"):
        return
    logger.warning(
        "%s has start_requests() and no start(). This version of Scrapy does not call start_requests(), so its "
        "requests are not made. Write 'async def start(self)', which yields the same requests",
        spider.__name__,
    )


def _enable_extraction(settings: BaseSettings) -> None:
    from scrapy_ext.crawl.extraction.headers import BROWSER_AGENT, is_browsers
    from scrapy_ext.downloadermiddlewares import ExtractMiddleware, OwnHeadersMiddleware
    from scrapy_ext.pqueues import DomainPriorityQueue

    _default(settings, "EXTRACT_API_TRANSPARENT_MODE", not _has_own_handler(settings))
    _set_fingerprinter(settings)
    _set_provider(settings)
    _default(settings, "SCHEDULER_PRIORITY_QUEUE", DomainPriorityQueue)
    if names.EXTRACT_API_TRANSPARENT_MODE.read(settings) and is_browsers(settings):
        # The rules of robots.txt for the agent that the site sees.
        _default(settings, "ROBOTSTXT_USER_AGENT", BROWSER_AGENT)
    for middleware, order in (
        (OwnHeadersMiddleware, _OWN_HEADERS_ORDER),
        (ExtractMiddleware, _last(settings, "DOWNLOADER_MIDDLEWARES", _EXTRACT_ORDER)),
    ):
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", middleware, order)


def _enable_platform(settings: BaseSettings) -> None:
    from scrapy_ext.extensions import LogUploader, PlatformJob, RequestLog
    from scrapy_ext.pipelines import ItemStoragePipeline
    from scrapy_ext.spidermiddlewares import ParentMiddleware

    order = _last(settings, "ITEM_PIPELINES", _ITEMS_ORDER)
    settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", ItemStoragePipeline, order)
    for extension in (PlatformJob, RequestLog, LogUploader):
        settings.setdefault_in_component_priority_dict("EXTENSIONS", extension, 0)
    settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ParentMiddleware, _PARENT_ORDER)


def _enable_queue(settings: BaseSettings) -> None:
    """Set the scheduler, or else a dupefilter that crawls share."""
    if names.FRONTIER_ENABLED.read(settings):
        from scrapy_ext.scheduler import FrontierScheduler
        from scrapy_ext.spidermiddlewares import ParentMiddleware

        _default(settings, "SCHEDULER", FrontierScheduler)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ParentMiddleware, _PARENT_ORDER)
    elif names.DUPEFILTER_COLLECTION.read(settings):
        from scrapy_ext.dupefilters import CollectionDupeFilter

        _default(settings, "DUPEFILTER_CLASS", CollectionDupeFilter)


def _last(settings: BaseSettings, name: str, order: int) -> int:
    """Return the order, or a higher one after all components of the project and of the spider's custom_settings."""
    orders = [value for value in settings.getdict(name).values() if isinstance(value, int | float)]
    return max([order, *(math.floor(value) + 1 for value in orders)])


def _has_own_handler(settings: BaseSettings) -> bool:
    """Return true for a custom download handler. Requests are then not routed by default, because the handler may do
    what the service cannot."""
    if (settings.getpriority("EXTRACT_API_TRANSPARENT_MODE") or 0) > SETTINGS_PRIORITIES[_PRIORITY]:
        return False
    for scheme in ("http", "https"):
        handler = settings.getdict("DOWNLOAD_HANDLERS").get(scheme)
        path = handler if isinstance(handler, str) else getattr(handler, "__module__", "scrapy.")
        if not path.startswith("scrapy."):
            logger.warning(
                "DOWNLOAD_HANDLERS names %s for %s, so requests are not routed through the extraction API. To route "
                "them all the same, set EXTRACT_API_TRANSPARENT_MODE = True, or meta extract_api for single requests",
                *(path, scheme),
            )
            return True
    return False


def _set_fingerprinter(settings: BaseSettings) -> None:
    """Add scrapy-poet's injection of dependencies, whose add-on may come before or after this one."""
    from scrapy_ext.crawl.extraction.fingerprint import ExtractRequestFingerprinter

    if getattr(settings["REQUEST_FINGERPRINTER_CLASS"], "__name__", "") != "ScrapyPoetRequestFingerprinter":
        _default(settings, "REQUEST_FINGERPRINTER_CLASS", ExtractRequestFingerprinter)
    _default(settings, "SCRAPY_POET_REQUEST_FINGERPRINTER_BASE_CLASS", ExtractRequestFingerprinter)


def _set_provider(settings: BaseSettings) -> None:
    if importlib.util.find_spec("scrapy_poet") is None:
        return
    from scrapy_ext.poet.middleware import PoetMiddleware

    settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", PoetMiddleware, _POET_ORDER)
    name = "SCRAPY_POET_PROVIDERS"
    providers = settings.getdict(name)
    given = (each if isinstance(each, str) else f"{each.__module__}.{each.__qualname__}" for each in providers)
    if _PROVIDER not in given:
        settings.set(name, {**providers, _PROVIDER: _PROVIDER_ORDER}, settings.getpriority(name) or 0)


def _default(settings: BaseSettings, name: str, value: object) -> None:
    settings.set(name, value, priority=_PRIORITY)
