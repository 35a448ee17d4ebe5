"""Connections that are kept. Unlike the driver's pool, taking one that is free and giving it back costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS

#: What has not been used for so long is replaced: whatever stands between may have forgotten it.
_IDLE_SECONDS: Final = 300.0


class Pool:
    """At most ``size`` connections, made when they are needed. Whoever has waited longest is served first."""

    def __init__(self, make: Callable[[], Awaitable[Any]], size: int) -> None:
        self.size = size
        self._make = make
        self._free = asyncio.Semaphore(size)
        #: Those that nobody has, and since when; the last was used last.
        self._idle: list[tuple[Any, float]] = []

    async def take(self, seconds: float) -> Any:
        """A connection of the caller's own; raises :class:`TimeoutError`, and what making one raises."""
        if self._free.locked():
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        else:
            await self._free.acquire()
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

    def give_back(self, connection: Any) -> None:
        """Let others have it. One that is in a transaction is thrown away, and its transaction with it."""
        if not connection.is_closed():
            if connection.is_in_transaction():
                connection.terminate()
            else:
                self._idle.append((connection, time.monotonic()))
        self._free.release()

    async def close(self, seconds: float) -> None:
        """Wait so long for those that are in use, and close those that have come back."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for _ in range(self.size):
                    await self._free.acquire()
        while self._idle:
            connection, _ = self._idle.pop()
            with contextlib.suppress(*DATABASE_ERRORS):
                await connection.close(timeout=seconds)
