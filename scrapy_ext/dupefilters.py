"""``CollectionDupeFilter``: skips pages that any crawl has stored.

Invariants:

- a page is recorded only when an item of it is durable, so that a crawl that dies before does not skip it;
- fingerprints are compared completely, so that only pages in the collection are skipped;
- start requests are never skipped, since a crawl must begin.

Pages are looked up in two ways, since a frontier can wait for an answer, and Scrapy's scheduler cannot:

- :meth:`CollectionDupeFilter.load` reads the collection when the crawl opens, and ``request_seen`` answers from memory;
- :meth:`CollectionDupeFilter.connect` reads nothing; ``stored_among`` looks up many fingerprints at once, and
  ``note_stored`` records what the frontier has committed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_ext import settings as names
from scrapy_ext.api.platform.collections import CollectionType, check_name
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.errors import NotFound, PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.frontier.fingerprint_set import FingerprintSet
from scrapy_ext.crawl.frontier.identity import fingerprint_by
from scrapy_ext.crawl.frontier.marks import is_start_request
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Collection types for pages ever stored, and stored in the last month. The other types keep copies, which are useless
#: here.
_TYPES: Final = (CollectionType.STORE, CollectionType.CACHED_STORE)
#: Maximum characters of a URL in a record.
_MAX_URL: Final = 8192
#: Fingerprints per look-up: the maximum of one query, so that each look-up is one call.
_KEYS_AT_ONCE: Final = 32
#: Maximum concurrent look-ups.
_LOOK_UPS: Final = 4
#: Maximum cached hits and written pages (10 MB each), and their lifetime in seconds: a record may expire,
#: or be deleted so that the page is crawled again.
_REMEMBERED: Final = 50_000
_REMEMBERED_SECONDS: Final = 3600.0
#: Records between two log lines while the collection is read.
_LOG_EVERY: Final = 100_000
#: Characters of a spider's name in the name of its collection, which has 255 at most.
_LONGEST_SPIDER: Final = 200


class CollectionDupeFilter(BaseDupeFilter):
    """Skips requests whose page some crawl has stored, according to a platform collection.

    Records are ``{"_key": fingerprint, "url": ..., "job": ...}``, of the job that stored the page last. Settings:
    ``DUPEFILTER_COLLECTION``, ``DUPEFILTER_COLLECTION_TYPE``.

    Works under Scrapy's own scheduler, where it filters a crawl's own duplicates too, and under
    ``FrontierScheduler``, whose frontier does that. Without item storage in the crawl, an item counts as durable
    when it has passed the pipelines.
    """

    def __init__(self, crawler: Crawler, name: str) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._name, self._type = "", CollectionType.STORE
        try:
            self._name, self._type = _checked(name), _collection_type(crawler)
        except SettingError as error:
            # Scrapy builds its dupefilter while it opens the spider, and does not close a half-open one properly.
            self._session.refuse(error)
        #: Pages of the collection when it was read, and pages of this crawl that are not in ``_seen``.
        self._stored = FingerprintSet()
        #: Requests of this crawl, under Scrapy's scheduler.
        self._seen = FingerprintSet()
        #: Fingerprint and URL of pages with an item that may not be durable yet, and the items' position.
        self._awaited: deque[tuple[int, bytes, str]] = deque()
        self._arrived = asyncio.Event()
        self._recorder: asyncio.Task[None] | None = None
        self._writer: BatchWriter | None = None
        self._hits = _Recent(_REMEMBERED, _REMEMBERED_SECONDS)
        self._written = _Recent(_REMEMBERED, _REMEMBERED_SECONDS)
        self._look_ups = asyncio.Semaphore(_LOOK_UPS)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy. A wrong setting closes the spider."""
        name: str | None = names.DUPEFILTER_COLLECTION.read(crawler.settings)
        return cls(crawler, name or _collection_of(crawler.spidercls.name))

    @classmethod
    def for_frontier(cls, crawler: Crawler) -> Self | None:
        """Return the filter that ``FrontierScheduler`` uses beside its frontier; None without a collection."""
        name: str | None = names.DUPEFILTER_COLLECTION.read(crawler.settings)
        return cls(crawler, name) if name else None

    # ── opening ──

    def open(self) -> Any:
        """Read the collection; returns a Deferred."""
        return deferred_from_coro(self.load())

    async def load(self) -> None:
        """Open the session and read the collection. Pages are recorded once their items are durable."""
        await self.connect()
        if self._writer is None:
            return
        try:
            await self._read_collection()
        except PlatformError as error:
            self._session.refuse(error)
            return
        self._crawler.stats.set_value("dupefilter/collection/loaded", len(self._stored))
        self._crawler.signals.connect(self._item_scraped, signal=signals.item_scraped)
        self._session.ending.before_close.append(self._finish)
        self._recorder = asyncio.ensure_future(self._record())

    async def connect(self) -> None:
        """Open the session, and check the collection's type, without reading the collection."""
        if not await self._session.open():
            return
        try:
            await self._check_type()
        except (PlatformError, SettingError) as error:
            self._session.refuse(error)
            return
        collections, project = self._session.client.collections, self._session.job.key.project

        async def send(body: bytes, _index: int) -> None:
            await collections.write(project, self._type.value, self._name, body, attempts=1)

        self._writer = self._session.writers.add(f"collection {self._name}", send)

    async def _check_type(self) -> None:
        """Check that no collection of the same name has another type: the two would be renamed and deleted together
        (platform-api.md, Collection and collection record)."""
        try:
            found = await self._session.client.collections.list(self._session.job.key.project)
        except NotFound:  # A project without any collection.
            return
        types = sorted(each.type for each in found if each.name == self._name)
        if types and self._type.value not in types:
            raise SettingError(
                "DUPEFILTER_COLLECTION_TYPE",
                f"is {self._type.value}, but collection {self._name} is of type {types[0]}",
                "Set it to that type, use another name in DUPEFILTER_COLLECTION, or delete the collection.",
            )

    async def _read_collection(self) -> None:
        collections, project = self._session.client.collections, self._session.job.key.project
        foreign = 0
        async for record in collections.iter(project, self._type.value, self._name, meta=["_key"]):
            fp = _fingerprint(record["_key"])
            if fp is None:
                foreign += 1
            elif self._stored.add(fp) and len(self._stored) % _LOG_EVERY == 0:
                logger.info("Collection %s: %d fingerprints read so far", self._name, len(self._stored))
        logger.info("Collection %s: %d fingerprints", self._name, len(self._stored))
        if foreign:
            logger.warning(
                "Collection %s has %d keys that are not fingerprints, and are ignored. Name a collection of its own "
                "in DUPEFILTER_COLLECTION",
                self._name,
                foreign,
            )

    # ── under Scrapy's scheduler ──

    def request_seen(self, request: Request) -> bool:
        """Return true when this crawl has made the request, or any crawl has stored its page."""
        return self.is_stored(request) or not self._seen.add(self._fingerprint_of(request))

    def is_stored(self, request: Request) -> bool:
        """Return true when a crawl has stored the page of a request that is not a start request, by :meth:`load`."""
        if not len(self._stored) or is_start_request(request) or self._fingerprint_of(request) not in self._stored:
            return False
        self._crawler.stats.inc_value("dupefilter/collection/hits")
        return True

    def log(self, request: Request, spider: Spider | None) -> None:
        """Count a skipped request, and log it at level DEBUG."""
        logger.debug("Request skipped, its page is stored: %s", request, extra={"spider": spider})
        self._crawler.stats.inc_value("dupefilter/filtered")

    def _fingerprint_of(self, request: Request) -> bytes:
        return fingerprint_by(self._crawler.request_fingerprinter, request)

    def _item_scraped(self, response: Response | None) -> None:
        request = response.request if isinstance(response, Response) else None
        if request is None:
            return
        items = self._session.writers.named("items")
        mark = items.next_index if items is not None else 0
        self._awaited.append((mark, self._fingerprint_of(request), request.url))
        self._arrived.set()

    async def _record(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self._record_durable()

    async def _record_durable(self) -> None:
        items = self._session.writers.named("items")
        while self._awaited:
            mark, fp, url = self._awaited[0]
            if items is not None:
                await items.wait_durable(mark)
            self._awaited.popleft()
            if fp not in self._seen:
                # A dont_filter request: the next request for the page is skipped.
                self._stored.add(fp)
            self.note_stored([(fp, url)])

    async def _finish(self) -> None:
        if self._recorder is None:
            return
        self._recorder.cancel()
        await asyncio.gather(self._recorder, return_exceptions=True)
        items = self._session.writers.named("items")
        if items is not None:
            await items.flush()
        await self._record_durable()

    # ── under a frontier ──

    async def stored_among(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        """Return the fingerprints that the collection has. Raises :class:`PlatformError`; a retry only looks up the
        rest.

        Exclude requests that may not be skipped: start requests and those with ``dont_filter``.
        """
        found = {fp for fp in fingerprints if fp in self._hits}
        asked = [fp for fp in dict.fromkeys(fingerprints) if fp not in found]
        groups = [asked[first : first + _KEYS_AT_ONCE] for first in range(0, len(asked), _KEYS_AT_ONCE)]
        # All complete before an error is raised, so that none continues in the background.
        for answer in await asyncio.gather(*map(self._look_up, groups), return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            found |= answer
        if found:
            self._crawler.stats.inc_value("dupefilter/collection/hits", len(found))
        return found

    async def _look_up(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        wanted = {fp.hex(): fp for fp in fingerprints}
        collections, project = self._session.client.collections, self._session.job.key.project
        async with self._look_ups:
            records = collections.iter(project, self._type.value, self._name, keys=wanted, meta=["_key"])
            # A server may ignore parameters and return other records.
            found = {wanted[record["_key"]] async for record in records if record["_key"] in wanted}
        for fp in found:
            self._hits.add(fp)
        return found

    def note_stored(self, url_by_fingerprint: Iterable[tuple[bytes, str]]) -> None:
        """Record pages with a durable item, given as fingerprint and URL. Never waits.

        A recorded page is written again, so that its record names the last job, and a record that expires does so a
        month later.
        """
        writer = self._writer
        if writer is None or writer.failed is not None:
            return
        job = str(self._session.job.key)
        for fp, url in url_by_fingerprint:
            if fp not in self._written:
                self._written.add(fp)
                writer.add(msgspec.json.encode({"_key": fp.hex(), "url": url[:_MAX_URL], "job": job}))
                self._crawler.stats.inc_value("dupefilter/collection/written")


class _Recent:
    """The ``size`` most recently used fingerprints, each for ``seconds`` after its addition."""

    def __init__(self, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        self._added: dict[bytes, float] = {}

    def __contains__(self, fp: bytes) -> bool:
        added = self._added.pop(fp, None)
        if added is None or time.monotonic() - added > self._seconds:
            return False
        self._added[fp] = added
        return True

    def add(self, fp: bytes) -> None:
        self._added.pop(fp, None)
        self._added[fp] = time.monotonic()
        if len(self._added) > self._size:
            del self._added[next(iter(self._added))]


def _collection_type(crawler: Crawler) -> CollectionType:
    text: str = names.DUPEFILTER_COLLECTION_TYPE.read(crawler.settings)
    for kind in _TYPES:
        if kind.value == text:
            return kind
    raise SettingError(
        "DUPEFILTER_COLLECTION_TYPE",
        f"must be s or cs, got {text[:60]!r}",
        "Write 's' for pages that were ever stored, 'cs' for those of the last month.",
    )


def _collection_of(spider: str) -> str:
    """Return the collection of a spider that names none: ``<spider>_seen``.

    A name with characters that a collection cannot have is written without them, and with a hash, so that it is unique.
    """
    plain = re.sub(r"\W", "_", spider, flags=re.ASCII)[:_LONGEST_SPIDER]
    if plain != spider:
        plain += f"_{hashlib.sha256(spider.encode()).hexdigest()[:8]}"
    return f"{plain}_seen"


def _checked(name: str) -> str:
    kind, slash, _ = name.partition("/")
    if slash and kind in [each.value for each in CollectionType]:
        raise SettingError(
            "DUPEFILTER_COLLECTION",
            f"is the name alone, got {name[:60]!r}",
            "Write the type in DUPEFILTER_COLLECTION_TYPE.",
        )
    try:
        check_name(name)
    except ContractError as error:
        raise SettingError("DUPEFILTER_COLLECTION", "is not the name of a collection", str(error)) from None
    return name


def _fingerprint(key: str) -> bytes | None:
    """Return the fingerprint that a record's key encodes; None for another key."""
    try:
        fp = bytes.fromhex(key)
    except ValueError:
        return None
    return fp if fp.hex() == key else None
