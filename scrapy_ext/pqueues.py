"""``DomainPriorityQueue``: keeps requests of rate-limited domains in the queue."""

from __future__ import annotations

from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_ext import settings as names
from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.crawl.extraction.content import is_routed
from scrapy_ext.crawl.frontier.hosts import Turns
from scrapy_ext.crawl.session.scrapy_engine import wake
from scrapy_ext.crawl.session.session import Session

#: Suffix of the key of a domain's direct requests, which no limit of the service affects.
_DIRECT: Final = " direct"


class DomainPriorityQueue(DownloaderAwarePriorityQueue):
    """A ``SCHEDULER_PRIORITY_QUEUE`` for crawls through the extraction service.

    Requests come out in the order of Scrapy's ``DownloaderAwarePriorityQueue``, but a domain at a limit of the service
    is skipped. So its requests wait here, on disk with ``JOBDIR``, and occupy no slot of ``CONCURRENT_REQUESTS``. The
    disk format is that of Scrapy's queue: a crawl can be resumed with either. Without
    :class:`~scrapy_ext.downloadermiddlewares.ExtractMiddleware` it behaves like Scrapy's queue.
    """

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        self._limiter: Limiter | None = Session.of(crawler).limiter
        self._transparent: bool = names.EXTRACT_API_TRANSPARENT_MODE.read(crawler.settings)
        #: Turns of the keys of :attr:`pqueues`, and the requests in the downloader that were taken from here.
        self._turns = Turns(self._has_room)
        self._out: dict[Request, str] = {}
        if self._limiter is not None:
            for key in self.pqueues:
                self._turns.line_up(key)
            self._limiter.on_room.append(self._has_room_again)

    def push(self, request: Request) -> None:
        if self._limiter is None:
            super().push(request)
            return
        key = self._downloader_interface.get_slot_key(request)
        if not is_routed(request, transparent=self._transparent):
            key += _DIRECT
        if key not in self.pqueues:
            self.pqueues[key] = self.pqfactory(key)
            self._turns.line_up(key)
        self.pqueues[key].push(request)

    def pop(self) -> Request | None:
        """Return the next request of a domain with room, or None."""
        if self._limiter is None:
            return super().pop()
        self._release_finished()
        request = None
        while request is None and (key := self._turns.next()) is not None:
            request = self._pop_of(key)
            self._turns.begin(key)
            if request is None:
                self._turns.end(key)
            else:
                self._out[request] = key
            if key in self.pqueues:
                self._turns.line_up(key)
        return request

    def peek(self) -> Request | None:
        """Return the result of the next :meth:`pop`."""
        if self._limiter is None:
            return super().peek()
        self._release_finished()
        key = next(filter(self._turns.has_room, self._turns), None)
        return None if key is None else self.pqueues[key].peek()

    def _pop_of(self, key: str) -> Request | None:
        """Take a request of this domain from Scrapy's queue, and remove the domain after its last one."""
        others, self.pqueues = self.pqueues, {key: self.pqueues[key]}
        try:
            return super().pop()
        finally:
            if key not in self.pqueues:
                del others[key]
            self.pqueues = others

    def _release_finished(self) -> None:
        active = self.crawler.engine.downloader.active
        for request in [request for request in self._out if request not in active]:
            key = self._out.pop(request)
            self._turns.end(key)
            if key in self.pqueues:
                self._turns.line_up(key)

    def _has_room(self, key: str, running: int) -> bool:
        # The engine takes several requests at once, before the first of them reaches the limiter.
        limiter = self._limiter
        return limiter is None or key.endswith(_DIRECT) or not limiter.is_limited(key) or limiter.has_room(key, running)

    def _has_room_again(self, domain: str) -> None:
        if domain in self.pqueues and domain not in self._turns:
            self._turns.line_up(domain)
            if domain in self._turns:
                wake(self.crawler)
