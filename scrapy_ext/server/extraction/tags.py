"""How often each tag was sent with a request, for statistics (``tags`` in extraction-api.md).

Tags are free text: a crawl may put a new value on every request. So at most :data:`PAIRS` pairs of tag and value are
kept; when there are more, the half that was sent least is forgotten, and what comes again is counted anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

#: Pairs of tag and value that are kept.
PAIRS: Final = 2000
#: Tags of one request that are counted, and characters of each tag and value.
COUNTED: Final = 50
LONGEST: Final = 100


class TagCount(NamedTuple):
    """Requests that carried a tag with this value, and how many of them failed."""

    tag: str
    value: str | None
    requests: int
    failed: int


class Tags:
    """Counts of tags."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str | None], list[int]] = {}

    def count(self, tags: Mapping[str, str | None] | None, *, failed: bool) -> None:
        """Count the tags of one request."""
        if not tags:
            return
        for tag, value in list(tags.items())[:COUNTED]:
            pair = (tag[:LONGEST], value if value is None else value[:LONGEST])
            numbers = self._counts.get(pair)
            if numbers is None:
                numbers = self._counts[pair] = [0, 0]
            numbers[0] += 1
            numbers[1] += failed
        if len(self._counts) > PAIRS:
            kept = sorted(self._counts.items(), key=lambda item: -item[1][0])[: PAIRS // 2]
            self._counts = dict(kept)

    def most(self, number: int) -> list[TagCount]:
        """The pairs that were sent most."""
        counts = (TagCount(tag, value, *numbers) for (tag, value), numbers in self._counts.items())
        return sorted(counts, key=lambda count: (-count.requests, count.tag, count.value or ""))[:number]

    def __len__(self) -> int:
        return len(self._counts)
