"""Notifications of a node by PostgreSQL, upon which it polls at once.

A node reads its jobs from ``attempts``, which it polls every second. A notification that is late, repeated or lost
affects only the time until a job starts. One connection listens for pending jobs, which any node may place, and for
jobs that were placed on this node. It is made again when it is lost, or when another server becomes the primary.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import NODE
from scrapy_ext.server.store.engine.postgresql.connection import connected
from scrapy_ext.server.store.engine.postgresql.primary import is_current
from scrapy_ext.server.store.jobs.nodes import PENDING, channel_of, notify_node

#: Seconds until a lost connection is made again: the first pause, and the maximum.
_PAUSE: Final = 0.5
_MAX_PAUSE: Final = 5.0
#: Seconds between two checks of the connection.
_ALIVE: Final = 5.0
#: Seconds for the connection to end, after which it is aborted, since the database does not respond.
_END: Final = 0.9

logger = logging.getLogger(__name__)


class Notifier:
    """Receiver of one node's notifications, and sender of notifications to others; opened by :meth:`open`."""

    #: Function that notifies a node in the transaction that places a job there.
    notify = staticmethod(notify_node)

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, store: Store, url: DatabaseUrl) -> Notifier:
        """Prepare the database; raise :class:`StoreError`."""
        await store.nodes.prepare_notifications()
        return cls(url)

    async def listen(self, node: str, on_notification: Callable[[], None]) -> None:
        """Call ``on_notification`` for each notification of this node, instead of an earlier one's."""
        await self.stop()
        self._listening = asyncio.create_task(self._listen(channel_of(node), on_notification))

    async def stop(self) -> None:
        """Stop listening within a second."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening], timeout=_END)

    async def _listen(self, channel: str, on_notification: Callable[[], None]) -> None:
        pause = _PAUSE
        logged = ""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._until_lost(channel, on_notification)
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                # One line for each reason: an outage of a night would fill the log with the same one.
                if reason != logged:
                    logger.info("Listening on %s is tried again: %s", channel, reason)
                logged = reason
            if loop.time() - began > _MAX_PAUSE:
                pause, logged = _PAUSE, ""
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)

    async def _until_lost(self, channel: str, on_notification: Callable[[], None]) -> None:
        """Listen until the connection is lost, or its server is no longer the primary."""
        connection = await connected(self._url, NODE, {"application_name": "scrapy-ext queue"})
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            for name in (PENDING, channel):
                await connection.add_listener(name, lambda *_: on_notification())
            on_notification()  # earlier notifications may have been missed
            while not lost.is_set() and is_current(connection, self._url):
                await connection.execute("SELECT 1")
                try:
                    await asyncio.wait_for(lost.wait(), _ALIVE)
                except TIMEOUT_ERRORS:
                    continue
        finally:
            connection.terminate()
