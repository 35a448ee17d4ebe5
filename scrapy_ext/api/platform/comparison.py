"""Comparison of two jobs: stats, fields of the items, and items by the value of a field.

An item of the second job with a value that no item of the first one has is new, and gone the other way round. With the
same value and other contents it is changed. Fields that start with ``_`` are not compared, and fields that differ in
every pair are left out: the time of the crawl changes each item, and no change would be seen beside it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

#: Fields that identify an item, the surest first.
_IDENTIFYING: Final = ("id", "_id", "sku", "gtin", "productId", "asin", "isbn", "uuid", "url", "link", "name", "title")
#: Pairs of items from which a field that differs in all of them is left out.
_LEAST_PAIRS: Final = 5
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Change(NamedTuple):
    """A value of two jobs; None: one of them does not have it. ``difference``: of two numbers."""

    name: str
    before: Any
    after: Any
    difference: float | None

    @property
    def is_same(self) -> bool:
        return type(self.before) is type(self.after) and bool(self.before == self.after)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the values of two mappings by name. A missing number counts as 0 in its difference."""
    return [
        Change(name, before.get(name), after.get(name), _difference(before.get(name, 0), after.get(name, 0)))
        for name in sorted({*before, *after})
    ]


def _difference(before: object, after: object) -> float | None:
    if isinstance(before, bool) or isinstance(after, bool):
        return None
    return after - before if isinstance(before, int | float) and isinstance(after, int | float) else None


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any], ignored: Collection[str]) -> list[Change]:
    """Return the fields of an item whose values differ."""
    return [
        change
        for change in changes(before, after)
        if not change.name.startswith("_") and change.name not in ignored and not change.is_same
    ]


def suggested_field(before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    """Return the field that probably identifies the items of both jobs, given the number of items with each field."""
    common = {name: min(before[name], after[name]) for name in before if name in after}
    if not common:
        return None
    most = max(common.values())
    sure = [name for name in _IDENTIFYING if common.get(name, 0) * 10 >= most * 9]
    return sure[0] if sure else max(sorted(common), key=lambda name: common[name])


class Contents(NamedTuple):
    """Index of an item, and the names and hashes of its compared fields, in the order of the names.

    The hashes are those of one process: they are compared within it and not stored.
    """

    number: int
    names: tuple[str, ...]
    hashes: array[int]


class ItemIndex:
    """Items of a job by the value of a field."""

    def __init__(self, field: str, ignored: Collection[str] = ()) -> None:
        self._field = field
        self._ignored = frozenset((field, *ignored))
        #: Names of the fields of items: most items have the same ones.
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.items: dict[bytes, Contents] = {}
        #: Items without the field, and items whose value an earlier item has.
        self.without = 0
        self.repeated = 0

    def add(self, number: int, line: bytes) -> None:
        """Add an item as JSON."""
        fields = _fields(line)
        value = fields.get(self._field)
        if value is None or bytes(value) == b"null":
            self.without += 1
            return
        key = blake2b(bytes(value), digest_size=12).digest()
        if key in self.items:
            self.repeated += 1
            return
        names = tuple(sorted(name for name in fields if not name.startswith("_") and name not in self._ignored))
        hashes = array("q", [hash(bytes(fields[name])) for name in names])
        self.items[key] = Contents(number, self._known.setdefault(names, names), hashes)


class ItemChanges(NamedTuple):
    """Indexes of items: ``new`` of the second job, ``gone`` of the first, ``changed`` of both. ``same``: a number.

    ``aside``: names of fields that differ in every pair, which change no item here.
    """

    new: list[int]
    gone: list[int]
    changed: list[tuple[int, int]]
    same: int
    aside: tuple[str, ...] = ()


def compare_items(before: ItemIndex, after: ItemIndex, *, every_field: bool = False) -> ItemChanges:
    """Compare the items of two jobs. ``every_field``: fields that differ in every pair are not left out."""
    pairs = [(item, after.items[key]) for key, item in before.items.items() if key in after.items]
    aside = frozenset() if every_field else _always_different(pairs)
    changed = [
        (old.number, new.number) for old, new in pairs if any(name not in aside for name in _different(old, new))
    ]
    return ItemChanges(
        new=[item.number for key, item in after.items.items() if key not in before.items],
        gone=[item.number for key, item in before.items.items() if key not in after.items],
        changed=sorted(changed, key=lambda pair: pair[1]),
        same=len(pairs) - len(changed),
        aside=tuple(sorted(aside)),
    )


def _always_different(pairs: Sequence[tuple[Contents, Contents]]) -> frozenset[str]:
    """Return the fields that both items of every pair have, with another value."""
    if len(pairs) < _LEAST_PAIRS:
        return frozenset()
    differing = Counter(
        name for old, new in pairs for name in _different(old, new) if name in old.names and name in new.names
    )
    return frozenset(name for name, number in differing.items() if number == len(pairs))


def _different(old: Contents, new: Contents) -> Iterator[str]:
    """Yield the names of fields that one item does not have, or that have other values."""
    if old.names == new.names:
        if old.hashes != new.hashes:
            yield from (name for name, a, b in zip(old.names, old.hashes, new.hashes, strict=True) if a != b)
        return
    first, second = (dict(zip(each.names, each.hashes, strict=True)) for each in (old, new))
    yield from (name for name in {**first, **second} if first.get(name) != second.get(name))


def median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
