"""Base of servers of tests with a thread and an event loop of their own."""

from __future__ import annotations

import asyncio
import threading

from scrapy_ext.compatibility.python import Self


class ThreadedServer:
    """Runs while its context is entered. A subclass sets its attributes, then calls ``super().__init__()``."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        #: For the subclass: set ``_ready`` when it serves, and end at ``_stop``.
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()

    async def _run(self) -> None:
        raise NotImplementedError
