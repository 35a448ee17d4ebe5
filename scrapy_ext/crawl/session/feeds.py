"""Feeds (``-o``, ``-O``, ``FEEDS``) of a crawl with several workers, written by the last of them.

Each worker has Scrapy's ``FeedExporter``, which gets no items. When a run of the job ends, one worker is left: all
items are on the platform, in one order. It reads them in pages and gives them to its exporter, which does the rest:
storages, formats, fields, batches, post-processing, stats and signals. Then the worker sends its last report. So a
process that is killed meanwhile leaves a job that can be resumed, and the next run writes the feeds.

A feed that fails does not concern the others, and the crawl ends as without it, as in Scrapy. The log names the command
that writes the items to a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from inspect import isawaitable
from typing import Any, Final
from urllib.parse import urlparse

from pydispatch.errors import DispatcherError  # type: ignore[import-untyped]
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exporters import MarshalItemExporter, PickleItemExporter
from scrapy.extensions.feedexport import (
    FeedExporter,
    FeedSlot,
    FTPFeedStorage,
    GCSFeedStorage,
    ItemFilter,
    S3FeedStorage,
)

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.keys import EntityKey
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.session.feed_items import ClassFilter, FeedItems, FeedNotes
from scrapy_ext.crawl.session.feed_marks import FeedMarks
from scrapy_ext.crawl.session.group_end import GroupEnd
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.stop_signals import calls_on_signal
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Seconds between two lines of progress.
_PROGRESS: Final = 30.0
#: Batches that are being stored at once, at most: each has a file.
_MOST_STORING: Final = 8
#: Storages that replace their file, unless ``overwrite`` is False and they can append.
_REPLACING: Final = (FTPFeedStorage, GCSFeedStorage, S3FeedStorage)
_NEVER_APPENDING: Final = (GCSFeedStorage, S3FeedStorage)
#: Exporters that write Python's own values, which a stored item no longer has.
_PYTHON: Final = (MarshalItemExporter, PickleItemExporter)
_FAILED: Final = "feedexport/failed_count/"
#: Errors logged with their tracebacks, of items that a feed does not take.
_MOST_TRACEBACKS: Final = 5


class JobFeeds:
    """The feeds of a crawl, which its exporters have given up to this object."""

    def __init__(self, crawler: Crawler, exporters: list[FeedExporter]) -> None:
        self._crawler = crawler
        self._exporters = exporters
        self.notes = FeedNotes()

    @classmethod
    def take(cls, crawler: Crawler) -> JobFeeds | None:
        """Take the feeds from the exporters of a crawl, before the spider is opened; None if it has none. Raises
        :class:`SettingError` for a feed that several workers cannot have."""
        extensions = crawler.extensions.middlewares if crawler.extensions is not None else ()
        exporters = [extension for extension in extensions if isinstance(extension, FeedExporter)]
        for exporter in exporters:
            _disconnect(crawler, exporter)
        for exporter in exporters:
            for uri, options in exporter.feeds.items():
                _check_format(exporter, options)
                given = exporter.filters[uri]
                if type(given) is ItemFilter and given.item_classes:
                    exporter.filters[uri] = ClassFilter(given.item_classes)  # type: ignore[assignment]  # the same protocol
        return cls(crawler, exporters) if exporters else None

    async def open(self, client: PlatformClient, job: CrawlJob, *, is_first: bool) -> None:
        """Open the feeds of a job. ``is_first``: no other worker of it lives. Raises :class:`PlatformError`."""
        uris = [
            uri
            for exporter in self._exporters
            for uri, options in exporter.feeds.items()
            if _appends(exporter, uri, options)
        ]
        if is_first and uris:
            stored = (await client.items.stats(job.key)).totals.input_values if job.resumed else 0
            await FeedMarks(client, job.key, job.former).begin(uris, stored)

    async def write(self, client: PlatformClient, end: GroupEnd, key: JobKey, reason: str) -> None:
        """Write the feeds, if this worker of the group is the last one when the crawl closes for ``reason``. A signal
        ends it. Errors are logged."""
        if not await end.is_last(reason):
            return
        writing = asyncio.ensure_future(self._write(client, key))
        with calls_on_signal(writing.cancel):
            try:
                await writing
            except asyncio.CancelledError:
                if not writing.cancelled():
                    writing.cancel()
                    raise
                logger.error("The feeds are not complete, since a signal has ended their writing. %s", _remedy(key))
            except PlatformError as error:
                logger.error("The feeds could not be written: %s. %s", error, _remedy(key))
            except Exception:
                # The job ends all the same.
                logger.exception("Unexpected error while the feeds were written. %s", _remedy(key))

    async def _write(self, client: PlatformClient, key: JobKey) -> None:
        total = (await client.items.stats(key)).totals.input_values
        marks = FeedMarks(client, key, await client.jobs.metadata(key))
        feeds = [_Feed(self._crawler, exporter, slot, marks) for exporter in self._exporters for slot in exporter.slots]
        if not feeds:
            logger.error("The feeds could not be opened, so they are not written. %s", _remedy(key))
            return
        for feed in feeds:
            if feed.appends and (missing := marks.missing(feed.uri)):
                logger.warning(_NOT_APPENDED, missing.start, missing.stop - 1, feed.shown, _remedy(key))
        feeds = [feed for feed in feeds if feed.start < total or not feed.start]
        await marks.before([feed.uri for feed in feeds if feed.appends], total)
        logger.info("This worker writes the feeds: job %s has %d items", key, total)
        with _stored_slots(self._crawler) as stored:
            failures = _failures(self._crawler)
            await _read(client, key, total, feeds)
            await self._close(feeds)
            failed = {name for name, number in _failures(self._crawler).items() if number != failures.get(name)}
        for feed in feeds:
            feed.check(stored, failed)
        if any(not feed.is_complete for feed in feeds):
            logger.error("Feeds are not complete. %s", _remedy(key))
        await marks.after([feed.uri for feed in feeds if feed.appends and not feed.has_failed], total)

    async def _close(self, feeds: list[_Feed]) -> None:
        """Store the feeds."""
        for exporter in self._exporters:
            own = (feed for feed in feeds if feed.exporter is exporter and not feed.has_failed)
            exporter.slots = [slot for feed in own for slot in feed.slots]
            await _call(exporter.close_spider, self._crawler.spider)


async def _read(client: PlatformClient, key: JobKey, total: int, feeds: list[_Feed]) -> None:
    """Give the items of a job to its feeds."""
    start = min((feed.start for feed in feeds), default=total)
    if start >= total:
        return
    items, noted_at = FeedItems(), time.monotonic() + _PROGRESS
    records = client.items.keyed(key, start=start or None, count=total - start)
    async with contextlib.aclosing(records):
        async for entity, record in records:
            number, item = EntityKey.parse(entity).number, items.item(record)
            for feed in feeds:
                await feed.add(number, item)
            if time.monotonic() >= noted_at:
                noted_at = time.monotonic() + _PROGRESS
                logger.info("The feeds have %d of %d items", number + 1, total)


class _Feed:
    """One feed. ``start``: index of its first item in the job."""

    def __init__(self, crawler: Crawler, exporter: FeedExporter, slot: FeedSlot, marks: FeedMarks) -> None:
        self._crawler = crawler
        self.exporter = exporter
        #: The batch that gets items.
        self.slots = [slot]
        self.uri = slot.uri_template
        self.shown = _PASSWORD.sub("//", slot.uri)
        self.appends = _appends(exporter, slot.uri_template, slot.feed_options)
        self.start = marks.start(self.uri) if self.appends else 0
        self.has_failed = False
        #: Items that its exporter has not taken.
        self._refused = 0

    @property
    def is_complete(self) -> bool:
        """True if it has all items."""
        return not (self.has_failed or self._refused)

    async def add(self, number: int, item: dict[str, Any]) -> None:
        """Add the item with this index, if it is one of the feed."""
        if self.has_failed or number < self.start:
            return
        # Its slots alone: an error of one feed does not concern the others.
        self.exporter.slots = self.slots
        try:
            await _call(self.exporter.item_scraped, item, self._crawler.spider)
        except OSError as error:
            self._fail(f"{error}")
        except Exception as error:
            self._refuse(number, error)
        finally:
            self.slots = self.exporter.slots
        storing = getattr(self.exporter, "_pending_close_tasks", ())
        if len(storing) >= _MOST_STORING:
            await asyncio.wait(list(storing), return_when=asyncio.FIRST_COMPLETED)

    def check(self, stored: list[FeedSlot], failed: set[str]) -> None:
        """Note whether its file is stored. ``stored``: slots whose storages have ended; ``failed``: stats of storages
        that have failed."""
        if self.has_failed:
            return
        if any(_stat(slot) in failed for slot in self.slots):
            # Scrapy has logged the error.
            self.has_failed = True
        elif any(
            slot not in stored for slot in self.slots if slot.itemcount or (slot.store_empty and slot.batch_id == 1)
        ):
            self._fail("its end could not be written")

    def _fail(self, fault: str) -> None:
        self.has_failed = True
        self._crawler.stats.inc_value(_stat(self.slots[0]))
        logger.error("Feed %s could not be written: %s", self.shown, fault)
        for slot in self.slots:
            if slot.file is not None:
                with contextlib.suppress(OSError, ValueError):
                    slot.file.close()

    def _refuse(self, number: int, error: Exception) -> None:
        self._refused += 1
        if self._refused <= _MOST_TRACEBACKS:
            logger.error("Item %d of the job could not be written to feed %s", number, self.shown, exc_info=error)


# ── Scrapy's exporter ──


async def _call(method: Callable[..., Any], *arguments: object) -> None:
    """Call a method that is a coroutine in some versions or subclasses."""
    result = method(*arguments)
    if isawaitable(result):
        await result


def _disconnect(crawler: Crawler, exporter: FeedExporter) -> None:
    for receiver, signal in (
        (exporter.item_scraped, signals.item_scraped),
        (exporter.close_spider, signals.spider_closed),
    ):
        try:
            crawler.signals.disconnect(receiver, signal)
        except DispatcherError:
            raise SettingError(
                "EXTENSIONS",
                f"has {type(exporter).__qualname__}, which gets its items in a way of its own, so that several workers "
                "cannot use it",
                f"Remove it. {_ONE_WORKER}",
            ) from None


def _check_format(exporter: FeedExporter, options: dict[str, Any]) -> None:
    made = exporter.exporters[options["format"]]
    if issubclass(made, _PYTHON):
        raise SettingError(
            "FEEDS",
            f"has the format {options['format']}, of Python's own values, which items that several workers store as "
            "JSON do not have",
            f"Choose another format, as jsonlines. {_ONE_WORKER}",
        )


def _appends(exporter: FeedExporter, uri: str, options: dict[str, Any]) -> bool:
    """Return true if a feed adds to what is there, so that each item may be given to it in one run alone."""
    storage = exporter.storages.get(urlparse(uri).scheme, exporter.storages["file"])
    overwrite = options.get("overwrite")
    if not isinstance(storage, type) or overwrite is not None:
        return not overwrite and not _is(storage, _NEVER_APPENDING)
    return not _is(storage, _REPLACING)


def _is(storage: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(storage, type) and issubclass(storage, kinds)


def _is_written(slot: FeedSlot) -> bool:
    return slot.itemcount > 0 or (slot.store_empty and slot.batch_id == 1)


def _stat(slot: FeedSlot) -> str:
    return f"{_FAILED}{type(slot.storage).__name__}"


def _failures(crawler: Crawler) -> dict[str, int]:
    return {name: number for name, number in crawler.stats.get_stats().items() if str(name).startswith(_FAILED)}


@contextlib.contextmanager
def _stored_slots(crawler: Crawler) -> Iterator[list[FeedSlot]]:
    """Yield a list of the slots whose storages end within the block, with or without an error."""
    stored: list[FeedSlot] = []

    def slot_closed(slot: FeedSlot) -> None:
        stored.append(slot)

    crawler.signals.connect(slot_closed, signal=signals.feed_slot_closed)
    try:
        yield stored
    finally:
        crawler.signals.disconnect(slot_closed, signal=signals.feed_slot_closed)


def _remedy(key: JobKey) -> str:
    return f"Write the items to a file: scrapy platform items {key} --output FILE"


#: User and password in a URI.
_PASSWORD: Final = re.compile(r"//[^/@]*@")
_ONE_WORKER: Final = "Or crawl with one worker."
_NOT_APPENDED: Final = (
    "An earlier run of the job has ended while it appended items %d to %d to feed %s. The file may lack some of them, "
    "which are not appended again. %s"
)
