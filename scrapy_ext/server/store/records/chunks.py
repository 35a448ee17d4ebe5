"""Chunks of a job's records: compressed JSON lines as sent, with a tally."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.compression import DamagedError, pack_lines, unpack, unpack_steps
from scrapy_ext.server.store.engine.errors import DamagedRecordsError
from scrapy_ext.server.store.read_ahead import in_thread
from scrapy_ext.server.store.records.removal import RecordOwner

#: Maximum records of a chunk: as many as clients send at once, so that a compressed body can be stored unchanged, and a
#: record is found in a narrow range of chunks.
MAX_LINES: Final = 1000
#: Maximum bytes of a chunk's lines, unless a single one is longer: bounds the memory of a read.
MAX_BYTES: Final = 1024 * 1024

#: Bytes of memory for a name with its count, besides its text.
_OBJECT: Final = 200

#: A JSON object; of samples, an array.
Record = Any


class RecordTally:
    """Stats of some records: the number of occurrences of each field, and their size."""

    __slots__ = ("counts", "size")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.size = 0

    @property
    def held(self) -> int:
        """Bytes of memory that it uses."""
        return _OBJECT * (1 + len(self.counts)) + sum(map(len, self.counts))

    def add(self, other: RecordTally) -> None:
        self.counts.update(other.counts)
        self.size += other.size

    def subtract(self, other: RecordTally) -> None:
        self.counts.subtract(other.counts)
        self.size -= other.size


class RecordKind(NamedTuple):
    """A kind of records: name in paths, names that a record counts under, size in stats."""

    name: str
    names: Callable[[Record], tuple[str, ...]]
    size: Callable[[Sequence[Record]], int]

    def tally(self, records: Sequence[Record]) -> RecordTally:
        return tally_of(Counter(map(self.names, records)), self.size(records))


def tally_of(occurrences: Mapping[tuple[str, ...], int], size: int) -> RecordTally:
    """Return the tally of records of ``size`` bytes, given the number of records by their exact set of names."""
    tally = RecordTally()
    tally.size = size
    for names, number in occurrences.items():
        for name in names:
            tally.counts[name] += number
    return tally


class RecordChunk(NamedTuple):
    """Consecutive records, ready to be stored."""

    records: int
    body: bytes
    tally: RecordTally

    @property
    def held(self) -> int:
        """Bytes of memory that it uses."""
        return len(self.body) + self.tally.held


_encode_msgpack: Final = msgspec.msgpack.Encoder().encode


def _msgpack_size(records: Sequence[Record]) -> int:
    # The hosted service counts the bytes of this encoding, not of the JSON.
    try:
        return len(_encode_msgpack(records)) - _array_head(len(records))
    # MessagePack has no integers over 64 bits.
    except OverflowError:
        return sum(map(_one_size, records))


def _one_size(record: Record) -> int:
    try:
        return len(_encode_msgpack(record))
    except OverflowError:
        return len(msgspec.json.encode(record))


def _array_head(members: int) -> int:
    """Return the size of MessagePack's header of an array."""
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
    def __init__(self, kind: RecordKind) -> None:
        self._kind = kind
        self._clear()

    def _clear(self) -> None:
        #: Joined lines, some in each text.
        self._texts: list[bytes] = []
        self._records = 0
        self._bytes = 0
        # Most records have the same fields, so the counts are kept by set of fields until the chunk is full.
        self._names: Counter[tuple[str, ...]] = Counter()
        self._size = 0

    @property
    def held(self) -> int:
        """Bytes of memory of the records that are in no chunk yet."""
        return self._bytes + sum(_OBJECT * (1 + len(names)) for names in self._names)

    def add(self, lines: Sequence[bytes], records: Sequence[Record], text: bytes | None = None) -> list[RecordChunk]:
        """Add records; return the chunks that are full. ``text``: the joined lines, if available."""

        def count(low: int, high: int) -> None:
            # Counted immediately: keeping thousands of small objects costs more than making them.
            self._names.update(map(self._kind.names, records[low:high]))
            self._size += self._kind.size(records[low:high])

        return self._take(lines, text, count)

    def fits(self, lines: int, text: bytes) -> bool:
        """Return true when so many lines fit the chunk; ``text``: the joined lines."""
        return self._records + lines <= MAX_LINES and self._bytes + len(text) <= MAX_BYTES

    def add_whole(self, lines: int, names: tuple[str, ...], size: int, text: bytes) -> None:
        """Add records that fit the chunk (:meth:`fits`) and count under the same names; ``size``: in stats, of all."""
        self._texts.append(text)
        self._records += lines
        self._bytes += len(text) - (lines - 1)
        self._names[names] += lines
        self._size += size

    def add_alike(
        self, lines: Sequence[bytes], names: tuple[str, ...], sizes: Sequence[int], text: bytes
    ) -> list[RecordChunk]:
        """Add records that count under the same names; ``sizes``: in stats."""

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
                # A few long texts take less memory than thousands of lines, whose memory is soon reused.
                self._texts.append(b"\n".join(lines[at:end]) if text is None or end - at < len(lines) else text)
                self._records += end - at
                count(at, end)
            at = end
            if at < len(lines) and (chunk := self.rest()) is not None:
                chunks.append(chunk)
        return chunks

    def _fitting(self, lines: Sequence[bytes]) -> int:
        """Return how many of these lines fit the chunk, and count their bytes."""
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
        """Return the chunk of the remaining lines; ``body``: the same lines, compressed already."""
        if not self._records:
            return None
        packed = pack_lines(b"\n".join([*self._texts, b""])) if body is None else body
        chunk = RecordChunk(self._records, packed, tally_of(self._names, self._size))
        self._clear()
        return chunk


_decode: Final = msgspec.json.Decoder().decode


def tally_of_lines(kind: RecordKind, lines: Sequence[bytes]) -> RecordTally:
    return kind.tally(list(map(_decode, lines)))


def chunk_of_lines(kind: RecordKind, lines: Sequence[bytes]) -> RecordChunk:
    return RecordChunk(len(lines), pack_lines(b"\n".join([*lines, b""])), tally_of_lines(kind, lines))


def cut_chunks(kind: RecordKind, chunks: Sequence[RecordChunk], low: int, high: int) -> list[RecordChunk]:
    """Return the records ``low`` to ``high - 1`` of consecutive chunks."""
    parts, at = [], 0
    for chunk in chunks:
        first, last = max(low - at, 0), min(high - at, chunk.records)
        if last - first == chunk.records:
            parts.append(chunk)
        elif first < last:
            parts.append(chunk_of_lines(kind, unpack_lines(chunk.body)[first:last]))
        at += chunk.records
    return parts


def unpack_pieces(body: bytes) -> list[bytes]:
    """Return the lines of a chunk with their line breaks, in pieces; raise :class:`DamagedRecordsError`."""
    try:
        pieces = unpack(body)
    except DamagedError as error:
        raise damaged(error) from None
    # Chunks that older versions stored, and such as were stored as sent, may end without a line break.
    return pieces if pieces and pieces[-1].endswith(b"\n") else [*pieces, b"\n"]


def unpack_line(body: bytes, place: int) -> bytes | None:
    """Return one line of a chunk, inflating no more than needed; None when the chunk has fewer lines.

    Raises :class:`DamagedRecordsError` when the chunk is damaged.
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
    # No line is empty.
    return rest if rest and passed == place else None


def damaged(reason: object) -> DamagedRecordsError:
    """Return the error of an unreadable stored row."""
    return DamagedRecordsError(f"Stored records are damaged ({reason}). Restore a backup.")


def unpack_lines(body: bytes) -> list[bytes]:
    """Return the lines of a chunk without their line breaks.

    Raises :class:`DamagedRecordsError` when the chunk is damaged.
    """
    return split_lines(unpack_pieces(body))


def split_lines(pieces: Sequence[bytes]) -> list[bytes]:
    """Split a text whose lines all have a line break."""
    lines = b"".join(pieces).split(b"\n")
    lines.pop()
    return lines


#: Maximum number of chunks, each of about a megabyte of lines at most.
_CHUNKS: Final = 2
#: Maximum bytes of a chunk inflated in the reading thread, since handing it over would take longer.
SMALL: Final = 16 * 1024


class RecentChunks:
    """Lines of the chunks that single records were read from last: a client that reads a job's records one by one would
    have a chunk inflated for each of them.

    The database is authoritative: a chunk is used only while the row that was just read has the same compressed bytes.
    """

    def __init__(self) -> None:
        #: Compressed bytes, and from the second read on the lines, of a chunk by its owner and start.
        self._chunks: OrderedDict[tuple[RecordOwner, int], tuple[bytes, list[bytes] | None]] = OrderedDict()

    async def line(self, owner: RecordOwner, start: int, body: bytes, place: int) -> bytes | None:
        """Return one line of a chunk; None when the chunk has fewer. Raises :class:`DamagedRecordsError`."""
        key = (owner, start)
        known = self._chunks.get(key)
        if known is None or known[0] != body:
            self._keep(key, body, None)
            return (
                await in_thread(partial(unpack_line, place=place), body)
                if len(body) > SMALL
                else unpack_line(body, place)
            )
        lines = known[1]
        if lines is None:
            lines = await in_thread(unpack_lines, body) if len(body) > SMALL else unpack_lines(body)
            self._keep(key, body, lines)
        return lines[place] if place < len(lines) else None

    def _keep(self, key: tuple[RecordOwner, int], body: bytes, lines: list[bytes] | None) -> None:
        self._chunks[key] = (body, lines)
        self._chunks.move_to_end(key)
        if len(self._chunks) > _CHUNKS:
            self._chunks.popitem(last=False)
