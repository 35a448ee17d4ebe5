"""Threads for steps on data that users or sites wrote.

The event loop's default executor is for the server's own work: looking up names, reading files of the system, starting
and ending processes. A thread cannot be ended, so nobody's data is worked on there. Here each step is bounded by the
size of its data, which is a page of records, a body or a message, and by the bounds of what it looks for; work on much
data takes many steps, with others between them.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

#: Steps at once. They share the interpreter's lock, so more would not be faster.
DATA_THREADS: Final = 4
_threads: Final = ThreadPoolExecutor(DATA_THREADS, thread_name_prefix="data")
#: For steps that keep the lock for milliseconds at a time: the event loop waits for one of them, not for several.
_slow_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="slow-data")


async def in_data_thread(work: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Return the result of a step on somebody's data, in the context of the caller."""
    return await _run(_threads, partial(work, *args, **options))


async def in_slow_thread(work: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Return the result of a step that has been seen to be slow; only others like it wait for it."""
    return await _run(_slow_thread, partial(work, *args, **options))


async def _run(threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(threads, context.run, work)
