"""Fingerprints of a slot in sorted runs, so that the cost of additions does not grow with their number.

Fingerprints arrive in random order. In one large index each would modify a page of its own, and writing these pages
would dominate additions. So they go into a small run, and small runs are merged into larger ones:

- A fingerprint is in exactly one run of its slot, in every state of the database.
- New ones are rows of the last, open run. With ``RUN`` of them it is closed, and another is opened.
- ``FAN`` closed runs of one level are merged into a new run of the next level, which is packed, some hundreds of
  fingerprints per row. Each addition makes every merge owe ``_PACE`` times its size, and an addition that finds
  ``_STEP`` owed moves so many, lowest first: no addition waits for a whole merge.
- An addition searches every run, largest first, but only for fingerprints that the filter does not exclude.

The slot's row, locked during an addition, lists the runs. An engine that defers such writes itself (``sorted_runs`` is
false) keeps one run and moves the fingerprints of others into it (a copied database).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from heapq import merge
from itertools import islice
from typing import Final

import msgspec

from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.frontier.fingerprint_filter import SlotFilter, SlotFilters
from scrapy_ext.server.store.frontier.fingerprint_runs import INSERT, RunRows, SortedRun, merged

#: Maximum fingerprints of an open run: its pages are written once or twice meanwhile.
RUN: Final = 8_000
#: Number of runs merged into one.
FAN: Final = 6
#: Fingerprints that a merge moves per added one.
_PACE: Final = 4
#: Fingerprints that a merge moves at once: some milliseconds.
_STEP: Final = 8000
#: Fingerprints loaded into the filter per added one, while no filter is complete and while a smaller one is; and the
#: bounds per addition.
_LOAD_IN_NEED: Final = 200
_LOAD: Final = 32
_LEAST_LOAD: Final = 500
_MOST_LOAD: Final = 400_000

_decode: Final = msgspec.json.Decoder(list[SortedRun]).decode


def runs_of(stored: bytes | None) -> list[SortedRun]:
    """Parse the runs of a slot, the open one last."""
    return [SortedRun(1)] if stored is None else _decode(stored)


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
        chosen = (
            filters.of(self._owner, self._stamp, self._about() + len(fingerprints)) if self._tx.sorted_runs else None
        )
        in_doubt = list(fingerprints) if chosen is None else chosen.doubtful(fingerprints)
        known = await self._found(in_doubt) if len(self._runs) > 1 else set()
        # Sorted, since neighbours share pages of the index.
        certain = sorted(fingerprints.keys() - set(in_doubt)) if chosen is not None else []
        await self._tx.execute_many(INSERT, self._open_rows(certain, fingerprints))
        inserted = await self._tx.insert_many(
            f"{INSERT} ON CONFLICT DO NOTHING RETURNING fp",
            self._open_rows(sorted(set(in_doubt) - known), fingerprints),
        )
        new = {row[0] for row in inserted}
        new.update(certain)
        self._runs[-1].size += len(new)
        stamp = secrets.randbits(62) + 1
        if chosen is not None:
            await self._load(chosen, len(fingerprints))
            chosen.add(new)
            await self._tend(len(new))
            chosen.stamp = stamp
        elif len(self._runs) > 1:
            await self._pour_back(_PACE * len(new))
        return new, stamp

    def _open_rows(self, fps: list[bytes], fdata: dict[bytes, bytes | None]) -> list[Row]:
        run = self._runs[-1].number
        return [(*self._owner, run, fp, fdata[fp]) for fp in fps]

    def _rows(self, run: SortedRun) -> RunRows:
        return RunRows(self._tx, self._owner, run)

    def _size(self, run: SortedRun) -> int:
        return run.size if run is self._runs[-1] else RUN * FAN**run.level

    def _about(self) -> int:
        """Return the approximate number of fingerprints."""
        return sum(map(self._size, self._runs))

    async def _found(self, fingerprints: Iterable[bytes]) -> set[bytes]:
        """Return the fingerprints that a closed run has."""
        found: set[bytes] = set()
        wanted = sorted(fingerprints)
        for run in sorted(self._runs[:-1], key=lambda run: -run.level):
            if not wanted:
                break
            if here := await self._rows(run).found(wanted):
                found |= here
                wanted = [fp for fp in wanted if fp not in here]
        return found

    async def _load(self, chosen: SlotFilter, added: int) -> None:
        """Load further fingerprints of each run into the filter."""
        after = chosen.loaded
        if after is None:
            return
        number = min(max((_LOAD_IN_NEED if chosen.in_need else _LOAD) * added, _LEAST_LOAD), _MOST_LOAD)
        about = self._about()
        segments = [
            await self._rows(run).behind(after, 1 + number * self._size(run) // max(about, 1)) for run in self._runs
        ]
        end = min((segment.fps[-1] for segment in segments if not segment.ended), default=None)
        chosen.load([segment.up_to(end) for segment in segments], end)

    async def _tend(self, added: int) -> None:
        """Close a full open run, and continue the merges."""
        if self._runs[-1].size >= RUN:
            self._runs.append(SortedRun(self._next_number()))
            for level in {run.level for run in self._runs[:-1]}:
                self._begin(level)
        for target in [run for run in self._runs if self._sources(run)]:
            target.owed += _PACE * added
            if target.owed >= _STEP:
                await self._pour(target, self._sources(target), target.owed)
                target.owed = 0

    def _sources(self, target: SortedRun) -> list[SortedRun]:
        return [run for run in self._runs if run.target == target.number]

    def _begin(self, level: int) -> None:
        """Start a merge of the oldest closed runs of a level, if there are enough and none is under way."""
        if any(run.level == level and run.target is not None for run in self._runs):
            return
        filling = {run.target for run in self._runs}
        closed = [run for run in self._runs[:-1] if run.level == level and run.number not in filling][:FAN]
        if len(closed) == FAN:
            target = SortedRun(self._next_number(), level + 1, packed=True)
            self._runs.insert(0, target)
            for run in closed:
                run.target = target.number

    def _next_number(self) -> int:
        return max(run.number for run in self._runs) + 1

    async def _pour(self, target: SortedRun, sources: list[SortedRun], number: int) -> None:
        """Move the lowest ``number`` fingerprints or so into their target."""
        rows = [self._rows(run) for run in sources]
        segments = [await each.behind(b"", number // len(sources) + 1) for each in rows]
        # The lowest end bounds the move, so that no run moves more than intended, however different they are.
        end = min((segment.fps[-1] for segment in segments if not segment.ended), default=None)
        fdata: dict[bytes, bytes] = {}
        for each, segment in zip(rows, segments, strict=True):
            await each.cut(segment, end)
            fdata |= segment.fdata
        await self._rows(target).append(merged(segment.up_to(end) for segment in segments), fdata)
        if end is None:
            self._runs[:] = [run for run in self._runs if run not in sources]
            for level in (sources[0].level, target.level):
                self._begin(level)

    async def _pour_back(self, number: int) -> None:
        """Move about ``number`` fingerprints of a closed run into the open one."""
        run = self._runs[0]
        segment = await self._rows(run).behind(b"", number + 1)
        end = None if segment.ended else segment.fps[-1]
        await self._rows(run).cut(segment, end)
        await self._rows(self._runs[-1]).insert(segment.up_to(end), segment.fdata)
        if end is None:
            self._runs.remove(run)


async def page(tx: Transaction, owner: tuple[int, int], runs: list[SortedRun], after: bytes, limit: int) -> list[bytes]:
    """Return the fingerprints after one, ordered by bytes."""
    found = [(await RunRows(tx, owner, run).behind(after, limit)).fps for run in runs]
    return list(islice(merge(*found), limit))
