"""Parents of request records that name them by stream.

A worker knows the index of a request record in its own stream, and not in the job. Its records name their parents as
``writer:index``, and are stored with the index in the job. A record whose parent is not stored has no parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.chunks import REQUESTS, RecordChunk, RecordKind, chunk_of_lines, unpack_lines
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.stream_segments import StreamRow

#: Number of an attempt, and index in its stream.
_Named: TypeAlias = tuple[int, int]

#: Parents that one statement finds. Fewer are filled up, so that there is one text for it.
_AT_ONCE: Final = 64
_NAMED: Final = ", ".join(
    f"(CAST(${place} AS BIGINT), CAST(${place + 1} AS BIGINT))" for place in range(5, 5 + 2 * _AT_ONCE, 2)
)

#: The row with a start: a search in the index for each column, while a join may read all rows of the job.
_ROW: Final = """FROM record_streams WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4
    AND writer = chosen.column1 AND start = chosen.column2"""


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
        # One value for each parent, so that each is one search in the index: its place, or -1 - start of a packed row.
        rows = await tx.fetch(
            f"""SELECT chosen.column1, chosen.column2, (
                    SELECT CASE WHEN start + records <= chosen.column2 THEN NULL
                                WHEN packed IS NULL THEN place + chosen.column2 - start ELSE -1 - start END
                    FROM record_streams WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4
                    AND writer = chosen.column1 AND start <= chosen.column2 ORDER BY start DESC LIMIT 1)
                FROM (VALUES {_NAMED}) chosen""",
            *owner,
            *(number for parent in group for number in parent),
        )
        found.update({(writer, index): place for writer, index, place in rows if place is not None and place >= 0})
        packed = {(writer, index): -1 - place for writer, index, place in rows if place is not None and place < 0}
        found.update(await _packed_places(tx, owner, packed))
    return found


async def _packed_places(tx: Transaction, owner: RecordOwner, starts: Mapping[_Named, int]) -> dict[_Named, int]:
    """Return the indexes in the job of parents in packed rows; ``starts``: of their rows."""
    wanted = sorted({(writer, start) for (writer, _), start in starts.items()})
    if not wanted:
        return {}
    wanted += wanted[-1:] * (_AT_ONCE - len(wanted))
    rows = await tx.fetch(
        f"""SELECT chosen.column1, chosen.column2, (SELECT place {_ROW}), (SELECT records {_ROW}),
                (SELECT packed {_ROW})
            FROM (VALUES {_NAMED}) chosen""",
        *owner,
        *(number for row in wanted for number in row),
    )
    found = {(writer, start): StreamRow(start, *columns) for writer, start, *columns in rows}
    return {(writer, index): found[writer, start].place_of(index) for (writer, index), start in starts.items()}
