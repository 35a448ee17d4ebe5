"""What a process remembers of the fingerprints of slots: bits that say "not there" for certain, or "look".

The database alone decides. A filter counts only while its slot has the stamp that this process left it with: whoever
adds draws a new one at random, so that a filter that missed an addition, or learned of one that was rolled back, is
never asked. It is loaded a stretch at a time, in the order of the fingerprints, beside the additions; until it knows
all, it is silent about those behind what was loaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

#: Of the filters of one process, all together.
MAX_BYTES: Final = 64 * 1024 * 1024
_SMALLEST: Final = 32 * 1024
#: A filter with less room for each fingerprint is made anew, larger: one look in sixteen, then, is in vain.
_BYTES_EACH: Final = 2
_GROWTH: Final = 8

_Owner = tuple[int, int]


class Filter:
    """One slot's filter. ``loaded``: it knows every fingerprint up to this one; None: all."""

    def __init__(self, size: int) -> None:
        self.stamp = 0
        self.loaded: bytes | None = b""  # no fingerprint is empty
        self.known = 0
        self.size = size
        self._bits = bytearray(size)

    def add(self, fingerprints: Iterable[bytes]) -> None:
        """These are there."""
        bits, mask, number = self._bits, self.size - 1, 0
        for fp in fingerprints:
            value = hash(fp)  # the same for this process only, which is how long a filter lives
            bits[(value >> 3) & mask] |= 1 << (value & 7)
            number += 1
        self.known += number

    def doubtful(self, fingerprints: Iterable[bytes]) -> list[bytes]:
        """Those that may be there."""
        bits, mask, loaded = self._bits, self.size - 1, self.loaded
        found = []
        for fp in fingerprints:
            value = hash(fp)
            if bits[(value >> 3) & mask] >> (value & 7) & 1 or (loaded is not None and fp > loaded):
                found.append(fp)
        return found


class Filters:
    """The filters of one process; those that were not used for longest make room for others."""

    def __init__(self) -> None:
        self._filters: OrderedDict[_Owner, Filter] = OrderedDict()

    def of(self, owner: _Owner, stamp: int, expected: int) -> Filter:
        """The filter of a slot that has this stamp and will soon have about so many fingerprints."""
        found = self._filters.pop(owner, None)
        size = _size_for(expected)
        if found is not None and found.stamp == stamp:
            if found.known * _BYTES_EACH <= found.size or found.size == MAX_BYTES:
                self._filters[owner] = found
                return found
            size = max(size, min(found.size * _GROWTH, MAX_BYTES))
        return self._new(owner, size)

    def _new(self, owner: _Owner, size: int) -> Filter:
        while self._filters and size + sum(each.size for each in self._filters.values()) > MAX_BYTES:
            self._filters.popitem(last=False)
        made = self._filters[owner] = Filter(size)
        return made


def _size_for(fingerprints: int) -> int:
    """Bytes for so many, with room for as many again: what is too small must be made anew, and loaded."""
    size = _SMALLEST
    while size < min(2 * _BYTES_EACH * fingerprints, MAX_BYTES):
        size *= 2
    return size
