"""The keeper: the worker of a group on one machine that runs the embedded server.

At first it is the process of the command. When it has died, its server ends, and its lock is free: the first worker
that polls the lock starts a server at the same port, with the same keys and the same data. The others repeat their
calls, as for a server that was restarted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.crawl.session.embedded import EmbeddedServer, EmbeddedServerError, ServerAddress
from scrapy_ext.crawl.session.group_locks import GroupLocks

logger = logging.getLogger(__name__)

#: Seconds between two polls of a lock, which take microseconds.
_POLL: Final = 0.2


class Keeper:
    """Part of a worker in the life of the embedded server. ``on_lost``: called when the server cannot be started."""

    def __init__(
        self,
        settings: BaseSettings,
        locks: GroupLocks,
        address: ServerAddress,
        on_lost: Callable[[EmbeddedServerError], None],
    ) -> None:
        self._settings = settings
        self._locks = locks
        self._address = address
        self._on_lost = on_lost
        #: The server that this worker has started in place of another one.
        self._server: EmbeddedServer | None = None
        self.is_keeper = locks.keep()
        self._watching = None if self.is_keeper else asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        await until(self._locks.keep)
        self.is_keeper = True
        logger.warning("The worker with the embedded server has ended. This one starts the server again")
        self._server = EmbeddedServer(self._settings, platform=self._address.platform, successor_at=self._address)
        self._server.on_lost = self._on_lost
        try:
            await self._server.start()
        except EmbeddedServerError as error:
            self._on_lost(error)

    async def stop_watching(self) -> None:
        """Leave the server to others, unless this worker is the keeper."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def close(self) -> None:
        """Stop the server that this worker has started."""
        if self._server is not None:
            await self._server.stop()


async def until(condition: Callable[[], bool], seconds: float | None = None) -> bool:
    """Wait until a condition holds; false after ``seconds``."""
    loop = asyncio.get_running_loop()
    deadline = None if seconds is None else loop.time() + seconds
    while not condition():
        if deadline is not None and loop.time() > deadline:
            return False
        await asyncio.sleep(_POLL)
    return True
