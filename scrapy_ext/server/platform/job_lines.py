"""Lines of jobs in the job queue, with the usual fields or with selected ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import QueueEntry
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import result_of
from scrapy_ext.server.store.jobs.rows import StoredJob, tags_of

T = TypeVar("T")

#: Fields of every line; the other usual ones are those of :data:`JOBMETA`.
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
    """Return the usual fields of a job."""
    times = {name: _of_type(int, job, name) for name in ("pending_time", "running_time", "finished_time")}
    entry = QueueEntry(
        key=str(job.key),
        ts=job.changed,
        state=job.state.value,
        spider=job.spider,
        elapsed=max(now - job.changed, 0),
        **times,
        tags=tags_of(job.metadata) or None,
        close_reason=_of_type(str, job, "close_reason"),
        version=_of_type(str, job, "version"),
        items=job.counts.items or None,
        pages=job.counts.requests or None,
        logs=job.counts.logs or None,
        errors=job.counts.errors or None,
    )
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return fields


def _of_type(kind: type[T], job: StoredJob, name: str) -> T | None:
    """Return a field of the metadata; None for a value of another type, since clients may write any."""
    value = job.metadata.get(name)
    return value if isinstance(value, kind) else None


def line(job: StoredJob, now: int, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a job: the usual ones, or ``wanted`` ones of its metadata and those of every line."""
    entry = usual(job, now)
    if not wanted:
        return entry
    asked = {name: job.metadata[name] for name in wanted if name in job.metadata}
    return {**asked, **{name: entry[name] for name in _ALWAYS}}


def wanted_of(call: Call) -> tuple[str, ...]:
    """Return the fields of ``jobmeta``, with the tags if jobs were selected by tag; none for the usual ones."""
    wanted = tuple(call.all("jobmeta"))
    by_tag = call.all("has_tag") or call.all("lacks_tag")
    return (*wanted, "tags") if wanted and by_tag else wanted


async def answer(call: Call, values: Iterable[Any]) -> Response:
    """Return an answer with one value per line."""
    return await result_of(call, [msgspec.json.encode(value) for value in values])
