"""Reads one slot's queue ahead of the downloader.

What the API gives (platform-api.md, Frontier) and what follows:

- A read returns the head of the queue, with every batch that was read before and not deleted. So to get
  more, ask for what is held and more, and skip what is known.
- A batch whose deletion was on its way while the read was can come back once more: IDs are remembered for a
  while after they were deleted.
- Nothing tells that requests arrived. Our own writes do: a slot is read again only after one that added
  something, until a read brings nothing new (:attr:`SlotReader.may_have_more`).
- A server may bound what one read returns, so that what is held fills it. Nothing new means that the slot is
  empty only of a read that nothing was held during; after another, the slot is read once more when something
  that was held has been deleted.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Awaitable, Callable, Container, Iterable
from typing import Final

from scrapy_ext.api.platform.frontier import Batch

#: Deleted batches that a late read may still bring.
_REMEMBERED: Final = 1000


class SlotReader:
    """The batches of one slot that this worker holds. ``read(mincount, known)`` is the API's queue read,
    without the batches that are known."""

    def __init__(self, slot: int, read: Callable[[int, Container[str]], Awaitable[list[Batch]]]) -> None:
        self.slot = slot
        self._read = read
        #: Requests in each batch that is held.
        self._held: dict[str, int] = {}
        self._deleted: dict[str, int] = {}
        self._writes = 1
        self._writes_seen = 0
        self._read_in_vain = False

    @property
    def may_have_more(self) -> bool:
        """Whether a read could bring something that is not held."""
        return self._writes != self._writes_seen

    def written(self) -> None:
        """Requests were added to the slot."""
        self._writes += 1

    def deleted(self, batch_id: str) -> None:
        """A batch was acknowledged."""
        self._held.pop(batch_id, None)
        self._deleted[batch_id] = 0
        if self._read_in_vain:
            self._read_in_vain = False
            self._writes += 1
        if len(self._deleted) > _REMEMBERED:
            del self._deleted[next(iter(self._deleted))]

    def poll(self) -> None:
        """Others write to the slot too: a read may bring something."""
        self._writes += 1

    async def more(self, want: int) -> list[Batch]:
        """Batches that were not held yet, with about ``want`` requests or more; now they are held."""
        writes = self._writes
        fresh = await self._read(sum(self._held.values()) + want, ChainMap(self._held, self._deleted))
        if not fresh:
            self._writes_seen = writes
            self._read_in_vain = bool(self._held)
        for batch in fresh:
            self._held[batch.id] = len(batch.requests)
        return fresh

    def forget(self, batches: Iterable[Batch]) -> None:
        """What :meth:`more` has just returned could not be taken: it is to come again."""
        for batch in batches:
            self._held.pop(batch.id, None)
        self._writes += 1
