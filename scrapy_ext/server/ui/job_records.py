"""Context of all pages of a job, and pages of its records: by index, or found by a bounded search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store.collections.selections import Collection, RecordSelection, prefix_range
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.read_ahead import in_thread
from scrapy_ext.server.store.records.records import RecordStore, Slice, Span
from scrapy_ext.server.store.records.removal import RecordOwner, Removal, removal_error
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import MissingError, Visit
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
        "summary": shapes.summary(job, store.clock(), capacity),
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


async def parts_of(store: RecordStore, key: JobKey, start: int, count: int) -> AsyncIterator[Slice]:
    """Yield up to ``count`` records from ``start`` on; none of removed ones, of which the page has a notice."""
    try:
        async for part in store.scan(Span(*key), (key.spider, key.job, start), count):
            yield part
    except ContractError as error:
        if error.status != HTTPStatus.GONE:
            raise


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
    slices: list[Slice] = [part async for part in parts_of(store, key, start, size)]
    records = [
        (number, msgspec.json.decode(line)) for part in slices for number, line in enumerate(part.lines, part.start)
    ]
    return records, shapes.paging(start, size, indexes)


# ── search ──

#: Maximum records and bytes of one search.
MOST_RECORDS: Final = 100_000
MOST_BYTES: Final = 64 * 1024 * 1024

Wanted = Callable[[bytes], bool]


class SearchResult(NamedTuple):
    """Matching records with their indexes, the first index not searched, and ``ended`` when there are no more."""

    records: list[tuple[int, bytes]]
    next: int
    ended: bool


async def search_records(store: RecordStore, key: JobKey, start: int, wanted: Wanted, count: int) -> SearchResult:
    """Return the first ``count`` matching records from ``start`` on, within the bounds of one search."""
    found: list[tuple[int, bytes]] = []
    at, size = start, 0

    def chosen(part: Slice) -> list[tuple[int, bytes]]:
        return [(number, line) for number, line in enumerate(part.lines, part.start) if wanted(line)]

    async for part in parts_of(store, key, start, MOST_RECORDS):
        found += await in_thread(chosen, part)
        at = part.start + len(part.lines)
        size += sum(map(len, part.lines))
        if len(found) > count:
            return SearchResult(found[:count], found[count - 1][0] + 1, ended=False)
        if size >= MOST_BYTES:
            return SearchResult(found, at, ended=False)
    return SearchResult(found, at, ended=at - start < MOST_RECORDS)


def with_text(text: str) -> Wanted:
    """Return a predicate for records that contain a text, ignoring case."""
    lowered = msgspec.json.encode(text)[1:-1].decode().lower()

    def wanted(line: bytes) -> bool:
        # The writer may have escaped letters differently.
        if b"\\u" in line or b"\\/" in line:
            line = msgspec.json.encode(msgspec.json.decode(line))
        return lowered in line.decode().lower()

    return wanted


class _Line(msgspec.Struct):
    level: int
    message: str


_line: Final = msgspec.json.Decoder(_Line).decode


def logged(level: int, text: str = "") -> Wanted:
    """Return a predicate for log lines of at least a level that contain a text, ignoring case."""
    lowered = text.lower()

    def wanted(line: bytes) -> bool:
        record = _line(line)
        return record.level >= level and lowered in record.message.lower()

    return wanted
