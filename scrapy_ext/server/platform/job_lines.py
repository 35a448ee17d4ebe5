"""Jobs as the job queue lists them: a line each, with the usual fields or with those that were asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobq import QueueEntry
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import Page, result
from scrapy_ext.server.store.jobs.rows import StoredJob, tags_of

#: Fields that a line always has; the other usual ones are named with :data:`JOBMETA`.
_ALWAYS: Final[schemas.Schema] = {
    "key": schemas.JOB_KEY,
    "ts": schemas.COUNTER,
    "state": schemas.STATE,
    "elapsed": schemas.COUNTER,
}
JOB_LINE: Final[schemas.Schema] = schemas.record(_ALWAYS, *_ALWAYS)
JOBMETA: Final = schemas.Parameter(
    "jobmeta",
    "fields of the metadata, instead of spider, pending_time, running_time, finished_time, tags, close_reason, "
    "version, items, pages, logs and errors",
    schemas.STRINGS,
)


def usual(job: StoredJob, now: int) -> dict[str, Any]:
    """The fields of a job, when none are named."""
    metadata = job.metadata

    def time(name: str) -> int | None:
        value = metadata.get(name)
        return value if isinstance(value, int) else None

    def text(name: str) -> str | None:
        value = metadata.get(name)
        return value if isinstance(value, str) else None

    entry = QueueEntry(
        key=str(job.key),
        ts=job.changed,
        state=job.state.value,
        spider=job.spider,
        elapsed=max(now - job.changed, 0),
        pending_time=time("pending_time"),
        running_time=time("running_time"),
        finished_time=time("finished_time"),
        tags=tags_of(metadata) or None,
        close_reason=text("close_reason"),
        version=text("version"),
        items=job.counts.items or None,
        pages=job.counts.requests or None,
        logs=job.counts.logs or None,
        errors=job.counts.errors or None,
    )
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return fields


def line(job: StoredJob, now: int, wanted: Sequence[str]) -> dict[str, Any]:
    """The fields of a job: the usual ones, or ``wanted`` of its metadata beside those that every line has."""
    entry = usual(job, now)
    if not wanted:
        return entry
    asked = {name: job.metadata[name] for name in wanted if name in job.metadata}
    return {**asked, **{name: entry[name] for name in _ALWAYS}}


def wanted_of(call: Call) -> tuple[str, ...]:
    """The fields that ``jobmeta`` names, with the tags when jobs were chosen by tag; none: the usual ones."""
    wanted = tuple(call.all("jobmeta"))
    by_tag = call.all("has_tag") or call.all("lacks_tag")
    return (*wanted, "tags") if wanted and by_tag else wanted


async def answer(call: Call, values: Iterable[Any]) -> Response:
    """Values as lines."""

    async def pages() -> AsyncIterator[Page]:
        yield [msgspec.json.encode(value) for value in values]

    return await result(call, pages())
