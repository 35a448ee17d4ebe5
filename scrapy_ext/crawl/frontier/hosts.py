"""Queue of the requests in memory, in the order of Scrapy's scheduler: hosts take turns, and within a host the highest
priority comes first; of equal ones, the newest or oldest (:class:`Order`).

A host without room takes no turns until one of its requests comes back. A host or a request that must wait for a time
is in a heap until then, so that a pop never examines requests that cannot run.
"""

from __future__ import annotations

import heapq
import logging
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from scrapy import Request
from scrapy.http import Response
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ext import settings as names
from scrapy_ext.api.masking import without_user
from scrapy_ext.client.retry import parse_retry_after
from scrapy_ext.compatibility.python import Self
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

T = TypeVar("T")

DEPTH_FIRST: Final = "depth-first"
BREADTH_FIRST: Final = "breadth-first"
_NEVER: Final = 0.0
#: Added to the rank of a request that goes after the others of its priority.
_LAST: Final = 2**62
#: Statuses of responses whose ``Retry-After`` counts.
_STATUSES: Final = (429, 503)
#: Upper limit of a ``Retry-After``, in seconds.
_LONGEST: Final = 3600.0


class Turns:
    """Turns of download slots, in the order of Scrapy's ``DownloaderAwarePriorityQueue``.

    The slot with the fewest running requests is next; of several, the one after the last served in alphabetical order.
    A slot without room takes no turns until :meth:`line_up` is called for it: when one of its requests has ended, or
    when it may have room again for another reason. An operation costs about O(log n).

    ``has_room(name, running)``: whether one more request of a slot may run.
    """

    def __init__(self, has_room: Callable[[str, int], bool]) -> None:
        self._has_room = has_room
        #: Number of running requests of the slots that have some, and of those that take turns.
        self._running: dict[str, int] = {}
        self._lined_up: dict[str, int] = {}
        #: Sorted names by number of running requests.
        self._names: dict[int, list[str]] = {}
        self._last = ""

    def __contains__(self, name: str) -> bool:
        return name in self._lined_up

    def __iter__(self) -> Iterator[str]:
        for running in sorted(self._names):
            names = self._names[running]
            after = bisect_right(names, self._last)
            yield from names[after:]
            yield from names[:after]

    def running(self, name: str) -> int:
        """Return the number of running requests of a slot."""
        return self._running.get(name, 0)

    def has_room(self, name: str) -> bool:
        return self._has_room(name, self.running(name))

    def line_up(self, name: str) -> None:
        """Let a slot, which has a request that may run, take turns if it has room."""
        running = self.running(name)
        if self._lined_up.get(name) == running:
            return
        self.leave(name)
        if self._has_room(name, running):
            self._lined_up[name] = running
            names = self._names.setdefault(running, [])
            names.insert(bisect_left(names, name), name)

    def leave(self, name: str) -> None:
        """Let a slot take no turns for now."""
        running = self._lined_up.pop(name, None)
        if running is None:
            return
        names = self._names[running]
        del names[bisect_left(names, name)]
        if not names:
            del self._names[running]

    def next(self) -> str | None:
        """Return the slot whose turn it is, None if no slot has room. Slots without room take no turns any more."""
        while self._names:
            names = self._names[min(self._names)]
            after = bisect_right(names, self._last)
            name = names[after] if after < len(names) else names[0]
            if self.has_room(name):
                return name
            self.leave(name)
        return None

    def begin(self, name: str) -> None:
        """Record that a request of a slot runs; it takes its next turn after :meth:`line_up`."""
        self._last = name
        self.leave(name)
        self._running[name] = self.running(name) + 1

    def end(self, name: str) -> None:
        """Record that a request of a slot no longer runs."""
        self._running[name] -= 1
        if not self._running[name]:
            del self._running[name]


class _Host(msgspec.Struct, Generic[T], eq=False):
    name: str
    #: Heap of (negative priority, rank among equal priorities, value).
    queue: list[tuple[int, int, T]] = msgspec.field(default_factory=list)
    #: Time before which none of its requests may run.
    not_before: float = _NEVER


class HostQueue(Generic[T]):
    """Priority queue in which hosts take turns.

    ``has_room(host, running)``: whether one more request of a host may run.
    ``clock``: time in seconds.
    ``newest_first``: order of requests of one host and priority, as from Scrapy's LIFO queues.
    ``last_newest_first``: the same for requests pushed with ``last``, which follow the others of their priority.
    """

    def __init__(
        self,
        has_room: Callable[[str, int], bool],
        clock: Callable[[], float] = time.monotonic,
        *,
        newest_first: bool = False,
        last_newest_first: bool = False,
    ) -> None:
        self._clock = clock
        self._newest_first = newest_first
        self._last_newest_first = last_newest_first
        self._hosts: dict[str, _Host[T]] = {}
        #: Hosts with a request that may run.
        self._turns = Turns(has_room)
        #: Heap of (when, order, host, the request to push then or None for the host itself).
        self._parked: list[tuple[float, int, str, tuple[int, T, bool] | None]] = []
        self._order = count(1)
        self._length = 0
        #: Requests in :attr:`_parked`, and those of hosts in it.
        self._waiting = 0

    def __len__(self) -> int:
        return self._length

    @property
    def parked(self) -> int:
        """Number of requests that must wait for a time."""
        return self._waiting

    @property
    def next_due(self) -> float | None:
        """Time at which the first parked request or host may run, None if there is none."""
        return self._parked[0][0] if self._parked else None

    def push(self, priority: int, host_name: str, value: T, not_before: float = _NEVER, *, last: bool = False) -> None:
        """Add a request that must not run before a time."""
        self._length += 1
        if not_before > _NEVER and not_before > self._clock():
            heapq.heappush(self._parked, (not_before, next(self._order), host_name, (priority, value, last)))
            self._waiting += 1
        else:
            self._push(priority, host_name, value, last=last)

    def park(self, host_name: str, not_before: float) -> None:
        """Serve nothing of a host before a time; an earlier one than its present one changes nothing."""
        host = self._host(host_name)
        if not_before > max(host.not_before, self._clock()):
            if not host.not_before:
                self._waiting += len(host.queue)
            host.not_before = not_before
            self._turns.leave(host_name)
            heapq.heappush(self._parked, (not_before, next(self._order), host_name, None))

    def pop(self) -> tuple[str, T] | None:
        """Return the next host and request, None if every host with requests must wait."""
        if self._parked:
            self._serve_due()
        name = self._turns.next()
        if name is None:
            return None
        host = self._hosts[name]
        _, _, value = heapq.heappop(host.queue)
        self._length -= 1
        self._turns.begin(name)
        self._line_up(host)
        return name, value

    def release(self, host_name: str) -> None:
        """Record that a popped request of a host no longer runs."""
        host = self._hosts[host_name]
        self._turns.end(host_name)
        self._line_up(host)
        self._forget(host)

    def look_again(self, host_name: str) -> bool:
        """Return true if a host that had no room can be served now. Call it when the host may have room again."""
        host = self._hosts.get(host_name)
        if host is None or host_name in self._turns:
            return False
        self._line_up(host)
        return host_name in self._turns

    def waiting(self) -> Iterator[tuple[str, int]]:
        """Yield the hosts that may be served, with their waiting requests."""
        for host in self._hosts.values():
            if host.queue and not host.not_before:
                yield host.name, len(host.queue)

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove and return the waiting requests that are unwanted."""
        taken: list[T] = []
        for host in list(self._hosts.values()):
            gone = [value for _, _, value in host.queue if unwanted(value)]
            if gone:
                taken += gone
                self._waiting -= len(gone) if host.not_before else 0
                host.queue = [entry for entry in host.queue if not unwanted(entry[2])]
                heapq.heapify(host.queue)
                self._line_up(host)
                self._forget(host)
        waiting = [entry[3][1] for entry in self._parked if entry[3] is not None and unwanted(entry[3][1])]
        if waiting:
            self._parked = [entry for entry in self._parked if entry[3] is None or not unwanted(entry[3][1])]
            heapq.heapify(self._parked)
            self._waiting -= len(waiting)
        self._length -= len(taken) + len(waiting)
        return taken + waiting

    def _push(self, priority: int, host_name: str, value: T, *, last: bool) -> None:
        host = self._host(host_name)
        rank = next(self._order)
        if self._last_newest_first if last else self._newest_first:
            rank = -rank
        if last:
            rank += _LAST
        heapq.heappush(host.queue, (-priority, rank, value))
        if host.not_before:
            self._waiting += 1
        if host_name not in self._turns:
            self._line_up(host)

    def _serve_due(self) -> None:
        now = self._clock()
        while self._parked and self._parked[0][0] <= now:
            when, _, host_name, request = heapq.heappop(self._parked)
            if request is not None:
                self._waiting -= 1
                priority, value, last = request
                self._push(priority, host_name, value, last=last)
                continue
            host = self._hosts[host_name]
            if host.not_before > when:
                continue  # It was parked again, for longer.
            host.not_before = _NEVER
            self._waiting -= len(host.queue)
            self._line_up(host)
            self._forget(host)

    def _host(self, name: str) -> _Host[T]:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(name)
        return host

    def _line_up(self, host: _Host[T]) -> None:
        """Let a host take turns if one of its requests may run."""
        if host.queue and not host.not_before:
            self._turns.line_up(host.name)
        else:
            self._turns.leave(host.name)

    def _forget(self, host: _Host[T]) -> None:
        if not (host.queue or host.not_before or self._turns.running(host.name)):
            del self._hosts[host.name]


def not_before(request: Request) -> float:
    """Return the time before which a request must not be sent (meta ``frontier_not_before``), in seconds since the
    epoch, else 0. Another value is named in a warning."""
    when: object = request.meta.get("frontier_not_before")
    if when is None:
        return 0.0
    # A date that is no number has no place among the times, and one that is infinite or beyond all floats never comes.
    if isinstance(when, int | float) and not isinstance(when, bool) and abs(when) <= sys.float_info.max:
        return float(when)
    logger.warning(
        'meta["frontier_not_before"] of %s must be seconds since the epoch, such as time.time() + 600, got %.60r: the '
        "request is not delayed",
        *(request, when),
    )
    return 0.0


def retry_after(response: Response) -> float | None:
    """Return the seconds for which a site is left alone, None if it does not ask for it. A cut is logged."""
    if response.status not in _STATUSES:
        return None
    value = response.headers.get("Retry-After")
    seconds = parse_retry_after(value.decode("latin-1")) if value else None
    if not seconds:
        return None
    if seconds > _LONGEST:
        logger.warning(
            "%s asks for a pause of %.0f seconds (Retry-After). Requests to its host wait for %.0f, the longest pause; "
            "to wait longer, stop the crawl and resume it later",
            without_user(response.url),
            seconds,
            _LONGEST,
        )
    return min(seconds, _LONGEST)


class Order(NamedTuple):
    """Order of requests. ``newest_first``: as in Scrapy's LIFO queues; ``start_last``: start requests follow the
    others, oldest first or, with ``start_newest_first``, newest first."""

    newest_first: bool
    start_last: bool
    start_newest_first: bool = False

    @classmethod
    def of(cls, settings: BaseSettings) -> Self:
        """Return the order of ``FRONTIER_ORDER``, else that of Scrapy's memory queues. Raises :class:`SettingError`."""
        asked: str | None = names.FRONTIER_ORDER.read(settings)
        if asked == DEPTH_FIRST:
            return cls(newest_first=True, start_last=True)
        if asked == BREADTH_FIRST:
            return cls(newest_first=False, start_last=False)
        if asked is not None:
            raise SettingError(
                "FRONTIER_ORDER",
                f"must be {DEPTH_FIRST!r} or {BREADTH_FIRST!r}, got {asked[:60]!r}",
                "Leave it out for the order of SCHEDULER_MEMORY_QUEUE, depth-first by default.",
            )
        start = settings["SCHEDULER_START_MEMORY_QUEUE"]
        return cls(
            newest_first=_is_lifo(settings["SCHEDULER_MEMORY_QUEUE"]),
            start_last=bool(start),
            start_newest_first=bool(start) and _is_lifo(start),
        )

    def is_last(self, request: Request) -> bool:
        """Return true if a request follows the others of its host and priority."""
        return self.start_last and bool(request.meta.get("is_start_request"))


def warn_of_own_queues(settings: BaseSettings) -> None:
    """Warn of queue classes of the project, whose order the frontier does not keep."""
    turns, memory = (load_object(settings[name]) for name in ("SCHEDULER_PRIORITY_QUEUE", "SCHEDULER_MEMORY_QUEUE"))
    has_own_turns = turns is not DownloaderAwarePriorityQueue and not turns.__module__.startswith("scrapy_ext.")
    own = {"SCHEDULER_PRIORITY_QUEUE": has_own_turns, "SCHEDULER_MEMORY_QUEUE": memory.__module__ != "scrapy.squeues"}
    for name in filter(own.get, own):
        logger.warning(
            "%s is not used with the frontier, whose order is that of Scrapy's default queues or of FRONTIER_ORDER. To "
            "have the order of this class, set FRONTIER_ENABLED = False",
            name,
        )


def _is_lifo(queue: Any) -> bool:
    # The order of Scrapy's queue classes shows in their bases alone; queuelib's LIFO queue is a subclass of its FIFO
    # queue.
    bases = " ".join(base.__name__.lower() for base in load_object(queue).__mro__)
    return "lifo" in bases or "fifo" not in bases
