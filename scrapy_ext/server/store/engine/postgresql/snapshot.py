"""One state of the database for several reads."""

from __future__ import annotations

import contextlib
from typing import Any, Final, TypeVar

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Operation, P
from scrapy_ext.server.store.engine.postgresql.connection import connect
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS, translated
from scrapy_ext.server.store.engine.postgresql.loop_thread import LoopThread
from scrapy_ext.server.store.engine.postgresql.retries import retried
from scrapy_ext.server.store.engine.postgresql.transaction import PostgresqlTransaction

T = TypeVar("T")

BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresqlSnapshot:
    """One transaction of a connection that is not in a pool.

    Each of its connections is closed in the thread of the loop. The driver would close one that is forgotten when its
    memory is freed, in any thread, which ends the process.
    """

    def __init__(self, url: DatabaseUrl, loop: LoopThread) -> None:
        self._url = url
        self._loop = loop
        self._connection: Any = None
        self._has_ended = False

    async def begin(self) -> None:
        """Open the connection. If the caller is cancelled, this goes on, and closes the connection."""

        async def begin() -> None:
            connection = await connect(self._url)
            try:
                await connection.execute(BEGIN_READ)
                await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                await connection.execute("SELECT 1")  # the first read determines the state
            except BaseException:
                connection.terminate()
                raise
            if self._has_ended:
                connection.terminate()
            else:
                self._connection = connection

        await self._loop.run(retried(self._url, begin))

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async def run() -> T:
            try:
                return await operation(PostgresqlTransaction(self._connection), *args, **kwargs)
            except DATABASE_ERRORS as error:
                raise translated(error, self._url) from error

        return await self._loop.run(run())

    async def end(self) -> None:
        async def end() -> None:
            self._has_ended = True
            if self._connection is not None:
                with contextlib.suppress(*DATABASE_ERRORS):
                    await self._connection.close(timeout=5)

        await self._loop.run(end())
