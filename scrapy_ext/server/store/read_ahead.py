"""Work on the parts of a stream before they are asked for, several at once and in order."""

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

#: For work that leaves the interpreter to others. Few, because each thread keeps memory of its own for later.
_THREADS: Final = ThreadPoolExecutor(min(os.cpu_count() or 1, 4), thread_name_prefix="ahead")


#: Whether streams read ahead. Where memory is short, each has no more than one part at a time.
READ_AHEAD: ContextVar[bool] = ContextVar("read_ahead", default=True)


@contextlib.asynccontextmanager
async def closing(parts: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """End a stream as soon as nobody reads it: what it holds is not left to the garbage collector."""
    try:
        yield parts
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


def in_thread(work: Callable[[T], R], part: T) -> asyncio.Future[R]:
    """Do this in a thread."""
    return asyncio.get_running_loop().run_in_executor(_THREADS, work, part)


async def ahead(parts: AsyncIterator[T], begin: Callable[[T], asyncio.Future[R]], number: int) -> AsyncGenerator[R]:
    """The outcomes of ``begin`` for each part, while it is at work on the ``number`` parts after that one (see
    :data:`READ_AHEAD`).

    Where a part fails, or there is none to be had, what was made of those before it comes first.
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
    """What fails after its reader has gone away needs no report."""
    if not done.cancelled():
        done.exception()
