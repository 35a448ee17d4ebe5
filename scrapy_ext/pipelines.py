"""``ItemStoragePipeline``: stores items on the platform."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.masking import without_user
from scrapy_ext.api.platform.records import MAX_ITEM_BYTES
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.commit.tracking import Entry, current
from scrapy_ext.crawl.session.items import NotAnItemError, UnstorableItemError, item_to_json
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.crawl.session.writers import ItemSink
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.crawl.session.feed_items import FeedNotes

logger = logging.getLogger(__name__)

_MODES: Final = ("exact", "streaming")
#: Fields of which replaced values are reported.
_MOST_REPORTED: Final = 20
#: Seconds until an item is in the stats: a stat takes as long as encoding the item.
_COUNT_SECONDS: Final = 0.1


class ItemStoragePipeline:
    """Stores items of every kind that itemadapter supports as JSON objects in ``/items`` (platform-api.md, Items).

    Under ``FrontierScheduler`` an item is stored exactly once, when its request is finished
    (``PLATFORM_ITEMS_MODE = "exact"``). With ``"streaming"``, and under Scrapy's own scheduler, items are sent within
    ``PLATFORM_FLUSH_INTERVAL``; after a crash, those of repeated requests are stored twice. Either way they are sent in
    batches with their indexes, so that a repeated batch overwrites itself.

    Values that JSON lacks are stored as null (NaN, infinity) or U+FFFD (halves of surrogate pairs), with a warning for
    each field and stat ``platform/items/replaced``. An item that cannot be stored is refused alone: it is logged as an
    error, counted in stat ``platform/items/refused``, and passed to the following pipelines. So are objects that are
    not items, such as None from a pipeline, with one warning per crawl.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._mode: str = names.PLATFORM_ITEMS_MODE.read(crawler.settings)
        if self._mode not in _MODES:
            raise SettingError("PLATFORM_ITEMS_MODE", f"must be exact or streaming, got {self._mode!r}", "Write exact.")
        self._is_strict: bool = names.PLATFORM_ITEMS_STRICT.read(crawler.settings)
        self._sink: ItemSink | None = None
        self._writer: BatchWriter | None = None
        #: Adds notes for the feeds of a group of workers.
        self._notes: FeedNotes | None = None
        #: True once an object that is not an item was reported.
        self._has_warned = False
        #: Items so far, and fields of which a replaced value was reported.
        self._index = -1
        self._reported: set[str] = set()
        #: Items and bytes that are not in the stats yet.
        self._uncounted = self._uncounted_bytes = 0
        self._counting: asyncio.TimerHandle | None = None
        #: The item before, with its JSON, and True once an object that was stored again was reported.
        self._last: tuple[object, bytes] = (None, b"")
        self._has_warned_of_object = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def open_spider(self) -> None:
        self._count = self._crawler.stats.inc_value
        if await self._session.open():
            if self._mode == "exact" and self._session.items is not None:
                self._sink = self._session.items
                self._notes = self._session.feeds.notes if self._session.feeds is not None else None
                return
            try:
                self._writer = await self._session.record_writer("items", vital=True)
            except PlatformError as error:
                self._session.refuse(error)

    async def process_item(self, item: object) -> Any:
        """Add the item to the writer and return it unchanged."""
        if self._sink is None and self._writer is None:
            raise RuntimeError("the platform could not be opened, so no item can be stored")
        if self._writer is not None and self._writer.failed is not None:
            # The spider is closing for it, and the item's request is not acknowledged.
            self._count("platform/items/not_stored")
            return item
        self._index += 1
        replaced: list[str] | None = None if self._is_strict else []
        try:
            record = item_to_json(item, replaced)
            if self._notes is not None:
                record = self._notes.noted(item, record)
            if len(record) > MAX_ITEM_BYTES:
                raise UnstorableItemError(
                    f"it is {len(record)} bytes of JSON, and the platform accepts {MAX_ITEM_BYTES}: split it"
                )
        except UnstorableItemError as error:
            self._refuse(item, error)
            return item
        if replaced:
            self._report(replaced)
        self._check_object(item, record)
        if self._sink is not None:
            self._sink.add_item(record)
        elif self._writer is not None:
            self._writer.add(record)
        self._uncounted += 1
        self._uncounted_bytes += len(record)
        if self._counting is None:
            self._counting = asyncio.get_running_loop().call_later(_COUNT_SECONDS, self._count_stored)
        return item

    def _check_object(self, item: object, record: bytes) -> None:
        """Warn, once, of an object that is filled again for each item: Scrapy runs pipelines when it has its last
        values."""
        if item is self._last[0] and record == self._last[1] and not self._has_warned_of_object:
            self._has_warned_of_object = True
            logger.warning(
                "%s: this is the object of the item before, with the same values. If the spider fills one object again "
                "for each item, all of them are stored with the values of the last: create an item for each",
                self._place(),
            )
        self._last = (item, record)

    def _count_stored(self) -> None:
        self._counting = None
        self._count("platform/items/count", self._uncounted)
        self._count("platform/items/bytes", self._uncounted_bytes)
        self._uncounted = self._uncounted_bytes = 0

    def _report(self, replaced: list[str]) -> None:
        self._count("platform/items/replaced")
        for sentence in replaced:
            field = sentence.partition(" ")[0]
            if field in self._reported or len(self._reported) >= _MOST_REPORTED:
                continue
            self._reported.add(field)
            logger.warning(
                "%s: %s. Further ones of this field are only counted, in stat platform/items/replaced; "
                "to have such items refused, set PLATFORM_ITEMS_STRICT = True",
                self._place(),
                sentence,
            )

    def _place(self) -> str:
        """Return the index of the current item in this crawl, and its page if the frontier knows it."""
        entry = current.get()
        place = f"Item {self._index} of this crawl"
        return (
            f"{place}, of {without_user(entry.request.url)}"
            if isinstance(entry, Entry) and not entry.is_released
            else place
        )

    def _refuse(self, item: object, error: UnstorableItemError) -> None:
        self._count("platform/items/refused")
        if not isinstance(error, NotAnItemError):
            logger.error("An item of type %s was not stored: %s (%s)", type(item).__qualname__, error, self._place())
        elif not self._has_warned:
            # Logged once: Scrapy accepts such objects silently, and usually all items are affected.
            self._has_warned = True
            logger.warning(
                "An object of type %s was not stored: it is not an item (%s). Yield dicts or item objects in "
                "callbacks, "
                "and return them in process_item of pipelines. Further ones are only counted, in stat "
                "platform/items/refused",
                type(item).__qualname__,
                self._place(),
            )

    async def close_spider(self) -> None:
        """Store the remaining items, so that the scheduler can acknowledge their requests."""
        if self._counting is not None:
            self._counting.cancel()
            self._count_stored()
        if self._writer is not None:
            # The session has logged the error and closes the spider.
            with contextlib.suppress(PlatformError):
                await self._writer.flush()
