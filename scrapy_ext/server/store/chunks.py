"""Chunks: how the records of a job are kept. Lines of JSON as they came, compressed, with their tally beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.server.deflate import pack, unpack

#: A page of records is read from few chunks, and a record is found in a narrow range of them.
MAX_LINES: Final = 250
#: Of a chunk's lines together, unless one line alone is longer: bounds what reading a chunk takes.
MAX_BYTES: Final = 1024 * 1024

Record = dict[str, Any]


class Tally:
    """What stats say of some records: in how many each field occurs, and their size."""

    __slots__ = ("counts", "size")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.size = 0

    def add(self, other: Tally) -> None:
        """Count the other's records too."""
        self.counts.update(other.counts)
        self.size += other.size

    def subtract(self, other: Tally) -> None:
        """Count the other's records no longer."""
        self.counts.subtract(other.counts)
        self.size -= other.size


class RecordKind(NamedTuple):
    """Items, requests or logs: its name in paths, which names a record counts under, and its size in stats."""

    name: str
    names: Callable[[Record], tuple[str, ...]]
    size: Callable[[Record], int]

    def tally(self, records: Collection[Record]) -> Tally:
        """The tally of some records."""
        tally = Tally()
        tally.size = sum(map(self.size, records))
        # Most records have the same fields: count those sets first, and the fields of each set once.
        for names, occurrences in Counter(map(self.names, records)).items():
            for name in names:
                tally.counts[name] += occurrences
        return tally


class Chunk(NamedTuple):
    """Consecutive records, ready to be stored."""

    records: int
    body: bytes
    tally: Tally


_encode_msgpack: Final = msgspec.msgpack.Encoder().encode


def _msgpack_size(record: Record) -> int:
    # The hosted service counts the bytes of this encoding, not of the JSON.
    try:
        return len(_encode_msgpack(record))
    except OverflowError:  # a whole number over 64 bits, which MessagePack does not have
        return len(msgspec.json.encode(record))


ITEMS: Final = RecordKind("items", tuple, _msgpack_size)
REQUESTS: Final = RecordKind(
    "requests",
    lambda record: tuple(name for name, value in record.items() if value is not None and name != "time"),
    _msgpack_size,
)
LOGS: Final = RecordKind(
    "logs", lambda record: (str(record["level"]),), lambda record: len(record["message"].encode()) + 1
)


def pack_chunk(kind: RecordKind, lines: Sequence[bytes], records: Sequence[Record]) -> Chunk:
    """Pack lines; ``records`` is what they decode to."""
    return Chunk(len(lines), pack(b"\n".join(lines)), kind.tally(records))


class Packer:
    """Gathers records into chunks as they come."""

    def __init__(self, kind: RecordKind) -> None:
        self._kind = kind
        self._lines: list[bytes] = []
        self._records: list[Record] = []
        self._bytes = 0

    def add(self, line: bytes, record: Record) -> Chunk | None:
        """Take a record; returns the chunk before it when that one is full."""
        full = len(self._lines) == MAX_LINES or (self._lines and self._bytes + len(line) > MAX_BYTES)
        chunk = self.rest() if full else None
        self._lines.append(line)
        self._records.append(record)
        self._bytes += len(line)
        return chunk

    def rest(self) -> Chunk | None:
        """The chunk of what is left."""
        if not self._lines:
            return None
        chunk = pack_chunk(self._kind, self._lines, self._records)
        self._lines, self._records, self._bytes = [], [], 0
        return chunk


def unpack_lines(body: bytes) -> list[bytes]:
    """The lines of a chunk. No line holds a raw line break: JSON has none inside a value, and lines are split there."""
    return unpack(body).split(b"\n")


def tally_of_lines(kind: RecordKind, lines: Sequence[bytes]) -> Tally:
    """The tally of lines that were stored."""
    decode = msgspec.json.Decoder(Record).decode
    return kind.tally([decode(line) for line in lines])
