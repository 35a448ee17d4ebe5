"""Jobs that are imported from another platform: with a given key, and with the times of their source.

Invariants:

- A job that exists, or records without a job, are never changed, unless the same import has made the job:
  ``metadata.imported.source`` is the host and the key in the source.
- A job is running, without an attempt, until all records that can be copied are stored, so that no reader takes it for
  complete (:func:`~scrapy_ext.server.store.jobs.rows.importing_from`). It then gets the metadata and the times of the
  source in one transaction, with its comments and the activity message. ``metadata.imported.missing`` has the kinds
  that could not be copied.
- A job number below the counter is never given to another job. The counter stays above the imported numbers, and
  leaves some free for jobs that the source runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.imports import (
    COMMENTS,
    IMPORTED,
    JOB_IMPORTED,
    RECORD_KINDS,
    FinishedImport,
    ImportedSpider,
    ImportEvent,
    Origin,
    TimeRun,
)
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import EngineStore, TimedMethod, Transaction
from scrapy_ext.server.store.jobs.rows import StoredJob, encode, get_job, save
from scrapy_ext.server.store.jobs.states import Move, Stamp, count_moves
from scrapy_ext.server.store.monitor_queue import enqueue_import
from scrapy_ext.server.store.projects import advance, hold
from scrapy_ext.server.store.records.chunks import MAX_LINES, RecordChunk, RecordKind
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.segments import Segment, cut, growth, pack_segments
from scrapy_ext.server.store.records.writes import write_records
from scrapy_ext.server.store.spiders import spider_number

#: Members of the source's metadata that are about the source.
_OF_SOURCE: Final = frozenset({"key", "_key", "auth", "attempt", "node", "nodes_lost", IMPORTED})


class ImportedRecords(NamedTuple):
    """Consecutive records of a job: the index of the first, and their times; no times: they are stored as new ones."""

    start: int
    chunks: Sequence[RecordChunk]
    times: Sequence[TimeRun]


def origin_of(job: StoredJob) -> Origin | None:
    """Return the origin of an imported job; None for any other."""
    try:
        return msgspec.convert(job.metadata.get(IMPORTED), Origin)
    except msgspec.ValidationError:
        return None


def _taken(key: JobKey, what: str) -> ContractError:
    rule = f"{key} is taken by {what}"
    return ContractError([Violation("job", rule, "Import the project under another number.", 409)])


async def _own(tx: Transaction, key: JobKey, source: str | None = None) -> tuple[StoredJob, Origin]:
    """Return a locked imported job, of this source if it is given; raise :class:`ContractError` for any other."""
    job = await get_job(tx, key, lock=True)
    origin = job and origin_of(job)
    if job is None or origin is None or source not in (None, origin.source):
        from_elsewhere = "" if origin is None else f", which was imported from {origin.source}"
        raise _taken(key, f"a job that is not from this import{from_elsewhere}" if job else "no job of an import")
    return job, origin


# ── spiders ──


async def add_spiders(tx: Transaction, now: int, project: int, spiders: Sequence[ImportedSpider]) -> list[int]:
    """Add the spiders that are missing, and their tags; return their numbers.

    A new spider gets the number of the source if it is free.
    """
    await hold(tx, project, "queue")  # as additions of jobs, which assign numbers too
    # All numbers that are free, before one of them is given to another spider.
    for spider in spiders:
        if spider.number is not None:
            await _add_with_number(tx, project, spider.name, spider.number, now)
    numbers = []
    for spider in spiders:
        number = await spider_number(tx, project, spider.name, now)
        if spider.tags:
            await _add_tags(tx, project, number, spider.tags, now)
        numbers.append(number)
    return numbers


async def _add_with_number(tx: Transaction, project: int, name: str, number: int, now: int) -> None:
    """Add a spider unless its name or its number exists."""
    row = await tx.fetchrow(
        "SELECT spider FROM spiders WHERE project = $1 AND (name = $2 OR spider = $3)", project, name, number
    )
    if row is None:
        await tx.execute(
            "INSERT INTO spiders (project, name, spider, created, modified) VALUES ($1, $2, $3, $4, $4)",
            project,
            name,
            number,
            now,
        )
        await _raise_counter(tx, project, "spider", number)


async def _add_tags(tx: Transaction, project: int, spider: int, tags: Sequence[str], now: int) -> None:
    row = await tx.fetchrow("SELECT tags FROM spiders WHERE project = $1 AND spider = $2 FOR UPDATE", project, spider)
    present: list[str] = msgspec.json.decode(row[0]) if row is not None else []
    if set(tags) <= set(present):
        return
    await tx.execute(
        "UPDATE spiders SET tags = $3, modified = $4 WHERE project = $1 AND spider = $2",
        project,
        spider,
        msgspec.json.encode(list(dict.fromkeys([*present, *tags]))).decode(),
        now,
    )


async def _raise_counter(tx: Transaction, project: int, name: str, least: int) -> None:
    present = await advance(tx, project, name, 0)
    if present < least:
        await advance(tx, project, name, least - present)


# ── jobs ──


async def begin(
    tx: Transaction, key: JobKey, source: str, reserved: int, stamp: Stamp
) -> tuple[StoredJob, Origin, dict[str, range]]:
    """Add a job, or return the one that the same import has added, with the indexes of its records by kind."""
    await hold(tx, key.project, "queue")
    is_new = await get_job(tx, key) is None
    if is_new:
        await _insert(tx, key, source, stamp)
    await _raise_counter(tx, key.project, f"job {key.spider}", min(key.job + reserved, MAX_NUMBER))
    job, origin = await _own(tx, key, source)
    if is_new:
        await count_moves(tx, key.project, [Move(key.spider, None, job.state)])
    return job, origin, await _indexes(tx, key)


async def _insert(tx: Transaction, key: JobKey, source: str, stamp: Stamp) -> None:
    spider = await tx.fetchrow("SELECT name FROM spiders WHERE project = $1 AND spider = $2", key.project, key.spider)
    if spider is None:
        rule = f"{key} is of a spider that does not exist"
        raise ContractError([Violation("job", rule, "Import the spider first.")])
    if any(len(indexes) for indexes in (await _indexes(tx, key)).values()):
        raise _taken(key, "records without a job")
    metadata = {
        "project": key.project,
        "spider": spider[0],
        "state": JobState.RUNNING.value,
        "running_time": stamp.now,
        "started_by": stamp.by,
        IMPORTED: Origin(source=source),
    }
    await tx.execute(
        """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, metadata, since)
           VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $6)""",
        *key,
        spider[0],
        JobState.RUNNING.value,
        stamp.now,
        encode(metadata),
    )


async def _indexes(tx: Transaction, key: JobKey) -> dict[str, range]:
    rows = await tx.fetch(
        """SELECT kind, records, skipped FROM record_totals t
           WHERE project = $1 AND spider = $2 AND job = $3 AND kind IN ('items', 'requests', 'logs', 'samples')""",
        *key,
    )
    found = dict.fromkeys(RECORD_KINDS, range(0))
    for kind, records, skipped in rows:
        # Indexes are skipped only before the first record of a kind.
        found[kind] = range(skipped, skipped + records)
    return found


async def write(tx: Transaction, now: int, kind: RecordKind, key: JobKey, records: ImportedRecords) -> None:
    """Store records of an imported job with their times."""
    await _own(tx, key)
    start, chunks, times = records
    if not chunks:
        return
    owner = RecordOwner(key.project, kind.name, key.spider, key.job)
    await write_records(tx, kind, owner, start, chunks, now=times[0].ts if times else now, may_skip=True)
    if len(times) > 1:
        await _set_times(tx, owner, start, times)


async def _set_times(tx: Transaction, owner: RecordOwner, start: int, times: Sequence[TimeRun]) -> None:
    """Change the times of stored records from index ``start`` on."""
    given = _segments(times)
    stop = start + sum(run.records for run in times)
    rows = await tx.fetch(
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start > $5 AND start < $6
           ORDER BY start""",
        *owner,
        start - MAX_LINES,
        stop,
    )
    for first, records, ts, packed in rows:
        low, high = max(start - first, 0), min(stop - first, records)
        if low >= high:
            continue
        present = _segments(_runs(ts, packed, records))
        changed = pack_segments(
            [
                *cut(present, 0, low),
                *cut(given, first + low - start, first + high - start),
                *cut(present, high, records),
            ]
        )
        await tx.execute(
            """UPDATE record_chunks SET ts = $6, times = $7
               WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start = $5""",
            *owner,
            first,
            changed.ts,
            changed.times,
        )


def _segments(runs: Sequence[TimeRun]) -> list[Segment]:
    """Return segments of empty lines: only the times are wanted, which are beside the body of a row."""
    return [Segment(run.ts, [b""] * run.records) for run in runs]


def _runs(ts: int, packed: bytes | None, records: int) -> list[TimeRun]:
    runs, before = [], 0
    for time, number in growth(ts, packed, records):
        runs.append(TimeRun(number - before, time))
        before = number
    return runs


async def finish(tx: Transaction, key: JobKey, end: FinishedImport, stamp: Stamp) -> None:
    """Complete a job: metadata and times of the source, comments, and an activity message.

    A job that was completed before keeps its metadata, and gets the further kinds, unless it has finished again in the
    source.
    """
    job, origin = await _own(tx, key, end.source)
    if job.state is JobState.DELETED:
        raise _taken(key, "a deleted job")
    is_new = origin.time is None or _finished(end.metadata) > _finished(job.metadata)
    if COMMENTS in end.copied and COMMENTS not in origin.copied:
        await _add_comments(tx, key, end)
    copied = [kind for kind in dict.fromkeys([*origin.copied, *end.copied]) if kind not in end.missing]
    metadata = _metadata(job, end.metadata) if is_new else dict(job.metadata)
    missing = {kind: reason for kind, reason in {**origin.missing, **end.missing}.items() if kind not in copied}
    ended = Origin(source=origin.source, copied=copied, missing=missing, time=stamp.now, by=stamp.by)
    metadata[IMPORTED] = msgspec.to_builtins(ended)
    changed = _finished(metadata) or stamp.now
    await save(tx, key, metadata, changed if is_new else stamp.now, from_client=False)
    if is_new:
        await tx.execute(
            "UPDATE jobs SET state = $4, changed = $5 WHERE project = $1 AND spider = $2 AND job = $3",
            *key,
            JobState.FINISHED.value,
            changed,
        )
        await enqueue_import(tx, key, changed, stamp.now)
        await count_moves(tx, key.project, [Move(key.spider, job.state, JobState.FINISHED)])
        event = ImportEvent(JOB_IMPORTED, str(key), stamp.by, origin.source)
        await add_events(tx, key.project, [msgspec.json.encode(event)], stamp.now)


def _finished(metadata: Mapping[str, Any]) -> int:
    """Return the time (ms) of a job's end; 0 if unknown."""
    time = metadata.get("finished_time")
    return time if isinstance(time, int) and not isinstance(time, bool) and 0 < time <= MAX_NUMBER else 0


def _metadata(job: StoredJob, given: Mapping[str, Any]) -> dict[str, Any]:
    of_source = {name: value for name, value in given.items() if name not in _OF_SOURCE}
    own = {"project": job.key.project, "spider": job.spider, "state": JobState.FINISHED.value}
    return {**of_source, **own}


async def _add_comments(tx: Transaction, key: JobKey, end: FinishedImport) -> None:
    last = await advance(tx, key.project, "comment", len(end.comments))
    await tx.execute_many(
        """INSERT INTO comments (project, spider, job, item, field, number, created, author, content)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
        [
            (*key, each.item, each.field, number, each.created, each.author, each.text)
            for number, each in enumerate(end.comments, last - len(end.comments) + 1)
        ],
    )


class ImportStore(EngineStore):
    """Writes of imports."""

    add_spiders = TimedMethod("write", add_spiders)
    write = TimedMethod("write", write)

    async def begin(
        self, key: JobKey, source: str, reserved: int, by: str
    ) -> tuple[StoredJob, Origin, dict[str, range]]:
        """Add a job, or return the one that the same import has added; raise :class:`ContractError` for another."""
        return await self._engine.write(begin, key, source, reserved, Stamp(by, self._clock()))

    async def finish(self, key: JobKey, end: FinishedImport, by: str) -> None:
        """Complete a job with the metadata of its source."""
        await self._engine.write(finish, key, end, Stamp(by, self._clock()))
