"""Place of the records of a process: its job, or a stream of its own in the job of a group of workers."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform.records import JobRecords


class Target(NamedTuple):
    """``writer``: attempt of the worker of a group, whose stream has indexes of its own; None: the indexes are those of
    the job."""

    job: JobKey
    writer: int | None = None

    async def write(self, records: JobRecords, body: bytes, start: int, *, encoding: str | None = None) -> int:
        """Store records, given as JSON lines, from index ``start`` on, in one attempt; return the number of those whose
        parent the platform does not know. Raises :class:`PlatformError`."""
        if self.writer is None:
            await records.write(self.job, body, start, attempts=1, encoding=encoding)
            return 0
        places = await records.write_stream(self.job, self.writer, body, start, attempts=1, encoding=encoding)
        return places.parents_unknown
