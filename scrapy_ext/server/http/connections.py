"""The bounds of open connections, and the choice of those to close when there are too many.

A connection is new until its first request has arrived whole, busy during a request, and idle between two. These rules
keep the server reachable for a client with a request, whatever other clients do:

- At the bound of an address, its oldest new or idle connection is closed for the next one.
- At the bound of all, the oldest new connection is closed if it has had time for a request, else the oldest idle one.
  At most half of all connections are new.
- While all are busy, :data:`RESERVE` more are accepted, whose requests are refused, except ``/healthz``, ``/readyz``
  and ``/metrics``.

The bound of all follows from the number of files that the process may open, of which a part is reserved for the
database, fetched pages, the browser and jobs.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable
from typing import Final, Protocol

from scrapy_ext.server.http import limits

#: Connections above the bound, for monitoring and for refusals.
RESERVE: Final = 64
#: The part of all files that connections may use, and of all connections that one address may.
_FILES: Final = 0.5
_ADDRESS: Final = 0.75

#: Seconds within which the request of a new connection usually arrives.
_SOON: Final = 1.0


class Open(Protocol):
    client: tuple[str, int] | None

    def close_idle(self, reason: str) -> None:
        """Close the connection, which has no request under way."""


class Connections:
    """At most ``limit`` connections, ``per_address`` of an address other than this machine and ``proxies``."""

    def __init__(self, limit: int, per_address: int | None = None, proxies: Iterable[str] = ()) -> None:
        self.limit = limit
        self.per_address = per_address or max(1, int(limit * _ADDRESS))
        self._proxies = tuple(map(ipaddress.ip_network, proxies))
        #: New connections with the time of their start, and idle ones, oldest first.
        self.new: dict[Open, float] = {}
        self.idle: dict[Open, None] = {}
        self._all: set[Open] = set()
        #: Connections of each address with a bound.
        self._of: dict[str, set[Open]] = {}
        #: Those of them that are new or idle, oldest first.
        self._free_of: dict[str, dict[Open, None]] = {}
        #: Numbers of closed or refused connections, by reason.
        self.closed = {"address": 0, "limit": 0, "late": 0, "idle": 0, "pipeline": 0, "slow": 0, "memory": 0}

    def __len__(self) -> int:
        return len(self._all)

    def made(self, connection: Open) -> None:
        """Add a new connection; close another one if there are too many."""
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
        """Mark a connection as busy with a request; return the exceeded bound if it must be refused."""
        self.new.pop(connection, None)
        self.idle.pop(connection, None)
        address = self._bounded(connection)
        if address is not None and address in self._of:
            self._free_of[address].pop(connection, None)
            if len(self._of[address]) > self.per_address:
                return "address"
        return "limit" if len(self._all) > self.limit else None

    def rest(self, connection: Open) -> None:
        """Mark a connection as idle."""
        if connection not in self._all:
            return
        self.idle[connection] = None
        address = self._bounded(connection)
        if address is not None and address in self._free_of:
            self._free_of[address][connection] = None

    def _bounded(self, connection: Open) -> str | None:
        """Return the address of a connection if it has a bound; None for this machine and proxies."""
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
        """Return true when the reserve is used up, too."""
        return len(self._all) > self.limit + RESERVE


def _close(oldest: Open, reason: str, newest: Open) -> None:
    if oldest is not newest:
        oldest.close_idle(reason)


def limit_of(files: int, wanted: int = limits.CONNECTIONS) -> int:
    """Return the bound of connections for a process that may open so many files."""
    return max(1, min(wanted, int(files * _FILES)))
