"""Identification of a collection, and selection of its records.

Records that belong to jobs, staged items and snapshots (``job_data``), name their job in their key. Those of a deleted
job are not read or written from the commit of its deletion on; their rows are removed later (``removals``).
"""

from __future__ import annotations

from collections.abc import Iterable
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


class RecordSelection(NamedTuple):
    """Selected records: these ranges, at most ``per_range`` of each, stored between two times (ms)."""

    ranges: tuple[Range, ...]
    per_range: int | None = None
    startts: int | None = None
    endts: int | None = None

    @property
    def is_short(self) -> bool:
        """True for so few keys that they are read without a thread."""
        if len(self.ranges) > _FEW or self.per_range is not None:
            return False
        return all(part.is_key and not part.after for part in self.ranges)


def prefix_range(prefix: bytes) -> Range:
    """Return the range of keys that start with ``prefix``."""
    stem = prefix.rstrip(b"\xff")
    return Range(prefix, stem[:-1] + bytes([stem[-1] + 1]) if stem else None)


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
