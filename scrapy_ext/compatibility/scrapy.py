"""All that differs between the supported versions of Scrapy, 2.14 and later.

Private names of Scrapy's engine are in ``crawl/session/scrapy_engine.py``: all supported versions have them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from time import time
from typing import TYPE_CHECKING, Any, Final

import scrapy
from scrapy import exceptions, signals
from scrapy.core import downloader
from scrapy.core.downloader import Slot
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.statscollectors import StatsCollector

if TYPE_CHECKING or hasattr(exceptions, "DownloadFailedError"):
    from scrapy.exceptions import (
        CannotResolveHostError,
        DownloadCancelledError,
        DownloadConnectionRefusedError,
        DownloadFailedError,
        DownloadTimeoutError,
        ResponseDataLossError,
    )
else:
    # Scrapy 2.14 gives errbacks the exceptions of Twisted that later versions replace.
    from twisted.internet.defer import CancelledError as DownloadCancelledError
    from twisted.internet.error import ConnectionRefusedError as DownloadConnectionRefusedError
    from twisted.internet.error import DNSLookupError as CannotResolveHostError
    from twisted.internet.error import TimeoutError as DownloadTimeoutError
    from twisted.web.client import ResponseFailed as DownloadFailedError

    ResponseDataLossError = DownloadFailedError


__all__ = (
    "CACHE_KEEPS_RESULTS",
    "CLOSES_AT_START",
    "FAILED_ATTRIBUTES",
    "CannotResolveHostError",
    "DownloadCancelledError",
    "DownloadConnectionRefusedError",
    "DownloadFailedError",
    "DownloadTimeoutError",
    "ResponseDataLossError",
    "close_at_start",
    "jitter_of",
    "slot_clock",
    "slot_of",
)

#: Attributes that errbacks read from the exceptions of Twisted.
FAILED_ATTRIBUTES: Final[Mapping[str, Any]] = (
    {} if hasattr(exceptions, "DownloadFailedError") else {"reasons": (), "response": None}
)
#: ``CloseSpider`` may be raised by ``start()`` and handlers of ``spider_opened`` (Scrapy 2.18 and later).
CLOSES_AT_START: Final = scrapy.version_info[:2] >= (2, 18)
#: The HTTP cache stores a response with the attributes of its class (Scrapy 2.19 and later).
CACHE_KEEPS_RESULTS: Final = hasattr(Response, "to_dict")

#: Clock of the attribute ``lastseen`` of downloader slots: wall time in the first of the supported versions.
slot_clock: Callable[[], float] = getattr(downloader, "monotonic", time)

#: Methods of a crawler that create its components, and frames between them and a component.
_CRAWL: Final = ("crawl", "crawl_async")
_MOST_FRAMES: Final = 50

#: Turns of the event loop between the signal ``engine_started`` and the start of the engine, with a wide margin.
_MOST_TURNS: Final = 1000


def slot_of(settings: BaseSettings, domain: str) -> Slot:
    """Return the downloader slot that Scrapy makes for a domain, where there is no downloader."""
    given = settings.getdict("DOWNLOAD_SLOTS").get(domain, {})
    per_domain = settings.getint("CONCURRENT_REQUESTS_PER_IP") or settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
    concurrency = given.get("concurrency", per_domain)
    delay = given.get("delay", settings.getfloat("DOWNLOAD_DELAY"))
    jitter_of: Callable[..., Any] | None = getattr(downloader, "_slot_jitter", None)
    if jitter_of is not None:
        return Slot(concurrency, delay, jitter_of(given, downloader._default_jitter(settings)))
    # Scrapy before 2.19
    randomize = given.get("randomize_delay", settings.getbool("RANDOMIZE_DOWNLOAD_DELAY"))
    return Slot(concurrency, delay, randomize)


def jitter_of(slot: Slot) -> float:
    """Return the part of its delay by which the delays of a slot differ."""
    # Scrapy before 2.19 has randomize_delay, which is half of the delay.
    found: Any = slot.jitter if hasattr(slot, "jitter") else slot.randomize_delay
    return found if isinstance(found, float) else 0.5 * bool(found)


def arguments_of_crawl(crawler: Crawler) -> dict[str, Any] | None:
    """Return the keyword arguments with which ``crawler.crawl()`` was called, while it creates the components; None
    later on.

    Scrapy keeps them nowhere but in the frame of that call: a spider may use them without keeping them.
    """
    frame = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame.f_code.co_name in _CRAWL and frame.f_locals.get("self") is crawler:
            given = frame.f_locals.get("kwargs")
            return dict(given) if isinstance(given, dict) else None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def close_at_start(crawler: Crawler, reason: str) -> None:
    """Close the spider from a handler of ``spider_opened``, which must return after this call.

    Raises ``CloseSpider`` where Scrapy takes that. Earlier versions would log it and crawl on: there the spider is
    closed as soon as the engine runs.
    """
    if CLOSES_AT_START:
        raise CloseSpider(reason)

    async def close() -> None:
        for _ in range(_MOST_TURNS):
            if crawler.engine.running:
                await asyncio.sleep(0)  # the engine's loop starts first, which closing would stop
                await crawler.engine.close_spider_async(reason=reason)
                return
            await asyncio.sleep(0)

    def begin() -> None:
        tasks.append(asyncio.ensure_future(close()))

    tasks: list[asyncio.Future[None]] = []
    crawler.signals.connect(begin, signal=signals.engine_started, weak=False)


def replace_stats_method(stats: StatsCollector, name: str, method: Callable[..., Any]) -> None:
    """Replace a method of one collector of stats.

    Newer versions of Scrapy keep a copy of a method in the collector once it is used, and read that first.
    """
    setattr(stats, name, method)
    if f"_cached_{name}" in vars(stats):
        setattr(stats, f"_cached_{name}", method)
