"""Context of all pages of a job, and pages of its records by index."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.record_search import parts_of, records_of
from scrapy_ext.server.store.collections.selections import Collection, RecordSelection, prefix_range
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.records.records import RecordStore, Slice
from scrapy_ext.server.store.records.removal import RecordOwner, Removal, removal_error
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import MissingError, Visit
from scrapy_ext.server.ui.job_summary import summary
from scrapy_ext.server.ui.pending_reason import capacity_of

PATH: Final = "/ui/{project:number}/{spider:number}/{job:number}"
#: Parts of it that have pages of their own.
JOB_PARTS: Final = ("items", "requests", "log", "stats", "snapshots")


async def job_context(visit: Visit, tab: str) -> dict[str, Any]:
    """Return the job, its summary, the number of its records, and notices of removed ones.

    A job that was never created may have records.
    """
    key, store = visit.key, visit.store
    found = await store.jobs.get(key)
    job = found or StoredJob(key, "", JobState.FINISHED, 0, 0, {})
    totals = {
        each.kind.name: (await each.stats(key)).totals.input_values
        for each in (store.items, store.requests, store.logs)
    }
    removed = await _removed(visit, deleted=job.state is JobState.DELETED)
    if found is None and not any(totals.values()) and not removed:
        raise MissingError
    capacity = await capacity_of(store, key.project) if job.state is JobState.PENDING else None
    return {
        "job": job,
        "summary": summary(job, store.clock(), capacity),
        "known": found is not None,
        "tab": tab,
        "totals": totals,
        "removed": removed,
        "snapshot_count": 0 if removed and job.state is JobState.DELETED else await _count_snapshots(visit),
        "path": f"/ui/{key}",
        "clock": store.clock(),
    }


def snapshots_of(key: JobKey) -> Collection:
    """Return the collection with the snapshots of a job."""
    return Collection(key.project, snapshots.TYPE, snapshots.COLLECTION)


async def _count_snapshots(visit: Visit) -> int:
    """Return the number of the job's snapshots, at most that of one crawl."""
    selection = RecordSelection((prefix_range(snapshots.list_prefix(visit.key).encode()),))
    return (await visit.store.collections.count(snapshots_of(visit.key), selection, snapshots.MOST)).count


async def _removed(visit: Visit, *, deleted: bool) -> list[str]:
    """Return when and why records of a job are not there: one sentence for a deleted job, else one for each kind."""
    key, store = visit.key, visit.store
    notices = []
    for each in (store.items, store.requests, store.logs):
        removal = await each.removal(key)
        if removal is not None and (removal.deleted or deleted):
            return [_notice(each, key, removal._replace(deleted=True))] if removal.at or deleted else []
        if removal is not None:
            notices.append(_notice(each, key, removal))
    return notices


def _notice(store: RecordStore, key: JobKey, removal: Removal) -> str:
    (violation,) = removal_error(RecordOwner(key.project, store.kind.name, key.spider, key.job), removal).violations
    return f"{violation.field.capitalize()} {violation.rule}. {violation.remedy}"


async def records_page(
    visit: Visit, store: RecordStore, key: JobKey, size: int
) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
    """Return a page of records with their indexes, and the links to other pages."""
    lines, paging = await lines_page(visit, store, key, size)
    return records_of(lines), paging


async def lines_page(
    visit: Visit, store: RecordStore, key: JobKey, size: int
) -> tuple[list[tuple[int, bytes]], shapes.Paging]:
    """Return a page of records as their JSON, with their indexes, and the links to other pages."""
    indexes = await store.indexes(key)
    start = max(visit.number("start"), indexes.start)
    slices: list[Slice] = [part async for part in parts_of(store, key, start, size)]
    lines = [each for part in slices for each in enumerate(part.lines, part.start)]
    return lines, shapes.paging(start, size, indexes)
