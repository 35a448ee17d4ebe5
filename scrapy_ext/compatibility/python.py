"""Names of the standard library that Python 3.10 lacks: those of later versions where they exist, or equivalents.

On Python 3.10 ``asyncio.TimeoutError`` and ``concurrent.futures.TimeoutError`` are not the built-in
``TimeoutError``, which the operating system and :func:`timeout_after` raise. So every handler of a timeout names
``TIMEOUT_ERRORS``. Of these, only the built-in one is an ``OSError`` there.

Python 3.10 has no count of cancellations either. A task that is cancelled from outside in the same turn of the event
loop as its timeout expires is reported as timed out there, and continues.

Where systems differ, as in their clocks, one name serves as well.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Coroutine, Iterator
from contextvars import Context
from datetime import datetime
from types import TracebackType
from typing import Any, Final, TypeVar

if sys.version_info >= (3, 11):
    from asyncio import Runner, Timeout, timeout_at
    from asyncio import timeout as timeout_after
    from contextlib import chdir
    from typing import Self, Unpack
else:
    from backports.asyncio.runner import Runner
    from typing_extensions import Self, Unpack

__all__ = (
    "TIMEOUT_ERRORS",
    "Runner",
    "Self",
    "Timeout",
    "Unpack",
    "add_note",
    "chdir",
    "create_task_in",
    "datetime_of_iso",
    "log_level",
    "run_together",
    "safe_module",
    "timeout_after",
    "timeout_at",
    "uncancel",
)

T = TypeVar("T")

#: Every class of an expired timeout.
TIMEOUT_ERRORS: Final = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)
_FRACTION: Final = re.compile(r"[.,](\d+)")


if sys.version_info < (3, 11):

    class Timeout:
        """Time limit of a block, as ``asyncio.Timeout``."""

        def __init__(self, when: float | None) -> None:
            self._when = when
            self._task: asyncio.Task[Any] | None = None
            self._handle: asyncio.Handle | None = None
            self._is_expired = False

        async def __aenter__(self) -> Self:
            self._task = asyncio.current_task()
            self.reschedule(self._when)
            return self

        async def __aexit__(
            self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
        ) -> None:
            self._cancel()
            self._task = None
            if self._is_expired and kind is asyncio.CancelledError:
                raise TimeoutError from error

        def when(self) -> float | None:
            """Return the end, in the time of the event loop; None for no end."""
            return self._when

        def reschedule(self, when: float | None) -> None:
            """Set another end."""
            self._when = when
            self._cancel()
            if when is not None and not self._is_expired:
                loop = asyncio.get_running_loop()
                self._handle = loop.call_soon(self._expire) if when <= loop.time() else loop.call_at(when, self._expire)

        def expired(self) -> bool:
            """Return true if the block was cancelled because its time was over."""
            return self._is_expired

        def _expire(self) -> None:
            if self._task is not None:
                self._is_expired = True
                self._task.cancel()

        def _cancel(self) -> None:
            if self._handle is not None:
                self._handle.cancel()
                self._handle = None

    def timeout_at(when: float | None) -> Timeout:
        """Limit a block to an end, in the time of the event loop; raises ``TimeoutError``."""
        return Timeout(when)

    def timeout_after(delay: float | None) -> Timeout:
        """Limit a block to this number of seconds; raises ``TimeoutError``."""
        return Timeout(None if delay is None else asyncio.get_running_loop().time() + delay)

    @contextlib.contextmanager
    def chdir(path: str | os.PathLike[str]) -> Iterator[None]:
        """Change the working directory for a block."""
        before = os.getcwd()
        os.chdir(path)
        try:
            yield
        finally:
            os.chdir(before)


def safe_module(name: str) -> list[str]:
    """Return the options of Python that run a module without the working directory in the path of imports."""
    if sys.version_info >= (3, 11):
        return ["-P", "-m", name]
    return ["-c", f"import sys; del sys.path[0]; import runpy; runpy.run_module({name!r}, None, '__main__', True)"]


async def run_together(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run these until all have ended. The first that fails cancels the others, and its error is raised.

    ``asyncio.TaskGroup``, with one error instead of an ``ExceptionGroup``.
    """
    tasks = [asyncio.ensure_future(each) for each in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def create_task_in(
    context: Context, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]
) -> asyncio.Task[T]:
    """Create a task that runs in ``context``; on Python 3.10, in a copy of it."""
    if sys.version_info >= (3, 11):
        return loop.create_task(coroutine, context=context)
    # The caller may run in the context itself, which cannot be entered twice.
    return context.copy().run(loop.create_task, coroutine)


def uncancel(task: asyncio.Task[Any]) -> int:
    """Take back one cancellation of a task; return the number of others, which is 0 on Python 3.10."""
    if sys.version_info >= (3, 11):
        return task.uncancel()
    return 0


def add_note(error: BaseException, note: str) -> None:
    """Add a line to the traceback of an error, from Python 3.11."""
    if sys.version_info >= (3, 11):
        error.add_note(note)


def log_level(name: str) -> int:
    """Return the level of logging with this name; raises ``KeyError``."""
    level = logging.getLevelName(name)
    if not isinstance(level, int):
        raise KeyError(name)
    return level


def datetime_of_iso(text: str) -> datetime:
    """Return a date, or a date and time, in the extended format of ISO 8601; raises ``ValueError``."""
    if sys.version_info < (3, 11):
        text = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), text.strip())
        if text[-1:] in "Zz":
            text = text[:-1] + "+00:00"
    return datetime.fromisoformat(text)


def elapsing() -> float:
    """Return seconds since an arbitrary time, by a monotonic clock that counts suspend where the system has one."""
    boottime: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)
