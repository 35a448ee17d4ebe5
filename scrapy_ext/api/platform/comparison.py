"""Comparison of two jobs: stats, fields of the items, and items by the value of a field.

An item of the second job with a value that no item of the first one has is new, and gone the other way round. With the
same value and other contents it is changed. Fields that start with ``_`` are not compared, and fields that differ in
every pair are left out: the time of the crawl changes each item, and no change would be seen beside it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

#: Fields that identify an item, the surest first.
_IDENTIFYING: Final = ("id", "_id", "sku", "gtin", "productId", "asin", "isbn", "uuid", "url", "link", "name", "title")
#: Orders of fields whose shape is remembered.
_MOST_ORDERS: Final = 1000
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


class _Shape(NamedTuple):
    """Fields of items that have the same ones: those that are compared, in the order of their names."""

    names: tuple[str, ...]
    values: Callable[[Mapping[str, msgspec.Raw]], Iterable[msgspec.Raw]]


class ItemIndex:
    """Items of a job by the value of a field.

    The items are numbers in arrays, so that the garbage collector has no object of each to visit: it would stop the
    process for some ten milliseconds.
    """

    def __init__(self, field: str, ignored: Collection[str] = ()) -> None:
        self._field = field
        self._ignored = frozenset((field, *ignored))
        #: Place of an item in the order of addition, by a hash of its value.
        self.items: dict[bytes, int] = {}
        #: The index in the job of the item at a place.
        self.numbers = array("q")
        #: Hashes of the compared fields of all items. They are compared within one process, and not stored.
        self._hashes = array("q")
        #: The end of the hashes of the item at a place.
        self._ends = array("q")
        self._shapes: list[_Shape] = []
        #: Of names of compared fields, and of all names in the order of an item: few, in most jobs.
        self._shape_of: dict[tuple[str, ...], int] = {}
        self._shape_of_item: dict[tuple[str, ...], int] = {}
        #: The shape of the item at a place.
        self._shape_at = array("l")
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
        place = len(self.numbers)
        if self.items.setdefault(blake2b(value, digest_size=12).digest(), place) != place:
            self.repeated += 1
            return
        names = tuple(fields)
        shape = self._shape_of_item.get(names)
        if shape is None:
            shape = self._shape(names)
            if len(self._shape_of_item) < _MOST_ORDERS:
                self._shape_of_item[names] = shape
        self._hashes.extend(map(hash, map(bytes, self._shapes[shape].values(fields))))
        self.numbers.append(number)
        self._shape_at.append(shape)
        self._ends.append(len(self._hashes))

    def names(self, place: int) -> tuple[str, ...]:
        """Return the names of the compared fields of an item."""
        return self._shapes[self._shape_at[place]].names

    def hashes(self, place: int) -> array[int]:
        """Return the hashes of the compared fields of an item, in the order of their names."""
        return self._hashes[self._ends[place - 1] if place else 0 : self._ends[place]]

    def _shape(self, fields: Iterable[str]) -> int:
        """Return the shape of items with these fields."""
        names = tuple(sorted(name for name in fields if not name.startswith("_") and name not in self._ignored))
        shape = self._shape_of.setdefault(names, len(self._shapes))
        if shape == len(self._shapes):
            getter = itemgetter(*names) if len(names) > 1 else lambda record: [record[name] for name in names]
            self._shapes.append(_Shape(names, getter))
        return shape


class ItemChanges(NamedTuple):
    """Indexes of items: ``new`` of the second job, ``gone`` of the first, ``changed`` of both. ``same``: a number.

    ``aside``: names of fields that differ in every pair, which change no item here.
    """

    new: list[int]
    gone: list[int]
    changed: list[tuple[int, int]]
    same: int
    aside: tuple[str, ...] = ()


#: The difference of two items without one.
_NONE: Final = frozenset[str]()


def compare_items(before: ItemIndex, after: ItemIndex, *, every_field: bool = False) -> ItemChanges:
    """Compare the items of two jobs. ``every_field``: fields that differ in every pair are not left out."""
    places = [(place, after.items[key]) for key, place in before.items.items() if key in after.items]
    aside = _NONE if every_field else _always_different(before, after, places)
    changed = [
        (before.numbers[old], after.numbers[new])
        for old, new in places
        if not aside.issuperset(_different(before, old, after, new))
    ]
    return ItemChanges(
        new=[after.numbers[place] for key, place in after.items.items() if key not in before.items],
        gone=[before.numbers[place] for key, place in before.items.items() if key not in after.items],
        changed=sorted(changed, key=itemgetter(1)),
        same=len(places) - len(changed),
        aside=tuple(sorted(aside)),
    )


def _always_different(before: ItemIndex, after: ItemIndex, places: Sequence[tuple[int, int]]) -> frozenset[str]:
    """Return the fields that both items of every pair have, with another value."""
    if len(places) < _LEAST_PAIRS:
        return _NONE
    found: frozenset[str] | None = None
    for old, new in places:
        different = _different(before, old, after, new).intersection(before.names(old)).intersection(after.names(new))
        found = different if found is None else found & different
        if not found:
            return _NONE
    return found or _NONE


def _different(before: ItemIndex, old: int, after: ItemIndex, new: int) -> frozenset[str]:
    """Return the names of fields that one item does not have, or that have other values."""
    names, old_hashes, new_hashes = before.names(old), before.hashes(old), after.hashes(new)
    if names == after.names(new):
        if old_hashes == new_hashes:
            return _NONE
        return frozenset(name for name, a, b in zip(names, old_hashes, new_hashes, strict=True) if a != b)
    first, second = (
        dict(zip(names, old_hashes, strict=True)),
        dict(zip(after.names(new), new_hashes, strict=True)),
    )
    return frozenset(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
