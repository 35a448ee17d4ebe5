"""The rows of one sorted run of fingerprints: one for each while it is added to, then one for some hundreds.

A run is packed when it is poured out of others. Its blocks are in order and do not overlap; the fingerprints of a
block are joined, and surrounded, by a byte that no text in UTF-8 has, so that to look for one is one search in bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Of the fingerprints of one block: what fills a page of SQLite and the rest that it keeps beside the key.
BLOCK_BYTES: Final = 4400
#: Fingerprints of a block, at least about.
_IN_A_BLOCK: Final = 100
#: A row of a run that is not packed.
INSERT: Final = "INSERT INTO frontier_fingerprints (project, slot, run, fp, fdata) VALUES ($1, $2, $3, $4, $5)"
_MARK: Final = b"\xff"
_RUN: Final = "project = $1 AND slot = $2 AND run = $3"


class Run(msgspec.Struct, array_like=True):
    """``number`` is its own in the slot, ``size`` that of an open run, ``target`` the run that it is poured into.

    ``owed``: to a run that others are poured into, so many fingerprints before it is to be moved on.
    """

    number: int
    level: int = 0
    size: int = 0
    target: int | None = None
    packed: bool = False
    owed: int = 0


class Stretch(NamedTuple):
    """The fingerprints of a run from some place on, in order, the fdata of those that have some, and whether the run
    ends there."""

    fps: list[bytes]
    fdata: dict[bytes, bytes]
    ended: bool

    def up_to(self, end: bytes | None) -> list[bytes]:
        """Those up to ``end``; None: all."""
        return self.fps if end is None else self.fps[: bisect_right(self.fps, end)]


class RunRows:
    """The rows of one run."""

    def __init__(self, tx: Transaction, owner: tuple[int, int], run: Run) -> None:
        self._tx = tx
        self._packed = run.packed
        self._keys = (*owner, run.number)

    async def found(self, wanted: Sequence[bytes]) -> set[bytes]:
        """Those of these, which are in order, that it has."""
        if not self._packed:
            rows = await self._tx.fetch_any(
                f"SELECT fp FROM frontier_fingerprints WHERE {_RUN} AND fp = ANY($4)",  # noqa: S608 - fixed, above
                *self._keys,
                keys=wanted,
            )
            return {row[0] for row in rows}
        found: set[bytes] = set()
        block, last = b"", b""
        for fp in wanted:
            if fp > last:
                row = await self._block(fp)
                if row is None:  # it is before the first
                    continue
                block = row[0]
                last = block[block.rfind(_MARK, 0, -1) + 1 : -1]
            if _MARK + fp + _MARK in block:
                found.add(fp)
        return found

    async def _block(self, fp: bytes) -> Row | None:
        """The block that has a fingerprint, if any has; and its first."""
        return await self._tx.fetchrow(
            f"""SELECT fps, first FROM frontier_fingerprint_blocks WHERE {_RUN} AND first <= $4
                ORDER BY first DESC LIMIT 1""",  # noqa: S608
            *self._keys,
            fp,
        )

    async def behind(self, after: bytes, number: int) -> Stretch:
        """At least so many fingerprints, if there are so many, behind one."""
        if self._packed:
            return await self._unpacked(after, number)
        rows = await self._tx.fetch(
            f"SELECT fp, fdata FROM frontier_fingerprints WHERE {_RUN} AND fp > $4 ORDER BY fp LIMIT $5",  # noqa: S608
            *self._keys,
            after,
            number,
        )
        return Stretch(
            [fp for fp, _ in rows], {fp: fdata for fp, fdata in rows if fdata is not None}, len(rows) < number
        )

    async def _unpacked(self, after: bytes, number: int) -> Stretch:
        row = await self._block(after)
        place = b"" if row is None else row[1]
        limit = number // _IN_A_BLOCK + 2
        fps: list[bytes] = []
        fdata: dict[bytes, bytes] = {}
        while True:
            comparison = ">" if fps else ">="
            rows = await self._tx.fetch(
                f"""SELECT first, fps, fdata FROM frontier_fingerprint_blocks WHERE {_RUN} AND first {comparison} $4
                    ORDER BY first LIMIT $5""",  # noqa: S608
                *self._keys,
                place,
                limit,
            )
            for place, joined, data in rows:  # noqa: B007 - the last is where the next read begins
                members = joined[1:-1].split(_MARK)
                fps += members
                if data is not None:
                    fdata.update((fp, each) for fp, each in zip(members, data.split(_MARK), strict=True) if each)
            first = bisect_right(fps, after) if after else 0
            if len(rows) < limit:
                return Stretch(fps[first:], fdata, ended=True)
            if len(fps) - first >= number:
                return Stretch(fps[first:], fdata, ended=False)

    async def append(self, fps: list[bytes], fdata: dict[bytes, bytes]) -> None:
        """Put fingerprints, in order, behind those that the packed run has."""
        size = sum(map(len, fps)) + len(fps)
        blocks = -(-size // BLOCK_BYTES)
        each = -(-len(fps) // max(blocks, 1))
        await self._tx.execute_many(
            """INSERT INTO frontier_fingerprint_blocks (project, slot, run, first, fps, fdata)
               VALUES ($1, $2, $3, $4, $5, $6)""",
            [self._row(fps[place : place + each], fdata) for place in range(0, len(fps), each or 1)],
        )

    async def insert(self, fps: list[bytes], fdata: dict[bytes, bytes]) -> None:
        """Add fingerprints that no run has, in order, to a run that is not packed."""
        await self._tx.execute_many(INSERT, [(*self._keys, fp, fdata.get(fp)) for fp in fps])

    def _row(self, fps: list[bytes], fdata: dict[bytes, bytes]) -> Row:
        data = _MARK.join([fdata.get(fp, b"") for fp in fps]) if fdata and any(fp in fdata for fp in fps) else None
        return (*self._keys, fps[0], _MARK + _MARK.join(fps) + _MARK, data)

    async def cut(self, stretch: Stretch, end: bytes | None) -> None:
        """Remove those up to ``end``; of a packed run's, the ones behind it that are in the last of these blocks stay.

        ``stretch`` is what the run begins with. None: it is all of the run.
        """
        table, key = ("frontier_fingerprint_blocks", "first") if self._packed else ("frontier_fingerprints", "fp")
        if end is None:
            await self._tx.execute(f"DELETE FROM {table} WHERE {_RUN}", *self._keys)  # noqa: S608
            return
        last = await self._block(end) if self._packed else None
        await self._tx.execute(f"DELETE FROM {table} WHERE {_RUN} AND {key} <= $4", *self._keys, end)  # noqa: S608
        if last is not None:
            members = last[0][1:-1].split(_MARK)
            await self.append(members[bisect_right(members, end) :], stretch.fdata)


def merged(stretches: Iterable[list[bytes]]) -> list[bytes]:
    """All of these, in order."""
    return sorted(fp for stretch in stretches for fp in stretch)
