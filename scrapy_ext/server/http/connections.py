"""The connections of the server: how many there may be, and which are closed when there are too many.

A connection is new until its first request has come whole, busy while a request is under way, and idle between two.
Rules, so that a client with a request gets in whatever others do:

- Where the bound of an address is reached, the oldest new or idle connection of that address is closed for the next.
- Where the bound of all is reached, the oldest new one is closed if it has had time for a request, else the oldest
  idle one. No more than half of all are new.
- Where all are busy, :data:`RESERVE` more get in, whose requests are refused. ``/healthz``, ``/readyz`` and
  ``/metrics`` are answered on these, too.

The bound of all follows from the number of files that the process may open, of which a part is kept for the database,
for pages that are fetched, the browser and jobs.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable
from typing import Final, Protocol

from scrapy_ext.server.http import limits

#: Connections above the bound, for those that watch the server and to refuse the others.
RESERVE: Final = 64
#: The part of the files that connections may take, and of connections that one address may.
_FILES: Final = 0.5
_ADDRESS: Final = 0.75

#: Seconds in which the request of a new connection has mostly come.
_SOON: Final = 1.0


class Open(Protocol):
    """A connection that is open."""

    client: tuple[str, int] | None

    def close_idle(self, reason: str) -> None:
        """Close it, no request being under way."""


class Connections:
    """``limit`` at once, ``per_address`` of them from an address that is neither this machine's nor in ``proxies``."""

    def __init__(self, limit: int, per_address: int | None = None, proxies: Iterable[str] = ()) -> None:
        self.limit = limit
        self.per_address = per_address or max(1, int(limit * _ADDRESS))
        self._proxies = tuple(map(ipaddress.ip_network, proxies))
        #: New ones, and when they came, and idle ones: the oldest first.
        self.new: dict[Open, float] = {}
        self.idle: dict[Open, None] = {}
        self._all: set[Open] = set()
        #: Of the addresses that have a bound.
        self._of: dict[str, set[Open]] = {}
        #: Of the same, those that are new or idle, the oldest first.
        self._free_of: dict[str, dict[Open, None]] = {}
        #: Connections that were closed or refused, by reason.
        self.closed = {"address": 0, "limit": 0, "late": 0, "idle": 0, "pipeline": 0, "slow": 0, "memory": 0}

    def __len__(self) -> int:
        return len(self._all)

    def made(self, connection: Open) -> None:
        """Take a new connection, for which another may have to go."""
        self._all.add(connection)
        self.new[connection] = time.monotonic()
        address = self._bounded(connection)
        if address is not None:
            self._of.setdefault(address, set()).add(connection)
            self._free_of.setdefault(address, {})[connection] = None
            if len(self._of[address]) > self.per_address:
                _close(next(iter(self._free_of[address])), "address", connection)
        if len(self.new) > self.limit // 2:
            _close(next(iter(self.new)), "limit", connection)
        elif len(self._all) > self.limit:
            self._make_room(connection)

    def _make_room(self, connection: Open) -> None:
        oldest, since = next(iter(self.new.items()))
        if time.monotonic() - since < _SOON:
            if self.idle:
                oldest = next(iter(self.idle))
            elif len(self._all) <= self.limit + RESERVE // 2:
                return
        _close(oldest, "limit", connection)

    def lost(self, connection: Open) -> None:
        """Forget one that is closed."""
        self._all.discard(connection)
        self.new.pop(connection, None)
        self.idle.pop(connection, None)
        address = self._bounded(connection)
        if address is not None and (own := self._of.get(address)) is not None:
            own.discard(connection)
            self._free_of[address].pop(connection, None)
            if not own:
                del self._of[address], self._free_of[address]

    def busy(self, connection: Open) -> str | None:
        """A request has come on it; returns why it cannot be answered, if it cannot."""
        self.new.pop(connection, None)
        self.idle.pop(connection, None)
        address = self._bounded(connection)
        if address is not None and address in self._of:
            self._free_of[address].pop(connection, None)
            if len(self._of[address]) > self.per_address:
                return "address"
        return "limit" if len(self._all) > self.limit else None

    def rest(self, connection: Open) -> None:
        """Its request was answered."""
        if connection not in self._all:
            return
        self.idle[connection] = None
        address = self._bounded(connection)
        if address is not None and address in self._free_of:
            self._free_of[address][connection] = None

    def _bounded(self, connection: Open) -> str | None:
        """The address of a connection whose number is bounded; None for this machine and proxies."""
        host = connection.client[0] if connection.client else ""
        if not host or host in ("127.0.0.1", "::1"):
            return None
        if not self._proxies:
            return host
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host
        return None if address.is_loopback or any(address in network for network in self._proxies) else host

    def full(self) -> bool:
        """Return whether not even those that watch the server get in."""
        return len(self._all) > self.limit + RESERVE


def _close(oldest: Open, reason: str, newest: Open) -> None:
    if oldest is not newest:
        oldest.close_idle(reason)


def limit_of(files: int, wanted: int = limits.CONNECTIONS) -> int:
    """Connections for a process that may open so many files."""
    return max(1, min(wanted, int(files * _FILES)))
