"""Procrastinate on asyncpg: one connection, for its queries and for what it listens to."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import asyncpg
from procrastinate.connector import BaseAsyncConnector, Notify
from procrastinate.exceptions import ConnectorException

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.postgresql.connection import connected
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS, translated
from scrapy_ext.server.store.engine.postgresql.pool_sizes import RUNNER
from scrapy_ext.server.store.jobs.queue_messages import WAITING

_PLACE: Final = re.compile(r"%\((\w+)\)s")
#: Seconds between two looks whether the connection still stands.
_ALIVE: Final = 5.0


class Connector(BaseAsyncConnector):
    """Made by :meth:`connect`; ``lost`` is set once its connection is."""

    def __init__(self, url: DatabaseUrl, connection: Any) -> None:
        self._url = url
        self._connection = connection
        self._turn = asyncio.Lock()
        self._hearing: set[asyncio.Task[None]] = set()
        self.lost = asyncio.Event()
        connection.add_termination_listener(lambda _: self.lost.set())

    @classmethod
    async def connect(cls, url: DatabaseUrl, hear: Callable[[], None]) -> Connector:
        """Connect, and ``hear`` of jobs that wait from then on; raises :class:`StoreError`."""
        try:
            connection = await connected(url, RUNNER, {"application_name": "scrapy-ext queue"})
            await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
            await connection.add_listener(WAITING, lambda *_: hear())
        except DATABASE_ERRORS as error:
            raise translated(error, url) from error
        return cls(url, connection)

    def break_off(self) -> None:
        """Let go of the connection, whatever it is doing."""
        self._connection.terminate()
        self.lost.set()

    def get_sync_connector(self) -> Connector:
        """See Procrastinate."""
        return self

    async def open_async(self, pool: Any = None) -> None:
        """See Procrastinate."""

    async def close_async(self) -> None:
        """See Procrastinate."""
        self.break_off()

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        """See Procrastinate."""
        await self.execute_query_all_async(query, **arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        """See Procrastinate."""
        return (await self.execute_query_all_async(query, **arguments))[0]

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """See Procrastinate, whose queries name their arguments."""
        names = list(dict.fromkeys(_PLACE.findall(query)))
        numbered = _PLACE.sub(lambda place: f"${names.index(place[1]) + 1}", query)
        try:
            async with self._turn:
                rows = await self._connection.fetch(numbered, *(arguments[name] for name in names))
        except DATABASE_ERRORS as error:
            if not isinstance(error, asyncpg.PostgresError):
                self.lost.set()
            raise ConnectorException from error
        return [dict(row) for row in rows]

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """See Procrastinate; returns when the connection is lost."""

        def heard(_connection: Any, _pid: int, channel: str, payload: Any) -> None:
            task: asyncio.Task[None] = asyncio.ensure_future(on_notification(channel=channel, payload=payload))
            self._hearing.add(task)
            task.add_done_callback(self._hearing.discard)

        for channel in channels:
            async with self._turn:
                await self._connection.add_listener(channel, heard)
        while not self.lost.is_set():
            await self.execute_query_async("SELECT 1")
            try:
                await asyncio.wait_for(self.lost.wait(), _ALIVE)
            except TimeoutError:
                continue
