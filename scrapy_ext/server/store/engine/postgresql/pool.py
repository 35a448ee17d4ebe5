"""Connection pool. Unlike in the driver's, acquiring an idle connection and releasing it cost no round trip.

A connection is not used again once another server is the primary, nor if it was idle when another one was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS
from scrapy_ext.server.store.engine.postgresql.primary import Primary

if TYPE_CHECKING:
    import asyncpg

#: Seconds without use after which a connection is replaced: a firewall in between may have dropped it.
_IDLE_SECONDS: Final = 300.0


class NoFreeConnectionError(Exception):
    """All connections of a pool were in use for too long. Not a ``TimeoutError``: opening one raises that, too."""


class Pool:
    """At most ``size`` connections, opened when needed, and given out in the order of the calls."""

    def __init__(self, make: Callable[[], Awaitable[Any]], size: int, primary: Primary) -> None:
        self.size = size
        self._make = make
        self._primary = primary
        self._free = asyncio.Semaphore(size)
        #: Unused connections and the time of their release, least recently used first.
        self._idle: list[tuple[Any, float]] = []
        #: Connections in use, and the time since when, longest first.
        self._used: dict[Any, float] = {}

    async def acquire(self, seconds: float) -> Any:
        """Return a connection for exclusive use; raise :class:`NoFreeConnectionError`, or the error of opening one."""
        try:
            if self._free.locked():
                async with timeout_after(seconds):
                    await self._free.acquire()
            else:
                await self._free.acquire()
        except TIMEOUT_ERRORS as error:
            raise NoFreeConnectionError from error
        try:
            connection = self._idle_one() or await self._make()
        except BaseException:
            self._free.release()
            raise
        self._used[connection] = time.monotonic()
        return connection

    def _idle_one(self) -> Any:
        """Return an idle connection that can be used, or None."""
        primary = self._primary
        now = time.monotonic()
        while self._idle:
            connection, since = self._idle.pop()
            if connection.is_closed():
                continue
            if now - since < _IDLE_SECONDS and since > primary.lost_at and connection.epoch == primary.epoch:
                return connection
            connection.terminate()
        return None

    def longest_use(self) -> float:
        """Return the seconds for which a connection has been in use."""
        # A copy: other threads may ask.
        used = list(self._used.values())
        return time.monotonic() - used[0] if used else 0.0

    def leave_old_primary(self) -> None:
        """Break connections in use whose server is no longer the primary."""
        for connection in list(self._used):
            if connection.epoch != self._primary.epoch:
                connection.terminate()

    def release(self, connection: asyncpg.Connection) -> None:
        """Return a connection to the pool. One that is in a transaction is closed."""
        self._used.pop(connection, None)
        if not connection.is_closed():
            if connection.is_in_transaction():
                connection.terminate()
            else:
                self._idle.append((connection, time.monotonic()))
        self._free.release()

    async def close(self, seconds: float) -> None:
        """Wait up to ``seconds`` for connections in use, and close all released ones."""
        with contextlib.suppress(*TIMEOUT_ERRORS):
            async with timeout_after(seconds):
                for _ in range(self.size):
                    await self._free.acquire()
        while self._idle:
            connection, _ = self._idle.pop()
            with contextlib.suppress(*DATABASE_ERRORS):
                await connection.close(timeout=seconds)
