"""Where lines come from: the command line, a file, or standard input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence

import msgspec

from scrapy_ext.commands.extraction.blocking import BlockingCalls
from scrapy_ext.commands.extraction.errors import CallError
from scrapy_ext.commands.extraction.request_lines import Line, read_lines


class Source(msgspec.Struct, frozen=True):
    """``urls`` of the command line, or the file at ``path``; with neither, standard input."""

    urls: Sequence[str] = ()
    path: str | None = None

    @property
    def name(self) -> str:
        """What it is called in a message."""
        return "the command line" if self.urls else self.path or "standard input"

    @property
    def can_be_read_twice(self) -> bool:
        """Whether it can be looked through before it is used."""
        if self.urls:
            return True
        return self.path is not None and stat.S_ISREG(os.stat(self.path).st_mode)

    @property
    def size(self) -> int:
        """The bytes of a file."""
        return os.stat(self.path).st_size if self.path is not None else 0

    def check_readable(self) -> None:
        """Raises :class:`CallError` for a file that is not there, or is none."""
        if self.path is None:
            return
        try:
            if stat.S_ISDIR(os.stat(self.path).st_mode):
                raise CallError(f"{self.path} is a folder; give a file of URLs")
            if not os.access(self.path, os.R_OK):
                raise CallError(f"{self.path} cannot be read: you may not")
        except OSError as error:
            raise CallError(f"{self.path} cannot be read: {error.strerror}") from None

    def lines(self) -> Iterator[list[Line]]:
        """The lines, a few at a time, from the first one; raises :class:`OSError`."""
        if self.urls:
            given = ((number, url.strip()) for number, url in enumerate(self.urls, 1))
            yield [Line(number, url.encode("utf-8", "surrogateescape")) for number, url in given if url]
            return
        with self._opened() as file:
            # Not sys.stdin: a thread that is blocked in it would hold a lock that the end of the process needs.
            yield from read_lines(lambda size: os.read(file, size))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        if self.path is None:
            yield sys.stdin.fileno()
            return
        file = os.open(self.path, os.O_RDONLY)
        try:
            yield file
        finally:
            os.close(file)


class SourceReader:
    """Reads a source beside the event loop, a few lines at a time, when it is asked to.

    ``on_read`` is told when there are lines again, or none any more, with the error that ended them.
    """

    def __init__(self, source: Source, on_read: Callable[[OSError | None], None]) -> None:
        self._batches = source.lines()
        self._on_read = on_read
        self._calls = BlockingCalls("input")
        self._lines: Iterator[Line] = iter(())
        self._reading: asyncio.Task[None] | None = None
        self.has_ended = False
        #: Number of the last line that was given out.
        self.last = 0

    def next(self) -> Line | None:
        """A line that was read; None: there is none now."""
        line = next(self._lines, None)
        if line is not None:
            self.last = line.number
        return line

    def read(self) -> None:
        """Have the lines that follow read, unless they are being read."""
        if self._reading is None and not self.has_ended:
            self._reading = asyncio.create_task(self._read())

    def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
        self._calls.close()

    async def _read(self) -> None:
        error = None
        try:
            lines = await self._calls(lambda: next(self._batches, None))
        except OSError as raised:
            lines, error = None, raised
        self._reading = None
        self.has_ended = lines is None
        self._lines = iter(lines or ())
        self._on_read(error)
