"""Blocking calls in a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_Call = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class BlockingCalls:
    """Calls that may block, run one after the other in a thread.

    The thread is a daemon: a read from a terminal or a write into a pipe may never return, and the threads of asyncio
    would then prevent the end of the process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def __call__(self, function: Callable[[], T]) -> T:
        """Call the function in the thread; return its result, or raise its error."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.put((loop, answer, function))
        return await answer

    def close(self, timeout: float = 0.0) -> None:
        """End the thread after its calls, and wait up to ``timeout`` seconds for that."""
        self._calls.put(None)
        if timeout and self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            loop, answer, function = call
            value, error = None, None
            try:
                value = function()
            except Exception as raised:
                error = raised
            # The loop may be closed.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, value, error)


def _settle(answer: asyncio.Future[Any], value: object, error: Exception | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(value)
