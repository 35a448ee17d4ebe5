"""Import of projects into a server of this package; the hosted platform does not have these calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from scrapy_ext.api.platform.collections import check_name, parse_type
from scrapy_ext.api.platform.imports import (
    IMPORTED,
    TIMES_HEADER,
    BegunImport,
    FinishedImport,
    ImportedSpider,
    Origin,
    TimeRun,
    times_header,
)
from scrapy_ext.api.platform.keys import Host, JobKey
from scrapy_ext.client.platform.calls import JSON, get, path, post
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.resource import Resource

#: Keys in one query.
_AT_ONCE: Final = 200


class StoredImport(msgspec.Struct):
    """A job of the target; ``imported`` is None if it was not imported. ``finished_time`` in milliseconds."""

    key: str
    state: str
    imported: Origin | None = None
    finished_time: int | None = None


class Imports(Resource):
    """Jobs with given keys and records with given times. Every call may be repeated."""

    async def spiders(self, project: int, spiders: Sequence[ImportedSpider]) -> list[int]:
        """Add spiders with their tags; return their numbers."""
        call = post(Host.STORAGE, path("imports", project, "spiders"), encode(spiders))
        return [spider.number or 0 for spider in await self._lines(call, ImportedSpider)]

    async def imported(self, project: int, keys: Sequence[JobKey]) -> dict[JobKey, StoredImport]:
        """Return the jobs of these keys that exist."""
        found: dict[JobKey, StoredImport] = {}
        for first in range(0, len(keys), _AT_ONCE):
            some = [str(key) for key in keys[first : first + _AT_ONCE]]
            parameters = (("key", some), ("jobmeta", (IMPORTED, "finished_time")))
            lines = await self._lines(get(Host.JOBQ, path("jobq", project, "jobsummary"), *parameters), StoredImport)
            found.update((JobKey.parse(job.key), job) for job in lines)
        return found

    async def begin(self, key: JobKey, source: str, reserved: int) -> BegunImport:
        """Add a job, or continue the import of it; a job from elsewhere is refused with the status 409."""
        body = msgspec.json.encode({"source": source, "reserved": reserved})
        call = post(Host.STORAGE, path("imports", *key), body, content_type=JSON, accept=JSON)
        return await self._json(call, BegunImport)

    async def write(self, key: JobKey, kind: str, body: bytes, start: int, times: Sequence[TimeRun]) -> None:
        """Store records, given as JSON lines, at the indexes from ``start`` on."""
        await self._transport.send(
            post(
                Host.STORAGE,
                path("imports", *key, kind),
                body,
                parameters=(("start", str(start)),),
                headers=((TIMES_HEADER, times_header(times)),) if times else (),
            )
        )

    async def finish(self, key: JobKey, end: FinishedImport) -> None:
        """Complete a job."""
        body = msgspec.json.encode(end)
        await self._transport.send(post(Host.STORAGE, path("imports", *key, "finish"), body, content_type=JSON))

    async def write_collection(self, project: int, type: str, name: str, body: bytes, times: Sequence[TimeRun]) -> None:
        """Store records of a collection, unless newer ones are stored; lines of the same key are its copies, the oldest
        first."""
        check_name(name)
        where = path("imports", project, "collections", parse_type(type).value, name)
        await self._transport.send(post(Host.STORAGE, where, body, headers=((TIMES_HEADER, times_header(times)),)))
