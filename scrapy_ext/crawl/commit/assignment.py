"""Slots of workers, as pure transitions: owning, lending, expiring, fenced. No I/O and no clock.

A worker may read a slot, and commit its requests, while the slot is assigned to its commit journal. The
:class:`Assignment` is the newest record of a journal of its own. The invariants, and why they hold:

1. *A slot has one owner.* An assignment is made from the one that was read before anything was taken over, and appended
   by compare-and-set. If another worker has changed it meanwhile, the worker reads it again.
2. *Of a slot's former and new owner one commits.* Before a slot is taken, the journal of its owner is taken over
   (:class:`~scrapy_ext.crawl.commit.protocol.Takeover`): its owner can commit nothing more, and its last commit is
   completed. It is *fenced*, whatever its clock shows and however long it slept. Clocks only decide when slots move.
3. *No request of a slot runs while it moves*, and the progress of its partly finished batches moves with it: the
   progress is first in the assignment (:attr:`Assignment.left`), or in the journal of the new owner, then the slot
   moves.

With a fixed ``index/count`` a worker takes its slots when it opens, from any owner: there is one process of that index,
and the newest is meant. An owner that is about to give them up *lends* them until then, and the worker waits for it
(:func:`is_about_to_give_up`). With leases a worker waits until an owner has *expired* (:class:`Sightings`), and the
shares of the workers differ by one slot at most (:func:`next_step`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.crawl.commit.events import Checkpoint, Progress

_WORKER: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)


class Worker(msgspec.Struct, frozen=True):
    """Index of this worker, from 0, and the number of workers."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Worker | None:
        """Parse ``"index/count"``; return None for other text."""
        match = _WORKER.fullmatch(text.strip())
        if match is None:
            return None
        worker = cls(int(match[1]), int(match[2]))
        return worker if worker.index < worker.count else None

    def owns(self, slot: int) -> bool:
        return slot % self.count == self.index


class Assignment(msgspec.Struct, omit_defaults=True):
    """Record of the journal that assigns slots to commit journals.

    ``owners``: slots by journal.
    ``left``: the progress of slots that an owner gave up.
    ``start``: the commit journal of the worker that stores the items of ``start()``: the first that owned slots.
    """

    owners: dict[str, list[int]] = {}
    left: Progress = msgspec.field(default_factory=Progress)
    start: str = ""

    def of(self, name: str) -> set[int]:
        return set(self.owners.get(name, ()))

    def given(self, name: str, slots: set[int], given_up: Progress, removed: Collection[str] = ()) -> Assignment:
        """Return the assignment after ``name`` has claimed exactly these slots. ``given_up`` is the progress of its
        former slots; ``removed`` are workers without slots that leave the list."""
        owners = {
            other: kept
            for other, theirs in self.owners.items()
            # A worker that has lost all of its slots leaves the list; one that had none waits for some.
            if (kept := [slot for slot in theirs if slot not in slots]) or (not theirs and other not in removed)
        }
        owners[name] = sorted(slots)
        left = Progress()
        left.add(self.left)
        left.drop(slots)
        left.add(given_up)
        return Assignment(owners, left, self.start or name)

    def owners_of(self, slots: set[int], but: str) -> list[str]:
        """Return the other journals that own any of these slots."""
        return [name for name, theirs in self.owners.items() if name != but and not slots.isdisjoint(theirs)]


def is_about_to_give_up(owner: Checkpoint, slots: set[int]) -> bool:
    """Return true if an owner no longer claims these slots, which are still assigned to it, and has not ended."""
    return not owner.closed and slots.isdisjoint(owner.slots)


class Sightings:
    """Observations of the other workers' journals: the number of the newest record, and the time at which it was first
    seen, on the clock of this process. A journal without a new record for a whole lease time has expired."""

    def __init__(self, lease_time: float) -> None:
        self._lease_time = lease_time
        self._seen: dict[str, tuple[int, float]] = {}
        self._ended = 0.0

    def begin(self, now: float) -> None:
        if now - self._ended > self._lease_time / 2:
            # While this worker could not read, the others may have been unable to write.
            self._seen.clear()

    def end(self, now: float) -> None:
        """End a round of observations, in which every journal was read."""
        self._ended = now

    def lives(self, name: str, number: int, *, is_closed: bool, now: float, at_least: float = 0.0) -> bool:
        """Return true if the worker whose newest record has this number is alive. ``at_least``: seconds without a new
        record that it has in any case."""
        if is_closed:
            return False
        seen, since = self._seen.get(name, (None, now))
        if seen != number:
            self._seen[name] = (number, now)
            return True
        return now - since <= max(self._lease_time, at_least)


class Step(NamedTuple):
    """Next step of a worker towards its share: the slots that it should own, and workers to remove from the list.

    For fewer slots than it owns, it first waits for the requests of the others to finish; for more, it takes over from
    their owners.
    """

    slots: set[int]
    removed: frozenset[str] = frozenset()


def next_step(assignment: Assignment, me: str, live: Collection[str], count: int) -> Step | None:
    """Return the next step of a worker, None if there is nothing to do. ``live`` are the other workers that are alive;
    ``count`` is the number of slots."""
    mine = assignment.of(me)
    taken = mine.union(*(assignment.of(name) for name in live))
    free = [slot for slot in range(count) if slot not in taken]
    share, rest = divmod(count, len(live) + 1)
    most = share + (1 if rest else 0)
    has_poor = any(len(assignment.owners[name]) < share for name in live)
    if me not in assignment.owners:
        # It had no slots, and was removed because it had not written for a while.
        return Step(mine)
    if len(mine) > most or (len(mine) > share and has_poor and not free):
        return Step(set(sorted(mine)[: most if len(mine) > most else share]))
    if len(mine) < most and free:
        return Step(mine.union(free[: most - len(mine)]))
    removed = {name for name, slots in assignment.owners.items() if not slots} - {me, *live}
    return Step(mine, frozenset(removed)) if removed else None
