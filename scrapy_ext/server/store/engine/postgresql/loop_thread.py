"""Event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Seconds for which the end of tasks is awaited, and for the connections that they leave to close.
_END_SECONDS: Final = 1.0
_LAST: Final = 0.02


class Caller:
    """Caller of a coroutine, which may be answered before the coroutine ends."""

    def __init__(self) -> None:
        self.result: asyncio.Future[Any] | None = None

    def refuse(self, error: Exception) -> None:
        """Raise an error in the caller, from the thread. The coroutine continues."""
        if self.result is not None:
            with contextlib.suppress(RuntimeError):  # the loop of the caller has ended
                self.result.get_loop().call_soon_threadsafe(_refuse, self.result, error)


class LoopThread:
    """Thread that runs coroutines to their end, even if their callers are cancelled."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop()
        #: Running tasks, to which the loop has only weak references.
        self._running: set[asyncio.Task[Any]] = set()
        #: Tasks that end with the thread.
        self._lasting: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    async def run(self, coroutine: Coroutine[Any, Any, T], caller: Caller | None = None) -> T:
        """Run a coroutine in the thread, and return its result, or raise what ``caller`` is given earlier."""
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if caller is not None:
            caller.result = result
        self._loop.call_soon_threadsafe(self._start, coroutine, result)
        return await result

    def _start(self, coroutine: Coroutine[Any, Any, T], result: asyncio.Future[T]) -> None:
        def report(done: asyncio.Task[T]) -> None:
            self._running.discard(done)
            error = done.exception()
            with contextlib.suppress(RuntimeError):  # the loop of the caller has ended
                result.get_loop().call_soon_threadsafe(_settle, result, done, error)

        task = self._loop.create_task(coroutine)
        self._running.add(task)
        task.add_done_callback(report)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the thread until :meth:`close`."""
        self._loop.call_soon_threadsafe(self._run_on, coroutine)

    def _run_on(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._lasting.append(self._loop.create_task(coroutine))

    async def close(self) -> None:
        """End the thread, and abandon its running tasks."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _end(self) -> None:
        for task in self._lasting:
            task.cancel()
        if self._lasting:
            await asyncio.wait(self._lasting, timeout=_END_SECONDS)
        await asyncio.sleep(_LAST)
        self._loop.stop()


def _refuse(result: asyncio.Future[Any], error: Exception) -> None:
    if not result.done():
        result.set_exception(error)


def _settle(result: asyncio.Future[T], done: asyncio.Task[T], error: BaseException | None) -> None:
    if result.done():  # the caller was cancelled
        return
    if error is None:
        result.set_result(done.result())
    else:
        result.set_exception(error)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
