"""Identification of a collection, and selection of its records."""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.server.store.engine.interface import Transaction

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
        return len(self.ranges) <= _FEW and all(part.is_key for part in self.ranges)


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
        f"SELECT collection FROM collections WHERE project = $1 AND name = $2 AND type = $3{held}",  # noqa: S608 - fixed text
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
