"""Snapshots of a job: pages whose callback raised, in a collection of the project (``api/platform/snapshots``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

import msgspec

from scrapy_ext.api.platform import JobKey, snapshots
from scrapy_ext.api.platform.snapshots import Part, Snapshot, StoredSnapshot
from scrapy_ext.client.platform.collections import Collections

_TYPE: Final = snapshots.TYPE.value


class Snapshots:
    """Snapshots by job. Content is packed and unpacked in threads."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections

    async def write(self, job: JobKey, id: str, snapshot: Snapshot, parts: Mapping[Part, bytes]) -> None:
        """Store a snapshot with the content of its parts."""
        for line in await asyncio.to_thread(snapshots.lines_of, job, id, snapshot, parts):
            # Not compressed once more: it is Base64 of compressed data.
            await self._collections.write(job.project, _TYPE, snapshots.COLLECTION, line, encoding="identity")

    async def count(self, job: JobKey) -> int:
        """Return the number of snapshots of a job."""
        prefix = snapshots.list_prefix(job)
        return await self._collections.count(job.project, _TYPE, snapshots.COLLECTION, prefix=prefix)

    async def list(self, job: JobKey) -> AsyncGenerator[StoredSnapshot]:
        """Yield the snapshots of a job, the oldest first, without their content."""
        found = self._collections.iter(
            job.project, _TYPE, snapshots.COLLECTION, prefix=snapshots.list_prefix(job), meta=("_key",)
        )
        async with aclosing(found) as records:
            async for record in records:
                each = snapshots.stored(job, record["_key"], msgspec.json.encode(record))
                if each is not None:
                    yield each

    async def read(self, stored: StoredSnapshot, part: Part) -> bytes | None:
        """Return the content of a part, None if the snapshot lacks it; raises
        :class:`~scrapy_ext.api.platform.snapshots.DamagedPartError`."""
        records = []
        for key in stored.keys_of(part):
            record = await self._collections.get(stored.job.project, _TYPE, snapshots.COLLECTION, key)
            if record is None:
                raise snapshots.DamagedPartError(f"a piece of the {part.value} is missing")
            records.append(msgspec.json.encode(record))
        return await asyncio.to_thread(snapshots.unpack, part, records) if records else None
