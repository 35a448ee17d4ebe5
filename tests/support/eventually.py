"""Waiting until something holds: within a time that a loaded machine keeps, and with the last value in the message.

``read`` returns a value; ``accept`` says whether it is the one that the test waits for, which is then returned::

    eventually(lambda: site.hits["/page/1"])
    answer = await eventually_async(lambda: http.get("/readyz"), lambda answer: answer.status == 503)
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, cast

T = TypeVar("T")

#: Seconds that a machine with much else to do may take for anything.
TIMEOUT = 180.0
#: Seconds between two reads: few reads of a server that counts them, and no long wait for what comes at once.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.05


def eventually(
    read: Callable[[], T],
    accept: Callable[[T], object] = bool,
    what: str = "",
    *,
    timeout: float = TIMEOUT,
    details: Callable[[], object] = str,
) -> T:
    """Return the first value that is accepted.

    ``what`` names it in the message of a failure, and ``details`` returns what else the message shows, such as a log.
    """
    for pause in _pauses(timeout):
        value = read()
        if accept(value):
            return value
        assert pause is not None, _message(what, timeout, value, details)
        time.sleep(pause)
    raise AssertionError


async def eventually_async(
    read: Callable[[], Awaitable[T] | T],
    accept: Callable[[T], object] = bool,
    what: str = "",
    *,
    timeout: float = TIMEOUT,
    details: Callable[[], object] = str,
) -> T:
    """Return the first value that is accepted, while the event loop goes on. ``read`` may return an awaitable."""
    for pause in _pauses(timeout):
        found = read()
        value = await found if inspect.isawaitable(found) else cast(T, found)
        if accept(value):
            return value
        assert pause is not None, _message(what, timeout, value, details)
        await asyncio.sleep(pause)
    raise AssertionError


def _pauses(timeout: float) -> Iterator[float | None]:
    """The pause after each read, and None after the one that is too late."""
    deadline, pause = time.monotonic() + timeout, _FIRST_PAUSE
    while time.monotonic() < deadline:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)
    yield None


def _message(what: str, timeout: float, value: object, details: Callable[[], object]) -> str:
    return f"not within {timeout:g} s: {what or 'the awaited value'}; the last value: {repr(value)[:2000]}\n{details()}"
