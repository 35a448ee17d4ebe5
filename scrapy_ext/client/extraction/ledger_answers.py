"""Bytes of the answers of a ledger, in a file beside its database.

SQLite takes about ten times as long to write an answer of a megabyte as to copy it into a file whose blocks exist.

- The database has the place of each answer: its offset and size (:mod:`~scrapy_ext.client.extraction.ledger_file`).
- An answer is written before the transaction that names it, and its room is used again only after the transaction that
  removes its name. So the database never names bytes of another answer, whenever the process is killed.
- Room is taken from the first gap that is large enough. The file shrinks when it is closed.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from typing import NamedTuple


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

    def write(self, answer: bytes | bytearray) -> Place:
        """Write an answer into a gap or to the end."""
        size = len(answer)
        number = next((number for number, gap in enumerate(self._gaps) if gap.size >= size), None)
        place = Place(self._end if number is None else self._gaps[number].offset, size)
        self._file.seek(place.offset)
        rest = memoryview(answer)
        while rest:
            rest = rest[self._file.write(rest) :]
        if number is None:
            self._end = place.end
        elif self._gaps[number].size == size:
            del self._gaps[number]
        else:
            self._gaps[number] = Place(place.end, self._gaps[number].end - place.end)
        return place

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

    def close(self) -> None:
        """Return the room at the end of the file to the system."""
        try:
            if os.fstat(self._file.fileno()).st_size > self._end:
                self._file.truncate(self._end)
        finally:
            self._file.close()
