"""Whose turn it is: requests in memory, by priority and in turn among hosts.

A host that has as many requests out as it may have is out of the heap until one comes back, so that a pop
never looks at hosts which cannot be served: O(log n) in the number of hosts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class _Host(Generic[T]):
    __slots__ = ("name", "out", "queue", "turn")

    def __init__(self, name: str) -> None:
        self.name = name
        #: Heap of (negative priority, order of arrival, value).
        self.queue: list[tuple[int, int, T]] = []
        #: Requests handed out and not back.
        self.out = 0
        #: The one entry of the heap of hosts that is valid for this host; 0: it is not in the heap.
        self.turn = 0


class HostQueue(Generic[T]):
    """A priority queue that takes turns among hosts.

    ``capacity`` gives how many requests of a host may be out at once; 0 is no limit.
    """

    def __init__(self, capacity: Callable[[str], int]) -> None:
        self._capacity = capacity
        self._hosts: dict[str, _Host[T]] = {}
        #: Heap of (negative priority of its next request, turn, host).
        self._ready: list[tuple[int, int, _Host[T]]] = []
        self._order = count(1)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, priority: int, host_name: str, value: T) -> None:
        """Add a request; among equal priorities a host's requests keep their order."""
        host = self._hosts.get(host_name)
        if host is None:
            host = self._hosts[host_name] = _Host(host_name)
        overtakes = not host.queue or -priority < host.queue[0][0]
        heapq.heappush(host.queue, (-priority, next(self._order), value))
        self._length += 1
        if (overtakes or not host.turn) and self._has_room(host):
            self._line_up(host)

    def pop(self) -> tuple[str, T] | None:
        """The next host and request, or None when every host with requests has as many out as it may."""
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
        elif not host.out:
            del self._hosts[host_name]

    def drain(self) -> list[T]:
        """Take everything out that was not popped."""
        values = [value for host in self._hosts.values() for _, _, value in sorted(host.queue)]
        for host in self._hosts.values():
            host.queue.clear()
            host.turn = 0
        self._ready.clear()
        self._length = 0
        return values

    def _has_room(self, host: _Host[T]) -> bool:
        capacity = self._capacity(host.name)
        return capacity <= 0 or host.out < capacity

    def _line_up(self, host: _Host[T]) -> None:
        host.turn = next(self._order)
        heapq.heappush(self._ready, (host.queue[0][0], host.turn, host))
