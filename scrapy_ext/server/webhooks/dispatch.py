"""Dispatch of webhook deliveries from the outbox, shared by any number of servers on one database.

Each webhook is served by one task at a time, so that a slow one occupies one task only. A failure ends the task; the
next poll starts it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import Final

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreError
from scrapy_ext.server.webhooks.sending import DeliveryError, Sender

#: Seconds between two polls of the outbox.
POLL_INTERVAL: Final = 1.0
#: Webhooks served concurrently.
AT_ONCE: Final = 16

logger = logging.getLogger(__name__)


class Dispatcher:
    """Sender of a store's deliveries, until :meth:`run` is cancelled."""

    def __init__(self, store: Store, sender: Sender, *, poll_interval: float = POLL_INTERVAL) -> None:
        self._store = store
        self._sender = sender
        self._poll_interval = poll_interval
        self._serving: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send deliveries forever; failures are logged and retried."""
        try:
            async with self._sender:
                while True:
                    self._store.webhooks.changed.clear()
                    try:
                        await self._start()
                    except Exception as error:
                        _log_failure(error)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._poll_interval):
                            await self._store.webhooks.changed.wait()
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self) -> None:
        """Serve webhooks with due deliveries, up to the limit."""
        for webhook in await self._store.webhooks.waiting():
            if len(self._serving) >= AT_ONCE:
                return
            if webhook not in self._serving:
                task = asyncio.create_task(self._serve(*webhook))
                self._serving[webhook] = task
                task.add_done_callback(partial(self._served, webhook))

    def _served(self, webhook: tuple[int, int], _task: asyncio.Task[None]) -> None:
        del self._serving[webhook]

    async def _serve(self, project: int, number: int) -> None:
        try:
            while (delivery := await self._store.webhooks.claim(project, number)) is not None:
                try:
                    outcome = await self._sender.send(delivery, self._store.clock() // 1000)
                except DeliveryError as failure:
                    # The URL is not logged: it may be a secret.
                    logger.info("Webhook %d of project %d: %s %s", number, project, delivery.id, failure)
                    await self._store.webhooks.failed(delivery, str(failure))
                    return
                await self._store.webhooks.delivered(delivery, outcome)
        # The claimed delivery is sent again once its claim expires.
        except Exception as error:
            _log_failure(error)


def _log_failure(error: Exception) -> None:
    # The store logs its outages itself.
    if isinstance(error, StoreAwayError):
        return
    if isinstance(error, StoreError):
        logger.warning("The webhooks are delayed by the database: %s", error)
    else:
        logger.error("The webhooks could not be sent; they are retried", exc_info=error)
