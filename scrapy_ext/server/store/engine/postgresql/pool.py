"""Connection pool. Unlike in the driver's, acquiring an idle connection and releasing it cost no round trip."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS

#: Seconds without use after which a connection is replaced: a firewall in between may have dropped it.
_IDLE_SECONDS: Final = 300.0


class NoFreeConnectionError(Exception):
    """All connections of a pool were in use for too long. Not a ``TimeoutError``: opening one raises that, too."""


class Pool:
    """At most ``size`` connections, opened when needed, and given out in the order of the calls."""

    def __init__(self, make: Callable[[], Awaitable[Any]], size: int) -> None:
        self.size = size
        self._make = make
        self._free = asyncio.Semaphore(size)
        #: Unused connections and the time of their release, least recently used first.
        self._idle: list[tuple[Any, float]] = []

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
            while self._idle:
                connection, since = self._idle.pop()
                if connection.is_closed():
                    continue
                if time.monotonic() - since < _IDLE_SECONDS:
                    return connection
                connection.terminate()
            return await self._make()
        except BaseException:
            self._free.release()
            raise

    def release(self, connection: Any) -> None:
        """Return a connection to the pool. One that is in a transaction is closed."""
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
