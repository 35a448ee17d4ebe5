"""Continuation of an earlier run: the lines with a record, and their comparison with the input.

Each record has the number of its line and the fingerprint of its request. A line with a record is done; when its
fingerprint differs now, the input has changed. A record cut off by a crash is the last in the file, and is removed.
One run at a time has the output open.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from scrapy_ext.commands.extraction.input_lines import CallError, LineParser, LineRequest, Source
from scrapy_ext.commands.extraction.records import write_all
from scrapy_ext.commands.output_files import BINARY, MOVES_OPEN_FILES, FileLock, LockedError

_PAGE_BITS: Final = 14
_MOST_LINES: Final = 2**48
_FINGERPRINT: Final = re.compile("[0-9a-f]{8}")
#: The lines of a larger file are not counted before the run.
_COUNTED_BYTES: Final = 512 * 2**20


class Done:
    """Set of the lines that are done: four bytes per line, in pages, so that a large number costs one page."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}
        self.answered = 0
        self.failed = 0
        self.last = 0

    def __len__(self) -> int:
        return self.answered + self.failed

    def add(self, number: int, fingerprint: str, *, failed: bool) -> bool:
        """Add a line; returns false for a known one."""
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
        """Return true when a line that is done has this fingerprint."""
        page, place = self._place(number)
        return self._pages[page][place] == _mark(fingerprint)

    @staticmethod
    def _place(number: int) -> tuple[int, int]:
        return number >> _PAGE_BITS, number & ((1 << _PAGE_BITS) - 1)


def _mark(fingerprint: str) -> int:
    return int(fingerprint, 16) or 1  # 0: not done.


_ABSENT: Final = msgspec.Raw()


class _Record(msgspec.Struct):
    """The members of a record that identify its line."""

    line: int
    fingerprint: str
    url: str | None = None
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT

    @property
    def is_error(self) -> bool:
        return bool(self.error)

    @classmethod
    def read(cls, text: bytes) -> _Record | None:
        """Parse a record; None for other data."""
        try:
            record = msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        known = 0 < record.line < _MOST_LINES and _FINGERPRINT.fullmatch(record.fingerprint)
        return record if known and bool(record.result) != record.is_error else None


class OutputFile:
    """The locked file of ``--output``. Any other kind of file, such as a pipe, has no records of earlier runs."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self.name = path
        self.done = Done()
        self._kept = contextlib.ExitStack()
        self._open = set[int]()
        #: Descriptor for writing.
        self.file = self._locked(self.path)
        self.is_kept = stat.S_ISREG(os.fstat(self.file).st_mode)

    def close(self) -> None:
        self._kept.close()

    def read_done(self, *, drop_failed: bool) -> None:
        """Read the records into :attr:`done`, and repair the end of the file. ``drop_failed``: remove error records.

        Raises :class:`CallError` for a file with other data.
        """
        if not self.is_kept:
            return
        with Path(self.path).open("rb") as file:
            for record in self._records(file):
                self.done.add(record.line, record.fingerprint, failed=record.is_error)
        if drop_failed and self.done.failed:
            self._drop_failed()

    def url_of(self, number: int) -> str | None:
        """Return the URL in the record of a line."""
        with Path(self.path).open("rb") as file:
            return next((record.url for record in self._records(file) if record.line == number), None)

    def _opened(self, path: str) -> int:
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o666)
        except OSError as error:
            raise CallError(f"{self.name} cannot be written: {error.strerror}") from None
        self._kept.callback(self._close, file)
        self._open.add(file)
        return file

    def _close(self, file: int) -> None:
        if file in self._open:
            self._open.remove(file)
            os.close(file)

    def _locked(self, path: str) -> int:
        file = self._opened(path)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return file  # A device such as /dev/null may have several writers.
        try:
            self._kept.callback(FileLock(file, path).release)
        except LockedError:
            raise CallError(f"another scrapy extract is writing to {self.name}; wait until it ends") from None
        except OSError:
            pass  # The file system has no locks.
        return file

    def _records(self, file: IO[bytes]) -> Iterator[_Record]:
        for place, text in enumerate(file, 1):
            record = _Record.read(text)
            is_ours = place > 1 or record is not None or text.startswith(b'{"line":')
            is_torn = is_ours and not text.endswith(b"\n")
            if record is None and not is_torn:
                raise CallError(f"line {place} of {self.name} is not a record of scrapy extract; give another --output")
            if record is not None:
                yield record
            if is_torn:
                self._repair(file.tell() - len(text), is_whole=record is not None)
                return  # It was the last record of the earlier run.

    def _repair(self, start: int, *, is_whole: bool) -> None:
        if is_whole:
            os.write(self.file, b"\n")
        else:
            os.ftruncate(self.file, start)

    def _drop_failed(self) -> None:
        """Replace the file by one without error records, which is locked before it has the name."""
        part = f"{self.path}.part"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        done = Done()
        fresh = self._locked(part)
        try:
            with Path(self.path).open("rb") as old:
                for text in old:
                    record = _Record.read(text)
                    if record is not None and not record.is_error:
                        write_all(fresh, text)
                        done.add(record.line, record.fingerprint, failed=False)
            shutil.copymode(self.path, part)
            fresh = self._replaced(part, fresh)
        except OSError as error:
            raise CallError(f"{part} cannot be written: {error.strerror}") from None
        self.file, self.done = fresh, done

    def _replaced(self, part: str, fresh: int) -> int:
        """Give the file ``part``, open as ``fresh``, the name of the output; returns its descriptor."""
        if MOVES_OPEN_FILES:
            os.replace(part, self.path)
            return fresh
        # The lock of the name remains.
        self._close(self.file)
        self._close(fresh)
        os.replace(part, self.path)
        return self._opened(self.path)


class Comparison(msgspec.Struct, frozen=True):
    """Comparison of the input with the lines that are done."""

    source: Source
    parser: LineParser
    output: OutputFile | None

    def count(self) -> int | None:
        """Return the number of lines; None when they cannot be counted before the run.

        Raises :class:`CallError` for a line that has changed.
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

    def compare(self, request: LineRequest) -> None:
        """Raise :class:`CallError` when a line that is done has another request now."""
        if self.output is None or self.output.done.is_same(request.number, request.fingerprint):
            return
        before, now = self.output.url_of(request.number), request.url
        change = f"was {before} and is {now} now" if before != now else f"({now}) has other fields now"
        raise CallError(
            f"{self.source.name} and {self.output.name} do not belong together: line {request.number} {change}; "
            "give another --output, or --retry-failed if it had failed"
        )

    def compare_end(self, last: int) -> None:
        """Raise :class:`CallError` when the input ends before the last line that is done."""
        if self.output is not None and self.output.done.last > last:
            raise CallError(
                f"{self.source.name} and {self.output.name} do not belong together: line {self.output.done.last} is "
                f"done, and there are {last} lines now; give another --output"
            )
