"""Chunks: how the records of a job are kept. Lines of JSON as they came, compressed, with their tally beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.compression import DamagedError, pack, unpack, unpack_steps
from scrapy_ext.server.store.engine.errors import StoreError

#: As many as clients send at a time, so that what they sent compressed can be kept as it is; a record is found in so
#: narrow a range of chunks.
MAX_LINES: Final = 1000
#: Of a chunk's lines together, unless one line alone is longer: bounds what reading a chunk takes.
MAX_BYTES: Final = 1024 * 1024

#: Bytes that a name takes with its number of occurrences, beside its own.
_OBJECT: Final = 200

#: A JSON object; of samples, an array.
Record = Any


class Tally:
    """What stats say of some records: in how many each field occurs, and their size."""

    __slots__ = ("counts", "size")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.size = 0

    @property
    def held(self) -> int:
        """Bytes of memory that it takes."""
        return _OBJECT * (1 + len(self.counts)) + sum(map(len, self.counts))

    def add(self, other: Tally) -> None:
        """Count the other's records too."""
        self.counts.update(other.counts)
        self.size += other.size

    def subtract(self, other: Tally) -> None:
        """Count the other's records no longer."""
        self.counts.subtract(other.counts)
        self.size -= other.size


class RecordKind(NamedTuple):
    """Items, requests, logs or samples: its name in paths, which names a record counts under, their size in stats."""

    name: str
    names: Callable[[Record], tuple[str, ...]]
    size: Callable[[Sequence[Record]], int]

    def tally(self, records: Sequence[Record]) -> Tally:
        """The tally of some records."""
        return tally_of(Counter(map(self.names, records)), self.size(records))


def tally_of(occurrences: Mapping[tuple[str, ...], int], size: int) -> Tally:
    """The tally of records of ``size`` bytes that have so often just these names."""
    tally = Tally()
    tally.size = size
    for names, number in occurrences.items():
        for name in names:
            tally.counts[name] += number
    return tally


class RecordChunk(NamedTuple):
    """Consecutive records, ready to be stored."""

    records: int
    body: bytes
    tally: Tally

    @property
    def held(self) -> int:
        """Bytes of memory that it takes."""
        return len(self.body) + self.tally.held


_encode_msgpack: Final = msgspec.msgpack.Encoder().encode


def _msgpack_size(records: Sequence[Record]) -> int:
    # The hosted service counts the bytes of this encoding, not of the JSON.
    try:
        return len(_encode_msgpack(records)) - _array_head(len(records))
    except OverflowError:  # a whole number over 64 bits, which MessagePack does not have
        return sum(map(_one_size, records))


def _one_size(record: Record) -> int:
    try:
        return len(_encode_msgpack(record))
    except OverflowError:
        return len(msgspec.json.encode(record))


def _array_head(members: int) -> int:
    """Bytes that MessagePack puts before the members of an array."""
    if members < 2**4:
        return 1
    return 3 if members < 2**16 else 5


def _fields_of_request(record: Record) -> tuple[str, ...]:
    return tuple(name for name, value in record.items() if value is not None and name != "time")


def _level_of_log(record: Record) -> tuple[str, ...]:
    return (str(record["level"]),)


def _size_of_logs(records: Sequence[Record]) -> int:
    return sum(len(record["message"].encode()) + 1 for record in records)


ITEMS: Final = RecordKind("items", tuple, _msgpack_size)
REQUESTS: Final = RecordKind("requests", _fields_of_request, _msgpack_size)
LOGS: Final = RecordKind("logs", _level_of_log, _size_of_logs)
SAMPLES: Final = RecordKind("samples", lambda _: (), _msgpack_size)


class Packer:
    """Gathers records into chunks as they come."""

    def __init__(self, kind: RecordKind) -> None:
        self._kind = kind
        self._clear()

    def _clear(self) -> None:
        #: The lines, joined, some in each.
        self._texts: list[bytes] = []
        self._records = 0
        self._bytes = 0
        # Most records have the same fields: how often each set of them occurs, counted when the chunk is full.
        self._names: Counter[tuple[str, ...]] = Counter()
        self._size = 0

    @property
    def held(self) -> int:
        """Bytes of memory that the records take which are in no chunk yet."""
        return self._bytes + sum(_OBJECT * (1 + len(names)) for names in self._names)

    def add(self, lines: Sequence[bytes], records: Sequence[Record], text: bytes | None = None) -> list[RecordChunk]:
        """Take some records; returns the chunks that are full. ``text``: the lines joined, where that is at hand."""

        def count(low: int, high: int) -> None:
            # Counted at once: to keep thousands of small objects costs more than to make them.
            self._names.update(map(self._kind.names, records[low:high]))
            self._size += self._kind.size(records[low:high])

        return self._take(lines, text, count)

    def add_alike(
        self, lines: Sequence[bytes], names: tuple[str, ...], sizes: Sequence[int], text: bytes
    ) -> list[RecordChunk]:
        """The same with records that count under the same names and have these sizes in stats."""

        def count(low: int, high: int) -> None:
            self._names[names] += high - low
            self._size += sum(sizes[low:high])

        return self._take(lines, text, count)

    def _take(self, lines: Sequence[bytes], text: bytes | None, count: Callable[[int, int], None]) -> list[RecordChunk]:
        chunks: list[RecordChunk] = []
        at = 0
        while at < len(lines):
            end = at + self._fitting(lines[at : at + MAX_LINES - self._records])
            if end > at:
                # A few long texts take less than thousands of lines, whose memory is soon used again.
                self._texts.append(b"\n".join(lines[at:end]) if text is None or end - at < len(lines) else text)
                self._records += end - at
                count(at, end)
            at = end
            if at < len(lines) and (chunk := self.rest()) is not None:
                chunks.append(chunk)
        return chunks

    def _fitting(self, lines: Sequence[bytes]) -> int:
        """How many of these lines the chunk still takes; counts their bytes."""
        length = sum(map(len, lines))
        if self._bytes + length <= MAX_BYTES:
            self._bytes += length
            return len(lines)
        for number, line in enumerate(lines):
            if self._bytes + len(line) > MAX_BYTES and (number or self._records):
                return number
            self._bytes += len(line)
        return len(lines)

    def rest(self, body: bytes | None = None) -> RecordChunk | None:
        """The chunk of what is left; ``body``: the same lines, compressed already."""
        if not self._records:
            return None
        packed = pack(b"\n".join(self._texts)) if body is None else body
        chunk = RecordChunk(self._records, packed, tally_of(self._names, self._size))
        self._clear()
        return chunk


_decode: Final = msgspec.json.Decoder().decode


def tally_of_lines(kind: RecordKind, lines: Sequence[bytes]) -> Tally:
    """The tally of lines that were stored."""
    return kind.tally(list(map(_decode, lines)))


def unpack_pieces(body: bytes) -> list[bytes]:
    """The lines of a chunk, each with its line break, in pieces; raises :class:`StoreError` when it is damaged."""
    try:
        pieces = unpack(body)
    except DamagedError as error:
        raise damaged(error) from None
    # What was stored as it was sent may end with a line break.
    return pieces if pieces and pieces[-1].endswith(b"\n") else [*pieces, b"\n"]


def unpack_line(body: bytes, place: int) -> bytes | None:
    """One line of a chunk, of which no more is unpacked than it takes; None when the chunk has fewer lines.

    Raises :class:`StoreError` when the chunk is damaged.
    """
    passed, rest = 0, b""
    try:
        for piece in unpack_steps(body):
            text = rest + piece
            ends = text.count(b"\n")
            if passed + ends > place:
                return text.split(b"\n", place - passed + 1)[place - passed]
            passed += ends
            rest = text[text.rfind(b"\n") + 1 :]
    except DamagedError as error:
        raise damaged(error) from None
    return rest if rest and passed == place else None  # no line is empty


def damaged(reason: object) -> StoreError:
    """The error of a stored row that cannot be read."""
    return StoreError(f"Stored records are damaged ({reason}). Put a backup in place.")


def unpack_lines(body: bytes) -> list[bytes]:
    """The lines of a chunk, each without its line break, which nothing inside a line is.

    Raises :class:`StoreError` when the chunk is damaged.
    """
    return split_lines(unpack_pieces(body))


def split_lines(pieces: Sequence[bytes]) -> list[bytes]:
    """The lines of a text in which each has its line break, without them."""
    lines = b"".join(pieces).split(b"\n")
    lines.pop()
    return lines
