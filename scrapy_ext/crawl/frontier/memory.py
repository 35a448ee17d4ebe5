"""Requests in the memory of this process: waiting ones, in the order of their hosts, and those in the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext.crawl.commit.tracking import Entry, Tracker, current
from scrapy_ext.crawl.frontier.hosts import HostQueue, Order, not_before
from scrapy_ext.crawl.frontier.marks import hand_on
from scrapy_ext.crawl.frontier.sent import MAX_DIRECT, MAX_DIRECT_BYTES, SentRequests
from scrapy_ext.crawl.session.permits import Demand
from scrapy_ext.crawl.session.scrapy_engine import is_between_stages, wake
from scrapy_ext.crawl.session.session import Session


class Memory:
    """Waiting requests, and those in the engine. A request takes one of its host's places from when it is handed out
    until it has left the downloader."""

    def __init__(self, crawler: Crawler, session: Session, tracker: Tracker, sent: SentRequests, order: Order) -> None:
        self.tracker = tracker
        self.sent = sent
        self._crawler = crawler
        self._session = session
        self._order = order
        self._queue: HostQueue[Entry] = HostQueue(
            self._has_room,
            time.time,
            newest_first=order.newest_first,
            last_newest_first=order.start_newest_first,
        )
        #: Bytes of the direct requests that wait.
        self._bytes = 0
        #: Requests that take a place of their host, and that host.
        self._out: dict[Request, str] = {}
        #: Set when the engine releases a request.
        self._released: asyncio.Event | None = None
        self._alarm: asyncio.TimerHandle | None = None
        #: Fingerprints of requests that stay in this process.
        self.local: set[str] = set()
        self._is_open = False

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def waiting(self) -> int:
        """Number of waiting requests that could run, now or when their host has room."""
        return len(self._queue) - self._queue.parked

    @property
    def parked(self) -> int:
        """Number of requests that must wait for a time."""
        return self._queue.parked

    @property
    def takes_direct(self) -> bool:
        """Return true if one more direct request may wait."""
        return len(self._queue) < MAX_DIRECT and self._bytes < MAX_DIRECT_BYTES

    @property
    def expects_requests(self) -> bool:
        """Return true if a read may return requests that are not here, or show that the slots are empty."""
        if self.tracker.unfinished:
            return not self.sent.in_memory
        return not self.sent.only_direct or self.sent.has_direct

    def open(self) -> None:
        """Wake the engine from now on. While the spider opens, Scrapy fails if it looks for a request."""
        self._is_open = True

    def wake(self) -> None:
        """Make the engine look for the next request."""
        if self._is_open:
            wake(self._crawler)

    def push(self, entry: Entry) -> None:
        self._bytes += entry.request_bytes
        when = not_before(entry.request)
        self._queue.push(entry.request.priority, entry.host, entry, when, last=self._order.is_last(entry.request))
        if when:
            self._set_alarm()

    def run_again(self, entry: Entry, request: Request) -> None:
        """Run a complete entry once more, which makes its local requests again."""
        self.local.difference_update(entry.local_fps)
        self.push(self.tracker.again(entry, request))
        self.wake()

    def pop(self) -> Entry | None:
        """Hand out the next request, None if there is none for now."""
        popped = self._queue.pop()
        if popped is None:
            return None
        host, entry = popped
        self._bytes -= entry.request_bytes
        self._out[self.tracker.handed_out(entry)] = host
        return entry

    def none_left(self) -> None:
        """Record that the engine got no request."""
        current.set(None)
        self._set_alarm()

    def downloaded(self, request: Request) -> None:
        """Free the place that a request took of its host."""
        host = self._out.pop(request, None)
        if host is not None:
            self._queue.release(host)

    def finished(self, request: Request) -> Entry | None:
        """Record that the engine has released a request; return what :meth:`Tracker.finished` returns."""
        self.downloaded(request)
        entry = self.tracker.finished(request)
        if self._released is not None:
            self._released.set()
        return entry

    def has_room_again(self, host: str) -> None:
        """Record that a limit of the service for a host has changed."""
        if self._queue.look_again(host):
            self.wake()

    def demand(self) -> Iterator[Demand]:
        """Yield the hosts with waiting requests."""
        return (Demand(host, 0, waiting) for host, waiting in self._queue.waiting())

    def park_host(self, host: str, seconds: float) -> None:
        """Send nothing more to a host for some seconds."""
        self._queue.park(host, time.time() + seconds)

    def asleep(self) -> None:
        """Free the place of the current request, which waits for its next attempt, for others of its host."""
        entry = current.get()
        if isinstance(entry, Entry):
            self.downloaded(entry.request)

    def origin(self) -> Entry | None:
        """Return the entry that runs now, None if it is complete."""
        entry = current.get()
        return entry if isinstance(entry, Entry) and self.tracker.is_open(entry) else None

    def is_replacement(self, origin: Entry, request: Request) -> bool:
        """Return true if a downloader middleware has replaced the request of ``origin``, as a retry does."""
        return (
            request.dont_filter and origin.request is not request and is_between_stages(self._crawler, origin.request)
        )

    def own(self, request: Request) -> Request:
        """Return the request, or a copy if it stands for another entry: a spider may yield the same object twice."""
        if request not in self.tracker:
            return request
        copy = request.copy()
        hand_on(request, copy)
        return copy

    async def give_up(self, slots: set[int]) -> None:
        """Drop the waiting requests of these slots, and wait until the others are complete."""
        for entry in self._queue.remove(lambda entry: entry.slot in slots):
            self._bytes -= entry.request_bytes
            self.tracker.drop(entry)
        while slots and self.tracker.entries_of(slots):
            self._released = asyncio.Event()
            await self._released.wait()

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _has_room(self, host: str, out: int) -> bool:
        """Return true if one more request of a host may go to the downloader. As in Scrapy, delay and concurrency of
        the host do not limit the number in the downloader; only a host that the service limits has to wait, and with
        several workers one of which this worker has no permit."""
        permits, limiter = self._session.permits, self._session.limiter
        if permits is not None and not permits.has_room(host, out):
            return False
        return limiter is None or not limiter.is_limited(host) or limiter.has_room(host, out)

    def _set_alarm(self) -> None:
        """Wake the engine when the first parked request may run."""
        due = self._queue.next_due
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if due is not None:
            delay = max(0.0, due - time.time()) + 0.001
            self._alarm = asyncio.get_running_loop().call_later(delay, self.wake)
