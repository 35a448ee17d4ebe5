"""Fingerprints of a slot in sorted runs, so that the cost of additions does not grow with their number.

Fingerprints arrive in random order. In one large index each would modify a page of its own, and writing these pages
would dominate additions. So they are written in rows of some hundreds, and small runs are merged into larger ones:

- A fingerprint is in exactly one run of its slot, in every state of the database.
- New ones are appended to the open run, a row or some for an addition. With ``RUN`` of them it becomes a sorted run of
  level 0, and another is opened.
- ``FAN`` runs of one level are merged into a new run of the next level. All merges together move as many fingerprints
  for each added one as there are levels, and two more; the smallest merge comes first. No addition waits for a whole
  merge, and all merges keep up: each fingerprint is moved once on each level.
- A Bloom filter in memory (:mod:`.fingerprint_filter`) knows nearly all that are new. The others are searched: first in
  the open run, then in the largest runs.

The slot's row, locked during an addition, lists the runs. By its stamp a process notices that others have added to the
slot since its own last addition. Then the process reads what they have added: the open run, and the runs that it
does not know. If those are large, it begins a new filter.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Final

import msgspec

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.frontier.fingerprint_filter import SlotFilter, SlotFilters
from scrapy_ext.server.store.frontier.fingerprint_runs import (
    BlockRows,
    OpenRows,
    SingleRows,
    SortedRun,
    found_in,
    merged,
)

#: Fingerprints of an open run, which additions read again and again, and its rows.
RUN: Final = 2000
_ROWS: Final = 64
#: Number of runs merged into one.
FAN: Final = 6
#: Fingerprints that a merge moves at once: some milliseconds.
_STEP: Final = 16_000
#: Fingerprints loaded into the filter per added one, while no filter is complete and while a smaller one is; and the
#: bounds per addition.
_LOAD_IN_NEED: Final = 200
_LOAD: Final = 8
_LEAST_LOAD: Final = 500
_MOST_LOAD: Final = 400_000
#: Look-ups at once, at least those in one run: the largest runs, first of all, have most of what is there.
_LOOK_UPS: Final = 64
#: Multiple of the fingerprints that are looked for up to which a run is read as a whole, and the maximum that an
#: addition reads so, to find some, or to know what others have added.
_READ_WHOLE: Final = 50
_MOST_READ: Final = 100_000
#: Sizes of runs in databases of earlier versions, which do not name them.
_EARLIER_RUN: Final = 8000
_EARLIER_FAN: Final = 6

_decode: Final = msgspec.json.Decoder(list[SortedRun]).decode


def _new_number() -> int:
    """Return a number that no run or stamp of the slot has ever had, even one that was rolled back, or that a standby
    has missed which is now the primary."""
    return secrets.randbits(62) + 1


def runs_of(stored: bytes | None) -> list[SortedRun]:
    """Parse the runs of a slot, the open one last."""
    if stored is None:
        return [SortedRun(1, packed=True)]
    runs = _decode(stored)
    filling = {run.target for run in runs}
    for run in runs[:-1]:
        if not run.size and run.number not in filling:
            run.size, run.about = _EARLIER_RUN * _EARLIER_FAN**run.level, True
    return runs


class FingerprintRuns:
    """Fingerprints of one slot, whose row the transaction has locked."""

    def __init__(self, tx: Transaction, owner: tuple[int, int], stored: bytes | None, stamp: int) -> None:
        self._tx = tx
        self._owner = owner
        self._runs = runs_of(stored)
        self._stamp = stamp

    @property
    def runs(self) -> bytes:
        """Encode the runs for the slot's row."""
        return msgspec.json.encode(self._runs)

    async def add(self, fingerprints: dict[bytes, bytes | None], filters: SlotFilters) -> tuple[set[bytes], int]:
        """Add fingerprints with their fdata; return the new ones, and the slot's next stamp."""
        if not self._runs[-1].packed:
            self._open()
        chosen = await self._filter(filters, len(fingerprints))
        doubtful = chosen.doubtful(fingerprints)
        known = await self._found(doubtful) if doubtful else set()
        new = sorted(fingerprints.keys() - known)
        await self._put(new, {fp: fdata for fp in new if (fdata := fingerprints[fp]) is not None})
        await self._load(chosen, len(fingerprints))
        chosen.add(new)
        await self._merge(len(new))
        chosen.stamp = _new_number()
        chosen.runs = frozenset(run.number for run in self._runs)
        return set(new), chosen.stamp

    def _open(self) -> None:
        self._runs.append(SortedRun(_new_number(), packed=True))

    def _total(self) -> int:
        return sum(run.size for run in self._runs)

    def _rows(self, run: SortedRun) -> OpenRows | BlockRows | SingleRows:
        return _rows_of(self._tx, self._owner, self._runs, run)

    # ── what is known ──

    async def _filter(self, filters: SlotFilters, added: int) -> SlotFilter:
        """Return the slot's filter; it has what others have added."""
        chosen = filters.of(self._owner, self._total() + added)
        if chosen.stamp and chosen.stamp != self._stamp:
            unknown = self._unknown(chosen.runs)
            if sum(run.size for run in unknown) > _MOST_READ:
                filters.drop(self._owner)
                chosen = filters.of(self._owner, self._total() + added)
            else:
                for run in unknown:
                    chosen.add((await self._rows(run).behind(b"", run.size + 1)).fps)
        return chosen

    def _unknown(self, known: frozenset[int]) -> list[SortedRun]:
        """Return the runs that may have fingerprints which those with these numbers did not have: the open run, and new
        ones, but for merges of them."""
        sources: dict[int | None, list[int]] = {}
        for run in self._runs:
            sources.setdefault(run.target, []).append(run.number)
        return [
            run
            for run in self._runs
            if run is self._runs[-1]
            or (run.number not in known and not (run.number in sources and known.issuperset(sources[run.number])))
        ]

    async def _found(self, doubtful: Collection[bytes]) -> set[bytes]:
        """Return those that a run has."""
        opened = OpenRows(self._tx, self._owner, self._runs[-1])
        found = set(doubtful).intersection((await opened.all()).fps if self._runs[-1].size else ())
        for run in self._runs[:-1]:
            if not run.packed:
                found |= await SingleRows(self._tx, self._owner, run).found(sorted(set(doubtful) - found))
        packed = sorted((run for run in self._runs[:-1] if run.packed), key=lambda run: run.size)
        while packed and (wanted := sorted(set(doubtful) - found)):
            if packed[-1].size < min(_READ_WHOLE * len(wanted), _MOST_READ):
                found.update(set(wanted).intersection((await self._rows(packed.pop()).behind(b"", _MOST_READ)).fps))
                continue
            number = max(_LOOK_UPS // len(wanted), 1)
            found |= await found_in(self._tx, self._owner, packed[-number:], wanted)
            del packed[-number:]
        return found

    async def _load(self, chosen: SlotFilter, added: int) -> None:
        """Load further fingerprints of each run into the filter."""
        after = chosen.loaded
        if after is None:
            return
        number = min(max((_LOAD_IN_NEED if chosen.in_need else _LOAD) * added, _LEAST_LOAD), _MOST_LOAD)
        total = self._total()
        segments = [await self._rows(run).behind(after, 1 + number * run.size // max(total, 1)) for run in self._runs]
        end = min((segment.fps[-1] for segment in segments if not segment.ended), default=None)
        chosen.load([segment.up_to(end) for segment in segments], end)

    # ── changes ──

    async def _put(self, new: list[bytes], fdata: Mapping[bytes, bytes]) -> None:
        """Add sorted fingerprints to the open run, or make a sorted run of them and those."""
        run = self._runs[-1]
        rows = OpenRows(self._tx, self._owner, run)
        if run.size + len(new) < RUN and run.rows < _ROWS:
            run.rows += await rows.append(run.rows, new, fdata)
            run.size += len(new)
            return
        held = await rows.all()
        fps, fdata = merged([held.fps, new]), {**held.fdata, **fdata}
        await rows.cut(held, None)
        if len(fps) < RUN:
            run.rows, run.size = await rows.append(0, fps, fdata), len(fps)
            return
        run.rows = run.size = 0
        closed = SortedRun(_new_number(), size=len(fps), packed=True)
        await BlockRows(self._tx, self._owner, closed).append(fps, fdata)
        self._runs.insert(-1, closed)

    async def _merge(self, added: int) -> None:
        """Begin merges that are due, and continue the smallest."""
        for level in {run.level for run in self._runs[:-1]}:
            self._begin(level)
        targets = {run.target for run in self._runs}
        merging = [run for run in self._runs if run.number in targets]
        if merging:
            target = min(merging, key=lambda run: run.level)
            target.owed += added * (2 + max(run.level for run in self._runs))
            if target.owed >= _STEP:
                await self._pour(target, target.owed)
                target.owed = 0

    def _begin(self, level: int) -> None:
        """Start a merge of the runs of a level, if there are enough and none is under way."""
        if any(run.level == level and run.target is not None for run in self._runs):
            return
        targets = {run.target for run in self._runs}
        sources = [run for run in self._runs[:-1] if run.level == level and run.number not in targets][:FAN]
        if len(sources) == FAN:
            target = SortedRun(_new_number(), level + 1, packed=True)
            self._runs.insert(0, target)
            for run in sources:
                run.target = target.number

    async def _pour(self, target: SortedRun, number: int) -> None:
        """Move the lowest ``number`` fingerprints or so of its sources into a run."""
        sources = [run for run in self._runs if run.target == target.number]
        rows = [self._rows(run) for run in sources]
        segments = [await each.behind(b"", number // len(sources) + 1) for each in rows]
        # The lowest end bounds the move, so that no run moves more than intended, however different they are.
        end = min((segment.fps[-1] for segment in segments if not segment.ended), default=None)
        moved, fdata = [segment.up_to(end) for segment in segments], dict[bytes, bytes]()
        for run, each, segment, part in zip(sources, rows, segments, moved, strict=True):
            await each.cut(segment, end)
            run.size = max(run.size - len(part), 0)
            target.size += len(part)
            target.about |= run.about
            fdata |= segment.fdata
        await BlockRows(self._tx, self._owner, target).append(merged(moved), fdata)
        if end is None:
            self._runs[:] = [run for run in self._runs if run not in sources]


def _rows_of(
    tx: Transaction, owner: tuple[int, int], runs: Sequence[SortedRun], run: SortedRun
) -> OpenRows | BlockRows | SingleRows:
    """Return the rows of one of a slot's runs."""
    if not run.packed:
        return SingleRows(tx, owner, run)
    return OpenRows(tx, owner, run) if run is runs[-1] else BlockRows(tx, owner, run)


async def page(tx: Transaction, owner: tuple[int, int], runs: list[SortedRun], after: bytes, limit: int) -> list[bytes]:
    """Return the fingerprints after one, ordered by bytes."""
    found = [(await _rows_of(tx, owner, runs, run).behind(after, limit)).fps for run in runs]
    return list(islice(merge(*found), limit))
