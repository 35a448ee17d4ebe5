"""Output of a job's process: lines of bounded length and number.

The end of a crawl's output is kept, which explains an end that the crawl could not log: it sends its log itself. The
output of a script is added to the job's log while it runs, and the script waits while too much of it is not stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.masking import without_user
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import MAX_ITEM_BYTES, LogRecord
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.records.chunks import LOGS, Packer

#: Bytes per line; longer ones are split.
LONGEST: Final = 64 * 1024
#: Bytes of a crawl's output that are kept, and of a script's output that wait to be stored.
KEPT: Final = 256 * 1024
#: Bytes of a script's output that are added to its log.
MOST: Final = 16 * 1024 * 1024
_PIECE: Final = 64 * 1024
#: Characters per log record: as JSON, a character has six bytes at most.
_LONGEST_RECORD: Final = MAX_ITEM_BYTES // 8
_HEAD: Final = "Traceback (most recent call last):"
#: First line of a log record of a process that could not send its log (``jobprocess/launch.py``); maximum lines of its
#: message, and characters of such a line. The message of asyncio for a task that failed has two.
_RECORD: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:ERROR|CRITICAL) \S+: ")
_MOST_OF_MESSAGE: Final = 4
_LONGEST_OF_MESSAGE: Final = 4096
#: Lines of Python's between the tracebacks of two exceptions.
_BETWEEN: Final = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
#: Seconds between two additions of a script's output.
_EVERY: Final = 0.5

logger = logging.getLogger(__name__)


class OutputLine(NamedTuple):
    """A line, and the log level of its stream."""

    level: int
    text: str


class Tail:
    """The last lines of the output."""

    def __init__(self) -> None:
        self._lines: deque[OutputLine] = deque()
        self._size = 0
        #: Number of lines that are no longer kept.
        self.dropped = 0

    def add(self, line: OutputLine) -> None:
        """Add a line, and drop the first ones if there are too many."""
        self._lines.append(line)
        self._size += len(line.text) + 1
        while self._size > KEPT and len(self._lines) > 1:
            self._size -= len(self._lines.popleft().text) + 1
            self.dropped += 1

    def lines(self) -> list[OutputLine]:
        """Return the kept lines, after a line with the number of dropped ones."""
        if not self.dropped:
            return list(self._lines)
        return [OutputLine(logging.WARNING, f"{self.dropped} lines of output are left out here"), *self._lines]


def with_whole_tracebacks(lines: Iterable[OutputLine]) -> Iterator[OutputLine]:
    """Yield the lines, and each traceback as one, with those of its causes and with the message of its log record; of a
    very long one the first part."""
    traceback: OutputLine | None = None
    #: Lines of a log record that may have a traceback.
    record: list[OutputLine] = []
    last = ""
    for line in lines:
        if traceback is not None:
            if _belongs(line.text, last) and len(traceback.text) + len(line.text) < LONGEST:
                traceback = traceback._replace(text=f"{traceback.text}\n{line.text}")
                last = line.text
                continue
            yield traceback
            traceback = None
        if line.text.endswith(_HEAD):
            text = "\n".join([*(each.text for each in record), line.text])
            traceback, last, record = line._replace(text=text), line.text, []
            continue
        if _RECORD.match(line.text):
            yield from record
            record = [line]
        elif record and len(record) < _MOST_OF_MESSAGE and len(line.text) < _LONGEST_OF_MESSAGE:
            record.append(line)
        else:
            yield from record
            record = []
            yield line
    yield from record
    if traceback is not None:
        yield traceback


def _belongs(text: str, last: str) -> bool:
    """Return true if a line belongs to the traceback that ends with the line ``last`` so far: frames, the exception
    after them, and what that exception has interrupted."""
    return last.startswith(" ") or last.endswith(_HEAD) or last in _BETWEEN or text in _BETWEEN


class Output:
    """Reader of the streams of a process. ``live``: receives the lines at once; None: they are kept."""

    def __init__(self, live: LiveLines | None = None) -> None:
        self._live = live
        self._taken = 0
        self.tail = Tail()

    async def read(self, stream: asyncio.StreamReader, level: int) -> None:
        rest = b""
        while piece := await stream.read(_PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            while len(rest) > LONGEST:
                lines.append(rest[:LONGEST])
                rest = rest[LONGEST:]
            for line in lines:
                self._take(line, level)
            if self._live is not None:
                await self._live.wait_for_room()
        self._take(rest, level)

    def _take(self, raw: bytes, level: int) -> None:
        while raw:
            text = without_user(raw[:LONGEST].decode(errors="replace").rstrip())
            raw = raw[LONGEST:]
            if text:
                self._add(OutputLine(level, text))

    def _add(self, line: OutputLine) -> None:
        self._taken += len(line.text) + 1
        if self._live is not None and self._taken <= MOST:
            self._live.add(line)
        else:
            self.tail.add(line)


class LiveLines:
    """Lines that wait to be added to the log."""

    def __init__(self) -> None:
        self._waiting: list[OutputLine] = []
        self._size = 0
        self._room = asyncio.Event()
        self._room.set()
        #: Set when the lines should be stored now.
        self.due = asyncio.Event()
        #: True after the last line.
        self.is_closed = False

    def close(self) -> None:
        """Mark the end of the lines."""
        self.is_closed = True
        self.due.set()

    def add(self, line: OutputLine) -> None:
        """Add a line without waiting."""
        self._waiting.append(line)
        self._size += len(line.text)
        if self._size > KEPT or len(self._waiting) >= 1000:
            self._room.clear()
            self.due.set()

    async def wait_for_room(self) -> None:
        """Wait while too many lines are not stored."""
        await self._room.wait()

    def taken(self) -> list[OutputLine]:
        lines, self._waiting, self._size = self._waiting, [], 0
        self._room.set()
        self.due.clear()
        return lines


async def add_lines(store: Store, key: JobKey, lines: Sequence[OutputLine], attempt: Attempt | None = None) -> None:
    """Add lines to a job's log, unless its own process adds records, which it numbers itself.

    ``attempt``: that of lines that are stored only while it lasts.
    """
    if not lines:
        return
    now = store.clock()
    records = [LogRecord(time=now, level=line.level, message=line.text[:_LONGEST_RECORD]) for line in lines]
    packer = Packer(LOGS)
    chunks = packer.add(
        [msgspec.json.encode(each) for each in records], [msgspec.to_builtins(each) for each in records]
    )
    rest = packer.rest()
    await store.logs.write(key, None, [*chunks, *([] if rest is None else [rest])], attempt=attempt)


async def keep_adding(store: Store, attempt: Attempt, lines: LiveLines) -> None:
    """Add the output of a script to its log until its end, or until the attempt is over."""
    is_last = False
    while not is_last:
        with contextlib.suppress(*TIMEOUT_ERRORS):
            await asyncio.wait_for(lines.due.wait(), _EVERY)
        is_last = lines.is_closed
        some = lines.taken()
        while some:
            try:
                await add_lines(store, attempt.key, some, attempt)
                break
            except ContractError:
                return
            except StoreError as error:
                logger.warning("The output of job %s waits for the database: %s", attempt.key, error)
                await asyncio.sleep(_EVERY)
