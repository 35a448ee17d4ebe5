"""An event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines to their end, whatever becomes of those that wait for them."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs in the thread."""
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return await asyncio.shield(asyncio.wrap_future(running))
        except asyncio.CancelledError:
            running.add_done_callback(_seen)
            raise

    async def close(self) -> None:
        """End the thread; what it still runs is given up."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()


def _seen(done: concurrent.futures.Future[Any]) -> None:
    """Nobody waits any more, and an error was not left unseen."""
    with contextlib.suppress(concurrent.futures.CancelledError):
        done.exception()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
