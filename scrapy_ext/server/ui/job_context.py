"""Context shared by all pages of a job."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.records.records import RecordStore, Slice, Span
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import MissingError, Visit
from scrapy_ext.server.ui.pending_reason import capacity_of
from scrapy_ext.server.ui.search import search_records, with_text

PATH: Final = "/ui/{project:number}/{spider:number}/{job:number}"
#: Parts of it that have pages of their own.
JOB_PARTS: Final = ("items", "requests", "log", "stats")


async def job_context(visit: Visit, tab: str) -> dict[str, Any]:
    """Return the job, its summary, and the number of its records. A job that was never created may have records."""
    key, store = visit.key, visit.store
    found = await store.jobs.get(key)
    job = found or StoredJob(key, "", JobState.FINISHED, 0, 0, {})
    totals = {
        each.kind.name: (await each.stats(key)).totals.input_values
        for each in (store.items, store.requests, store.logs)
    }
    if found is None and not any(totals.values()):
        raise MissingError
    capacity = await capacity_of(store, key.project) if job.state is JobState.PENDING else None
    return {
        "job": job,
        "summary": shapes.summary(job, store.clock(), capacity),
        "known": found is not None,
        "tab": tab,
        "totals": totals,
        "path": f"/ui/{key}",
    }


async def search_page(
    visit: Visit, store: RecordStore, text: str, size: int
) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
    """Return a page of the records that contain a text, found in a bounded search from ``start`` on."""
    start = visit.number("start")
    end = (await store.indexes(visit.key)).stop
    found = await search_records(store, visit.key, start, with_text(text), size)
    records = [(number, msgspec.json.decode(line)) for number, line in found.records]
    return records, shapes.searched(start, found.next, end, ended=found.ended)


async def records_page(
    visit: Visit, store: RecordStore, key: JobKey, size: int
) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
    """Return a page of records with their indexes, and the links to other pages."""
    indexes = await store.indexes(key)
    start = max(visit.number("start"), indexes.start)
    span = Span(key.project, key.spider, key.job)
    slices: list[Slice] = [part async for part in store.scan(span, (key.spider, key.job, start), size)]
    records = [
        (number, msgspec.json.decode(line)) for part in slices for number, line in enumerate(part.lines, part.start)
    ]
    return records, shapes.paging(start, size, indexes)
