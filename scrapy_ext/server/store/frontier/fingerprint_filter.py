"""Bloom filters of slots' fingerprints in memory, which avoid most look-ups in the database.

The database is authoritative. A filter answers only for what was added to it; :mod:`.fingerprints` adds what other
processes have added to the slot, and drops a filter where that is not known. Filters load in segments, in the order of
the fingerprints, alongside additions; until complete, they do not answer for fingerprints after the loaded ones. A
filter that has become small answers until a larger one is loaded.

The bits of a fingerprint are in one word of 64, so that it is added or found with one access to memory.
"""

from __future__ import annotations

import random
import time
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Final

#: Maximum bytes of all filters of a process: 256 MiB for large ones, whose sizes are powers of two, and room for small
#: ones. A growing filter has two sizes for a while.
MAX_BYTES: Final = 320 * 1024 * 1024
_SMALLEST: Final = 32 * 1024
#: Maximum bytes of a small filter, and the share of all bytes that is for small ones: slots that begin find room beside
#: large ones, whose filters would take long to load again.
_SMALL: Final = 1024 * 1024
_SMALL_SHARE: Final = 8
#: Bits per fingerprint below which a filter is replaced by a larger one: one look-up in 200 is then unnecessary.
_BITS_EACH: Final = 16
#: Factors by which small and large filters grow.
_GROWTH: Final = 4
_GROWTH_OF_LARGE: Final = 2
#: Seconds without use after which a filter may be evicted.
_IDLE_SECONDS: Final = 60.0
#: Bits of a word that a fingerprint sets, and of its hash that choose them.
_SET_BITS: Final = 4
_PATTERN_BITS: Final = 14
_WORD: Final = 8

_Owner = tuple[int, int]


@cache
def _patterns() -> list[int]:
    """Return words with four bits set, one of which each fingerprint has."""
    chance, places = random.Random(1), range(_WORD * 8)
    return [sum(1 << place for place in chance.sample(places, _SET_BITS)) for _ in range(1 << _PATTERN_BITS)]


class BloomFilter:
    """The filter of one slot, complete up to the fingerprint ``loaded`` (None: completely)."""

    def __init__(self, size: int) -> None:
        # No fingerprint is empty.
        self.loaded: bytes | None = b""
        self.size = size
        self._words = array("Q", bytes(size))

    def add(self, fingerprints: Iterable[bytes]) -> None:
        words, last, patterns = self._words, self.size // _WORD - 1, _patterns()
        for fp in fingerprints:
            # Hashes are stable for the process, the lifetime of a filter.
            value = hash(fp)
            words[value >> _PATTERN_BITS & last] |= patterns[value & (1 << _PATTERN_BITS) - 1]

    def doubtful(self, fingerprints: Iterable[bytes]) -> list[bytes]:
        """Return the fingerprints that may be present."""
        words, last, patterns, loaded = self._words, self.size // _WORD - 1, _patterns(), self.loaded
        found = []
        for fp in fingerprints:
            value = hash(fp)
            pattern = patterns[value & (1 << _PATTERN_BITS) - 1]
            if words[value >> _PATTERN_BITS & last] & pattern == pattern or (loaded is not None and fp > loaded):
                found.append(fp)
        return found


class SlotFilter:
    """The filter of a slot, and a larger one that is being loaded."""

    def __init__(self, first: BloomFilter) -> None:
        #: That of the slot after the last addition that this filter has; None before the first.
        self.stamp: int | None = None
        #: The runs, all of whose fingerprints the filter had or was to load then.
        self.runs = frozenset[int]()
        self.used = 0.0
        self._current = first
        self._next: BloomFilter | None = None

    @property
    def size(self) -> int:
        """Bytes of the filter once it is loaded."""
        return (self._next or self._current).size

    def is_small_for(self, expected: int) -> bool:
        """Return true when a larger filter should be loaded, before false positives are frequent."""
        return self._next is None and self._current.loaded is None and expected * _BITS_EACH > self.size * 8

    @property
    def in_need(self) -> bool:
        """Return true while no complete filter exists, so that many look-ups are needed."""
        return self._current.loaded is not None

    @property
    def loading(self) -> BloomFilter:
        """The filter that is loaded, if one is not complete: the larger one, or the only one."""
        return self._next or self._current

    def load(self, loading: BloomFilter, fingerprints: Sequence[Iterable[bytes]], end: bytes | None) -> None:
        """Add the next fingerprints after the loaded ones, all up to ``end`` (None: all there are)."""
        for part in fingerprints:
            loading.add(part)
        loading.loaded = end
        if end is None and loading is self._next:
            self._current, self._next = loading, None

    def grow(self, size: int) -> None:
        """Start a larger filter."""
        self._next = BloomFilter(size)

    def add(self, fingerprints: Collection[bytes]) -> None:
        self._current.add(fingerprints)
        if self._next is not None:
            self._next.add(fingerprints)

    def doubtful(self, fingerprints: Iterable[bytes]) -> list[bytes]:
        """Return the fingerprints that may be present."""
        return self._current.doubtful(fingerprints)


class SlotFilters:
    def __init__(self) -> None:
        self._filters: OrderedDict[_Owner, SlotFilter] = OrderedDict()

    def of(self, owner: _Owner, expected: int) -> SlotFilter:
        """Return the filter of a slot, for about ``expected`` fingerprints; a new one if there is none."""
        found = self._filters.pop(owner, None)
        if found is None:
            found = SlotFilter(BloomFilter(self._room(_size_for(expected), 0.5)))
        elif found.is_small_for(expected):
            factor = _GROWTH_OF_LARGE if found.size >= _SMALL else _GROWTH
            size = self._room(min(found.size * factor, MAX_BYTES), 1.0)
            if size > found.size:
                found.grow(size)
        found.used = time.monotonic()
        self._filters[owner] = found
        return found

    def drop(self, owner: _Owner) -> None:
        """Forget the filter of a slot."""
        self._filters.pop(owner, None)

    def _room(self, size: int, share: float) -> int:
        """Return ``size`` bytes, or what the filters in use leave; for a large filter at most a share of that."""
        if size > _SMALL:
            free = self._freed(size, MAX_BYTES - MAX_BYTES // _SMALL_SHARE)
            while size > max(free * share, _SMALL):
                size //= 2
        if size <= _SMALL:
            free = self._freed(size, MAX_BYTES)
            while free < _SMALLEST and (small := self._oldest_small()) is not None:
                free += self._filters.pop(small).size
            while size > max(free, _SMALLEST):
                size //= 2
        return size

    def _freed(self, size: int, most: int) -> int:
        """Evict filters that are not in use, as far as needed for ``size``; return the free bytes of ``most``."""
        free = most - sum(each.size for each in self._filters.values())
        while free < size and self._filters:
            oldest, idle = next(iter(self._filters.items()))
            if time.monotonic() - idle.used < _IDLE_SECONDS:
                break
            del self._filters[oldest]
            free += idle.size
        return free

    def _oldest_small(self) -> _Owner | None:
        return next((owner for owner, each in self._filters.items() if each.size <= _SMALL), None)


def _size_for(fingerprints: int) -> int:
    """Return the bytes for twice as many fingerprints, since a larger filter must be loaded again; for so many where
    that would be large."""
    size, needed = _SMALLEST, _BITS_EACH * fingerprints // 8
    while size < min(max(needed, min(2 * needed, _SMALL)), MAX_BYTES):
        size *= 2
    return size
