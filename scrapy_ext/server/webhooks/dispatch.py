"""Sends what waits in the outbox, beside any number of other servers on the same database.

Each webhook is served by one task at a time, so that a slow one takes one place and no more. After a failure the task
ends: what else waits for that webhook has its turn at the next look.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import Final

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreError
from scrapy_ext.server.webhooks.sending import Outcome, Sender

#: Seconds from one look at the outbox to the next.
LOOK: Final = 1.0
#: Webhooks that are served at once.
AT_ONCE: Final = 16

logger = logging.getLogger(__name__)


class Dispatcher:
    """Sends the deliveries of a store until :meth:`run` is cancelled."""

    def __init__(self, store: Store, sender: Sender, *, look: float = LOOK) -> None:
        self._store = store
        self._sender = sender
        self._look = look
        self._serving: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send for ever. What fails is told and tried again."""
        try:
            async with self._sender:
                while True:
                    self._store.webhooks.changed.clear()
                    try:
                        await self._start()
                    except Exception as error:
                        _tell(error)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._look):
                            await self._store.webhooks.changed.wait()
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self) -> None:
        """Serve the webhooks for which something waits, as far as there is room."""
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
                except Outcome as failure:
                    # Without the address: whoever has it may be able to post to it.
                    logger.info("Webhook %d of project %d: %s %s", number, project, delivery.id, failure)
                    await self._store.webhooks.failed(delivery, str(failure))
                    return
                await self._store.webhooks.delivered(delivery, outcome)
        except Exception as error:  # what was claimed is sent again after a while
            _tell(error)


def _tell(error: Exception) -> None:
    if isinstance(error, StoreAwayError):  # of which the store tells
        return
    if isinstance(error, StoreError):
        logger.warning("Webhooks wait for the database: %s", error)
    else:
        logger.error("Webhooks could not be told; it will be tried again", exc_info=error)
