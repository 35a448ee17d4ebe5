"""Bytes of the answers of a ledger, in a file beside its database.

SQLite takes about ten times as long to write an answer of a megabyte as to copy it into a file whose blocks exist.

- The database has the place of each answer: its offset and size (:mod:`~scrapy_ext.client.extraction.ledger_file`).
- An answer is written before the transaction that names it, and its room is used again only after the transaction that
  removes its name. So the database never names bytes of another answer, whenever the process is killed.
- Room is taken from the first gap that is large enough. The file shrinks when it is closed.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

#: Most answers of one system call: what Linux and macOS accept.
_MOST: Final = 1024


class Place(NamedTuple):
    """Offset and size of an answer, in bytes."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class AnswerFile:
    """The file at a path; ``used`` are the places of the answers that it has. Raises ``OSError``."""

    def __init__(self, path: Path, used: Iterable[Place]) -> None:
        # Answers are private to the user.
        path.touch(mode=0o600)
        self._file = FileIO(path, "r+")
        #: Gaps between answers, in the order of their offsets.
        self._gaps: list[Place] = []
        self._end = 0
        for place in sorted(used):
            if place.offset > self._end:
                self._gaps.append(Place(self._end, place.offset - self._end))
            self._end = max(self._end, place.end)

    def write(self, answers: Sequence[bytes | bytearray]) -> list[Place]:
        """Write answers into gaps or to the end. Those that lie together take one system call, since after each the
        thread waits for the interpreter's lock."""
        places = [self._take(len(answer)) for answer in answers]
        first = 0
        for number, place in enumerate(places, 1):
            if number == len(places) or places[number].offset != place.end:
                self._file.seek(places[first].offset)
                self._write(answers[first:number])
                first = number
        return places

    def read(self, place: Place) -> bytes:
        """Return the bytes at a place; fewer if the file was cut off."""
        self._file.seek(place.offset)
        found = bytearray()
        while len(found) < place.size and (piece := self._file.read(place.size - len(found))):
            found += piece
        return bytes(found)

    def free(self, place: Place) -> None:
        """Use the room of an answer again."""
        number = bisect_left(self._gaps, place)
        if number < len(self._gaps) and self._gaps[number].offset == place.end:
            place = Place(place.offset, place.size + self._gaps.pop(number).size)
        if number and self._gaps[number - 1].end == place.offset:
            number -= 1
            place = Place(self._gaps[number].offset, self._gaps[number].size + place.size)
            del self._gaps[number]
        if place.end == self._end:
            self._end = place.offset
        else:
            self._gaps.insert(number, place)

    def _take(self, size: int) -> Place:
        """Return the place of a new answer."""
        number = next((number for number, gap in enumerate(self._gaps) if gap.size >= size), None)
        if number is None:
            place = Place(self._end, size)
            self._end = place.end
            return place
        gap = self._gaps[number]
        if gap.size == size:
            del self._gaps[number]
        else:
            self._gaps[number] = Place(gap.offset + size, gap.size - size)
        return Place(gap.offset, size)

    def _write(self, answers: Sequence[bytes | bytearray]) -> None:
        """Write answers one after the other."""
        written = 0
        if sys.platform != "win32":
            written = os.writev(self._file.fileno(), answers[:_MOST])
        for answer in answers:
            rest = memoryview(answer)[written:]
            written = max(0, written - len(answer))
            while rest:
                rest = rest[self._file.write(rest) :]

    def close(self) -> None:
        """Return the room at the end of the file to the system."""
        try:
            if os.fstat(self._file.fileno()).st_size > self._end:
                self._file.truncate(self._end)
        finally:
            self._file.close()
