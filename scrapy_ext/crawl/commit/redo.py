"""The end of a commit: items are stored, batches acknowledged. Once by the process that commits, and once more by
whoever takes over from it; each step can be repeated, at any time after it was first done, and changes nothing then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from scrapy_ext.api import compression
from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.http import gzipped
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound, TooLarge
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.commit.checkpoint import Chunk, Redo
from scrapy_ext.crawl.commit.payload import COLLECTION, Payloads

logger = logging.getLogger(__name__)


class Finisher:
    """Does the end of commits to one frontier."""

    def __init__(self, client: PlatformClient, project: int, frontier: str, retry: Retry) -> None:
        self._client = client
        self._project = project
        self._frontier = frontier
        self._retry = retry
        self.payloads = Payloads(client.collections, project)

    async def again(self, redo: Redo) -> None:
        """What the writer of a checkpoint may not have come to."""
        for chunk in redo.chunks:
            await self.store_chunk(JobKey.parse(redo.job), redo.owner, chunk)
        await self.acknowledge(redo.acknowledge)

    async def lay_down(self, owner: str, number: int, packed: bytes) -> None:
        """Keep items for whoever will have to store them."""
        await self._retry.until_done(
            lambda: self.payloads.write(owner, number, packed), "lay down the items of a commit"
        )

    async def store_chunk(self, job: JobKey, owner: str, chunk: Chunk) -> None:
        """Store items that were laid down."""
        packed = await self._retry.until_done(
            lambda: self.payloads.read(owner, chunk.number), "read the items of a commit"
        )
        if packed is None:
            logger.error(
                "%d items of job %s, from %d on, cannot be stored again: collection %s has lost them",
                *(chunk.count, job, chunk.start, COLLECTION),
            )
            return
        try:
            await self.store(job, chunk.start, packed)
        except NotFound:
            logger.warning("%d items are not stored: job %s was deleted", chunk.count, job)

    async def store(self, job: JobKey, start: int, packed: bytes) -> None:
        """Store items: JSON lines, compressed, the first of them at index ``start``."""

        async def write() -> None:
            await self._client.items.write(job, packed, start, attempts=1, encoding="gzip")

        try:
            await self._retry.until_done(write, "store items")
        except TooLarge:
            # Some proxies take smaller bodies than the platform; one item that is too large for them ends the crawl.
            lines = b"".join(compression.unpack(packed)).rstrip(b"\n").split(b"\n")
            if len(lines) < 2:
                raise
            middle = len(lines) // 2
            for first, some in ((start, lines[:middle]), (start + middle, lines[middle:])):
                await self.store(job, first, await gzipped(b"\n".join(some) + b"\n"))

    async def acknowledge(self, batches: Mapping[int, list[str]]) -> None:
        """Delete batches, by slot."""
        await asyncio.gather(*(self._acknowledge(str(slot), ids) for slot, ids in batches.items()))

    async def _acknowledge(self, slot: str, ids: list[str]) -> None:
        async def delete() -> None:
            await self._client.frontier.delete_batches(self._project, self._frontier, slot, ids, attempts=1)

        await self._retry.until_done(delete, "acknowledge batches")
