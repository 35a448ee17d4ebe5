"""Retention: previews of the jobs and records that rules remove, and their removal in steps.

A step is one transaction with one activity message. Its batch was selected by an earlier read. Under the lock of its
row each job is checked again, so that a tag, a state or a rule that has changed meanwhile counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.retention import (
    COLLECTIONS,
    REMOVED_EVENT,
    NewRule,
    Preview,
    RetentionEvent,
    Rule,
    data_in_words,
    limits_in_words,
)
from scrapy_ext.api.platform.rules import rule_in_words
from scrapy_ext.server.store import verdicts
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.collections.selections import Collection, number_of
from scrapy_ext.server.store.deliveries import find_archive
from scrapy_ext.server.store.engine.interface import Engine, Transaction, pause_after
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.jobs.states import Move, Stamp, count_moves, delete_finished
from scrapy_ext.server.store.records.chunks import LOGS
from scrapy_ext.server.store.records.removal import remove_records
from scrapy_ext.server.store.rules.rows import RETENTION, removed_by
from scrapy_ext.server.store.rules.rules import RuleStore
from scrapy_ext.server.store.rules.selection import Match, NewestJobs, Wanted, match_of

#: Jobs per transaction, with some rows each.
JOBS_AT_ONCE: Final = 50
#: Records of a collection examined per read, and removed per transaction, and their bytes, which SQLite overwrites.
_EXAMINED: Final = 5000
_RECORDS: Final = 500
_BYTES: Final = 2 * 1024 * 1024

_SIZE: Final = "length(value) + COALESCE(length(value_1), 0) + COALESCE(length(value_2), 0)"


class Removed(NamedTuple):
    """Numbers of jobs and of records whose data was removed, and their bytes; the rule is ``over`` when it is not in
    force any more."""

    jobs: int = 0
    records: int = 0
    bytes: int = 0
    over: bool = False

    def plus(self, other: Removed) -> Removed:
        return Removed(self.jobs + other.jobs, self.records + other.records, self.bytes + other.bytes, other.over)


class KeyRange(NamedTuple):
    """Records of a collection with keys after ``after``, up to ``last``."""

    which: Collection
    after: bytes
    last: bytes


class OldRecords(NamedTuple):
    """Number and bytes of the old records in a range of keys that ends with ``last``; ``more``: others follow."""

    records: int
    size: int
    last: bytes
    more: bool


async def remove_jobs(tx: Transaction, now: int, rule: Rule, keys: Sequence[JobKey]) -> Removed:
    """Remove the data of those of these jobs of one project that match now."""
    present = await RETENTION.find(tx, rule.project, rule.id, hold=True)
    if present is None or not present.enabled:
        return Removed(over=True)
    done: list[Match] = []
    moves: list[Move] = []
    without_log: list[int] = []
    newest: NewestJobs = {}
    for key in sorted(keys):
        job = await get_job(tx, key, lock=True)
        match = None if job is None else await match_of(tx, key, removed_by(rule, now), now, newest)
        if job is None or match is None:
            continue
        if rule.removes_jobs:
            moves.append(await delete_finished(tx, job, Stamp(_name(rule), now)))
        else:
            archives = await _delivered(tx, key, rule.kinds)
            kinds = sorted(archives if rule.only_delivered else rule.kinds)
            if not kinds:
                continue
            sizes = [await remove_records(tx, key, (kind,), now, archives.get(kind)) for kind in kinds]
            if LOGS.name in kinds:
                await verdicts.forget_errors(tx, key)
                without_log.append(key.spider)
            if rule.only_delivered:
                match = match._replace(bytes=sum(sizes))
        done.append(match)
    if not done:
        return Removed()
    size = sum(match.bytes for match in done)
    number = "1 job" if len(done) == 1 else f"{len(done)} jobs"
    message = RetentionEvent(
        event=REMOVED_EVENT,
        user=_name(rule),
        message=f"Deleted {number}" if rule.removes_jobs else f"Removed {', '.join(rule.kinds)} of {number}",
        what=rule.what,
        bytes=size,
        jobs=[str(match.key) for match in done],
    )
    await count_moves(tx, keys[0].project, moves)
    await verdicts.refresh(tx, keys[0].project, [*without_log, *(each.spider for each in moves)])
    await _report(tx, keys[0].project, rule, message, now)
    return Removed(len(done), sum(match.records for match in done), size)


async def _delivered(tx: Transaction, key: JobKey, kinds: Iterable[str]) -> dict[str, str]:
    """Return the URL of the delivery of each kind of records of a locked job that has its present revision.

    This is the condition ``only_delivered``. The totals are locked, so that the caller can remove these kinds in the
    same transaction.
    """
    found = {}
    for kind in sorted(kinds):
        row = await tx.fetchrow(
            """SELECT removed FROM record_totals WHERE project = $1 AND kind = $4 AND spider = $2 AND job = $3
               FOR UPDATE""",
            *key,
            kind,
        )
        if row is not None and row[0] is None and (url := await find_archive(tx, key, kind)) is not None:
            found[kind] = url
    return found


async def find_old(tx: Transaction, which: Collection, before: int, after: bytes) -> OldRecords:
    """Return the next records after a key that were written before a time, no more than one transaction removes."""
    number = await number_of(tx, which)
    rows = await tx.fetch(
        f"""SELECT key, ts, {_SIZE} FROM collection_records WHERE project = $1 AND collection = $2 AND key > $3
            ORDER BY key LIMIT {_EXAMINED}""",
        which.project,
        -1 if number is None else number,
        after,
    )
    old = [(place, row[2]) for place, row in enumerate(rows) if row[1] < before][:_RECORDS]
    sizes = list(accumulate(size for _, size in old))
    # At least one record, however large.
    fitting = max(sum(size <= _BYTES for size in sizes), 1) if old else 0
    whole = fitting == len(old) < _RECORDS
    end = len(rows) - 1 if whole else old[fitting - 1][0]
    last = rows[end][0] if rows else after
    return OldRecords(fitting, sizes[fitting - 1] if old else 0, last, not whole or len(rows) == _EXAMINED)


async def remove_old(tx: Transaction, now: int, rule: Rule, part: KeyRange) -> Removed:
    """Remove the old records of a part of a collection."""
    which, after, last = part
    present = await RETENTION.find(tx, rule.project, rule.id, hold=True)
    before = rule.before(now)
    if present is None or not present.enabled or before is None:
        return Removed(over=True)
    number = await number_of(tx, which, hold=True)
    rows = await tx.fetch(
        f"""SELECT key, {_SIZE} FROM collection_records
            WHERE project = $1 AND collection = $2 AND key > $3 AND key <= $4 AND ts < $5
            ORDER BY key LIMIT {_RECORDS} FOR UPDATE""",
        which.project,
        -1 if number is None else number,
        after,
        last,
        before,
    )
    if not rows:
        return Removed()
    await tx.execute_many(
        "DELETE FROM collection_records WHERE project = $1 AND collection = $2 AND key = $3",
        [(which.project, number, row[0]) for row in rows],
    )
    size = sum(row[1] for row in rows)
    records = "1 record" if len(rows) == 1 else f"{len(rows)} records"
    message = RetentionEvent(
        event=REMOVED_EVENT,
        user=_name(rule),
        message=f"Removed {records} of collection {which.name}",
        what=(COLLECTIONS,),
        bytes=size,
        collection=which.name,
        records=len(rows),
    )
    await _report(tx, which.project, rule, message, now)
    return Removed(records=len(rows), bytes=size)


async def _report(tx: Transaction, project: int, rule: Rule, message: RetentionEvent, now: int) -> None:
    message.message += f" ({message.bytes} bytes): {data_in_words(rule)}, {limits_in_words(rule)}"
    await add_events(tx, project, [msgspec.json.encode(message)], now)


def _name(rule: Rule) -> str:
    return rule_in_words("retention", rule)


# ── previews and steps ──

#: One transaction of a removal.
_Batch = Callable[[], Coroutine[Any, Any, Removed]]


async def _collections(tx: Transaction, project: int) -> list[Collection]:
    rows = await tx.fetch("SELECT type, name FROM collections WHERE project = $1 ORDER BY name, type", project)
    return [Collection(project, CollectionType(kind), name) for kind, name in rows]


class RetentionStore(RuleStore[NewRule, Rule]):
    """Rules and their use. ``deleted`` is called after data was removed."""

    def __init__(self, engine: Engine, clock: Callable[[], int], deleted: Callable[[], None]) -> None:
        super().__init__(engine, clock, RETENTION)
        self._deleted = deleted
        #: Totals that this process has removed.
        self.removed = Removed()

    def wanted(self, rule: Rule) -> Wanted | None:
        return None if rule.is_about_collections else removed_by(rule, self._clock())

    async def preview(self, rule: Rule, projects: Sequence[int]) -> Preview:
        """Return the data that a rule would remove now in these projects, and the jobs that go next."""
        total = Preview()
        for project in projects if rule.is_about_collections else ():
            for which in await self._covered(rule, project):
                records = total.records
                async for _, found in self._old(rule, which):
                    total.records += found.records
                    total.bytes += found.size
                total.collections += total.records > records
        return await self._previewed(total, rule, projects)

    async def _covered(self, rule: Rule, project: int) -> list[Collection]:
        return [which for which in await self._engine.read(_collections, project) if rule.covers(which.name)]

    async def _old(self, rule: Rule, which: Collection) -> AsyncIterator[tuple[bytes, OldRecords]]:
        """Yield the old records of a collection, each with the key before them; some are of no records."""
        after, more = b"", True
        while more:
            found = await self._engine.read(find_old, which, rule.before(self._clock()) or 0, after)
            yield after, found
            after, more = found.last, found.more

    # ── removal ──

    async def apply(self, rule: Rule, project: int, *, pause: bool = True) -> AsyncGenerator[Removed, None]:
        """Remove the data of a project that an enabled rule covers; yield after each transaction and each read."""
        batches = self._record_batches(rule, project) if rule.is_about_collections else self._job_batches(rule, project)
        async for batch in batches:
            began = time.monotonic()
            done = await batch() if batch is not None else Removed()
            if done.jobs or done.records:
                self._note(done)
            yield done
            if done.over:
                return
            if pause and batch is not None:
                await asyncio.sleep(pause_after(time.monotonic() - began))

    async def _job_batches(self, rule: Rule, project: int) -> AsyncIterator[_Batch | None]:
        async for page in self._pages(rule, project):
            yield None
            for first in range(0, len(page), JOBS_AT_ONCE):
                keys = [match.key for match in page[first : first + JOBS_AT_ONCE]]
                yield partial(self._engine.write, remove_jobs, self._clock(), rule, keys)

    async def _record_batches(self, rule: Rule, project: int) -> AsyncIterator[_Batch | None]:
        for which in await self._covered(rule, project):
            removed = False
            async for after, found in self._old(rule, which):
                removed = removed or found.records > 0
                if found.records:
                    yield partial(
                        self._engine.write, remove_old, self._clock(), rule, KeyRange(which, after, found.last)
                    )
                else:
                    yield None
            if removed:
                await self._engine.forget_deleted()

    def _note(self, done: Removed) -> None:
        self.removed = self.removed.plus(done)
        if done.jobs:
            self._deleted()
