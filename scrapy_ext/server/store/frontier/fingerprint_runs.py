"""Rows of a slot's fingerprints: those of its runs, with some hundreds of them joined, and those of long ones.

Joined fingerprints are surrounded by a byte that UTF-8 text never contains, so that a look-up is a single search in
bytes. The rows of the open run are in the order of their arrival. Those of a sorted run are ordered and disjoint, and
their key is the lowest fingerprint.

Runs of an earlier version are read, and stay as they are: sorted runs in a table of their own, and runs with a row for
each fingerprint.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple, Protocol

import msgspec

from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Bytes of a row: one fills a page of SQLite, two one of PostgreSQL.
BLOCK_BYTES: Final = 3800
#: Bytes of a longer fingerprint are no key: it has a row of its own.
KEY_BYTES: Final = 512
#: Approximate minimum of fingerprints per row.
_IN_A_BLOCK: Final = 90
#: Look-ups per query.
_LOOK_UPS: Final = 1000
_MARK: Final = b"\xff"
_RUN: Final = "project = $1 AND slot = $2 AND run = $3"

#: Kinds of runs. One of an earlier version has no kind.
EARLIER: Final = ""
OPEN: Final = "open"
SORTED: Final = "sorted"
#: The number of long fingerprints is kept as the size of a run.
LONG: Final = "long"
#: Sizes of runs of earlier versions, which do not name them.
_EARLIER_RUN: Final = 8000
_EARLIER_FAN: Final = 6

Owner = tuple[int, int]


class FingerprintRun(msgspec.Struct, array_like=True):
    """A run: ``number`` in the slot, ``size`` in fingerprints, ``target`` run of a merge.

    ``packed``: whether an earlier version has joined its fingerprints. ``owed``: fingerprints that the merge into this
    run still has to move for the additions so far. ``rows``: rows of the open run so far.
    """

    number: int
    level: int = 0
    size: int = 0
    target: int | None = None
    packed: bool = False
    owed: int = 0
    rows: int = 0
    kind: str = EARLIER


_decode: Final = msgspec.json.Decoder(list[FingerprintRun]).decode


def runs_of(stored: bytes | None) -> list[FingerprintRun]:
    """Parse the runs of a slot; estimate sizes that an earlier version has not stored."""
    runs = [] if stored is None else _decode(stored)
    for run in runs:
        if run.kind == EARLIER and run.packed and not run.size:
            run.size = _EARLIER_RUN * _EARLIER_FAN**run.level
    return runs


class RunSegment(NamedTuple):
    """Consecutive fingerprints of a run; ``ended`` at the end of the run."""

    fps: list[bytes]
    ended: bool

    def up_to(self, end: bytes | None) -> list[bytes]:
        """Return the fingerprints up to ``end`` (None: all)."""
        return self.fps if end is None else self.fps[: bisect_right(self.fps, end)]


class RunRows(Protocol):
    """The rows of a run."""

    async def behind(self, after: bytes, number: int) -> RunSegment:
        """Return at least ``number`` fingerprints after one, if there are so many."""


def rows_of(tx: Transaction, owner: Owner, run: FingerprintRun) -> RunRows:
    """Return the rows of one of a slot's runs."""
    if run.kind == OPEN:
        return OpenRows(tx, owner, run)
    if run.kind == LONG:
        return LongRows(tx, owner)
    if run.kind == EARLIER and not run.packed:
        return EarlierRows(tx, owner, run)
    return SortedRows(tx, owner, run)


class OpenRows:
    """The open run: rows in the order of arrival, each sorted."""

    def __init__(self, tx: Transaction, owner: Owner, run: FingerprintRun) -> None:
        self._tx = tx
        self._run = (*owner, run.number)

    async def append(self, rows: int, fps: Sequence[bytes]) -> int:
        """Add sorted fingerprints to the run of so many rows; return its number of rows."""
        parts = _split(fps)
        await self._tx.execute_many(
            _INSERT,
            [(*self._run, place.to_bytes(8, "big"), _joined(part)) for place, part in enumerate(parts, rows)],
        )
        return rows + len(parts)

    async def all(self) -> list[bytes]:
        """Return all fingerprints, sorted."""
        rows = await self._tx.fetch(f"SELECT fps FROM frontier_packed_fingerprints WHERE {_RUN}", *self._run)
        return sorted(chain.from_iterable(_members(row[0]) for row in rows))

    async def behind(self, after: bytes, number: int) -> RunSegment:
        fps = await self.all()
        return RunSegment(fps[bisect_right(fps, after) :], ended=True)

    async def clear(self) -> None:
        """Remove all rows."""
        await self._tx.execute(f"DELETE FROM frontier_packed_fingerprints WHERE {_RUN}", *self._run)


class SortedRows:
    """A sorted run."""

    def __init__(self, tx: Transaction, owner: Owner, run: FingerprintRun) -> None:
        self._tx = tx
        self._owner = owner
        self._number = run.number
        self._table = _table(run)

    async def append(self, fps: Sequence[bytes]) -> None:
        """Append sorted fingerprints."""
        await self._tx.execute_many(
            _INSERT, [(*self._owner, self._number, part[0], _joined(part)) for part in _split(fps)]
        )

    async def all(self) -> list[bytes]:
        """Return all fingerprints, sorted."""
        rows = await self._tx.fetch(
            f"SELECT fps FROM {self._table} WHERE {_RUN} ORDER BY first", *self._owner, self._number
        )
        return [fp for row in rows for fp in _members(row[0])]

    async def behind(self, after: bytes, number: int) -> RunSegment:
        row = await self._row_of(after)
        place = b"" if row is None else row[0]
        limit = number // _IN_A_BLOCK + 2
        fps: list[bytes] = []
        comparison = ">="
        while True:
            rows = await self._tx.fetch(
                f"SELECT first, fps FROM {self._table} WHERE {_RUN} AND first {comparison} $4 ORDER BY first LIMIT $5",
                *self._owner,
                self._number,
                place,
                limit,
            )
            for _, joined in rows:
                fps += _members(joined)
            first = bisect_right(fps, after) if after else 0
            if len(rows) < limit:
                return RunSegment(fps[first:], ended=True)
            if len(fps) - first >= number:
                return RunSegment(fps[first:], ended=False)
            place, comparison = rows[-1][0], ">"

    async def cut(self, end: bytes | None) -> None:
        """Remove the fingerprints up to one; None removes all."""
        if end is None:
            await self._tx.execute(f"DELETE FROM {self._table} WHERE {_RUN}", *self._owner, self._number)
            return
        last = await self._row_of(end)
        if last is None:
            return
        await self._tx.execute(
            f"DELETE FROM {self._table} WHERE {_RUN} AND first <= $4", *self._owner, self._number, last[0]
        )
        # The last row may have later ones, too.
        members = _members(last[1])
        await self.append(members[bisect_right(members, end) :])

    async def _row_of(self, fp: bytes) -> Row | None:
        """Return the row that may have a fingerprint: its key and its fingerprints."""
        return await self._tx.fetchrow(
            f"SELECT first, fps FROM {self._table} WHERE {_RUN} AND first <= $4 ORDER BY first DESC LIMIT 1",
            *self._owner,
            self._number,
            fp,
        )


class LongRows:
    """The long fingerprints of a slot, each in a row whose key has its beginning and its hash."""

    def __init__(self, tx: Transaction, owner: Owner) -> None:
        self._tx = tx
        self._owner = owner

    async def add(self, fps: Iterable[bytes]) -> set[bytes]:
        """Add fingerprints; return the new ones."""
        by_hash = {blake2b(fp, digest_size=32).digest(): fp for fp in fps}
        rows = await self._tx.insert_many(
            """INSERT INTO frontier_long_fingerprints (project, slot, beginning, hash, fp) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT DO NOTHING RETURNING hash""",
            [(*self._owner, fp[:KEY_BYTES], key, fp) for key, fp in sorted(by_hash.items())],
        )
        return {by_hash[row[0]] for row in rows}

    async def behind(self, after: bytes, number: int) -> RunSegment:
        rows = await self._tx.fetch(
            """SELECT fp FROM frontier_long_fingerprints
               WHERE project = $1 AND slot = $2 AND beginning >= $3 AND fp > $4 ORDER BY beginning, fp LIMIT $5""",
            *self._owner,
            after[:KEY_BYTES],
            after,
            number,
        )
        return RunSegment([row[0] for row in rows], ended=len(rows) < number)


class EarlierRows:
    """A run of an earlier version with a row for each fingerprint."""

    def __init__(self, tx: Transaction, owner: Owner, run: FingerprintRun) -> None:
        self._tx = tx
        self._run = (*owner, run.number)

    async def behind(self, after: bytes, number: int) -> RunSegment:
        rows = await self._tx.fetch(
            f"SELECT fp FROM frontier_fingerprints WHERE {_RUN} AND fp > $4 ORDER BY fp LIMIT $5",
            *self._run,
            after,
            number,
        )
        return RunSegment([row[0] for row in rows], ended=len(rows) < number)

    async def found(self, wanted: Sequence[bytes]) -> set[bytes]:
        """Return those of ``wanted`` that the run has."""
        rows = await self._tx.fetch_any(
            f"SELECT fp FROM frontier_fingerprints WHERE {_RUN} AND fp = ANY($4)", *self._run, keys=wanted
        )
        return {row[0] for row in rows}


async def found_in(
    tx: Transaction, owner: Owner, runs: Sequence[FingerprintRun], wanted: Iterable[bytes]
) -> set[bytes]:
    """Return those of ``wanted`` that one of the sorted runs has, which are in one table."""
    look_up = _LOOK_UP.replace("frontier_packed_fingerprints", _table(runs[0]))
    keys = [(*owner, run.number, fp, _MARK + fp + _MARK) for run in runs for fp in wanted]
    found = set[bytes]()
    for first in range(0, len(keys), _LOOK_UPS):
        found.update(row[0][1:-1] for row in await tx.fetch_each(look_up, keys[first : first + _LOOK_UPS]))
    return found


_INSERT: Final = """INSERT INTO frontier_packed_fingerprints (project, slot, run, first, fps)
    VALUES ($1, $2, $3, $4, $5)"""
_LOOK_UP: Final = """SELECT substr(fps, position($5 IN fps), length($5)) FROM (
      SELECT fps FROM frontier_packed_fingerprints WHERE project = $1 AND slot = $2 AND run = $3 AND first <= $4
      ORDER BY first DESC LIMIT 1) AS block
    WHERE position($5 IN fps) > 0"""


def _table(run: FingerprintRun) -> str:
    return "frontier_fingerprint_blocks" if run.kind == EARLIER else "frontier_packed_fingerprints"


def _split(fps: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Split fingerprints into rows."""
    each = max(len(fps) * BLOCK_BYTES // (sum(map(len, fps)) + len(fps) or 1), 1)
    return [fps[place : place + each] for place in range(0, len(fps), each)]


def _joined(fps: Sequence[bytes]) -> bytes:
    return _MARK + _MARK.join(fps) + _MARK


def _members(joined: bytes) -> list[bytes]:
    return joined[1:-1].split(_MARK)
