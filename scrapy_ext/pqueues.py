"""``DomainPriorityQueue``: the requests of a domain that must wait stay in the queue."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_ext import settings as names
from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.client.extraction.translate import is_routed
from scrapy_ext.crawl.engine import wake
from scrapy_ext.crawl.session import Session

#: Ends the key of a domain's requests that go direct, which no limit of the service concerns.
_DIRECT: Final = " direct"


class DomainPriorityQueue(DownloaderAwarePriorityQueue):
    """A ``SCHEDULER_PRIORITY_QUEUE`` for crawls through the extraction service.

    Domains take turns. One that the service limits, or that has as many requests under way as it may have, is passed
    over until it has room again, whatever its requests' priority: so they wait here, on disk with ``JOBDIR``, and hold
    no place of ``CONCURRENT_REQUESTS``. What it writes to disk is what Scrapy's own default writes, so that a crawl can
    be resumed with either. Without :class:`~scrapy_ext.downloadermiddlewares.ExtractMiddleware` it is that one.
    """

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        self._limiter: Limiter | None = Session.of(crawler).limiter
        self._transparent: bool = names.EXTRACT_API_TRANSPARENT_MODE.read(crawler.settings)
        #: Keys of :attr:`pqueues` in the order of their turns, and those that are passed over.
        self._turns: deque[str] = deque(self.pqueues)
        self._blocked: set[str] = set()
        #: Requests that were taken from here and have not come as far as the limiter, or may not have.
        self._taken: dict[str, set[Request]] = {}
        self._slots: dict[str, Any] = crawler.settings.getdict("DOWNLOAD_SLOTS")
        self._per_domain = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        if self._limiter is not None:
            self._limiter.on_room.append(self._has_room_again)

    def push(self, request: Request) -> None:
        """Add a request."""
        if self._limiter is None:
            super().push(request)
            return
        key = self._downloader_interface.get_slot_key(request)
        if not is_routed(request, transparent=self._transparent):
            key += _DIRECT
        if key not in self.pqueues:
            self.pqueues[key] = self.pqfactory(key)
            if key not in self._blocked:
                self._turns.append(key)
        self.pqueues[key].push(request)

    def pop(self) -> Request | None:
        """The next request of a domain that has room, or None when none has."""
        if self._limiter is None:
            return super().pop()
        for _ in range(len(self._turns)):
            key = self._turns.popleft()
            if key not in self.pqueues:
                continue
            if not self._has_room(key, self._limiter):
                if key.endswith(_DIRECT) or self._limiter.has_room(key):
                    self._turns.append(key)  # It waits for requests of which the limiter does not know.
                else:
                    self._blocked.add(key)
                continue
            request = self._pop_of(key)
            if key in self.pqueues:
                self._turns.append(key)
            if request is not None:
                self._taken.setdefault(key, set()).add(request)
                self._tidy_up()
                return request
        return None

    def peek(self) -> Request | None:
        """What :meth:`pop` would return."""
        if self._limiter is None:
            return super().peek()
        key = next((key for key in self._turns if key in self.pqueues and self._has_room(key, self._limiter)), None)
        return None if key is None else self.pqueues[key].peek()

    def _pop_of(self, key: str) -> Request | None:
        """Have Scrapy's queue take from this domain, and tidy up after the last of it."""
        others, self.pqueues = self.pqueues, {key: self.pqueues[key]}
        try:
            return super().pop()
        finally:
            if key not in self.pqueues:
                del others[key]
            self.pqueues = others

    def _has_room(self, key: str, limiter: Limiter) -> bool:
        # The engine takes as many as it may at once, before the first of them comes as far as the limiter.
        active = self.crawler.engine.downloader.active
        taken = self._taken.get(key)
        if taken is not None:
            taken &= active
            if not taken:
                del self._taken[key]
        if key.endswith(_DIRECT):
            # As many as Scrapy's downloader sends at once: more would take the places of other domains.
            slot = self._slots.get(key.removesuffix(_DIRECT), {})
            most = int(slot.get("concurrency", self._per_domain))
            return not most or len(taken or ()) < most
        return limiter.has_room(key, len(taken or ()))

    def _tidy_up(self) -> None:
        """Forget the last requests of domains that have no more."""
        active = self.crawler.engine.downloader.active
        if len(self._taken) > 2 * (len(self.pqueues) + len(active)) + 16:
            self._taken = {key: taken & active for key, taken in self._taken.items() if taken & active}

    def _has_room_again(self, domain: str) -> None:
        if domain in self._blocked:
            self._blocked.discard(domain)
            if domain in self.pqueues:
                self._turns.append(domain)
                wake(self.crawler)
