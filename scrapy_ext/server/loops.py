"""Tasks that a server repeats as long as it runs, and the leases (``store.fencing``) of those that one server of a
database does at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after, uncancel
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.store.fencing import DURATION, Lease, LeaseLostError

logger = logging.getLogger(__name__)


class Loop:
    """Repetition of a pass, until :meth:`run` is cancelled. It survives each error, which it logs.

    :param name: the work in the log: "webhooks"
    :param act: one pass; it returns the seconds until the next one, or None for ``interval``
    :param interval: seconds between two passes, also after one that failed
    :param wake: causes a pass before the interval is over
    """

    def __init__(
        self,
        name: str,
        act: Callable[[], Awaitable[float | None]],
        interval: float,
        wake: asyncio.Event | None = None,
    ) -> None:
        self._name = name
        self._act = act
        self._interval = interval
        self._wake = wake or asyncio.Event()

    async def run(self) -> None:
        """Run forever; failures are logged and retried."""
        while True:
            # Before the pass, so that a change during it causes another one.
            self._wake.clear()
            pause = None
            try:
                pause = await self._act()
            except Exception as error:
                log_failure(self._name, error)
            # A pass may wait for nothing, and a change may have come during it: then nothing below waits.
            await asyncio.sleep(0)
            with contextlib.suppress(*TIMEOUT_ERRORS):
                async with timeout_after(self._interval if pause is None else pause):
                    await self._wake.wait()


def log_failure(name: str, error: Exception) -> None:
    """Log an error of a pass, or of a part of it, that is retried."""
    match error:
        case StoreAwayError():
            pass  # the store logs its outages itself
        case StoreError():
            logger.warning("The loop of %s waits for the database: %s", name, error)
        case LeaseLostError():
            logger.warning(
                "Another server has taken over the loop of %s; this one was too slow to renew its lease, and goes on "
                "without it",
                name,
            )
        case _:
            logger.error("Unexpected error in the loop of %s; it is retried", name, exc_info=error)


#: Renews a lease for so many milliseconds; raises :class:`LeaseLostError`.
Renew = Callable[[Lease, int], Awaitable[None]]


def owner_name() -> str:
    """Return the name of this process as the owner of leases."""
    return f"{socket.gethostname()} {os.getpid()}"


@contextlib.asynccontextmanager
async def leased(store: Store, name: str, renew: Renew, duration: int = DURATION) -> AsyncIterator[Lease | None]:
    """Hold a lease, or yield None while another process has it; raises :class:`LeaseLostError` in the block when it is
    lost."""
    lease = await store.leases.take(name, owner_name(), duration)
    if lease is None:
        yield None
        return
    current, is_lost = asyncio.current_task(), False

    async def renew_forever() -> None:
        nonlocal is_lost
        while True:
            await asyncio.sleep(duration / 3000)
            try:
                await renew(lease, duration)
            except LeaseLostError:
                is_lost = True
                if current is not None:
                    current.cancel()
                return
            except StoreError as error:
                logger.warning("The lease of %s was not renewed: %s", name, error)

    renewing = asyncio.create_task(renew_forever())
    try:
        yield lease
    except asyncio.CancelledError:
        if is_lost and current is not None and uncancel(current) == 0:
            raise LeaseLostError from None
        raise
    finally:
        renewing.cancel()
        with contextlib.suppress(StoreError):
            await store.leases.release(lease)
