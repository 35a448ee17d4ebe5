"""Pool of processes that compute, each one task at a time; one that takes too long, or crashes, is ended and replaced.

Tasks and answers are bytes, whose form is known to the caller and to the module that a process runs (``worker``).
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.jobprocess.child import Child
from scrapy_ext.server.computing.environment import clean_environment
from scrapy_ext.server.computing.worker import OUT_OF_TIME, message

#: Bytes of an answer.
_MAX_ANSWER: Final = 64 * 1024 * 1024


class BrokenProcessError(Exception):
    """A process ended while it worked. ``is_out_of_time``: its own timer ended it (``worker.limit_time``)."""

    def __init__(self, *, is_out_of_time: bool) -> None:
        super().__init__()
        self.is_out_of_time = is_out_of_time


class Processes:
    """The pool; processes start with the first tasks. End it with :meth:`stop`.

    ``module``: the module that they run. ``kept``: how many of them may be idle; the caller limits how many work.
    """

    def __init__(self, module: str, kept: int) -> None:
        self._module = module
        self._kept = kept
        self._idle: list[Child] = []

    async def run(self, task: bytes, seconds: float) -> bytes:
        """Return the answer to a task; raises :class:`BrokenProcessError`, and ``TimeoutError`` after ``seconds``."""
        framed = message(task)
        try:
            return await self._run(framed, seconds)
        except BrokenProcessError as error:
            if error.is_out_of_time:
                raise
            # The process may have died because of the previous task, or while it was idle.
            return await self._run(framed, seconds)

    async def stop(self) -> None:
        """End the processes."""
        idle, self._idle = self._idle, []
        for child in idle:
            await child.end()

    async def _run(self, framed: bytes, seconds: float) -> bytes:
        child = self._idle.pop() if self._idle else await self._start()
        done = False
        try:
            async with timeout_after(seconds):
                answer = await _exchange(child, framed)
            done = True
            return answer
        except TIMEOUT_ERRORS:
            # Before OSError, of which it is one.
            raise
        except (OSError, asyncio.IncompleteReadError):
            raise BrokenProcessError(is_out_of_time=await _status(child) == -OUT_OF_TIME) from None
        finally:
            if done and len(self._idle) < self._kept:
                self._idle.append(child)
            else:
                # Its result is not wanted any more, or there are enough processes.
                await asyncio.shield(child.end())

    async def _start(self) -> Child:
        return await Child.start(
            [sys.executable, "-m", self._module], environment=clean_environment(os.environ), errors=None
        )


async def _status(child: Child) -> int | None:
    """Return the exit status of a process that closed its output; None if it goes on."""
    try:
        async with timeout_after(1.0):
            return await child.wait()
    except TIMEOUT_ERRORS:
        return None


async def _exchange(child: Child, framed: bytes) -> bytes:
    await child.feed(framed)
    size = int.from_bytes(await child.output.readexactly(4), "big")
    if size > _MAX_ANSWER:
        raise OSError("an answer of that size")
    return await child.output.readexactly(size)
