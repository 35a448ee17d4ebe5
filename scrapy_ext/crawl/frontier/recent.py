"""Fingerprints that were met lately: most links of a page lead to where others led a moment ago."""

from __future__ import annotations

from typing import Final

#: Fingerprints in each of the two generations: 10 MB for both.
_GENERATION: Final = 50_000


class Recent:
    """A set that forgets: it has at least the last ``size`` fingerprints that were added, at most twice as many."""

    def __init__(self, size: int = _GENERATION) -> None:
        self._size = size
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __contains__(self, fp: bytes) -> bool:
        return fp in self._young or fp in self._old

    def add(self, fp: bytes) -> None:
        """Add a fingerprint."""
        self._young.add(fp)
        if len(self._young) >= self._size:
            self._old, self._young = self._young, set()
