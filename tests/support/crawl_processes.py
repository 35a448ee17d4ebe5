"""Several processes of a crawl, all in this one."""

from __future__ import annotations

from typing import Any

import msgspec

from scrapy_ext.client.http import gzipped
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.retry import Retry
from scrapy_ext.crawl.commit.events import Chunk, Redo
from scrapy_ext.crawl.commit.journal import Fenced, Journal, Place
from scrapy_ext.crawl.commit.leases import Ownership

PROJECT = 7


class Process:
    """A process of the job that writes ``journal``, with a name of its own."""

    def __init__(self, client: PlatformClient, frontier: str, retry: Retry, journal: str, worker: str) -> None:
        self.client, self.frontier = client, frontier
        self.ownership = Ownership(client, retry, project=PROJECT, frontier=frontier, name=journal, worker=worker)
        self.writer = self.ownership.writer
        self.finisher = self.ownership.finisher

    @property
    def log(self):
        return self.ownership.log

    @property
    def journal(self) -> Journal:
        """Its commit journal."""
        return self.ownership.journal(self.ownership.name)

    async def open(self, *slots: int) -> Process:
        """Open as the scheduler does with a fixed worker."""
        await self.ownership.open(set(slots))
        await self.ownership.claim_all(set(slots))
        return self

    async def begin_commit(
        self, job: object, start: int, *items: Any, acknowledge: Any = None, writer: int | None = None
    ) -> Redo:
        """A commit that gets as far as its record, and then the process dies."""
        number = start + 1
        await self.finisher.stage(self.writer, number, await packed(*items))
        redo = Redo(str(job), self.writer, [Chunk(number, start, len(items))], acknowledge or {}, writer)
        self.log.checkpoint.redo = redo
        await self.log.write()
        return redo

    async def can_commit(self) -> bool:
        """True if a commit of it would count."""
        try:
            await self.log.write()
        except Fenced:
            return False
        return True


async def packed(*items: Any) -> bytes:
    """Items as a payload has them."""
    return await gzipped(b"".join(msgspec.json.encode(item) + b"\n" for item in items))


def journal(client: Any, frontier: str, writer: str, retry: Retry, slot: str = "journal") -> Journal:
    """A journal as one writer sees it."""
    return Journal(client.frontier, Place(PROJECT, frontier, slot), writer, retry)


async def add(client: PlatformClient, frontier: str, slot: str, *fps: str) -> int:
    """Put requests into a slot; returns how many were new."""
    body = b"".join(msgspec.json.encode({"fp": fp, "qdata": {"url": fp}}) + b"\n" for fp in fps)
    return await client.frontier.add(PROJECT, frontier, slot, body)


async def stored(client: PlatformClient, job: Any) -> list[Any]:
    """The items of a job."""
    return [{key: value for key, value in item.items() if key != "_key"} async for item in client.items.iter(job)]
