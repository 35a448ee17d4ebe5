"""All uses of private names of Scrapy's engine, and replaced methods of its parts.

Scrapy has no public way to see that a request is finished, nor to wake the engine when requests arrive from
elsewhere (scrapy issues 6733 and 7978). ``docs/architecture/scrapy.rst`` has for each of these names the change to
Scrapy that would make it needless. The names:

- ``engine._slot.inprogress`` is the set of requests between being handed out and being finished. A request leaves it
  after its callback or errback is exhausted, every item went through all pipelines, and every child request was passed
  to ``enqueue_request``.
- ``engine._slot.nextcall.schedule()`` makes the engine look for the next request now, instead of at its next heartbeat,
  up to 5 seconds later.
- ``engine._start`` is ``start()``'s iterator, until it is exhausted.
- ``engine._slot.close()`` is called by every way of closing a spider, before the wait for the requests in progress; no
  signal reports it.
- ``engine.downloader.total_concurrency`` is compared with the number of requests in the downloader each time the engine
  looks for the next one.
- ``engine.downloader._process_queue(slot)`` sends the requests of a slot that may be sent. It calls
  ``free_transfer_slots`` of the slot before each one.
- ``engine.downloader._get_slot(request)`` makes the slot of a request, which ``slots`` then has.
- ``engine.downloader.fetch`` is called with each request, before the downloader middlewares; no signal reports that a
  middleware replaced a request.
- ``engine.download_async`` is public; no signal reports that a request came this way.
- ``engine.close_spider_async`` is public; the signal of its reason comes when the requests in progress have ended.
- ``crawler._create_engine()`` returns the engine whose ``open_spider_async``, which is public, opens the spider. When
  that raises, the signal of the opened spider is not sent, and that of the closed one has no error.
- ``engine.scraper.slot.closing`` is fired when the scraper is idle, which is checked after responses, but not after
  items of ``start()``.
- ``jar._cookies`` of a cookie jar maps domains to paths to names to cookies. Without it every cookie of a crawl would
  be examined for each request.
- ``request._meta`` and ``request._cb_kwargs`` are the objects that the properties of these names return, or None before
  the first use of the property. In newer versions headers, cookies and flags have such attributes as well.

:func:`check_names`, :func:`watch`, :func:`on_closing` and :func:`close_after_start_items` check their names when the
crawl opens, and raise :class:`UnsupportedScrapyError`. Where a name is only faster than a public one (``_cookies``,
``_meta``), or a user's downloader may lack it (``total_concurrency``, ``_get_slot``), its absence has a way around.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from http.cookiejar import Cookie
from operator import attrgetter
from typing import Any, Final

from scrapy import Request
from scrapy.core.downloader import Slot
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http.cookies import CookieJar, potential_domain_matches
from twisted.internet.defer import Deferred

from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.compatibility.required import SUPPORTED
from scrapy_ext.compatibility.scrapy import CLOSES_AT_START, jitter_of, slot_clock, slot_of
from scrapy_ext.crawl.session.permits import Demand, Permits, SiteLimits


class UnsupportedScrapyError(RuntimeError):
    """This version of Scrapy lacks a private name that a component needs."""


#: Attributes of the engine that are read later, while the crawl runs.
_READ_LATER: Final = ("_start", "downloader.active", "downloader.fetch", "scraper.slot.active")


def check_names(crawler: Crawler) -> None:
    """Check the names that no other function checks. Call this when the spider is open. Raises
    :class:`UnsupportedScrapyError`."""
    missing = [f"engine.{name}" for name in _READ_LATER if not _has(crawler.engine, name)]
    if missing:
        raise UnsupportedScrapyError(
            f"this version of Scrapy lacks {', '.join(missing)}: the add-on works with {SUPPORTED}. Install such a "
            "version, or remove scrapy_ext from the settings."
        )


def _has(engine: object, name: str) -> bool:
    try:
        attrgetter(name)(engine)
    except AttributeError:
        return False
    return True


class _WatchedSet(set[Request]):
    """Set of requests that reports every removal."""

    def __init__(self, requests: Iterable[Request]) -> None:
        super().__init__(requests)
        self.on_remove: list[Callable[[Request], None]] = []

    def remove(self, request: Request) -> None:
        super().remove(request)
        for callback in self.on_remove:
            callback(request)


def watch(crawler: Crawler, on_finished: Callable[[Request], None]) -> Callable[[], None]:
    """Call ``on_finished`` for each finished request; return a function that wakes the engine. Several callers can
    watch.

    Raises :class:`UnsupportedScrapyError`.
    """
    slot: Any = getattr(crawler.engine, "_slot", None)
    inprogress = getattr(slot, "inprogress", None)
    wake: Callable[[], None] | None = getattr(getattr(slot, "nextcall", None), "schedule", None)
    if not isinstance(inprogress, set) or not callable(wake):
        raise UnsupportedScrapyError(
            "this version of Scrapy does not report when a request is finished: FrontierScheduler works with "
            f"{SUPPORTED}. Install such a version, or set FRONTIER_ENABLED = False and EXTRACT_API_LEDGER = False."
        )
    if not isinstance(inprogress, _WatchedSet):
        slot.inprogress = inprogress = _WatchedSet(inprogress)
    inprogress.on_remove.append(on_finished)
    return wake


def wake(crawler: Crawler) -> None:
    """Make the engine look for the next request now."""
    schedule: Any = getattr(getattr(getattr(crawler.engine, "_slot", None), "nextcall", None), "schedule", None)
    if schedule is not None:
        schedule()


def on_closing(crawler: Crawler, callback: Callable[[], None]) -> None:
    """Call ``callback`` when the spider begins to close, before the engine waits for the requests in progress. Call
    this when the spider is open."""
    slot: Any = getattr(crawler.engine, "_slot", None)
    close: object = getattr(slot, "close", None)
    if not callable(close):
        raise UnsupportedScrapyError(
            "this version of Scrapy does not report when a spider closes: ExtractMiddleware works with "
            f"{SUPPORTED}. Install such a version, or set EXTRACT_API_ENABLED = False."
        )

    async def closing() -> None:
        callback()
        await close()

    slot.close = closing


def on_close(crawler: Crawler, callback: Callable[[str], None]) -> None:
    """Call ``callback`` with the close reason when the spider is to close, before its requests in progress have ended.
    ``engine.close_spider_async`` is public; the signal of the end comes after them."""
    engine: Any = crawler.engine
    close = engine.close_spider_async

    async def close_spider_async(*, reason: str = "cancelled") -> None:
        callback(reason)
        await close(reason=reason)

    engine.close_spider_async = close_spider_async


def on_failed_opening(crawler: Crawler, callback: Callable[[Exception], Awaitable[None]]) -> None:
    """Call ``callback`` with the error for which the spider cannot be opened, as one of a pipeline's ``open_spider()``,
    before the spider is closed. Call this before there is an engine."""
    crawl: Any = crawler
    create_engine: Callable[[], Any] | None = getattr(crawler, "_create_engine", None)
    if create_engine is None:
        # The crawl is closed as one that was interrupted.
        return

    def watched_engine() -> Any:
        engine = create_engine()
        open_spider = engine.open_spider_async

        async def open_spider_async(**options: Any) -> None:
            try:
                await open_spider(**options)
            except Exception as error:
                if not (CLOSES_AT_START and isinstance(error, CloseSpider)):
                    await callback(error)
                raise

        engine.open_spider_async = open_spider_async
        return engine

    crawl._create_engine = watched_engine


class _WatchedFetch:
    """``fetch`` of a downloader that reports every result."""

    def __init__(self, fetch: Callable[..., Any]) -> None:
        self._fetch = fetch
        self.on_fetched: list[Callable[[Request, object], None]] = []

    def __call__(self, request: Request, *arguments: Any) -> Any:
        result = self._fetch(request, *arguments)
        # A user's downloader may return another type, which the engine refuses.
        return result.addBoth(self._report, request) if isinstance(result, Deferred) else self._report(result, request)

    def _report(self, result: object, request: Request) -> object:
        for callback in self.on_fetched:
            callback(request, result)
        return result


def on_fetched(crawler: Crawler, callback: Callable[[Request, object], None]) -> None:
    """Call ``callback`` with each request that leaves the downloader and its middlewares, and with the result: a
    response, a failure, or the request that a middleware returned instead. Several callers can watch. Call this when
    there is an engine. A receiver of a signal costs three times as much."""
    downloader: Any = crawler.engine.downloader
    if not isinstance(downloader.fetch, _WatchedFetch):
        downloader.fetch = _WatchedFetch(downloader.fetch)
    downloader.fetch.on_fetched.append(callback)


def on_apart(crawler: Crawler, callback: Callable[[Request], None]) -> None:
    """Call ``callback`` with each request that a component downloads by itself (``engine.download_async``), before it
    is sent. Call this when there is an engine."""
    engine: Any = crawler.engine
    download = engine.download_async

    async def download_async(request: Request) -> Any:
        callback(request)
        return await download(request)

    engine.download_async = download_async


def close_after_start_items(crawler: Crawler) -> None:
    """Let a spider that is closed while items of ``start()`` are in the pipelines end after those items.

    Scrapy would wait for ever, since it checks only after responses whether it may close. Call this when the
    spider is open. Raises :class:`UnsupportedScrapyError`.
    """
    scraper: Any = getattr(crawler.engine, "scraper", None)
    start_itemproc: Any = getattr(scraper, "start_itemproc_async", None)
    slot: Any = getattr(scraper, "slot", None)
    if not (callable(start_itemproc) and hasattr(slot, "closing") and callable(getattr(slot, "is_idle", None))):
        raise UnsupportedScrapyError(
            "this version of Scrapy does not report when items of start() are processed: the add-on works with "
            f"{SUPPORTED}. Install such a version, or remove scrapy_ext from the settings."
        )

    scraper.start_itemproc_async = _WatchedStartItems(crawler, start_itemproc)


class _WatchedStartItems:
    """``start_itemproc_async`` of a scraper that counts the items of ``start()`` in the pipelines."""

    def __init__(self, crawler: Crawler, process: Callable[..., Awaitable[None]]) -> None:
        self._crawler = crawler
        self._process = process
        self.active = 0

    def __call__(self, item: Any, *, response: object) -> Awaitable[None]:
        # Without a coroutine of its own for the items of callbacks, which are most.
        if response is not None:
            return self._process(item, response=response)
        # Counted here: the coroutine may start later.
        self.active += 1
        return self._processed(item)

    async def _processed(self, item: Any) -> None:
        try:
            await self._process(item, response=None)
        finally:
            self.active -= 1
            slot: Any = self._crawler.engine.scraper.slot
            if slot is not None and slot.closing and not slot.closing.called and slot.is_idle():
                slot.closing.callback(self._crawler.spider)


#: Most requests that wait for the service and lend their places: they are in memory, some kilobytes each, and the queue
#: may hand out another one for each place that is lent.
_MOST_LENT: Final = 10_000
#: The same while every routed request must wait: direct requests continue.
_MOST_LENT_WHEN_PAUSED: Final = 100


class LentPlaces:
    """Places of CONCURRENT_REQUESTS whose requests wait for the limiter: other requests may use them."""

    def __init__(self, crawler: Crawler, limiter: Limiter) -> None:
        self._crawler = crawler
        self._limiter = limiter
        self._lent = 0
        limiter.on_held = self._lend

    def _lend(self) -> None:
        limiter = self._limiter
        downloader: Any = self._crawler.engine.downloader
        places = min(limiter.held, _MOST_LENT_WHEN_PAUSED if limiter.is_all_paused else _MOST_LENT)
        # 0 is no limit. A user's downloader may have no such limit.
        if places == self._lent or not getattr(downloader, "total_concurrency", 0):
            return
        more, self._lent = places - self._lent, places
        downloader.total_concurrency += more
        if more > 0:
            wake(self._crawler)


class _PermittedSlot(Slot):
    """Slot of Scrapy's downloader that sends a request when this worker has a permit for it."""

    def __init__(self, key: str, slot: Slot, permits: Permits) -> None:
        super().__init__(slot.concurrency, slot.delay, jitter_of(slot))
        self._key = key
        self._permits = permits

    def free_transfer_slots(self) -> int:
        """Called before each request is sent: take the permit for one."""
        if not (self.queue and self._permits.take(self._key, len(self.transferring))):
            return 0
        # Scrapy counts it only when the task that sends it runs, after others may have taken permits.
        self.transferring.add(self.queue[0][0])
        return 1

    def download_delay(self) -> float:
        """Return 0: permits have the times of the starts."""
        return 0.0


class _PermittedSlots(dict[str, Slot]):
    """Slots of a downloader by key."""

    def __init__(self, permits: Permits) -> None:
        super().__init__()
        self._permits = permits

    def __setitem__(self, key: str, slot: Slot) -> None:
        super().__setitem__(key, _PermittedSlot(key, slot, self._permits))


def use_permits(crawler: Crawler, permits: Permits) -> None:
    """Let Scrapy's downloader send requests as the permits of this worker allow. Call this before the first request.

    Raises :class:`UnsupportedScrapyError`.
    """
    downloader: Any = crawler.engine.downloader
    process: Callable[[Slot], None] | None = getattr(downloader, "_process_queue", None)
    if not (isinstance(getattr(downloader, "slots", None), dict) and callable(process)):
        raise UnsupportedScrapyError(
            "this downloader has no slots as Scrapy's, by which several workers keep to the limits of a site together: "
            f"the add-on works with that of {SUPPORTED}. Remove DOWNLOADER, or run one worker."
        )
    downloader.slots = slots = _PermittedSlots(permits)

    def demand() -> Iterator[Demand]:
        return (Demand(key, len(slot.transferring), len(slot.queue)) for key, slot in slots.items())

    def send(key: str) -> None:
        slot = slots.get(key)
        if slot is not None and slot.queue:
            process(slot)

    permits.sources.append(demand)
    permits.on_room.append(send)


class DownloaderSlots:
    """Slots of Scrapy's downloader for routed requests: their delays and limits count, those that an extension such as
    AutoThrottle changes as well, and spiders look them up in ``engine.downloader.slots``. Their keys are the hosts of
    requests (:func:`~scrapy_ext.crawl.frontier.identity.host_of`)."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        #: Slots that the user's downloader does not make.
        self._own: dict[str, Slot] = {}

    def limits_of(self, key: str) -> SiteLimits:
        """Return the limits of a slot, whatever the permits of this worker are."""
        slot = self._slot(key)
        return SiteLimits(int(slot.concurrency), slot.delay, jitter_of(slot) > 0)

    def delay_of(self, key: str) -> float:
        """Return the seconds between two requests, drawn anew by each call if they are random."""
        return self._slot(key).download_delay()

    def concurrency_of(self, key: str) -> int:
        """Return the number of requests at once."""
        return int(self._slot(key).concurrency)

    def enter(self, key: str, request: Request) -> None:
        """Keep the slot while a request uses it."""
        self._slot(key).active.add(request)

    def leave(self, key: str, request: Request) -> None:
        """Let the slot go a minute after the last request, as Scrapy does."""
        slot = self._slot(key)
        slot.active.discard(request)
        slot.lastseen = slot_clock()

    def _slot(self, key: str) -> Slot:
        downloader: Any = self._crawler.engine.downloader
        slots: Any = getattr(downloader, "slots", self._own)
        slot: Slot | None = slots.get(key)
        if slot is None:
            get_slot: Any = getattr(downloader, "_get_slot", None)
            if callable(get_slot):
                _, slot = get_slot(Request("http://slot.invalid/", meta={"download_slot": key}))
            else:
                slot = self._own[key] = slot_of(self._crawler.settings, key)
        return slot


def share_values(request: Request, other: Request) -> None:
    """Share the ``meta`` and ``cb_kwargs`` objects of a request with ``other``; Scrapy copies them into each new
    request."""
    theirs: Any = other
    theirs._meta, theirs._cb_kwargs = request.meta, request.cb_kwargs


def _without_making(name: str) -> str:
    """Return the attribute of a request that has the value of a property, or None before its first use."""
    return f"_{name}" if hasattr(Request, f"_{name}") else name


#: Returns headers, cookies, flags, ``meta`` and ``cb_kwargs`` of a request, None or empty where there are none. Most
#: requests that wait have none, and the properties would make them.
values_of: Callable[[Request], tuple[Any, ...]] = attrgetter(
    *map(_without_making, ("headers", "cookies", "flags", "meta", "cb_kwargs"))
)


def is_between_stages(crawler: Crawler, request: Request) -> bool:
    """Return true if a request has left the downloader, and no callback has it: a downloader middleware has just
    replaced it (a retry, a redirect)."""
    engine = crawler.engine
    slot: Any = getattr(engine, "_slot", None)
    scraper_slot = engine.scraper.slot
    return (
        slot is not None
        and request in slot.inprogress
        and request not in engine.downloader.active
        and (scraper_slot is None or request not in scraper_slot.active)
    )


def start_is_exhausted(crawler: Crawler) -> bool:
    """Return true if ``start()`` has nothing more to yield."""
    return getattr(crawler.engine, "_start", None) is None


def start_items_are_processed(crawler: Crawler) -> bool:
    """Return true if no item of ``start()`` is in the pipelines (:func:`close_after_start_items`)."""
    process: Any = crawler.engine.scraper.start_itemproc_async
    return not getattr(process, "active", 0)


def cookies_for_host(jar: CookieJar, host: str) -> Iterator[Cookie]:
    """Yield the cookies of a jar whose domain is a host, or above it."""
    # Python's jar adds .local to a host without a dot.
    hosts = potential_domain_matches(host if "." in host else f"{host}.local")
    by_domain: Any = getattr(jar, "_cookies", None)
    if not isinstance(by_domain, dict):
        yield from (cookie for cookie in jar if cookie.domain in hosts)
        return
    for domain in hosts:
        for by_name in list(by_domain.get(domain, {}).values()):
            yield from list(by_name.values())
