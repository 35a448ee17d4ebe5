"""One application of the parts: the extraction service, the platform, and the pages for people."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from scrapy_ext.server.config import ServerConfig
from scrapy_ext.server.keyring import Keyring
from scrapy_ext.server.platform import PlatformService
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.errors import StoreError
from scrapy_ext.server.ui import Pages

logger = logging.getLogger(__name__)


def build(config: ServerConfig) -> Starlette:
    """The application; its parts start and stop with it.

    When they cannot start, ``app.state.failure`` is the error that says why.
    """
    app = Starlette(lifespan=lambda app: _lifespan(app, config))
    app.router.redirect_slashes = False
    app.state.failure = None
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette, config: ServerConfig) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            app.router.routes[:] = await _started(config, stack)
        except Exception as error:
            app.state.failure = error
            raise
        yield


async def _started(config: ServerConfig, stack: contextlib.AsyncExitStack) -> list[BaseRoute]:
    """Start the parts, which ``stack`` will stop; returns their routes."""
    # Imported when it starts: the extraction libraries are heavy, and whoever reads the configuration needs none.
    from scrapy_ext.server.extraction import ExtractionService

    keys = Keyring()
    # Made first: it checks the configuration, and a key must not be shown by a server that does not start.
    extraction = ExtractionService(config, keys.opens_extraction)
    store = await Store.open(config.data)
    stack.push_async_callback(store.close)
    await keys.load(store, config.extract_key, config.platform_key)
    stack.push_async_callback(extraction.stop)
    await extraction.start()
    stack.push_async_callback(_ended, asyncio.create_task(_purge(store)))
    platform, pages = PlatformService(store, keys.grant), Pages(store, keys.grant)
    return [*extraction.routes, *platform.routes, *pages.routes]


async def _purge(store: Store) -> None:
    """Go on with what a crash cut off."""
    try:
        await store.purge()
    except StoreError as error:
        logger.error("Deleted data could not be removed; it will be tried again: %s", error)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
