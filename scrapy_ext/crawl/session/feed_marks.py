"""Numbers of items that feeds of a job have, in its metadata: so that none is appended twice.

A feed that replaces its file (``-O``, ``overwrite``, S3) gets all items of the job at the end of each run. One that
appends (``-o`` of a file) gets at the end of a run those that it does not have. Its mark is ``[has, begun]``: the items
before index ``has`` are in the file, and those before ``begun`` may be. The mark is written before the file, so that a
run that is killed meanwhile leaves two different numbers, and the next one warns of the items between them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient

logger = logging.getLogger(__name__)

#: Field of a job's metadata.
FIELD: Final = "feeds"


class _Mark(NamedTuple):
    has: int
    begun: int


class FeedMarks:
    """Marks of the feeds of one job that append. A URI may have a password, so its hash is the name of its mark."""

    def __init__(self, client: PlatformClient, key: JobKey, metadata: Mapping[str, Any]) -> None:
        self._client = client
        self._key = key
        stored = metadata.get(FIELD)
        found = stored if isinstance(stored, dict) else {}
        self._marks = {name: _Mark(*pair) for name, pair in found.items() if _is_pair(pair)}

    async def begin(self, uris: Iterable[str], stored: int) -> None:
        """Let feeds without a mark begin behind the ``stored`` items of former runs. Raises :class:`PlatformError`."""
        missing = [uri for uri in uris if _name(uri) not in self._marks]
        if missing:
            await self._write({uri: _Mark(stored, stored) for uri in missing})

    def start(self, uri: str) -> int:
        """Return the index of the first item that is to be appended to a feed."""
        mark = self._marks.get(_name(uri), _Mark(0, 0))
        return max(mark)

    def missing(self, uri: str) -> range:
        """Return the indexes of the items that an earlier run may not have appended to a feed."""
        return range(*self._marks.get(_name(uri), _Mark(0, 0)))

    async def before(self, uris: Iterable[str], end: int) -> None:
        """Note that the items before index ``end`` are now appended. Raises :class:`PlatformError`."""
        await self._write({uri: _Mark(self.start(uri), end) for uri in uris})

    async def after(self, uris: Iterable[str], end: int) -> None:
        """Note that they have been appended. Raises :class:`PlatformError`."""
        await self._write({uri: _Mark(end, end) for uri in uris})

    async def _write(self, marks: Mapping[str, _Mark]) -> None:
        if marks:
            self._marks |= {_name(uri): mark for uri, mark in marks.items()}
            await self._client.jobs.update(self._key, {FIELD: {name: list(mark) for name, mark in self._marks.items()}})


def _name(uri: str) -> str:
    return hashlib.sha256(uri.encode()).hexdigest()[:16]


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(number, int) for number in value)
