"""Items that are staged before a commit; the end of a commit, which stores items and acknowledges batches; takeovers.

Items are staged for the successor of a process. Otherwise, after a death between two steps, it would be unknown whether
the items are stored or may still arrive, since a call of a dead process can be delayed in a socket. A successor stores
the same bytes at the same indexes, so that it does not matter which of the two calls comes first.

A payload is one or more records of a collection. Its key consists of the name of its process and a number that the
process uses once, so that a late write changes nothing. It is deleted when no record of a journal names it any more.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from scrapy_ext.api import compression
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.job_data import COMMITS_COLLECTION as COLLECTION
from scrapy_ext.client.http import gzipped
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.collections import Collections
from scrapy_ext.client.platform.errors import Gone, NotFound, TooLarge
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.commit import events
from scrapy_ext.crawl.commit.journal import Fenced, Journal, to_data
from scrapy_ext.crawl.commit.protocol import Takeover

logger = logging.getLogger(__name__)

_TYPE: Final = CollectionType.STORE.value
#: Characters of one record, below the platform's limit to leave room for its other members.
_PART: Final = 900_000


class Payloads:
    """Payloads of staged items in the collection of a project."""

    def __init__(self, client: Collections, project: int) -> None:
        self._client = client
        self._project = project

    async def write(self, owner: str, number: int, packed: bytes) -> None:
        """Write items, as compressed JSON lines."""
        text = base64.b64encode(packed).decode()
        pieces = [text[first : first + _PART] for first in range(0, len(text), _PART)]
        # The first piece is written last: a reader that finds it finds the others.
        for place, piece in reversed(list(enumerate(pieces))):
            record = {"_key": _key(owner, number, place), "pieces": len(pieces), "items": piece}
            line = msgspec.json.encode(record) + b"\n"
            await self._client.write(self._project, _TYPE, COLLECTION, line, attempts=1, encoding="identity")

    async def read(self, owner: str, number: int) -> bytes | None:
        """Return the items as they were written, None if they do not exist."""
        pieces: list[str] = []
        total = 1
        while len(pieces) < total:
            key = _key(owner, number, len(pieces))
            record: dict[str, Any] | None = await self._client.get(self._project, _TYPE, COLLECTION, key)
            if record is None:
                return None
            pieces.append(record["items"])
            total = record["pieces"]
        return base64.b64decode("".join(pieces))

    async def delete(self, owner: str, numbers: Iterable[int]) -> None:
        prefixes = [f"{owner}/{number}." for number in numbers]
        await self._client.delete(self._project, _TYPE, COLLECTION, prefix=prefixes)

    async def delete_all(self, prefix: str) -> None:
        """Delete the payloads of every owner whose name has this prefix."""
        await self._client.delete(self._project, _TYPE, COLLECTION, prefix=prefix)


class Finisher:
    """Stages items, and completes commits to one frontier."""

    def __init__(self, client: PlatformClient, project: int, frontier: str, retry: Retry) -> None:
        self._client = client
        self._project = project
        self._frontier = frontier
        self._retry = retry
        self.payloads = Payloads(client.collections, project)

    async def stage(self, owner: str, number: int, packed: bytes) -> None:
        """Stage items, for this process or its successor to store."""
        await self._retry.until_done(lambda: self.payloads.write(owner, number, packed), "stage the items of a commit")

    async def store_chunk(self, job: JobKey, owner: str, chunk: events.Chunk) -> None:
        try:
            packed = await self._retry.until_done(
                lambda: self.payloads.read(owner, chunk.number), "read the items of a commit"
            )
            if packed is None:
                logger.error(
                    "%d items of job %s, from index %d on, cannot be stored again: they are missing in collection %s",
                    *(chunk.count, job, chunk.start, COLLECTION),
                )
                return
            await self.store(job, chunk.start, packed)
        except (Gone, NotFound):
            logger.warning("%d items are not stored: job %s was deleted", chunk.count, job)

    async def store(self, job: JobKey, start: int, packed: bytes) -> None:
        """Store compressed JSON lines, the first of them at index ``start``."""
        write = partial(self._client.items.write, job, packed, start, attempts=1, encoding="gzip")
        try:
            await self._retry.until_done(write, "store items")
        except TooLarge:
            # Some proxies accept smaller bodies than the platform. A single item that is too large ends the crawl.
            lines = b"".join(compression.unpack(packed)).rstrip(b"\n").split(b"\n")
            if len(lines) < 2:
                raise
            middle = len(lines) // 2
            for first, some in ((start, lines[:middle]), (start + middle, lines[middle:])):
                await self.store(job, first, await gzipped(b"\n".join(some) + b"\n"))

    async def acknowledge(self, batches: Mapping[int, list[str]]) -> None:
        def delete(slot: int, ids: list[str]) -> Awaitable[None]:
            return self._client.frontier.delete_batches(self._project, self._frontier, str(slot), ids, attempts=1)

        deletions = [partial(delete, slot, ids) for slot, ids in batches.items()]
        await asyncio.gather(*(self._retry.until_done(each, "acknowledge batches") for each in deletions))


async def take_over(
    journal: Journal, finisher: Finisher, heir: events.Checkpoint, *, is_new: bool = False
) -> tuple[int, events.Checkpoint]:
    """Take over a journal (:class:`Takeover`); return the number of its last record, and the checkpoint."""
    takeover = Takeover(heir)
    actions = takeover.begin(is_new=is_new)
    while actions:
        event: events.Event
        match actions[0]:
            case events.ReadHead():
                head = await journal.head()
                event = (
                    events.Read(0, events.Checkpoint())
                    if head is None
                    else events.Read(head.number, head.read(events.Checkpoint))
                )
            case events.Append(checkpoint, int(number)):
                event = await append(journal.append(number, to_data(checkpoint)))
            case events.StoreChunk(redo, chunk):
                await finisher.store_chunk(JobKey.parse(redo.job), redo.owner, chunk)
                event = events.ChunkStored()
            case events.Acknowledge(batches):
                await finisher.acknowledge(batches)
                event = events.Acknowledged()
            case action:
                raise ValueError(f"a takeover does not {type(action).__name__}")
        actions = takeover.receive(event)
    return takeover.number, takeover.checkpoint


async def append(writing: Awaitable[None]) -> events.Appended | events.Refused:
    """Execute an :class:`Append`, by one of the ways to write to a journal."""
    try:
        await writing
    except Fenced as error:
        return events.Refused(error)
    return events.Appended()


def _key(owner: str, number: int, place: int) -> str:
    return f"{owner}/{number}.{place}"
