"""The fingerprints that a slot knows: sorted runs, so that adding costs the same however many there are.

Fingerprints come in no order. In one large index each would change a page of its own, and to write and sync a page
for each is what would make additions slow. So they go into a small run, and small runs are merged into larger ones:

- A fingerprint is in exactly one run of its slot, in every state of the database.
- New ones go into the open run, the last. When it has ``RUN`` of them it is closed and another one is opened.
- As soon as ``FAN`` closed runs of one level are there, they are poured into a new run of the next level: each
  addition moves about twice as many rows as it brings, the lowest first, so that nobody ever waits for a whole merge.
- An addition looks into every run, but only for those of which the filter is in doubt.

The slot's row, which whoever adds has locked, lists the runs. An engine that defers such writes itself
(``sorted_runs`` is false) keeps one run.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from heapq import merge
from itertools import islice
from typing import Final

import msgspec

from scrapy_ext.server.store.engine import Row, Transaction
from scrapy_ext.server.store.fingerprint_filter import Filter, Filters

#: Fingerprints of a run before it is closed: few enough that its pages are written once or twice on the way.
RUN: Final = 16_000
#: Runs that are merged into one.
FAN: Final = 6
#: Rows that an addition moves, by those that it brings.
_PACE: Final = 2
#: Fingerprints that an addition loads into the filter, by those that it brings, and at least.
_LOAD: Final = 8
_LEAST_LOAD: Final = 100


class Run(msgspec.Struct, array_like=True):
    """``number`` is its own in the slot, ``size`` that of an open run, ``target`` the run that it is poured into."""

    number: int
    level: int = 0
    size: int = 0
    target: int | None = None


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
        in_doubt = fingerprints if chosen is None else chosen.doubtful(fingerprints)
        known = await self._found(in_doubt) if len(self._runs) > 1 else set()
        inserted = await self._tx.insert_many(
            """INSERT INTO frontier_fingerprints (project, slot, run, fp, fdata) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT DO NOTHING RETURNING fp""",
            # in order: neighbours share pages of the index
            [(*self._owner, self._runs[-1].number, fp, fingerprints[fp]) for fp in sorted(fingerprints.keys() - known)],
        )
        new = {row[0] for row in inserted}
        self._runs[-1].size += len(new)
        stamp = secrets.randbits(62) + 1
        if chosen is not None:
            await self._load(chosen, max(_LOAD * len(fingerprints), _LEAST_LOAD))
            chosen.add(new)
            await self._tend(len(new))
            chosen.stamp = stamp
        return new, stamp

    def _about(self) -> int:
        """About how many there are."""
        return sum(run.size if run is self._runs[-1] else RUN * FAN**run.level for run in self._runs)

    async def _found(self, fingerprints: Iterable[bytes]) -> set[bytes]:
        """Those of these that a closed run has."""
        found: set[bytes] = set()
        wanted = sorted(fingerprints)
        for run in self._runs[:-1]:
            rows = await self._tx.fetch_any(
                "SELECT fp FROM frontier_fingerprints WHERE project = $1 AND slot = $2 AND run = $3 AND fp = ANY($4)",
                *(*self._owner, run.number),
                keys=wanted,
            )
            found.update(row[0] for row in rows)
        return found

    async def _load(self, chosen: Filter, number: int) -> None:
        """Let the filter know up to so many more fingerprints of each run."""
        after = chosen.loaded
        if after is None:
            return
        ends = [end for run in self._runs if (end := await self._place(run.number, after, number)) is not None]
        chosen.loaded = min(ends, default=None)
        for run in self._runs:
            chosen.add(row[0] for row in await self._part(run.number, after, chosen.loaded))

    async def _place(self, run: int, after: bytes, number: int) -> bytes | None:
        """The fingerprint that has ``number`` others before it behind ``after``; None: there are not so many."""
        row = await self._tx.fetchrow(
            """SELECT fp FROM frontier_fingerprints WHERE project = $1 AND slot = $2 AND run = $3 AND fp > $4
               ORDER BY fp LIMIT 1 OFFSET $5""",
            *(*self._owner, run, after, number),
        )
        return row[0] if row else None

    async def _part(self, run: int, after: bytes, last: bytes | None) -> list[Row]:
        where = "project = $1 AND slot = $2 AND run = $3 AND fp > $4"
        if last is None:
            return await self._tx.fetch(
                f"SELECT fp FROM frontier_fingerprints WHERE {where}",  # noqa: S608 - fixed, above
                *(*self._owner, run, after),
            )
        return await self._tx.fetch(
            f"SELECT fp FROM frontier_fingerprints WHERE {where} AND fp <= $5",  # noqa: S608
            *(*self._owner, run, after, last),
        )

    async def _tend(self, added: int) -> None:
        """Close the open run when it is full, and move the merges on."""
        if self._runs[-1].size >= RUN:
            self._runs.append(Run(self._next_number()))
        for level in sorted({run.level for run in self._runs[:-1]}):
            poured = [run for run in self._runs if run.level == level and run.target is not None] or self._begin(level)
            if poured and added:
                await self._pour(poured, _PACE * added // len(poured) + 1)

    def _begin(self, level: int) -> list[Run]:
        """Choose the oldest closed runs of a level to be merged, once there are enough."""
        filling = {run.target for run in self._runs}
        closed = [run for run in self._runs[:-1] if run.level == level and run.number not in filling][:FAN]
        if len(closed) < FAN:
            return []
        target = Run(self._next_number(), level + 1)
        self._runs.insert(0, target)
        for run in closed:
            run.target = target.number
        return closed

    def _next_number(self) -> int:
        return max(run.number for run in self._runs) + 1

    async def _pour(self, sources: list[Run], number: int) -> None:
        """Move the lowest fingerprints, about ``number`` of each of these runs, into their target."""
        # Up to the lowest of these places: however unlike the runs are, none has more to move than it was meant to.
        places = [await self._place(run.number, b"", number) for run in sources]
        end = min((place for place in places if place is not None), default=None)
        for run in sources:
            keys = "project = $1 AND slot = $2 AND run = $3"
            up_to: tuple[bytes, ...] = ()
            if end is not None:
                keys, up_to = f"{keys} AND fp <= $4", (end,)
            target = f"${4 + len(up_to)}"
            await self._tx.execute(
                f"""INSERT INTO frontier_fingerprints (project, slot, run, fp, fdata)
                    SELECT project, slot, CAST({target} AS BIGINT), fp, fdata FROM frontier_fingerprints WHERE {keys}
                    ORDER BY fp""",  # noqa: S608 - fixed, above
                *(*self._owner, run.number, *up_to, run.target),
            )
            await self._tx.execute(
                f"DELETE FROM frontier_fingerprints WHERE {keys}",  # noqa: S608
                *(*self._owner, run.number, *up_to),
            )
        if end is None:
            self._runs[:] = [run for run in self._runs if run not in sources]


async def page(tx: Transaction, owner: tuple[int, int], runs: list[Run], after: bytes, limit: int) -> list[bytes]:
    """The fingerprints behind one, in the order of their bytes."""
    found = [
        await tx.fetch(
            """SELECT fp FROM frontier_fingerprints WHERE project = $1 AND slot = $2 AND run = $3 AND fp > $4
               ORDER BY fp LIMIT $5""",
            *(*owner, run.number, after, limit),
        )
        for run in runs
    ]
    return [row[0] for row in islice(merge(*found), limit)]
