"""The memory of all answers of an extraction service together, from their first byte until their responses are freed.

A service can answer a small request with gigabytes, and many requests at once. So each answer has a :class:`Hold`,
which counts the received bytes, the decoded data, and the data that is kept. All holds together stay within one limit:
beyond it no request is sent and no answer read further until the memory of another answer is free. The oldest answer
under way never waits, so that one always completes; alone, it may use the whole limit.
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
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, Timeout, timeout_after

logger = logging.getLogger(__name__)

_MIB: Final = 2**20
#: Seconds that an answer waits before the garbage collector runs, which alone frees responses in reference cycles.
_COLLECT_AFTER: Final = 1.0
#: Answers of up to this many bytes are counted as four times their bytes. The data of larger ones is estimated.
_SMALL: Final = 64 * 1024
_SMALL_FACTOR: Final = 4


def decoded_size(body: bytes | bytearray) -> int:
    """Return the bytes that JSON takes when it is decoded: an upper bound for a large body."""
    return _SMALL_FACTOR * len(body) if len(body) <= _SMALL else weight(body)


class AnswerMemory:
    """The limit of one client, in bytes; 0: none."""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._used = 0
        #: Sizes of freed holds that still count. A hold is freed in any thread, and subtracted in the event loop.
        self._freed: deque[int] = deque()
        #: Holds of answers that are being received or decoded, oldest first.
        self._under_way: dict[Hold, None] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._has_warned = False

    @property
    def used(self) -> int:
        while self._freed:
            self._used -= self._freed.popleft()
        return self._used

    async def hold(self) -> Hold:
        """Return the hold of a new answer. Waits while the limit is used up and other answers are under way."""
        while not self._has_room(1, None) and self._under_way:
            await self._change()
        made = Hold(self)
        self._under_way[made] = None
        return made

    def _has_room(self, size: int, asking: Hold | None) -> bool:
        """Return whether this many more bytes may be held. Half of the limit is reserved for the oldest answer under
        way, so that it completes when many others have begun."""
        if not self.limit:
            return True
        is_oldest = next(iter(self._under_way), asking) is asking
        return self.used + size <= (self.limit if is_oldest else self.limit // 2)

    async def _room(self, size: int, asking: Hold) -> None:
        """Wait until there is room. The oldest answer waits only for responses that may be freed soon."""
        while not self._has_room(size, asking):
            if await self._change() or next(iter(self._under_way), asking) is not asking:
                continue
            gc.collect()
            if not self._has_room(size, asking):
                self._exempt(asking)
                return

    def _exempt(self, hold: Hold) -> None:
        hold.is_exempt = True
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Responses that are still in use take %d MiB, and EXTRACT_API_MEMORY_LIMIT_MB allows %d: answers are "
                "received one at a time until responses are freed. Keep fewer responses, or raise the limit.",
                self.used // _MIB,
                self.limit // _MIB,
            )

    async def _change(self) -> bool:
        """Wait a bounded time for memory to be freed. Returns whether it was."""
        changed = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        try:
            async with timeout_after(_COLLECT_AFTER):
                await changed
        except TIMEOUT_ERRORS:
            return False
        finally:
            if changed in self._waiting:
                self._waiting.remove(changed)
        return True

    def _add(self, size: int) -> None:
        self._used += size
        if size < 0:
            self._changed()

    def _changed(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            # The garbage collector may run in any thread, and after the loop was closed.
            with contextlib.suppress(RuntimeError):
                waiting.get_loop().call_soon_threadsafe(_wake, waiting)


class Hold:
    """The memory of one answer; freed with the last reference to the hold."""

    __slots__ = ("_memory", "is_exempt", "size")

    def __init__(self, memory: AnswerMemory) -> None:
        self._memory = memory
        self.size = 0
        #: True: it continues although all holds together exceed the limit.
        self.is_exempt = False

    async def resize(self, size: int, deadline: Timeout | None = None) -> None:
        """Change the size.

        Waits for room for a larger one; ``deadline`` is postponed by that time. Raises
        :class:`~scrapy_ext.client.extraction.errors.OverMemoryError` for a size that exceeds the limit by itself.
        """
        memory = self._memory
        if size > self.size and memory.limit:
            if size > memory.limit:
                raise OverMemoryError(f"the answer takes over {memory.limit / 2**20:g} MiB of memory")
            if not self.is_exempt and not memory._has_room(size - self.size, self):
                await self._wait_for(size, deadline)
        memory._add(size - self.size)
        self.size = size

    async def _wait_for(self, size: int, deadline: Timeout | None) -> None:
        ends = deadline.when() if deadline is not None else None
        began = asyncio.get_running_loop().time()
        if deadline is not None:
            deadline.reschedule(None)
        await self._memory._room(size - self.size, self)
        if deadline is not None and ends is not None:
            deadline.reschedule(ends + asyncio.get_running_loop().time() - began)

    def close(self) -> None:
        """End an answer that was received and decoded, or failed. Its size counts until the hold is freed."""
        del self._memory._under_way[self]
        self._memory._changed()

    def __del__(self) -> None:
        self._memory._freed.append(self.size)
        self._memory._changed()


class HeldResult(dict[str, Any]):
    """A result of the service with the hold of its answer."""

    __slots__ = ("hold", "seconds")

    def __init__(self, result: dict[str, Any], hold: Hold, seconds: float | None = None) -> None:
        super().__init__(result)
        self.hold = hold
        #: Time from the POST that had this answer to the answer; None for one of a former run.
        self.seconds = seconds


def hold_of(result: object) -> Hold | None:
    return result.hold if isinstance(result, HeldResult) else None


def seconds_of(result: object) -> float | None:
    return result.seconds if isinstance(result, HeldResult) else None


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
