"""What an earlier run left in the output: which lines are done, and whether they are still the same lines.

Every record has the number of its line and the fingerprint of what was asked for. A line with a record is done; a
line of the same number that asks for something else now means that the input has changed. A record that was cut off
by a crash is the last in the file, and is removed. An output is open in one run at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from scrapy_ext.commands.extraction.input_lines import CallError, LineParser, Source, Wanted
from scrapy_ext.commands.extraction.records import write_all

_PAGE_BITS: Final = 14
_MOST_LINES: Final = 2**48
_FINGERPRINT: Final = re.compile("[0-9a-f]{8}")
#: A file that is larger is not counted before the work begins.
_COUNTED_BYTES: Final = 512 * 2**20


class Done:
    """Which lines are done: four bytes for a line, in pages, so that a number far away costs one page."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}
        self.answered = 0
        self.failed = 0
        self.last = 0

    def __len__(self) -> int:
        return self.answered + self.failed

    def add(self, number: int, fingerprint: str, *, failed: bool) -> bool:
        """Mark a line; False: it was marked already."""
        page, place = self._place(number)
        marks = self._pages.setdefault(page, array("I", bytes(4 << _PAGE_BITS)))
        if marks[place]:
            return False
        marks[place] = _mark(fingerprint)
        self.failed += failed
        self.answered += not failed
        self.last = max(self.last, number)
        return True

    def __contains__(self, number: int) -> bool:
        page, place = self._place(number)
        marks = self._pages.get(page)
        return marks is not None and marks[place] != 0

    def is_same(self, number: int, fingerprint: str) -> bool:
        """Whether a line that is done asked for the same."""
        page, place = self._place(number)
        return self._pages[page][place] == _mark(fingerprint)

    @staticmethod
    def _place(number: int) -> tuple[int, int]:
        return number >> _PAGE_BITS, number & ((1 << _PAGE_BITS) - 1)


def _mark(fingerprint: str) -> int:
    return int(fingerprint, 16) or 1  # 0 marks a line that is not done.


_ABSENT: Final = msgspec.Raw()


class _Record(msgspec.Struct):
    """The part of a record that matters here."""

    line: int
    fingerprint: str
    url: str | None = None
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT

    @property
    def is_error(self) -> bool:
        """Whether the line failed."""
        return bool(self.error)

    @classmethod
    def read(cls, text: bytes) -> _Record | None:
        """None: it is not one of ours."""
        try:
            record = msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        known = 0 < record.line < _MOST_LINES and _FINGERPRINT.fullmatch(record.fingerprint)
        return record if known and bool(record.result) != record.is_error else None


class OutputFile:
    """The file of ``--output``, open for this run alone.

    A file that is not a regular one, such as a pipe, is written to, and nothing of an earlier run is known.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self.name = path
        self.done = Done()
        self._kept = contextlib.ExitStack()
        #: The file to write to.
        self.file = self._opened(self.path)
        self.is_kept = stat.S_ISREG(os.fstat(self.file).st_mode)

    def close(self) -> None:
        """Let others have it."""
        self._kept.close()

    def look(self, *, again: bool) -> None:
        """Find what is done, and mend the end of the file. ``again``: drop the records of lines that failed.

        Raises :class:`CallError` for a file that holds something else.
        """
        if not self.is_kept:
            return
        with Path(self.path).open("rb") as file:
            for record in self._records(file):
                self.done.add(record.line, record.fingerprint, failed=record.is_error)
        if again and self.done.failed:
            self._drop_failed()

    def url_of(self, number: int) -> str | None:
        """The URL in the record of a line."""
        with Path(self.path).open("rb") as file:
            return next((record.url for record in self._records(file) if record.line == number), None)

    def _opened(self, path: str) -> int:
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise CallError(f"{self.name} cannot be written: {error.strerror}") from None
        self._kept.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return file  # A device such as /dev/null belongs to nobody, and any number may write to it.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CallError(f"another scrapy extract is writing to {self.name}; wait for it") from None
        except OSError:
            pass  # A file system that has no locks.
        return file

    def _records(self, file: IO[bytes]) -> Iterator[_Record]:
        for place, text in enumerate(file, 1):
            record = _Record.read(text)
            is_ours = place > 1 or record is not None or text.startswith(b'{"line":')
            is_torn = is_ours and not text.endswith(b"\n")
            if record is None and not is_torn:
                told = f"line {place} of {self.name} is not a record of scrapy extract"
                raise CallError(f"{told}; give another --output")
            if record is not None:
                yield record
            if is_torn:
                self._mend(file.tell() - len(text), is_whole=record is not None)
                return  # It was the last: what follows is of this run.

    def _mend(self, start: int, *, is_whole: bool) -> None:
        if is_whole:
            os.write(self.file, b"\n")
        else:
            os.ftruncate(self.file, start)

    def _drop_failed(self) -> None:
        """Write the file anew without them. Whoever waits for the old one finds it locked until this run ends."""
        part = f"{self.path}.part"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        done = Done()
        fresh = self._opened(part)
        try:
            with Path(self.path).open("rb") as old:
                for text in old:
                    record = _Record.read(text)
                    if record is not None and not record.is_error:
                        write_all(fresh, text)
                        done.add(record.line, record.fingerprint, failed=False)
            shutil.copymode(self.path, part)
            os.replace(part, self.path)
        except OSError as error:
            raise CallError(f"{part} cannot be written: {error.strerror}") from None
        self.file, self.done = fresh, done


class Comparison(msgspec.Struct, frozen=True):
    """Compares the lines of the input with those that are done."""

    source: Source
    parser: LineParser
    output: OutputFile | None

    def count(self) -> int | None:
        """How many lines there are. None: they cannot be counted beforehand.

        Raises :class:`CallError` for a line that is not what it was.
        """
        done = self.output.done if self.output is not None else Done()
        if not self.source.can_be_read_twice or (not len(done) and self.source.size > _COUNTED_BYTES):
            return None
        total = last = 0
        for lines in self.source.lines():
            total += len(lines)
            last = lines[-1].number
            for line in lines:
                if line.number in done:
                    self.compare(self.parser.parse(line))
        self.compare_end(last)
        return total

    def compare(self, wanted: Wanted) -> None:
        """Raises :class:`CallError` when a line that is done asks for something else now."""
        if self.output is None or self.output.done.is_same(wanted.number, wanted.fingerprint):
            return
        before, now = self.output.url_of(wanted.number), wanted.url
        what = f"was {before} and is {now} now" if before != now else f"({now}) asks for other fields now"
        raise CallError(
            f"{self.source.name} and {self.output.name} do not belong together: line {wanted.number} {what}; "
            "give another --output, or --retry-failed if it had failed"
        )

    def compare_end(self, last: int) -> None:
        """Raises :class:`CallError` when the input ends before the last line that is done."""
        if self.output is not None and self.output.done.last > last:
            raise CallError(
                f"{self.source.name} and {self.output.name} do not belong together: line {self.output.done.last} is "
                f"done, and there are {last} lines now; give another --output"
            )
