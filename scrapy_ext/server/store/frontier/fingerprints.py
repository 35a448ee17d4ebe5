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
- Fingerprints that are too long for a key have a row each, in one index of their hashes. Runs of an earlier version are
  searched, and not merged.
- ``fdata`` of new fingerprints is written beside them, and no read needs it.

The slot's row, locked during an addition, lists the runs. By its stamp a process notices that others have added to the
slot since its own last addition. Then the process reads what they have added: the open run, and the runs that it does
not know. If those are large, it begins a new filter.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from heapq import merge
from itertools import chain, islice
from typing import Final

import msgspec

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.frontier.fingerprint_filter import SlotFilter, SlotFilters
from scrapy_ext.server.store.frontier.fingerprint_runs import (
    EARLIER,
    KEY_BYTES,
    LONG,
    OPEN,
    SORTED,
    EarlierRows,
    FingerprintRun,
    LongRows,
    OpenRows,
    Owner,
    SortedRows,
    found_in,
    rows_of,
    runs_of,
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
_LOAD: Final = 4
_LEAST_LOAD: Final = 500
_MOST_LOAD: Final = 400_000
#: Look-ups at once, at least those in one run: the largest runs, first of all, have most of what is there.
_LOOK_UPS: Final = 64
#: Multiple of the fingerprints that are looked for up to which a run is read as a whole, and the maximum that an
#: addition reads so, to find some, or to know what others have added.
_READ_WHOLE: Final = 50
_MOST_READ: Final = 100_000


def _new_number() -> int:
    """Return a number that no run or stamp of the slot has ever had, even one that was rolled back, or that a standby
    has missed which is now the primary."""
    return secrets.randbits(62) + 1


class SlotFingerprints:
    """Fingerprints of one slot, whose row the transaction has locked."""

    def __init__(self, tx: Transaction, owner: Owner, stored: bytes | None, stamp: int) -> None:
        self._tx = tx
        self._owner = owner
        self._runs = runs_of(stored)
        self.stamp = stamp

    @property
    def runs(self) -> bytes:
        """Encode the runs for the slot's row."""
        return msgspec.json.encode(self._runs)

    async def add(self, fingerprints: Mapping[bytes, bytes | None], filters: SlotFilters) -> set[bytes]:
        """Add fingerprints with their fdata; return the new ones. ``stamp`` and ``runs`` are those to store then."""
        long = {fp for fp in fingerprints if len(fp) > KEY_BYTES}
        new = await self._add([fp for fp in fingerprints if fp not in long] if long else fingerprints, filters)
        new |= await self._add_long(long) if long else set()
        addition = _new_number()
        data = [(fp, fdata) for fp in new if (fdata := fingerprints[fp]) is not None]
        await self._tx.execute_many(
            "INSERT INTO frontier_fingerprint_data (project, slot, addition, place, fp, fdata) "
            "VALUES ($1, $2, $3, $4, $5, $6)",
            [(*self._owner, addition, place, *each) for place, each in enumerate(data)],
        )
        return new

    async def _add(self, fps: Collection[bytes], filters: SlotFilters) -> set[bytes]:
        """Add fingerprints that are not long."""
        if not fps:
            return set()
        chosen = await self._filter(filters, len(fps))
        await self._load(chosen, len(fps))
        doubtful = chosen.doubtful(fps)
        new = set(fps).difference(await self._known(doubtful) if doubtful else ())
        await self._put(sorted(new))
        chosen.add(new)
        await self._merge(len(new))
        chosen.stamp = self.stamp = _new_number()
        chosen.runs = self._numbers()
        return new

    async def _add_long(self, fps: set[bytes]) -> set[bytes]:
        wanted = fps - await self._known_earlier(fps)
        new = await LongRows(self._tx, self._owner).add(wanted)
        self._run(LONG).size += len(new)
        return new

    def _of(self, *kinds: str) -> list[FingerprintRun]:
        return [run for run in self._runs if run.kind in kinds]

    def _run(self, kind: str) -> FingerprintRun:
        """Return the only run of a kind."""
        if not self._of(kind):
            self._runs.append(FingerprintRun(_new_number(), kind=kind))
        return self._of(kind)[0]

    def _numbers(self) -> frozenset[int]:
        return frozenset(run.number for run in self._runs)

    def _total(self) -> int:
        return sum(run.size for run in self._of(OPEN, SORTED, EARLIER))

    # ── what is known ──

    async def _filter(self, filters: SlotFilters, added: int) -> SlotFilter:
        """Return the slot's filter; it has what others have added."""
        chosen = filters.of(self._owner, self._total() + added)
        if chosen.stamp not in (None, self.stamp):
            unknown = self._unknown(chosen.runs)
            if sum(run.size for run in unknown) <= _MOST_READ:
                for run in unknown:
                    chosen.add(await SortedRows(self._tx, self._owner, run).all())
                chosen.add(await OpenRows(self._tx, self._owner, self._run(OPEN)).all())
            else:
                filters.drop(self._owner)
                chosen = filters.of(self._owner, self._total() + added)
        # Before anything is loaded into a new one: a failure after that must not hide what others add next.
        chosen.stamp, chosen.runs = self.stamp, self._numbers()
        return chosen

    def _unknown(self, known: frozenset[int]) -> list[FingerprintRun]:
        """Return the sorted runs with fingerprints that the known ones did not have: new ones, but for merges of known
        ones."""
        sources: dict[int | None, list[int]] = {}
        for run in self._runs:
            sources.setdefault(run.target, []).append(run.number)
        return [
            run
            for run in self._of(SORTED)
            if run.number not in known and not (run.number in sources and known.issuperset(sources[run.number]))
        ]

    async def _known(self, doubtful: Collection[bytes]) -> set[bytes]:
        """Return those that a run has."""
        found = set(doubtful).intersection(await OpenRows(self._tx, self._owner, self._run(OPEN)).all())
        found |= await self._known_earlier(set(doubtful) - found)
        runs = sorted(self._of(SORTED), key=lambda run: run.size)
        left = _MOST_READ
        while runs and (wanted := sorted(set(doubtful) - found)):
            if runs[-1].size <= min(_READ_WHOLE * len(wanted), left):
                left -= runs[-1].size
                found.update(set(wanted).intersection(await SortedRows(self._tx, self._owner, runs.pop()).all()))
                continue
            number = max(_LOOK_UPS // len(wanted), 1)
            found |= await found_in(self._tx, self._owner, runs[-number:], wanted)
            del runs[-number:]
        return found

    async def _known_earlier(self, fps: Collection[bytes]) -> set[bytes]:
        """Return those that a run of an earlier version has."""
        found = set[bytes]()
        for run in self._of(EARLIER):
            if wanted := sorted(set(fps) - found):
                if run.packed:
                    found |= await found_in(self._tx, self._owner, [run], wanted)
                else:
                    found |= await EarlierRows(self._tx, self._owner, run).found(wanted)
        return found

    async def _load(self, chosen: SlotFilter, added: int) -> None:
        """Load further fingerprints of each run into the filter."""
        loading = chosen.loading
        if (after := loading.loaded) is None:
            return
        number = min(max((_LOAD_IN_NEED if chosen.in_need else _LOAD) * added, _LEAST_LOAD), _MOST_LOAD)
        total = max(self._total(), 1)
        segments = [
            await rows_of(self._tx, self._owner, run).behind(after, 1 + number * run.size // total)
            for run in self._of(OPEN, SORTED, EARLIER)
        ]
        end = min((segment.fps[-1] for segment in segments if not segment.ended), default=None)
        chosen.load(loading, [segment.up_to(end) for segment in segments], end)

    # ── changes ──

    async def _put(self, new: list[bytes]) -> None:
        """Add sorted fingerprints to the open run, or make a sorted run of them and those."""
        run = self._run(OPEN)
        rows = OpenRows(self._tx, self._owner, run)
        if run.size + len(new) < RUN and run.rows < _ROWS:
            run.rows = await rows.append(run.rows, new)
            run.size += len(new)
            return
        fps = sorted(chain(await rows.all(), new))
        await rows.clear()
        if len(fps) < RUN:
            run.rows, run.size = await rows.append(0, fps), len(fps)
            return
        run.rows = run.size = 0
        closed = FingerprintRun(_new_number(), size=len(fps), kind=SORTED)
        await SortedRows(self._tx, self._owner, closed).append(fps)
        self._runs.append(closed)

    async def _merge(self, added: int) -> None:
        """Begin merges that are due, and continue the smallest."""
        levels = {run.level for run in self._of(SORTED)}
        for level in levels:
            self._begin(level)
        if merging := self._targets():
            target = min(merging, key=lambda run: run.level)
            target.owed += added * (2 + len(levels))
            if target.owed >= _STEP:
                await self._pour(target, target.owed)
                target.owed = 0

    def _begin(self, level: int) -> None:
        """Start a merge of the oldest runs of a level, if there are enough and none is under way."""
        runs = [run for run in self._of(SORTED) if run.level == level]
        if any(run.target is not None for run in runs):
            return
        targets = self._targets()
        sources = [run for run in runs if run not in targets][:FAN]
        if len(sources) == FAN:
            target = FingerprintRun(_new_number(), level + 1, kind=SORTED)
            self._runs.append(target)
            for run in sources:
                run.target = target.number

    def _targets(self) -> list[FingerprintRun]:
        """Return the runs into which others are merged."""
        targets = {run.target for run in self._of(SORTED)}
        return [run for run in self._of(SORTED) if run.number in targets]

    async def _pour(self, target: FingerprintRun, number: int) -> None:
        """Move the lowest ``number`` fingerprints or so of its sources into a run."""
        sources = [run for run in self._runs if run.target == target.number]
        rows = [SortedRows(self._tx, self._owner, run) for run in sources]
        segments = [await each.behind(b"", number // len(sources) + 1) for each in rows]
        # The lowest end bounds the move, so that no run moves more than intended, however different they are.
        end = min((segment.fps[-1] for segment in segments if not segment.ended), default=None)
        moved = [segment.up_to(end) for segment in segments]
        for run, each, part in zip(sources, rows, moved, strict=True):
            await each.cut(end)
            run.size -= len(part)
        await SortedRows(self._tx, self._owner, target).append(sorted(chain.from_iterable(moved)))
        target.size += sum(map(len, moved))
        if end is None:
            self._runs[:] = [run for run in self._runs if run not in sources]


async def page(tx: Transaction, owner: Owner, stored: bytes | None, after: bytes, limit: int) -> list[bytes]:
    """Return the fingerprints of a slot after one, ordered by bytes."""
    found = [(await rows_of(tx, owner, run).behind(after, limit)).fps for run in runs_of(stored)]
    return list(islice(merge(*found), limit))


def seen(stored: bytes | None) -> tuple[int, bool]:
    """Return the number of a slot's fingerprints, and whether it is an estimate."""
    runs = runs_of(stored)
    return sum(run.size for run in runs), any(run.kind == EARLIER for run in runs)
