"""Identification of a collection, and selection of its records.

Records that belong to jobs, staged items and snapshots (``job_data``), name their job in their key. Those of a deleted
job are not read or written from the commit of its deletion on; their rows are removed later (``removals``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.job_data import OWNED_COLLECTIONS
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.removal import check_not_deleted, deletion_error, find_deletion

#: Maximum records read by key without a thread, which blocks other requests.
_FEW: Final = 2


class Collection(NamedTuple):
    project: int
    type: CollectionType
    name: str


class Range(NamedTuple):
    """Keys from ``low`` (inclusive unless ``after``) to below ``high`` (None: unbounded)."""

    low: bytes
    high: bytes | None
    after: bool = False

    @property
    def is_key(self) -> bool:
        return self.high == self.low + b"\x00"


class Nesting(NamedTuple):
    """The number of ranges that have a segment, and of those that begin with it."""

    depth: int
    new: int


class RecordSelection(NamedTuple):
    """Selected records: these ranges, which are disjoint, at most ``per_range`` of each, stored between two times (ms).

    With ``nesting``, the ranges are :func:`segments`: ``per_range`` is for each of the ranges that were cut, and a
    record counts for all that have it.
    """

    ranges: tuple[Range, ...]
    per_range: int | None = None
    startts: int | None = None
    endts: int | None = None
    nesting: tuple[Nesting, ...] = ()

    @property
    def is_short(self) -> bool:
        """True for so few keys that they are read without a thread."""
        if len(self.ranges) > _FEW or self.per_range is not None:
            return False
        return all(part.is_key and not part.after for part in self.ranges)

    def quota(self, place: int, before: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return the numbers of records that may still be selected of the ranges which have the segment at ``place``,
        the outermost first; an empty tuple after the last segment and without a limit.

        ``before``: what the previous segment has left.
        """
        if self.per_range is None or place == len(self.ranges):
            return ()
        depth, new = self.nesting[place] if self.nesting else (1, 1)
        return before[: depth - new] + (self.per_range,) * new


def less(quota: tuple[int, ...], records: int) -> tuple[int, ...]:
    """Return what is left of a quota after so many records."""
    return tuple(max(0, each - records) for each in quota)


def prefix_range(prefix: bytes) -> Range:
    """Return the range of keys that start with ``prefix``."""
    stem = prefix.rstrip(b"\xff")
    return Range(prefix, stem[:-1] + bytes([stem[-1] + 1]) if stem else None)


def segments(ranges: Sequence[Range]) -> tuple[tuple[Range, ...], tuple[Nesting, ...]]:
    """Return ranges cut where another begins or ends, and their nesting.

    The ranges are in order, an outer one before those in it. Two are disjoint, or one has all keys of the other.
    """
    found: list[Range] = []
    nesting: list[Nesting] = []
    around: list[Range] = []
    low, after, new = b"", False, 0

    def cut(high: bytes | None) -> None:
        nonlocal low, after, new
        if around and (high is None or low < high):
            found.append(Range(low, high, after))
            nesting.append(Nesting(len(around), new))
            low, after, new = high or b"", False, 0

    for part in ranges:
        while around and around[-1].high is not None and around[-1].high <= part.low:
            cut(around[-1].high)
            around.pop()
        cut(part.low)
        around.append(part)
        low, after, new = part.low, part.after, new + 1
    while around:
        cut(around[-1].high)
        around.pop()
    return tuple(found), tuple(nesting)


def key_range(key: bytes) -> Range:
    return Range(key, key + b"\x00")


async def number_of(tx: Transaction, which: Collection, *, hold: bool = False) -> int | None:
    """Return the number of a collection; ``hold`` locks it against renaming and deletion."""
    held = " FOR SHARE" if hold else ""
    row = await tx.fetchrow(
        f"SELECT collection FROM collections WHERE project = $1 AND name = $2 AND type = $3{held}",
        which.project,
        which.name,
        which.type.value,
    )
    return row[0] if row else None


def conditions(part: Range, selection: RecordSelection) -> tuple[str, list[bytes | int]]:
    """Return a condition on key and ts, and its arguments, which follow two others."""
    conditions: list[tuple[str, bytes | int | None]] = [
        ("key > " if part.after else "key >= ", part.low),
        ("key < ", part.high),
        ("ts >= ", selection.startts),
        ("ts < ", selection.endts),
    ]
    used = [(text, value) for text, value in conditions if value is not None]
    text = "".join(f" AND {condition}${place}" for place, (condition, _) in enumerate(used, 3))
    return text, [value for _, value in used]


async def check_jobs(tx: Transaction, which: Collection, keys: Iterable[bytes]) -> None:
    """Raise :class:`ContractError` (410) when a key names a deleted job. Later deletions wait for the transaction."""
    for job in sorted(_jobs(which, keys)):
        await check_not_deleted(tx, job)


async def check_job(tx: Transaction, which: Collection, key: bytes) -> None:
    """Raise :class:`ContractError` (410) when a key that is read names a deleted job."""
    for job in _jobs(which, [key]):
        if (deletion := await find_deletion(tx, job)) is not None:
            raise deletion_error(job, deletion)


async def hidden_keys(tx: Transaction, which: Collection, keys: Iterable[bytes]) -> set[bytes]:
    """Return the keys that name a deleted job."""
    hidden: set[bytes] = set()
    for job, named in _jobs(which, keys).items():
        if await find_deletion(tx, job) is not None:
            hidden.update(named)
    return hidden


def _jobs(which: Collection, keys: Iterable[bytes]) -> dict[JobKey, list[bytes]]:
    """Return the keys by the jobs that they name."""
    jobs: dict[JobKey, list[bytes]] = {}
    owned = OWNED_COLLECTIONS.get(which.name)
    if owned is not None and which.type is owned.type:
        for key in keys:
            if (job := owned.job_of(which.project, key.decode())) is not None:
                jobs.setdefault(job, []).append(key)
    return jobs
