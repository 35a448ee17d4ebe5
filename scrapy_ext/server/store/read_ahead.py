"""Read-ahead: concurrent, ordered work on the parts of a stream before its consumer needs them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Threads for work that releases the interpreter's lock. Few, because each keeps memory of its own.
_THREADS: Final = ThreadPoolExecutor(min(os.cpu_count() or 1, 4), thread_name_prefix="ahead")


#: Enables read-ahead. Where memory is short, a stream holds one part at a time.
READ_AHEAD: ContextVar[bool] = ContextVar("read_ahead", default=True)


@contextlib.asynccontextmanager
async def closing(parts: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a stream as soon as its consumer leaves, instead of at garbage collection."""
    try:
        yield parts
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


def in_thread(work: Callable[[T], R], part: T) -> asyncio.Future[R]:
    """Run work on a part in a thread."""
    return asyncio.get_running_loop().run_in_executor(_THREADS, work, part)


async def ahead(parts: AsyncIterator[T], begin: Callable[[T], asyncio.Future[R]], number: int) -> AsyncGenerator[R]:
    """Yield the results of ``begin`` for each part, while the ``number`` next parts are in work (:data:`READ_AHEAD`).

    If a part fails or cannot be read, the results of the earlier parts come first.
    """
    number = number if READ_AHEAD.get() else 0
    under_way: deque[asyncio.Future[R]] = deque()
    failure: Exception | None = None
    try:
        while failure is None:
            try:
                under_way.append(begin(await anext(parts)))
            except StopAsyncIteration:
                break
            except Exception as error:
                failure = error
            if len(under_way) > number:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
        if failure is not None:
            raise failure
    finally:
        for one in under_way:
            one.cancel()
            one.add_done_callback(_noted)
        under_way.clear()
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


def _noted(done: asyncio.Future[R]) -> None:
    """Retrieve an error whose reader has left, so that asyncio does not log it."""
    if not done.cancelled():
        done.exception()
