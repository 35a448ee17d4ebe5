"""The memory that the answers of an extraction service take together, from their first byte until their responses
are gone.

A service can answer a small request with gigabytes, and many requests at once. So each answer has a :class:`Hold`,
which counts what was received, what it is decoded to, and what is kept of it. All holds together stay within one
limit: beyond it no request is sent and no answer read on until another's memory is free again. The oldest answer
under way never waits, so that there is always one that comes to its end; alone, it may have the limit for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections import deque
from typing import Any, Final

from scrapy_ext.api.json_decoder import weight
from scrapy_ext.client.extraction.errors import OverMemoryError

logger = logging.getLogger(__name__)

_MIB: Final = 2**20
#: Seconds that an answer waits before responses in reference cycles, which nothing else frees, are collected.
_PATIENCE: Final = 1.0
#: Answers up to here are counted as four times their bytes. Larger ones are looked at.
_SMALL: Final = 64 * 1024
_SMALL_FACTOR: Final = 4


def decoded_size(body: bytes) -> int:
    """Bytes that JSON takes when it is decoded: an upper bound where it is large."""
    return _SMALL_FACTOR * len(body) if len(body) <= _SMALL else weight(body)


class AnswerMemory:
    """The limit of one client, in bytes; 0: none."""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._used = 0
        #: Sizes of holds that are gone and still count. They may go in any thread, and are subtracted in that of the
        #: event loop.
        self._gone: deque[int] = deque()
        #: Holds of answers that are being received or decoded, oldest first.
        self._under_way: dict[Hold, None] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._has_warned = False

    @property
    def used(self) -> int:
        """Bytes of all holds."""
        while self._gone:
            self._used -= self._gone.popleft()
        return self._used

    async def hold(self) -> Hold:
        """Begin an answer. Waits while the limit is used up and other answers are under way."""
        while not self._has_room(1, None) and self._under_way:
            await self._change()
        made = Hold(self)
        self._under_way[made] = None
        return made

    def _has_room(self, size: int, asking: Hold | None) -> bool:
        """Return whether so much more may be held. The half of the limit is for the oldest answer under way alone:
        many that have begun and wait for each other leave it room to come to its end."""
        if not self.limit:
            return True
        is_oldest = next(iter(self._under_way), asking) is asking
        return self.used + size <= (self.limit if is_oldest else self.limit // 2)

    async def _room(self, size: int, asking: Hold) -> None:
        """Wait until there is room. The oldest answer waits only for responses that may be gone soon."""
        while not self._has_room(size, asking):
            if await self._change() or next(iter(self._under_way), asking) is not asking:
                continue
            gc.collect()
            if not self._has_room(size, asking):
                self._let_over(asking)
                return

    def _let_over(self, hold: Hold) -> None:
        hold.is_let_over = True
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Responses that are still in use take %d MiB, and EXTRACT_API_MEMORY_LIMIT_MB allows %d: answers are "
                "received one at a time until responses are gone. Keep fewer responses, or raise the limit.",
                self.used // _MIB,
                self.limit // _MIB,
            )

    async def _change(self) -> bool:
        """Wait for memory to be free, for a bounded time. Returns whether any is."""
        changed = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        try:
            async with asyncio.timeout(_PATIENCE):
                await changed
        except TimeoutError:
            return False
        finally:
            if changed in self._waiting:
                self._waiting.remove(changed)
        return True

    def _add(self, size: int) -> None:
        self._used += size
        if size < 0:
            self._changed()

    def _remove(self, hold: Hold) -> None:
        self._gone.append(hold.size)
        self._changed()

    def _end(self, hold: Hold) -> None:
        del self._under_way[hold]
        self._changed()

    def _changed(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            # The collector may come by in any thread, and when the loop is closed.
            with contextlib.suppress(RuntimeError):
                waiting.get_loop().call_soon_threadsafe(_wake, waiting)


class Hold:
    """The memory of one answer; free when nothing refers to the hold any more."""

    __slots__ = ("_memory", "is_let_over", "size")

    def __init__(self, memory: AnswerMemory) -> None:
        self._memory = memory
        self.size = 0
        #: Whether it goes on although all holds together are over the limit.
        self.is_let_over = False

    async def resize(self, size: int, deadline: asyncio.Timeout | None = None) -> None:
        """Count another size.

        Waits where there is no room for a larger one; ``deadline`` is put off by that time. Raises
        :class:`~scrapy_ext.client.extraction.errors.OverMemoryError` for a size that is over the limit by itself.
        """
        memory = self._memory
        if size > self.size and memory.limit:
            if size > memory.limit:
                raise OverMemoryError(f"the answer takes over {memory.limit / 2**20:g} MiB of memory")
            if not self.is_let_over and not memory._has_room(size - self.size, self):
                await self._wait_for(size, deadline)
        memory._add(size - self.size)
        self.size = size

    async def _wait_for(self, size: int, deadline: asyncio.Timeout | None) -> None:
        ends = deadline.when() if deadline is not None else None
        began = asyncio.get_running_loop().time()
        if deadline is not None:
            deadline.reschedule(None)
        await self._memory._room(size - self.size, self)
        if deadline is not None and ends is not None:
            deadline.reschedule(ends + asyncio.get_running_loop().time() - began)

    def end(self) -> None:
        """The answer was received and decoded, or failed. Its size counts until nothing refers to the hold."""
        self._memory._end(self)

    def __del__(self) -> None:
        self._memory._remove(self)


class HeldResult(dict[str, Any]):
    """A result of the service with the hold of its answer."""

    __slots__ = ("hold",)

    def __init__(self, result: dict[str, Any], hold: Hold) -> None:
        super().__init__(result)
        self.hold = hold


def hold_of(result: object) -> Hold | None:
    """The hold that a result has, if any."""
    return result.hold if isinstance(result, HeldResult) else None


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
