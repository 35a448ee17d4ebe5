"""Short reads of PostgreSQL in the loop of their callers.

The way to the engine's thread and back takes longer than a look-up by key. So a read of one statement, which needs no
transaction and takes no locks, has a connection in the loop that opened the engine. Whatever is not as usual is left to
the thread, which retries, reports outages and runs transactions: a read of several statements, one that finds no free
connection, and one that failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS, Failure, failure_of
from scrapy_ext.server.store.engine.postgresql.pool import NoFreeConnectionError, Pool
from scrapy_ext.server.store.engine.postgresql.primary import Primary
from scrapy_ext.server.store.engine.postgresql.transaction import OneStatement

T = TypeVar("T")

#: Seconds until a connection is free; longer than any usual look-up.
_FREE_SECONDS: Final = 0.05
#: Seconds for which closing waits for reads.
_CLOSE_SECONDS: Final = 5.0


class LeftToThreadError(Exception):
    """The read must run in the engine's thread."""


class InlineReads:
    """The connections of a loop; ``make`` opens one, ``size`` at most.

    A read that failed after over ``retry`` seconds is not left to the thread: its caller has waited for long enough.
    """

    def __init__(self, make: Callable[[], Awaitable[Any]], size: int, retry: float, primary: Primary) -> None:
        self._loop = asyncio.get_running_loop()
        self._primary = primary
        self._pool = Pool(make, size, primary)
        self._retry = retry

    async def read(self, start: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """Run a read; raise :class:`LeftToThreadError`, or an error of the database that is final."""
        if asyncio.get_running_loop() is not self._loop:
            raise LeftToThreadError
        try:
            connection = await self._pool.acquire(_FREE_SECONDS)
        except (NoFreeConnectionError, *DATABASE_ERRORS):
            raise LeftToThreadError from None
        began = time.monotonic()
        try:
            return await start(OneStatement(connection))
        except DATABASE_ERRORS as error:
            failure = failure_of(error)
            if failure is Failure.LOST:
                self._primary.lost()
                connection.terminate()  # the driver may regard it as usable
            if failure is Failure.FINAL or time.monotonic() - began > self._retry:
                raise
            raise LeftToThreadError from None
        except asyncio.CancelledError:
            connection.terminate()  # in the middle of an answer
            raise
        finally:
            self._pool.release(connection)

    def longest_use(self) -> float:
        """Return the seconds for which a connection has been in use. Any thread may call it."""
        return self._pool.longest_use()

    def leave_old_primary(self) -> None:
        """Break connections in use whose server is no longer the primary. Any thread may call it."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._pool.leave_old_primary)

    async def close(self) -> None:
        """Close the connections, in their loop."""
        if asyncio.get_running_loop() is self._loop:
            await self._pool.close(_CLOSE_SECONDS)
