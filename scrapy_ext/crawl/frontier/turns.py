"""Turns of download slots, in the order of Scrapy's ``DownloaderAwarePriorityQueue``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Turns:
    """Names, each with a number of requests that are out. Those with the fewest come first; of several with as few, the
    one after the name that was served last, in the order of the alphabet. Near to O(log n)."""

    def __init__(self) -> None:
        self._out: dict[str, int] = {}
        #: By number of requests: the names, sorted.
        self._names: dict[int, list[str]] = {}
        self._last = ""

    def __contains__(self, name: str) -> bool:
        return name in self._out

    def __iter__(self) -> Iterator[str]:
        for out in sorted(self._names):
            names = self._names[out]
            after = bisect_right(names, self._last)
            yield from names[after:]
            yield from names[:after]

    def put(self, name: str, out: int) -> None:
        """Have a name take turns, with so many requests out."""
        if self._out.get(name) == out:
            return
        self.discard(name)
        self._out[name] = out
        names = self._names.setdefault(out, [])
        names.insert(bisect_left(names, name), name)

    def discard(self, name: str) -> None:
        """Have a name take no turns for now."""
        out = self._out.pop(name, None)
        if out is None:
            return
        names = self._names[out]
        del names[bisect_left(names, name)]
        if not names:
            del self._names[out]

    def first(self) -> str | None:
        """The name whose turn it is."""
        if not self._names:
            return None
        names = self._names[min(self._names)]
        after = bisect_right(names, self._last)
        return names[after] if after < len(names) else names[0]

    def serve(self, name: str) -> None:
        """Note that a name has had its turn."""
        self._last = name
