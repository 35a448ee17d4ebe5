"""Dispatch of an outbox of the store: rows to their receivers, of webhooks or of alerts.

Any number of servers on one database share an outbox. Each receiver is served by one task at a time, so that a slow one
occupies one task only. A failure ends the task; the next poll starts it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Generic

from scrapy_ext.server.loops import Loop, log_failure
from scrapy_ext.server.store.outbox import ClaimedT, OutboxStore

logger = logging.getLogger(__name__)

#: Seconds between two polls of the outbox.
POLL_INTERVAL: Final = 1.0


class SendError(Exception):
    """A row was not accepted; the message is its outcome in the list of rows."""


class OutboxLoop(Generic[ClaimedT]):
    """Sender of an outbox, until :meth:`run` is cancelled.

    ``send`` returns the outcome of a row, or raises :class:`SendError`. ``sender`` is open meanwhile.
    ``name``: the rows in the log.
    """

    def __init__(
        self,
        name: str,
        outbox: OutboxStore[ClaimedT, Any, Any],
        send: Callable[[ClaimedT], Awaitable[str]],
        sender: AbstractAsyncContextManager[Any],
        *,
        at_once: int,
        poll_interval: float = POLL_INTERVAL,
    ) -> None:
        self._name = name
        self._outbox = outbox
        self._send = send
        self._sender = sender
        self._at_once = at_once
        self._poll_interval = poll_interval
        self._serving: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send rows forever; failures are logged and retried."""
        try:
            async with self._sender:
                await Loop(self._name, self._start, self._poll_interval, self._outbox.changed).run()
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self) -> None:
        """Serve receivers with due rows, up to the limit."""
        for receiver in await self._outbox.waiting():
            if len(self._serving) >= self._at_once:
                return
            if receiver not in self._serving:
                task = asyncio.create_task(self._serve(*receiver))
                self._serving[receiver] = task
                task.add_done_callback(partial(self._served, receiver))

    def _served(self, receiver: tuple[int, int], _task: asyncio.Task[None]) -> None:
        del self._serving[receiver]

    async def _serve(self, project: int, number: int) -> None:
        try:
            while (claimed := await self._outbox.claim(project, number)) is not None:
                try:
                    outcome = await self._send(claimed)
                except SendError as failure:
                    # The URL is not logged: it may be a secret.
                    logger.info("Delivery of %s to receiver %d of project %d: %s", self._name, number, project, failure)
                    await self._outbox.refused(claimed, str(failure))
                    return
                await self._outbox.accepted(claimed, outcome)
        # The claimed row is sent again once its claim expires.
        except Exception as error:
            log_failure(self._name, error)
