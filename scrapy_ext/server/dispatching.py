"""Dispatch of an outbox of the store: deliveries to receivers, of webhooks or of alerts.

Any number of servers on one database share an outbox. Each receiver is served by one task at a time, so that a slow one
occupies one task only. A failure ends the task; the next poll starts it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreError

logger = logging.getLogger(__name__)

#: Seconds between two polls of the outbox.
POLL_INTERVAL: Final = 1.0

ClaimedT = TypeVar("ClaimedT")


class DeliveryError(Exception):
    """A delivery failed; the message is shown in the list of deliveries."""


class Outbox(Protocol[ClaimedT]):
    """Deliveries of a store, by project and number of their receiver."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when a delivery may be due."""

    async def waiting(self) -> list[tuple[int, int]]: ...
    async def claim(self, project: int, number: int) -> ClaimedT | None: ...
    async def delivered(self, claimed: ClaimedT, outcome: str) -> None: ...
    async def failed(self, claimed: ClaimedT, outcome: str) -> None: ...


class OutboxLoop(Generic[ClaimedT]):
    """Sender of an outbox, until :meth:`run` is cancelled.

    ``send`` returns the outcome of a delivery, or raises :class:`DeliveryError`. ``sender`` is open meanwhile.
    ``name``: the deliveries in the log.
    """

    def __init__(
        self,
        name: str,
        outbox: Any,
        send: Callable[[ClaimedT], Awaitable[str]],
        sender: AbstractAsyncContextManager[Any],
        *,
        at_once: int,
        poll_interval: float = POLL_INTERVAL,
    ) -> None:
        self._name = name
        self._outbox: Outbox[ClaimedT] = outbox
        self._send = send
        self._sender = sender
        self._at_once = at_once
        self._poll_interval = poll_interval
        self._serving: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send deliveries forever; failures are logged and retried."""
        try:
            async with self._sender:
                while True:
                    self._outbox.changed.clear()
                    try:
                        await self._start()
                    except Exception as error:
                        self._log_failure(error)
                    with contextlib.suppress(*TIMEOUT_ERRORS):
                        async with timeout_after(self._poll_interval):
                            await self._outbox.changed.wait()
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self) -> None:
        """Serve receivers with due deliveries, up to the limit."""
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
                except DeliveryError as failure:
                    # The URL is not logged: it may be a secret.
                    logger.info("Delivery of %s to receiver %d of project %d: %s", self._name, number, project, failure)
                    await self._outbox.failed(claimed, str(failure))
                    return
                await self._outbox.delivered(claimed, outcome)
        # The claimed delivery is sent again once its claim expires.
        except Exception as error:
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        # The store logs its outages itself.
        if isinstance(error, StoreAwayError):
            return
        if isinstance(error, StoreError):
            logger.warning("The %s are delayed by the database: %s", self._name, error)
        else:
            logger.error("The %s could not be sent; they are retried", self._name, exc_info=error)
