"""What a process remembers of the fingerprints of slots: bits that say "not there" for certain, or "look".

The database alone decides. A filter counts only while its slot has the stamp that this process left it with: whoever
adds draws a new one at random, so that a filter that missed an addition, or learned of one that was rolled back, is
never asked. It is loaded a stretch at a time, in the order of the fingerprints, beside the additions; until it knows
all, it is silent about those behind what was loaded. One that has become too small answers until a larger one is
loaded.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

#: Of the filters of one process, all together; one that grows has both its sizes for a while.
MAX_BYTES: Final = 256 * 1024 * 1024
_SMALLEST: Final = 32 * 1024
#: A filter with less room for each fingerprint is made anew, larger: one look in forty, then, is in vain.
_BITS_EACH: Final = 12
_GROWTH: Final = 4
#: A filter that was not used for so long makes room for others.
_IDLE_SECONDS: Final = 60.0
#: Of a fingerprint's hash, how far the place of its second bit is from that of its first.
_SECOND: Final = 31

_Owner = tuple[int, int]


class Filter:
    """One slot's filter. ``loaded``: it knows every fingerprint up to this one; None: all."""

    def __init__(self, size: int) -> None:
        self.loaded: bytes | None = b""  # no fingerprint is empty
        self.known = 0
        self.size = size
        self._bits = bytearray(size)

    @property
    def full(self) -> bool:
        """Whether it answers "look" too often."""
        return self.known * _BITS_EACH > self.size * 8

    def add(self, fingerprints: Iterable[bytes]) -> None:
        """These are there."""
        bits, mask, number = self._bits, self.size * 8 - 1, 0
        for fp in fingerprints:
            value = hash(fp)  # the same for this process only, which is how long a filter lives
            one, other = value & mask, value >> _SECOND & mask
            bits[one >> 3] |= 1 << (one & 7)
            bits[other >> 3] |= 1 << (other & 7)
            number += 1
        self.known += number

    def doubtful(self, fingerprints: Iterable[bytes]) -> list[bytes]:
        """Those that may be there."""
        bits, mask, loaded = self._bits, self.size * 8 - 1, self.loaded
        found = []
        for fp in fingerprints:
            value = hash(fp)
            one = value & mask
            if bits[one >> 3] >> (one & 7) & 1:
                other = value >> _SECOND & mask
                if bits[other >> 3] >> (other & 7) & 1:
                    found.append(fp)
                    continue
            if loaded is not None and fp > loaded:
                found.append(fp)
        return found


class SlotFilter:
    """What is known of one slot: by a filter, and by the larger one that is to follow it."""

    def __init__(self, first: Filter) -> None:
        self.stamp = 0
        self.used = 0.0
        self._asked = first
        self._next: Filter | None = None

    @property
    def size(self) -> int:
        """Bytes that it will have."""
        return (self._next or self._asked).size

    @property
    def grows(self) -> bool:
        """Whether it is time for a larger one."""
        return self._next is None and self._asked.full and self._asked.loaded is None

    @property
    def in_need(self) -> bool:
        """Whether there is no whole filter yet, so that many fingerprints must be looked for."""
        return self._asked.loaded is not None

    @property
    def loaded(self) -> bytes | None:
        """Up to which fingerprint the one that is being loaded knows all; None: there is none."""
        return (self._next or self._asked).loaded

    def load(self, fingerprints: Sequence[Iterable[bytes]], end: bytes | None) -> None:
        """These are all that are there, up to ``end``, behind what was loaded; None: there are no more."""
        loading = self._next or self._asked
        for part in fingerprints:
            loading.add(part)
        loading.loaded = end
        if end is None:
            self._asked, self._next = loading, None

    def grow(self, size: int) -> None:
        """Begin a larger filter."""
        self._next = Filter(size)

    def add(self, fingerprints: Iterable[bytes]) -> None:
        """These are there."""
        self._asked.add(fingerprints)
        if self._next is not None:
            self._next.add(fingerprints)

    def doubtful(self, fingerprints: Iterable[bytes]) -> list[bytes]:
        """Those that may be there."""
        return self._asked.doubtful(fingerprints)


class Filters:
    """The filters of one process."""

    def __init__(self) -> None:
        self._filters: OrderedDict[_Owner, SlotFilter] = OrderedDict()

    def of(self, owner: _Owner, stamp: int, expected: int) -> SlotFilter:
        """The filter of a slot that has this stamp and will soon have about so many fingerprints."""
        found = self._filters.pop(owner, None)
        if found is None or found.stamp != stamp:
            found = SlotFilter(Filter(self._room(_size_for(expected))))
        elif found.grows:
            size = self._room(min(found.size * _GROWTH, MAX_BYTES))
            if size > found.size:
                found.grow(size)
        found.used = time.monotonic()
        self._filters[owner] = found
        return found

    def _room(self, size: int) -> int:
        """So many bytes, or what there is beside the filters that are in use."""
        free = MAX_BYTES - sum(each.size for each in self._filters.values())
        while free < size and self._filters:
            oldest, idle = next(iter(self._filters.items()))
            if free >= _SMALLEST and time.monotonic() - idle.used < _IDLE_SECONDS:
                break
            del self._filters[oldest]
            free += idle.size
        while size > max(free, _SMALLEST):
            size //= 2
        return size


def _size_for(fingerprints: int) -> int:
    """Bytes for so many, with room for as many again: what is too small must be made anew, and loaded."""
    size = _SMALLEST
    while size < min(2 * _BITS_EACH * fingerprints // 8, MAX_BYTES):
        size *= 2
    return size
