"""One application of the parts: the extraction service, the platform, and the pages for people."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from typing import Final

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from scrapy_ext.server.auth import key_hash, matches, new_key
from scrapy_ext.server.config import ServerConfig
from scrapy_ext.server.platform import PlatformService
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.errors import StoreError
from scrapy_ext.server.ui import Pages

logger = logging.getLogger(__name__)

EXTRACT: Final = "extract-key"
PLATFORM: Final = "platform-key"
_PURPOSES: Final = {
    EXTRACT: "EXTRACT_API_KEY, the key of the extraction service",
    PLATFORM: "PLATFORM_API_KEY, the key of the platform and of its pages",
}


def build(config: ServerConfig) -> Starlette:
    """The application; its parts start and stop with it.

    When they cannot start, ``app.state.failure`` is the error that says why.
    """
    app = Starlette(lifespan=lambda app: _lifespan(app, config))
    app.router.redirect_slashes = False
    app.state.failure = None
    return app


class Keys:
    """The keys that open the services: one given for this run, else the one whose hash is stored."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}

    async def load(self, store: Store, given: dict[str, str | None]) -> None:
        """Know the keys; one that is neither given nor stored is made, shown once, and its hash stored."""
        for name, key in given.items():
            if key:
                self._hashes[name] = key_hash(key)
            else:
                self._hashes[name] = await store.keys.get(name) or await _made(store, name)

    def accepts(self, name: str, key: str) -> bool:
        """Whether this is the key."""
        return matches(key, self._hashes[name])


async def _made(store: Store, name: str) -> str:
    key = new_key()
    wanted = key_hash(key)
    stored = await store.keys.keep(name, wanted)
    if stored == wanted:  # else another process made one at the same time, and has shown it
        print(f"{_PURPOSES[name]}: {key} (shown this once; only its hash is stored)", file=sys.stderr, flush=True)  # noqa: T201
    return stored


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

    keys = Keys()
    # Made first: it checks the configuration, and a key must not be shown by a server that does not start.
    extraction = ExtractionService(config, lambda key: keys.accepts(EXTRACT, key))
    store = await Store.open(config.database or config.data)
    stack.push_async_callback(store.close)
    await keys.load(store, {EXTRACT: config.extract_key, PLATFORM: config.platform_key})
    stack.push_async_callback(extraction.stop)
    await extraction.start()
    stack.push_async_callback(_ended, asyncio.create_task(_purge(store)))

    def opens_platform(key: str) -> bool:
        return keys.accepts(PLATFORM, key)

    platform, pages = PlatformService(store, opens_platform), Pages(store, opens_platform)
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
