"""Signals that stop a process, while a worker that has crawled waits for the others.

Scrapy's handler would stop the event loop at once, or do nothing, since the spider is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def calls_on_signal(callback: Callable[[], object]) -> Iterator[None]:
    """Call ``callback`` in the running loop, instead of the handler, at the first of these signals within the block.
    Another one reaches its handler as before.

    Nothing is done outside of the main thread, where Python handles no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def handle(_number: int, _frame: FrameType | None) -> None:
        restore()
        loop.call_soon_threadsafe(callback)

    # None is a handler that was not set in Python, and cannot be restored.
    usual = {number: handler for number in _SIGNALS if (handler := signal.getsignal(number)) is not None}

    def restore() -> None:
        for number, handler in usual.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)

    for number in usual:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
