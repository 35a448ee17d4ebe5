"""A set of request fingerprints in a quarter of the memory of Python's own.

Scrapy's fingerprints are 20 bytes. In a ``set`` each costs 91 to 117 bytes: an object and a place in the table. Here
they are stored whole, one after the other, so that there are no false positives:

- The hash of a fingerprint selects one of 2^15 buckets. Its first bytes would not do, since a project's own
  fingerprints may be regular.
- A bucket has the last byte of each fingerprint in a row, the *tags*, which ``find`` scans at memory speed. Where the
  tag matches, the other 19 bytes are compared.
- Those are in chunks of 25. The last chunk of a bucket grows; a full one is frozen into a ``bytes`` of 508 bytes, just
  below the 512 that Python's allocator serves from pools, which do not fragment.

Buckets have a fixed cost that pays from some ten thousand fingerprints on. Up to ``FEW`` a plain set is used; after
that, each :meth:`FingerprintSet.add` moves a few, so that no single call takes long.

Resident memory for each fingerprint, measured: 98 bytes at 60,000 (the plain set), 58 at 200,000, 33 at a million, 27
at two, 23.2 at 20 million.
"""

from __future__ import annotations

from typing import Final

#: Bytes of the fingerprints in buckets: SHA-1, as Scrapy's own. Others are kept in a plain set.
SIZE: Final = 20
#: Fingerprints in the plain set before buckets are used.
FEW: Final = 2**16
#: Fingerprints that each ``add`` moves after that.
_MOVED: Final = 8
_BUCKETS: Final = 2**15
_REST: Final = SIZE - 1
_CHUNK: Final = 25
#: Fingerprints in each of the two generations of :class:`Recent`: 10 MB for both.
_GENERATION: Final = 50_000

_Chunks = list[bytes | bytearray | None]


class FingerprintSet:
    """Exact set of fingerprints. Buckets are used for more than ``few``."""

    def __init__(self, *, few: int = FEW) -> None:
        self._limit = few
        self._few: set[bytes] = set()
        self._others: set[bytes] = set()
        #: Fingerprints in buckets.
        self._packed = 0
        self._tags: list[bytearray | None] = []
        #: The first chunk of every bucket, the second, and so on.
        self._levels: list[_Chunks] = []

    def __len__(self) -> int:
        return len(self._few) + self._packed + len(self._others)

    def __contains__(self, fp: bytes) -> bool:
        if len(fp) != SIZE:
            return fp in self._others
        return fp in self._few or (self._packed > 0 and self._is_in(fp, hash(fp) % _BUCKETS))

    def add(self, fp: bytes) -> bool:
        """Add a fingerprint; return true if it is new."""
        if len(fp) != SIZE:
            return _add(self._others, fp)
        if not self._tags:
            return self._add_to_few(fp)
        bucket = hash(fp) % _BUCKETS
        if self._is_in(fp, bucket) or fp in self._few:
            return False
        self._put(fp, bucket)
        if self._few:
            self._move()
        return True

    def _is_in(self, fp: bytes, bucket: int) -> bool:
        tags = self._tags[bucket]
        if tags is None:
            return False
        tag = fp[_REST]
        at = tags.find(tag)
        while at >= 0:
            chunk = self._levels[at // _CHUNK][bucket]
            if chunk is not None and chunk.startswith(fp[:_REST], at % _CHUNK * _REST):
                return True
            at = tags.find(tag, at + 1)
        return False

    def _put(self, fp: bytes, bucket: int) -> None:
        """Add a fingerprint to its bucket, which must not contain it."""
        tags = self._tags[bucket]
        if tags is None:
            tags = self._tags[bucket] = bytearray()
        level = len(tags) // _CHUNK
        if level == len(self._levels):
            self._levels.append([None] * _BUCKETS)
        chunks = self._levels[level]
        chunk = chunks[bucket]
        if chunk is None:
            chunks[bucket] = bytearray(fp[:_REST])
        else:
            chunk += fp[:_REST]
            if len(chunk) == _CHUNK * _REST:
                chunks[bucket] = bytes(chunk)
        tags.append(fp[_REST])
        self._packed += 1

    def _add_to_few(self, fp: bytes) -> bool:
        is_new = _add(self._few, fp)
        if len(self._few) > self._limit:
            self._tags = [None] * _BUCKETS
        return is_new

    def _move(self) -> None:
        """Move some fingerprints of the plain set into their buckets."""
        few = self._few
        for _ in range(min(_MOVED, len(few))):
            fp = few.pop()
            self._put(fp, hash(fp) % _BUCKETS)
        if not few:
            self._few = set()  # The old one, emptied by ``pop``, still has its table.


def _add(to: set[bytes], fp: bytes) -> bool:
    before = len(to)
    to.add(fp)
    return len(to) > before


class Recent:
    """Set of recent fingerprints: most links of a page repeat links of the pages just before.

    It keeps at least the last ``size`` fingerprints, at most twice as many.
    """

    def __init__(self, size: int = _GENERATION) -> None:
        self._size = size
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __contains__(self, fp: bytes) -> bool:
        return fp in self._young or fp in self._old

    def add(self, fp: bytes) -> None:
        self._young.add(fp)
        if len(self._young) >= self._size:
            self._old, self._young = self._young, set()
