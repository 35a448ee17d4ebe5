"""What a process writes to its standard output and error: lines, however it writes, and never more than so many.

Of a crawl, whose log is sent by itself, the end is kept: it says why a process has ended that could not say so in its
log. The lines of a script go to its log while it runs; while they wait to be stored, the script waits to write more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import MAX_ITEM_BYTES, LogRecord
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.records.chunks import LOGS, Packer

#: Bytes of a line; longer ones are cut into several.
LONGEST: Final = 64 * 1024
#: Bytes of output that are kept of a crawl, and after what a script may write.
KEPT: Final = 256 * 1024
#: Bytes of a script that go to its log.
MOST: Final = 16 * 1024 * 1024
_PIECE: Final = 64 * 1024
#: Characters of a record of the log: as JSON, a character has six bytes at most.
_LONGEST_RECORD: Final = MAX_ITEM_BYTES // 8
#: Seconds between two writes of the output of a script.
_EVERY: Final = 0.5

logger = logging.getLogger(__name__)


class Line(NamedTuple):
    """A line, and the level that its stream has in the log."""

    level: int
    text: str


#: Takes a line; returns whether the next ones must wait.
Take = Callable[[Line], bool]


class Tail:
    """The end of the output."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._size = 0
        #: Lines that are not kept any more.
        self.dropped = 0

    def add(self, line: Line) -> None:
        """Keep a line, and drop the first ones if there are too many."""
        self._lines.append(line)
        self._size += len(line.text) + 1
        while self._size > KEPT and len(self._lines) > 1:
            self._size -= len(self._lines.popleft().text) + 1
            self.dropped += 1

    def lines(self) -> list[Line]:
        """What is kept; in the place of what is not, how much that is."""
        if not self.dropped:
            return list(self._lines)
        return [Line(logging.WARNING, f"{self.dropped} lines of output are left out here"), *self._lines]


class Output:
    """Reads the streams of a process. ``live``: where lines go at once; None: they are kept."""

    def __init__(self, live: LiveLines | None = None) -> None:
        self._live = live
        self._taken = 0
        self.tail = Tail()

    async def read(self, stream: asyncio.StreamReader, level: int) -> None:
        """Read a stream to its end."""
        rest = b""
        while piece := await stream.read(_PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            while len(rest) > LONGEST:
                lines.append(rest[:LONGEST])
                rest = rest[LONGEST:]
            for line in lines:
                self._take(line, level)
            if self._live is not None:
                await self._live.room()
        self._take(rest, level)

    def _take(self, raw: bytes, level: int) -> None:
        while raw:
            text = raw[:LONGEST].decode(errors="replace").rstrip()
            raw = raw[LONGEST:]
            if text:
                self._add(Line(level, text))

    def _add(self, line: Line) -> None:
        self._taken += len(line.text) + 1
        if self._live is not None and self._taken <= MOST:
            self._live.add(line)
        else:
            self.tail.add(line)


class LiveLines:
    """Lines on their way to the log: :meth:`add` never waits, :meth:`room` does when many are unstored."""

    def __init__(self) -> None:
        self._waiting: list[Line] = []
        self._size = 0
        self._room = asyncio.Event()
        self._room.set()
        #: Set when what waits should be stored now.
        self.due = asyncio.Event()
        #: Whether all lines have come.
        self.is_closed = False

    def close(self) -> None:
        """No more lines come."""
        self.is_closed = True
        self.due.set()

    def add(self, line: Line) -> None:
        self._waiting.append(line)
        self._size += len(line.text)
        if self._size > KEPT or len(self._waiting) >= 1000:
            self._room.clear()
            self.due.set()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()

    def taken(self) -> list[Line]:
        """Take what waits."""
        lines, self._waiting, self._size = self._waiting, [], 0
        self._room.set()
        self.due.clear()
        return lines


async def add_lines(store: Store, key: JobKey, lines: Sequence[Line]) -> None:
    """Add lines to a job's log; not while its own process adds some, which numbers them itself."""
    if not lines:
        return
    now = store.clock()
    records = [LogRecord(time=now, level=line.level, message=line.text[:_LONGEST_RECORD]) for line in lines]
    packer = Packer(LOGS)
    chunks = packer.add(
        [msgspec.json.encode(each) for each in records], [msgspec.to_builtins(each) for each in records]
    )
    rest = packer.rest()
    await store.logs.write(key, None, [*chunks, *([] if rest is None else [rest])])


async def keep_adding(store: Store, key: JobKey, lines: LiveLines) -> None:
    """Add what a script says while it runs, until all of it has come, or the attempt is over. ``store``: that of the
    attempt."""
    is_last = False
    while not is_last:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(lines.due.wait(), _EVERY)
        is_last = lines.is_closed
        some = lines.taken()
        while some:
            try:
                await add_lines(store, key, some)
                break
            except ContractError:
                return
            except StoreError as error:
                logger.warning("The output of job %s waits for the database: %s", key, error)
                await asyncio.sleep(_EVERY)
