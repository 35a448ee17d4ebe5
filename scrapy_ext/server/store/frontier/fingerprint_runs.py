"""Rows of the runs of a slot's fingerprints: some hundreds of fingerprints per row, joined.

They are surrounded by a byte that UTF-8 text never contains, so that a look-up is a single search in bytes. The rows of
the open run are in the order of their arrival. Those of a sorted run are ordered and disjoint: the key of a row is the
beginning of its lowest fingerprint, and fingerprints with the same beginning are never in two rows of a run.

A database of an earlier version has runs of one fingerprint per row; they are read and merged, and not written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Bytes of a row: one fills a page of SQLite, two one of PostgreSQL.
BLOCK_BYTES: Final = 3800
#: Bytes of a fingerprint that are in the key of a row: those of usual ones, and few enough for an index.
KEY_BYTES: Final = 512
#: Approximate minimum of fingerprints per row.
_IN_A_BLOCK: Final = 90
#: Look-ups per query, each of which reads a row.
_LOOK_UPS: Final = 500
_MARK: Final = b"\xff"
_RUN: Final = "project = $1 AND slot = $2 AND run = $3"


class SortedRun(msgspec.Struct, array_like=True):
    """A run: ``number`` in the slot, ``size`` in fingerprints, ``target`` run of a merge.

    ``packed``: false for one fingerprint per row. ``owed``: fingerprints that the merge into this run still has to move
    for the additions so far. ``rows``: rows of the open run so far. ``about``: the size is an estimate.
    """

    number: int
    level: int = 0
    size: int = 0
    target: int | None = None
    packed: bool = False
    owed: int = 0
    rows: int = 0
    about: bool = False


class RunSegment(NamedTuple):
    """Consecutive fingerprints of a run with the fdata that some have; ``ended`` at the end of the run."""

    fps: list[bytes]
    fdata: dict[bytes, bytes]
    ended: bool

    def up_to(self, end: bytes | None) -> list[bytes]:
        """Return the fingerprints up to ``end`` (None: all), and those with the same beginning."""
        return self.fps if end is None else self.fps[: _behind(self.fps, end)]


def _behind(fps: Sequence[bytes], end: bytes) -> int:
    """Return the place of the first fingerprint after ``end`` that has another beginning."""
    place = bisect_right(fps, end)
    while place < len(fps) and _key(fps[place]) == _key(end):
        place += 1
    return place


def _key(fp: bytes) -> bytes:
    return fp[:KEY_BYTES]


class _Rows:
    """Rows of a run, and the reads and changes of it."""

    def __init__(self, tx: Transaction, owner: tuple[int, int], run: SortedRun) -> None:
        self._tx = tx
        self._run = (*owner, run.number)

    async def behind(self, after: bytes, number: int) -> RunSegment:
        """Return at least ``number`` fingerprints after one, if there are so many."""
        raise NotImplementedError

    async def cut(self, segment: RunSegment, end: bytes | None) -> None:
        """Remove the fingerprints of ``segment``, the beginning of the run, up to ``end``, as :meth:`RunSegment.up_to`
        returns them; None removes the whole run."""
        raise NotImplementedError


class BlockRows(_Rows):
    """A sorted run: rows of some hundreds of fingerprints."""

    async def behind(self, after: bytes, number: int) -> RunSegment:
        row = await self._row_of(after)
        place = b"" if row is None else row[0]
        limit = number // _IN_A_BLOCK + 2
        fps: list[bytes] = []
        fdata: dict[bytes, bytes] = {}
        comparison = ">="
        while True:
            rows = await self._tx.fetch(
                f"""SELECT first, fps, fdata FROM frontier_fingerprint_blocks WHERE {_RUN} AND first {comparison} $4
                    ORDER BY first LIMIT $5""",
                *self._run,
                place,
                limit,
            )
            _unpack(rows, fps, fdata)
            first = bisect_right(fps, after) if after else 0
            if len(rows) < limit:
                return RunSegment(fps[first:], fdata, ended=True)
            if len(fps) - first >= number:
                return RunSegment(fps[first:], fdata, ended=False)
            place, comparison = rows[-1][0], ">"

    async def _row_of(self, fp: bytes) -> Row | None:
        """Return the row that may have a fingerprint: its key and its fingerprints."""
        return await self._tx.fetchrow(
            f"""SELECT first, fps FROM frontier_fingerprint_blocks WHERE {_RUN} AND first <= $4
                ORDER BY first DESC LIMIT 1""",
            *self._run,
            _key(fp),
        )

    async def append(self, fps: Sequence[bytes], fdata: Mapping[bytes, bytes]) -> None:
        """Append sorted fingerprints."""
        await self._tx.execute_many(
            _INSERT, [(*self._run, _key(part[0]), *_packed(part, fdata)) for part in _blocks(fps)]
        )

    async def cut(self, segment: RunSegment, end: bytes | None) -> None:
        if end is None:
            await self._tx.execute(f"DELETE FROM frontier_fingerprint_blocks WHERE {_RUN}", *self._run)
            return
        last = await self._row_of(end)
        if last is None:
            return
        await self._tx.execute(
            f"DELETE FROM frontier_fingerprint_blocks WHERE {_RUN} AND first <= $4", *self._run, last[0]
        )
        members = last[1][1:-1].split(_MARK)
        await self.append(members[_behind(members, end) :], segment.fdata)


class OpenRows(_Rows):
    """The open run: rows in the order of arrival, each sorted."""

    async def append(self, rows: int, fps: Sequence[bytes], fdata: Mapping[bytes, bytes]) -> int:
        """Add sorted fingerprints to the run of so many rows; return the number of new rows."""
        parts = _blocks(fps)
        await self._tx.execute_many(
            _INSERT,
            [(*self._run, place.to_bytes(8, "big"), *_packed(part, fdata)) for place, part in enumerate(parts, rows)],
        )
        return len(parts)

    async def all(self) -> RunSegment:
        """Return all fingerprints, sorted."""
        rows = await self._tx.fetch(
            f"SELECT first, fps, fdata FROM frontier_fingerprint_blocks WHERE {_RUN}", *self._run
        )
        fps: list[bytes] = []
        fdata: dict[bytes, bytes] = {}
        _unpack(rows, fps, fdata)
        fps.sort()
        return RunSegment(fps, fdata, ended=True)

    async def behind(self, after: bytes, number: int) -> RunSegment:
        found = await self.all()
        return found._replace(fps=found.fps[bisect_right(found.fps, after) :])

    async def cut(self, segment: RunSegment, end: bytes | None) -> None:
        await self._tx.execute(f"DELETE FROM frontier_fingerprint_blocks WHERE {_RUN}", *self._run)


class SingleRows(_Rows):
    """A run of an earlier version: one fingerprint per row."""

    async def found(self, wanted: Sequence[bytes]) -> set[bytes]:
        """Return those of ``wanted`` that the run has."""
        rows = await self._tx.fetch_any(
            f"SELECT fp FROM frontier_fingerprints WHERE {_RUN} AND fp = ANY($4)", *self._run, keys=wanted
        )
        return {row[0] for row in rows}

    async def behind(self, after: bytes, number: int) -> RunSegment:
        rows = await self._tx.fetch(
            f"SELECT fp, fdata FROM frontier_fingerprints WHERE {_RUN} AND fp > $4 ORDER BY fp LIMIT $5",
            *self._run,
            after,
            number,
        )
        fdata = {fp: data for fp, data in rows if data is not None}
        return RunSegment([fp for fp, _ in rows], fdata, len(rows) < number)

    async def cut(self, segment: RunSegment, end: bytes | None) -> None:
        if end is None:
            await self._tx.execute(f"DELETE FROM frontier_fingerprints WHERE {_RUN}", *self._run)
        else:
            last = max(segment.up_to(end), default=end)
            await self._tx.execute(f"DELETE FROM frontier_fingerprints WHERE {_RUN} AND fp <= $4", *self._run, last)


async def found_in(
    tx: Transaction, owner: tuple[int, int], runs: Sequence[SortedRun], wanted: Sequence[bytes]
) -> set[bytes]:
    """Return those of ``wanted``, which is sorted, that one of the sorted runs has."""
    rows = await tx.fetch_each(
        _LOOK_UP, [(*owner, run.number, _key(fp), _MARK + fp + _MARK) for run in runs for fp in wanted]
    )
    return {row[0][1:-1] for row in rows}


_INSERT: Final = """INSERT INTO frontier_fingerprint_blocks (project, slot, run, first, fps, fdata)
    VALUES ($1, $2, $3, $4, $5, $6)"""
_LOOK_UP: Final = """SELECT substr(fps, position($5 IN fps), length($5)) FROM (
      SELECT fps FROM frontier_fingerprint_blocks WHERE project = $1 AND slot = $2 AND run = $3 AND first <= $4
      ORDER BY first DESC LIMIT 1) AS block
    WHERE position($5 IN fps) > 0"""


def _blocks(fps: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Split sorted fingerprints into rows."""
    blocks, place = [], 0
    each = max(len(fps) * BLOCK_BYTES // (sum(map(len, fps)) + len(fps) or 1), 1)
    while place < len(fps):
        end = min(place + each, len(fps))
        while end < len(fps) and _key(fps[end]) == _key(fps[end - 1]):
            end += 1
        blocks.append(fps[place:end])
        place = end
    return blocks


def _packed(fps: Sequence[bytes], fdata: Mapping[bytes, bytes]) -> tuple[bytes, bytes | None]:
    """Join the fingerprints of a row, and their fdata if any has some."""
    data = _MARK.join([fdata.get(fp, b"") for fp in fps]) if fdata and any(fp in fdata for fp in fps) else None
    return _MARK + _MARK.join(fps) + _MARK, data


def _unpack(rows: Iterable[Row], fps: list[bytes], fdata: dict[bytes, bytes]) -> None:
    """Add the fingerprints of rows, and their fdata."""
    for _, joined, data in rows:
        members = joined[1:-1].split(_MARK)
        fps += members
        if data is not None:
            fdata.update((fp, each) for fp, each in zip(members, data.split(_MARK), strict=True) if each)


def merged(segments: Iterable[Sequence[bytes]]) -> list[bytes]:
    return sorted(chain.from_iterable(segments))
