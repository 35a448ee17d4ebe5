"""The fingerprints that a slot knows: sorted runs, so that adding costs the same however many there are.

Fingerprints come in no order. In one large index each would change a page of its own, and to write and sync a page
for each is what would make additions slow. So they go into a small run, and small runs are merged into larger ones:

- A fingerprint is in exactly one run of its slot, in every state of the database.
- New ones go into the open run, the last, a row each. When it has ``RUN`` of them it is closed and another is opened.
- As soon as ``FAN`` closed runs of one level are there, they are poured into a new run of the next level, which is
  packed, some hundreds of fingerprints in a row. Each addition lets every merge owe ``_PACE`` times what it brings,
  and whoever finds ``_STEP`` owed moves so many, the lowest first: nobody ever waits for a whole merge.
- An addition looks into every run, the largest first, but only for those of which the filter is in doubt.

The slot's row, which whoever adds has locked, lists the runs. An engine that defers such writes itself
(``sorted_runs`` is false) keeps one run, and pours into it what others left (a database that was copied).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from heapq import merge
from itertools import islice
from typing import Final

import msgspec

from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.frontier.fingerprint_filter import Filters, SlotFilter
from scrapy_ext.server.store.frontier.fingerprint_runs import INSERT, Run, RunRows, merged

#: Fingerprints of a run before it is closed: few enough that its pages are written once or twice on the way.
RUN: Final = 8_000
#: Runs that are merged into one.
FAN: Final = 6
#: Fingerprints that a merge moves, by those that are added.
_PACE: Final = 4
#: Fingerprints that a merge moves at a time: some milliseconds.
_STEP: Final = 8000
#: Fingerprints that an addition loads into the filter, by those that it brings, and at least: while additions must
#: look for most of what they bring, and while a smaller filter still does.
_LOAD_IN_NEED: Final = 200
_LOAD: Final = 32
_LEAST_LOAD: Final = 500
_MOST_LOAD: Final = 400_000

_decode: Final = msgspec.json.Decoder(list[Run]).decode


def runs_of(stored: bytes | None) -> list[Run]:
    """The runs of a slot, the open one last."""
    return [Run(1)] if stored is None else _decode(stored)


class SlotFingerprints:
    """The fingerprints of one slot, whose row the transaction has locked."""

    def __init__(self, tx: Transaction, owner: tuple[int, int], stored: bytes | None, stamp: int) -> None:
        self._tx = tx
        self._owner = owner
        self._runs = runs_of(stored)
        self._stamp = stamp

    @property
    def runs(self) -> bytes:
        """The runs, to be stored in the slot's row."""
        return msgspec.json.encode(self._runs)

    async def add(self, fingerprints: dict[bytes, bytes | None], filters: Filters) -> tuple[set[bytes], int]:
        """Add fingerprints with their fdata; returns those that were new, and the slot's next stamp."""
        chosen = (
            filters.of(self._owner, self._stamp, self._about() + len(fingerprints)) if self._tx.sorted_runs else None
        )
        in_doubt = list(fingerprints) if chosen is None else chosen.doubtful(fingerprints)
        known = await self._found(in_doubt) if len(self._runs) > 1 else set()
        # In order: neighbours share pages of the index.
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

    def _rows(self, run: Run) -> RunRows:
        return RunRows(self._tx, self._owner, run)

    def _size(self, run: Run) -> int:
        """About how many a run has."""
        return run.size if run is self._runs[-1] else RUN * FAN**run.level

    def _about(self) -> int:
        """About how many there are."""
        return sum(map(self._size, self._runs))

    async def _found(self, fingerprints: Iterable[bytes]) -> set[bytes]:
        """Those of these that a closed run has."""
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
        """Let the filter know some more fingerprints of each run."""
        after = chosen.loaded
        if after is None:
            return
        number = min(max((_LOAD_IN_NEED if chosen.in_need else _LOAD) * added, _LEAST_LOAD), _MOST_LOAD)
        about = self._about()
        stretches = [
            await self._rows(run).behind(after, 1 + number * self._size(run) // max(about, 1)) for run in self._runs
        ]
        end = min((stretch.fps[-1] for stretch in stretches if not stretch.ended), default=None)
        chosen.load([stretch.up_to(end) for stretch in stretches], end)

    async def _tend(self, added: int) -> None:
        """Close the open run when it is full, and move the merges on."""
        if self._runs[-1].size >= RUN:
            self._runs.append(Run(self._next_number()))
            for level in {run.level for run in self._runs[:-1]}:
                self._begin(level)
        for target in [run for run in self._runs if self._sources(run)]:
            target.owed += _PACE * added
            if target.owed >= _STEP:
                await self._pour(target, self._sources(target), target.owed)
                target.owed = 0

    def _sources(self, target: Run) -> list[Run]:
        return [run for run in self._runs if run.target == target.number]

    def _begin(self, level: int) -> None:
        """Choose the oldest closed runs of a level to be merged, once there are enough and none is being merged."""
        if any(run.level == level and run.target is not None for run in self._runs):
            return
        filling = {run.target for run in self._runs}
        closed = [run for run in self._runs[:-1] if run.level == level and run.number not in filling][:FAN]
        if len(closed) == FAN:
            target = Run(self._next_number(), level + 1, packed=True)
            self._runs.insert(0, target)
            for run in closed:
                run.target = target.number

    def _next_number(self) -> int:
        return max(run.number for run in self._runs) + 1

    async def _pour(self, target: Run, sources: list[Run], number: int) -> None:
        """Move the lowest fingerprints, about ``number`` of them, into their target."""
        rows = [self._rows(run) for run in sources]
        stretches = [await each.behind(b"", number // len(sources) + 1) for each in rows]
        # Up to the lowest of these ends: however unlike the runs are, none has more to move than it was meant to.
        end = min((stretch.fps[-1] for stretch in stretches if not stretch.ended), default=None)
        fdata: dict[bytes, bytes] = {}
        for each, stretch in zip(rows, stretches, strict=True):
            await each.cut(stretch, end)
            fdata |= stretch.fdata
        await self._rows(target).append(merged(stretch.up_to(end) for stretch in stretches), fdata)
        if end is None:
            self._runs[:] = [run for run in self._runs if run not in sources]
            for level in (sources[0].level, target.level):
                self._begin(level)

    async def _pour_back(self, number: int) -> None:
        """Move about so many fingerprints of a closed run into the open one."""
        run = self._runs[0]
        stretch = await self._rows(run).behind(b"", number + 1)
        end = None if stretch.ended else stretch.fps[-1]
        await self._rows(run).cut(stretch, end)
        await self._rows(self._runs[-1]).insert(stretch.up_to(end), stretch.fdata)
        if end is None:
            self._runs.remove(run)


async def page(tx: Transaction, owner: tuple[int, int], runs: list[Run], after: bytes, limit: int) -> list[bytes]:
    """The fingerprints behind one, in the order of their bytes."""
    found = [(await RunRows(tx, owner, run).behind(after, limit)).fps for run in runs]
    return list(islice(merge(*found), limit))
