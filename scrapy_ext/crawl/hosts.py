"""Queue of the requests in memory: by priority, in turn among hosts, newest or oldest first within a host.

A host that has as many requests out as it may have is out of the heap until one comes back, and a host or a request
that must wait for a time is in a heap of its own until then: a pop never looks at what cannot be served. O(log n) in
the number of hosts.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_NEVER: Final = 0.0
#: Added to the rank of a request that goes after the others of its priority.
_LAST: Final = 2**62
#: Entries of the heap that are no longer valid, beyond one for each host, before they are cleared away.
_STALE: Final = 1000


class _Host(Generic[T]):
    __slots__ = ("name", "not_before", "out", "queue", "turn")

    def __init__(self, name: str) -> None:
        self.name = name
        #: Heap of (negative priority, rank among equal priorities, value).
        self.queue: list[tuple[int, int, T]] = []
        #: Requests handed out and not back.
        self.out = 0
        #: The one entry of the heap of hosts that is valid for this host; 0: it is not in the heap.
        self.turn = 0
        #: On the clock; nothing of it is served earlier.
        self.not_before = _NEVER


class HostQueue(Generic[T]):
    """A priority queue that takes turns among hosts.

    ``capacity`` gives how many requests of a host may be out at once; 0 is no limit. Times are those of ``clock``,
    in seconds. With ``newest_first``, requests of one host and priority come out in reverse order, as from Scrapy's
    LIFO queues. Those that are pushed with ``last`` come after the others of their priority, in order, or in reverse
    order with ``last_newest_first``.
    """

    def __init__(
        self,
        capacity: Callable[[str], int],
        clock: Callable[[], float] = time.monotonic,
        *,
        newest_first: bool = False,
        last_newest_first: bool = False,
    ) -> None:
        self._capacity = capacity
        self._clock = clock
        self._newest_first = newest_first
        self._last_newest_first = last_newest_first
        self._hosts: dict[str, _Host[T]] = {}
        #: Heap of (negative priority of its next request, turn, host).
        self._ready: list[tuple[int, int, _Host[T]]] = []
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
        """How many of the requests must wait for a time."""
        return self._waiting

    @property
    def next_due(self) -> float | None:
        """When the first of what must wait may be served; None when nothing must wait."""
        return self._parked[0][0] if self._parked else None

    def push(self, priority: int, host_name: str, value: T, not_before: float = _NEVER, *, last: bool = False) -> None:
        """Add a request, not to be served before a time."""
        self._length += 1
        if not_before > _NEVER and not_before > self._clock():
            heapq.heappush(self._parked, (not_before, next(self._order), host_name, (priority, value, last)))
            self._waiting += 1
        else:
            self._push(priority, host_name, value, last=last)

    def park(self, host_name: str, not_before: float) -> None:
        """Serve nothing of a host before a time; an earlier time than it has already changes nothing."""
        host = self._host(host_name)
        if not_before > max(host.not_before, self._clock()):
            if not host.not_before:
                self._waiting += len(host.queue)
            host.not_before = not_before
            host.turn = 0
            heapq.heappush(self._parked, (not_before, next(self._order), host_name, None))

    def pop(self) -> tuple[str, T] | None:
        """The next host and request, or None when every host with requests must wait."""
        if self._parked:
            self._serve_due()
        while self._ready:
            _, turn, host = heapq.heappop(self._ready)
            if turn != host.turn:
                continue
            host.turn = 0
            _, _, value = heapq.heappop(host.queue)
            self._length -= 1
            host.out += 1
            if host.queue and self._has_room(host):
                self._line_up(host)
            return host.name, value
        return None

    def release(self, host_name: str) -> None:
        """A request of a host that was popped is back."""
        host = self._hosts[host_name]
        host.out -= 1
        if host.queue:
            if not host.turn and self._has_room(host):
                self._line_up(host)
        elif not host.out and not host.not_before:
            del self._hosts[host_name]

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Take out those of what was not popped that are unwanted."""
        taken: list[T] = []
        for host in list(self._hosts.values()):
            gone = [value for _, _, value in host.queue if unwanted(value)]
            if gone:
                taken += gone
                self._waiting -= len(gone) if host.not_before else 0
                host.queue = [entry for entry in host.queue if not unwanted(entry[2])]
                heapq.heapify(host.queue)
                host.turn = 0
                if host.queue and self._has_room(host):
                    self._line_up(host)
                elif not (host.queue or host.out or host.not_before):
                    del self._hosts[host.name]
        waiting = [entry[3][1] for entry in self._parked if entry[3] is not None and unwanted(entry[3][1])]
        if waiting:
            self._parked = [entry for entry in self._parked if entry[3] is None or not unwanted(entry[3][1])]
            heapq.heapify(self._parked)
            self._waiting -= len(waiting)
        self._length -= len(taken) + len(waiting)
        return taken + waiting

    def _push(self, priority: int, host_name: str, value: T, *, last: bool) -> None:
        host = self._host(host_name)
        overtakes = not host.queue or -priority < host.queue[0][0]
        rank = next(self._order)
        if self._last_newest_first if last else self._newest_first:
            rank = -rank
        if last:
            rank += _LAST
        heapq.heappush(host.queue, (-priority, rank, value))
        if host.not_before:
            self._waiting += 1
        if (overtakes or not host.turn) and self._has_room(host):
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
                continue  # It was parked for longer since.
            host.not_before = _NEVER
            self._waiting -= len(host.queue)
            if host.queue:
                if not host.turn and self._has_room(host):
                    self._line_up(host)
            elif not host.out:
                del self._hosts[host_name]

    def _host(self, name: str) -> _Host[T]:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(name)
        return host

    def _has_room(self, host: _Host[T]) -> bool:
        if host.not_before:
            return False
        capacity = self._capacity(host.name)
        return capacity <= 0 or host.out < capacity

    def _line_up(self, host: _Host[T]) -> None:
        if len(self._ready) > 2 * len(self._hosts) + _STALE:
            self._ready = [entry for entry in self._ready if entry[1] == entry[2].turn]
            heapq.heapify(self._ready)
        host.turn = next(self._order)
        heapq.heappush(self._ready, (host.queue[0][0], host.turn, host))
