"""Rows of one sorted run of fingerprints: one per fingerprint while the run is open, then one per some hundreds.

A run that others are merged into is packed. Its blocks are ordered and disjoint; the fingerprints of a block are joined
and surrounded by a byte that UTF-8 text never contains, so that a look-up is a single search in bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Bytes of a block: those that fill a page of SQLite with the rest that it stores beside the key.
BLOCK_BYTES: Final = 4400
#: Approximate minimum of fingerprints per block.
_IN_A_BLOCK: Final = 100
#: Statement for a row of an unpacked run.
INSERT: Final = "INSERT INTO frontier_fingerprints (project, slot, run, fp, fdata) VALUES ($1, $2, $3, $4, $5)"
_MARK: Final = b"\xff"
_RUN: Final = "project = $1 AND slot = $2 AND run = $3"


class SortedRun(msgspec.Struct, array_like=True):
    """A run: ``number`` in the slot, ``size`` of an open run, ``target`` run of a merge.

    ``owed``: fingerprints that a merge into this run still has to move for the additions so far.
    """

    number: int
    level: int = 0
    size: int = 0
    target: int | None = None
    packed: bool = False
    owed: int = 0


class RunSegment(NamedTuple):
    """Consecutive fingerprints of a run with the fdata that some have; ``ended`` at the end of the run."""

    fps: list[bytes]
    fdata: dict[bytes, bytes]
    ended: bool

    def up_to(self, end: bytes | None) -> list[bytes]:
        """Return the fingerprints up to ``end`` (None: all)."""
        return self.fps if end is None else self.fps[: bisect_right(self.fps, end)]


class RunRows:
    def __init__(self, tx: Transaction, owner: tuple[int, int], run: SortedRun) -> None:
        self._tx = tx
        self._packed = run.packed
        self._keys = (*owner, run.number)

    async def found(self, wanted: Sequence[bytes]) -> set[bytes]:
        """Return those of ``wanted``, which is sorted, that the run has."""
        if not self._packed:
            rows = await self._tx.fetch_any(
                f"SELECT fp FROM frontier_fingerprints WHERE {_RUN} AND fp = ANY($4)",
                *self._keys,
                keys=wanted,
            )
            return {row[0] for row in rows}
        found: set[bytes] = set()
        block, last = b"", b""
        for fp in wanted:
            if fp > last:
                row = await self._block(fp)
                # The fingerprint precedes the first block.
                if row is None:
                    continue
                block = row[0]
                last = block[block.rfind(_MARK, 0, -1) + 1 : -1]
            if _MARK + fp + _MARK in block:
                found.add(fp)
        return found

    async def _block(self, fp: bytes) -> Row | None:
        """Return the block that may contain a fingerprint, and its first one."""
        return await self._tx.fetchrow(
            f"""SELECT fps, first FROM frontier_fingerprint_blocks WHERE {_RUN} AND first <= $4
                ORDER BY first DESC LIMIT 1""",
            *self._keys,
            fp,
        )

    async def behind(self, after: bytes, number: int) -> RunSegment:
        """Return at least ``number`` fingerprints after one, if there are so many."""
        if self._packed:
            return await self._unpacked(after, number)
        rows = await self._tx.fetch(
            f"SELECT fp, fdata FROM frontier_fingerprints WHERE {_RUN} AND fp > $4 ORDER BY fp LIMIT $5",
            *self._keys,
            after,
            number,
        )
        return RunSegment(
            [fp for fp, _ in rows], {fp: fdata for fp, fdata in rows if fdata is not None}, len(rows) < number
        )

    async def _unpacked(self, after: bytes, number: int) -> RunSegment:
        row = await self._block(after)
        place = b"" if row is None else row[1]
        limit = number // _IN_A_BLOCK + 2
        fps: list[bytes] = []
        fdata: dict[bytes, bytes] = {}
        while True:
            comparison = ">" if fps else ">="
            rows = await self._tx.fetch(
                f"""SELECT first, fps, fdata FROM frontier_fingerprint_blocks WHERE {_RUN} AND first {comparison} $4
                    ORDER BY first LIMIT $5""",
                *self._keys,
                place,
                limit,
            )
            for place, joined, data in rows:  # noqa: B007 - the next read begins at the last one
                members = joined[1:-1].split(_MARK)
                fps += members
                if data is not None:
                    fdata.update((fp, each) for fp, each in zip(members, data.split(_MARK), strict=True) if each)
            first = bisect_right(fps, after) if after else 0
            if len(rows) < limit:
                return RunSegment(fps[first:], fdata, ended=True)
            if len(fps) - first >= number:
                return RunSegment(fps[first:], fdata, ended=False)

    async def append(self, fps: list[bytes], fdata: dict[bytes, bytes]) -> None:
        """Append sorted fingerprints to the packed run."""
        size = sum(map(len, fps)) + len(fps)
        blocks = -(-size // BLOCK_BYTES)
        each = -(-len(fps) // max(blocks, 1))
        await self._tx.execute_many(
            """INSERT INTO frontier_fingerprint_blocks (project, slot, run, first, fps, fdata)
               VALUES ($1, $2, $3, $4, $5, $6)""",
            [self._row(fps[place : place + each], fdata) for place in range(0, len(fps), each or 1)],
        )

    async def insert(self, fps: list[bytes], fdata: dict[bytes, bytes]) -> None:
        """Add sorted fingerprints, which no run has, to an unpacked run."""
        await self._tx.execute_many(INSERT, [(*self._keys, fp, fdata.get(fp)) for fp in fps])

    def _row(self, fps: list[bytes], fdata: dict[bytes, bytes]) -> Row:
        data = _MARK.join([fdata.get(fp, b"") for fp in fps]) if fdata and any(fp in fdata for fp in fps) else None
        return (*self._keys, fps[0], _MARK + _MARK.join(fps) + _MARK, data)

    async def cut(self, segment: RunSegment, end: bytes | None) -> None:
        """Remove the fingerprints of ``segment``, the beginning of the run, up to ``end``; None removes the whole run.

        Later fingerprints in the last block of a packed run are kept.
        """
        table, key = ("frontier_fingerprint_blocks", "first") if self._packed else ("frontier_fingerprints", "fp")
        if end is None:
            await self._tx.execute(f"DELETE FROM {table} WHERE {_RUN}", *self._keys)
            return
        last = await self._block(end) if self._packed else None
        await self._tx.execute(f"DELETE FROM {table} WHERE {_RUN} AND {key} <= $4", *self._keys, end)
        if last is not None:
            members = last[0][1:-1].split(_MARK)
            await self.append(members[bisect_right(members, end) :], segment.fdata)


def merged(segments: Iterable[list[bytes]]) -> list[bytes]:
    return sorted(fp for segment in segments for fp in segment)
