"""``CollectionDupeFilter``: pages that any crawl has stored are skipped."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final, Self

import msgspec
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_ext import settings as names
from scrapy_ext.api.platform.collections import CollectionType, check_name
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.crawl.parents import is_start_request
from scrapy_ext.crawl.session import Session
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

_TYPE: Final = CollectionType.STORE.value
#: Characters of a URL that are kept in a record, for people to read.
_MAX_URL: Final = 8192


class CollectionDupeFilter(BaseDupeFilter):
    """Skips requests whose page some crawl has stored, according to a platform collection.

    A page is recorded when an item of it is stored, not before: a crawl that dies in between has not seen it.
    Records are ``{"_key": fingerprint, "url": ..., "job": ...}``; the fingerprints are read once, when the
    crawl opens. Start requests are never skipped.

    Works under Scrapy's own scheduler, where it filters a crawl's own duplicates too, and under
    ``FrontierScheduler``, whose frontier does that.
    """

    def __init__(self, crawler: Crawler, name: str) -> None:
        try:
            check_name(name)
        except ContractError as error:
            raise SettingError("DUPEFILTER_COLLECTION", "is not the name of a collection", str(error)) from None
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._name = name
        self._stored: set[bytes] = set()
        self._seen: set[bytes] = set()
        #: Fingerprint and URL of pages with an item that may not be durable yet, and the items' mark.
        self._awaited: deque[tuple[int, bytes, str]] = deque()
        self._arrived = asyncio.Event()
        self._recorder: asyncio.Task[None] | None = None
        self._writer: BatchWriter | None = None
        crawler.signals.connect(self._item_scraped, signal=signals.item_scraped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy; raises :class:`SettingError`."""
        name: str | None = names.DUPEFILTER_COLLECTION.read(crawler.settings)
        return cls(crawler, name or f"{crawler.spidercls.name}_seen")

    @classmethod
    def for_frontier(cls, crawler: Crawler) -> Self | None:
        """The filter that ``FrontierScheduler`` asks beside its frontier: none without a collection."""
        name: str | None = names.DUPEFILTER_COLLECTION.read(crawler.settings)
        return cls(crawler, name) if name else None

    def open(self) -> Any:
        """Read the collection; returns a Deferred."""
        return deferred_from_coro(self.load())

    async def load(self) -> None:
        """Open the session and read the collection."""
        if not await self._session.open():
            return
        client, project = self._session.client, self._session.job.key.project
        try:
            await self._read_collection(client, project)
        except PlatformError as error:
            self._session.refuse(error)
            return
        self._crawler.stats.set_value("dupefilter/collection/loaded", len(self._stored))

        async def send(body: bytes, _index: int) -> None:
            await client.collections.write(project, _TYPE, self._name, body, attempts=1)

        self._writer = self._session.writer(f"collection {self._name}", send)
        self._session.before_close.append(self._finish)
        self._recorder = asyncio.ensure_future(self._record())

    async def _read_collection(self, client: PlatformClient, project: int) -> None:
        async for record in client.collections.iter(project, _TYPE, self._name, meta=["_key"]):
            key = str(record.get("_key", ""))
            try:
                self._stored.add(bytes.fromhex(key))
            except ValueError:
                logger.warning("Collection %s has a key that is no fingerprint: %.60s", self._name, key)

    def is_stored(self, request: Request) -> bool:
        """Whether some crawl has stored the page of a request. Never of a start request: a crawl must begin."""
        if is_start_request(request):
            return False
        if self._crawler.request_fingerprinter.fingerprint(request) not in self._stored:
            return False
        self._crawler.stats.inc_value("dupefilter/collection/hits")
        return True

    def request_seen(self, request: Request) -> bool:
        """Whether this crawl has made the request already, or some crawl has stored its page."""
        fp = self._crawler.request_fingerprinter.fingerprint(request)
        if fp in self._seen or self.is_stored(request):
            return True
        self._seen.add(fp)
        return False

    def log(self, request: Request, spider: Spider | None) -> None:
        """Count a request that was skipped; it is logged at level DEBUG."""
        logger.debug("Skipped, its page is known: %s", request, extra={"spider": spider})
        self._crawler.stats.inc_value("dupefilter/filtered")

    def _item_scraped(self, response: Response | None) -> None:
        request = response.request if isinstance(response, Response) else None
        if self._writer is None or request is None:
            return
        items = self._session.written("items")
        fp = self._crawler.request_fingerprinter.fingerprint(request)
        self._awaited.append((items.next_index if items is not None else 0, fp, request.url))
        self._arrived.set()

    async def _record(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self._record_durable()

    async def _record_durable(self) -> None:
        items = self._session.written("items")
        job = str(self._session.job.key)
        while self._awaited and self._writer is not None and self._writer.failed is None:
            mark, fp, url = self._awaited[0]
            if items is not None:
                await items.wait_durable(mark)
            self._awaited.popleft()
            if fp not in self._stored:
                self._stored.add(fp)
                self._writer.add(msgspec.json.encode({"_key": fp.hex(), "url": url[:_MAX_URL], "job": job}))
                self._crawler.stats.inc_value("dupefilter/collection/written")

    async def _finish(self) -> None:
        if self._recorder is None:
            return
        self._recorder.cancel()
        await asyncio.gather(self._recorder, return_exceptions=True)
        items = self._session.written("items")
        if items is not None:
            await items.flush()
        await self._record_durable()
