"""Holding of a lease (``store.leases``) for a block of work on one server of a database at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

from scrapy_ext.compatibility.python import uncancel
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.leases import DURATION, Lease, LeaseLostError

logger = logging.getLogger(__name__)

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
