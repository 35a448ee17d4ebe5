"""Parents of request records that name them by stream.

A worker knows the index of a request record in its own stream, and not in the job. Its records name their parents as
``writer:index``, and are stored with the index in the job. A record whose parent is not stored has no parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.chunks import REQUESTS, RecordChunk, RecordKind, chunk_of_lines, unpack_lines
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.stream_segments import StreamRow, StreamSegment, place_of

#: Number of an attempt, and index in its stream.
_Named: TypeAlias = tuple[int, int]

#: Parents that one statement finds. Fewer are filled up, so that there is one text for it.
_AT_ONCE: Final = 64
_NAMED: Final = ", ".join(
    f"(CAST(${place} AS BIGINT), CAST(${place + 1} AS BIGINT))" for place in range(5, 5 + 2 * _AT_ONCE, 2)
)


class _Child(msgspec.Struct):
    parent: int | str | None = None


_children: Final = msgspec.json.Decoder(_Child).decode
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


async def with_parents(
    tx: Transaction, kind: RecordKind, owner: RecordOwner, chunks: Sequence[RecordChunk]
) -> tuple[Sequence[RecordChunk], int]:
    """Return chunks with the indexes of parents in the job, and the number of records whose parent is not stored."""
    if kind is not REQUESTS:
        return chunks, 0
    rebuilt, unknown = list[RecordChunk](), 0
    for chunk in chunks:
        lines = unpack_lines(chunk.body)
        named = {place: parent for place, line in enumerate(lines) if (parent := _named(line)) is not None}
        places = await _places(tx, owner, set(named.values()))
        for place, parent in named.items():
            lines[place] = _with_parent(lines[place], places.get(parent))
            unknown += parent not in places
        if named:
            chunk = chunk_of_lines(kind, lines)  # noqa: PLW2901
        rebuilt.append(chunk)
    return rebuilt, unknown


def _named(line: bytes) -> _Named | None:
    parent = _children(line).parent
    if not isinstance(parent, str):
        return None
    writer, _, index = parent.partition(":")
    return int(writer), int(index)


def _with_parent(line: bytes, place: int | None) -> bytes:
    members = _members(line)
    if place is None:
        del members["parent"]
    else:
        members["parent"] = msgspec.Raw(b"%d" % place)
    return msgspec.json.encode(members)


async def _places(tx: Transaction, owner: RecordOwner, parents: Iterable[_Named]) -> dict[_Named, int]:
    """Return the indexes in the job of those parents that are stored."""
    left, found = sorted(parents), dict[_Named, int]()
    for first in range(0, len(left), _AT_ONCE):
        group = left[first : first + _AT_ONCE]
        group += group[-1:] * (_AT_ONCE - len(group))
        rows = await tx.fetch(
            f"""SELECT chosen.column1, chosen.column2, s.start, s.place, s.records, s.packed
                FROM (VALUES {_NAMED}) chosen
                JOIN record_streams s ON s.project = $1 AND s.kind = $2 AND s.spider = $3 AND s.job = $4
                    AND s.writer = chosen.column1 AND s.start = (
                        SELECT max(start) FROM record_streams WHERE project = $1 AND kind = $2 AND spider = $3
                        AND job = $4 AND writer = chosen.column1 AND start <= chosen.column2)""",
            *owner,
            *(number for parent in group for number in parent),
        )
        unpacked = dict[tuple[int, int], Sequence[StreamSegment]]()
        for writer, index, *columns in rows:
            row = StreamRow(*columns)
            if index >= row.start + row.records:
                continue
            if (writer, row.start) not in unpacked:
                unpacked[writer, row.start] = row.segments()
            found[writer, index] = place_of(unpacked[writer, row.start], index)
    return found
