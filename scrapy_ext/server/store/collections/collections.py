"""Collections: records ordered by the bytes of their keys.

Records refer to their collection's number, which is never reused, so that renaming and deleting cost the same whatever
the number of records. An expired record is not read; a later write removes its row.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.collections import EXPIRY_MS, CollectionName, Count
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.server.store.collections.selections import (
    Collection,
    Range,
    RecordSelection,
    check_job,
    conditions,
    hidden_keys,
    less,
    number_of,
)
from scrapy_ext.server.store.collections.writes import (
    create_and_write,
    delete_keys,
    delete_step,
    drop,
    rename,
    write_records,
)
from scrapy_ext.server.store.engine.interface import EngineStore, Method, TimedMethod, Transaction, only_row
from scrapy_ext.server.store.fencing import Attempt

#: Records per query, each of up to 1 MiB, and the bytes after which a read makes no further query.
_PAGE: Final = 128
_READ_BYTES: Final = 512 * 1024
#: Keys per counting step.
COUNT_STEP: Final = 100_000


class CollectionRecord(NamedTuple):
    """A stored record: key, time stored (ms), and JSON without the key."""

    key: bytes
    ts: int
    value: bytes


class Deletion(NamedTuple):
    """Numbers of deleted records and of keys examined."""

    deleted: int
    scanned: int


class _Place(NamedTuple):
    """Position of a scan: remaining ranges, the quota of the first of them, and the remaining limit in all."""

    ranges: tuple[Range, ...]
    quota: tuple[int, ...]
    left: int | None


async def names(tx: Transaction, project: int) -> list[CollectionName]:
    rows = await tx.fetch("SELECT type, name FROM collections WHERE project = $1 ORDER BY name, type", project)
    return [CollectionName(*row) for row in rows]


def _number(kind: str, name: str) -> str:
    """Return a subquery for the number of a collection."""
    return f"(SELECT collection FROM collections WHERE project = $1 AND type = {kind} AND name = {name})"


_GET: Final = f"""SELECT key, ts, value FROM collection_records
    WHERE project = $1 AND collection = {_number("$2", "$3")}
    AND key = $4 AND (expires IS NULL OR expires > $5)"""


async def get(tx: Transaction, now: int, which: Collection, key: bytes) -> CollectionRecord | None:
    await check_job(tx, which, key)
    row = await tx.fetchrow(_GET, which.project, which.type.value, which.name, key, now)
    return CollectionRecord(*row) if row else None


async def _copies(tx: Transaction, now: int, which: Collection, key: bytes) -> list[CollectionRecord]:
    """Return the stored copies of a record, newest first."""
    await check_job(tx, which, key)
    number = await number_of(tx, which)
    row = await tx.fetchrow(
        """SELECT ts, value, ts_1, value_1, ts_2, value_2 FROM collection_records
           WHERE project = $1 AND collection = $2 AND key = $3 AND (expires IS NULL OR expires > $4)""",
        which.project,
        -1 if number is None else number,
        key,
        now,
    )
    if row is None:
        return []
    copies = [CollectionRecord(key, row[place], row[place + 1]) for place in (0, 2, 4) if row[place + 1] is not None]
    return [copy for copy in copies if not which.type.expires or copy.ts + EXPIRY_MS > now]


async def _page(
    tx: Transaction, which: Collection, place: _Place, selection: RecordSelection, *, now: int
) -> tuple[list[CollectionRecord], _Place]:
    """Return the records of one read and the next position; a read may cover many short ranges."""
    found: list[CollectionRecord] = []
    size = 0
    ranges, quota, left = place
    while ranges and left != 0 and size < _READ_BYTES:
        keys, limit = [] if quota else _keys(ranges, left), _PAGE
        if keys:
            records = await _by_key(tx, which, keys, selection, now=now)
        else:
            limit = min(_PAGE if left is None else left, *quota[-1:], _PAGE)
            records = await _of_range(tx, which, ranges[0], selection, limit=limit, now=now)
        hidden = await hidden_keys(tx, which, [record.key for record in records])
        shown = [record for record in records if record.key not in hidden]
        found += shown
        size += sum(len(record.value) for record in records)
        left, quota = None if left is None else left - len(shown), less(quota, len(shown))
        if keys:
            ranges = ranges[len(keys) :]
        elif len(records) < limit or 0 in quota[-1:]:
            ranges = ranges[1:]
            quota = selection.quota(len(selection.ranges) - len(ranges), quota)
        else:
            ranges = (ranges[0]._replace(low=records[-1].key, after=True), *ranges[1:])
    return found, _Place(ranges, quota, left)


def _keys(ranges: Sequence[Range], left: int | None) -> list[bytes]:
    """Return the leading single-key ranges, as many as one read handles."""
    most = _PAGE if left is None else min(_PAGE, left)
    singles = itertools.takewhile(lambda part: part.is_key and not part.after, ranges[:most])
    return [part.low for part in singles]


async def _few(tx: Transaction, which: Collection, selection: RecordSelection, *, now: int) -> list[CollectionRecord]:
    """Return the records of a short selection."""
    records = await _by_key(tx, which, [part.low for part in selection.ranges], selection, now=now)
    hidden = await hidden_keys(tx, which, [record.key for record in records])
    return [record for record in records if record.key not in hidden]


_BY_KEY: Final = f"""SELECT key, ts, value FROM collection_records
    WHERE project = $1 AND collection = {_number("$2", "$3")} AND (expires IS NULL OR expires > $4)
    AND ts >= $5 AND ts < $6 AND key = ANY($7)"""


async def _by_key(
    tx: Transaction, which: Collection, keys: Sequence[bytes], selection: RecordSelection, *, now: int
) -> list[CollectionRecord]:
    rows = await tx.fetch_any(
        _BY_KEY,
        which.project,
        which.type.value,
        which.name,
        now,
        selection.startts or 0,
        MAX_NUMBER if selection.endts is None else selection.endts,
        keys=keys,
    )
    return sorted(CollectionRecord(*row) for row in rows)


async def _of_range(
    tx: Transaction, which: Collection, part: Range, selection: RecordSelection, *, limit: int, now: int
) -> list[CollectionRecord]:
    condition, arguments = conditions(part, selection)
    name = len(arguments) + 3
    rows = await tx.fetch(
        f"""SELECT key, ts, value FROM collection_records
            WHERE project = $1 AND collection = {_number("$2", f"${name}")}{condition}
            AND (expires IS NULL OR expires > ${name + 1})
            ORDER BY key LIMIT ${name + 2}""",
        which.project,
        which.type.value,
        *arguments,
        which.name,
        now,
        limit,
    )
    return [CollectionRecord(*row) for row in rows]


async def _count(tx: Transaction, which: Collection, selection: RecordSelection, most: int, *, now: int) -> Count:
    total, scanned = 0, 0
    quota: tuple[int, ...] = ()
    for place, part in enumerate(selection.ranges):
        left, quota = most - scanned, selection.quota(place, quota)
        condition, arguments = conditions(part, selection._replace(startts=None, endts=None))
        name = len(arguments) + 3
        condition = f"project = $1 AND collection = {_number('$2', f'${name}')}{condition} ORDER BY key"
        row = await only_row(
            tx,
            f"""SELECT count(*), count(CASE WHEN ts >= ${name + 2} AND ts < ${name + 3}
                    AND (expires IS NULL OR expires > ${name + 4}) THEN 1 END)
                FROM (SELECT ts, expires FROM collection_records
                      WHERE {condition} LIMIT ${name + 1}) AS part""",
            which.project,
            which.type.value,
            *arguments,
            which.name,
            left,
            selection.startts or 0,
            MAX_NUMBER if selection.endts is None else selection.endts,
            now,
        )
        scanned += row[0]
        counted = min(row[1:] + quota[-1:])
        total, quota = total + counted, less(quota, counted)
        if row[0] == left:
            following = await tx.fetchrow(
                f"SELECT key FROM collection_records WHERE {condition} LIMIT 1 OFFSET ${name + 1}",
                which.project,
                which.type.value,
                *arguments,
                which.name,
                left,
            )
            if following is not None:
                return Count(total, scanned, following[0].decode())
    return Count(total, scanned)


class CollectionStore(EngineStore):
    names = Method("read", names)

    async def write(
        self, which: Collection, records: Sequence[tuple[bytes, bytes]], attempt: Attempt | None = None
    ) -> None:
        """Create or update records, given as key and JSON; the last of several with one key counts.

        ``attempt``, here and below: that of the process that writes; the write fails (403) once the attempt is over.
        """
        given, now = dict(records), self._clock()
        if not await self._engine.write(write_records, which, given, now, attempt):
            # Not within the first attempt, which may hold a row of this name that another writer has renamed: a rename
            # locks the counter first and waits for that row.
            await self._engine.write(create_and_write, which, given, now, attempt)

    get = TimedMethod("read_inline", get)
    copies = TimedMethod("read", _copies)

    async def scan(
        self, which: Collection, selection: RecordSelection, count: int | None = None
    ) -> AsyncIterator[list[CollectionRecord]]:
        """Yield the selected records, range by range, ordered by key."""
        place = _Place(selection.ranges, selection.quota(0), count)
        while place.ranges and place.left != 0:
            records, place = await self._engine.read(_page, which, place, selection, now=self._clock())
            if records:
                yield records

    async def few(self, which: Collection, selection: RecordSelection) -> list[CollectionRecord]:
        """Return the records of a short selection, ordered by key."""
        return await self._engine.read_inline(_few, which, selection, now=self._clock())

    async def count(self, which: Collection, selection: RecordSelection, most: int | None = None) -> Count:
        """Count the selected records, up to ``most`` (``COUNT_STEP``) keys, and return where to continue."""
        return await self._engine.read_inline(_count, which, selection, most or COUNT_STEP, now=self._clock())

    async def delete(self, which: Collection, selection: RecordSelection, attempt: Attempt | None = None) -> Deletion:
        """Delete a bounded number of the selected records."""
        deleted, scanned, now = 0, 0, self._clock()
        quota: tuple[int, ...] = ()
        for place, each in enumerate(selection.ranges):
            part, quota = each, selection.quota(place, quota)
            while 0 not in quota[-1:]:
                left = quota[-1] if quota else None
                step, seen, last = await self._engine.write(
                    delete_step, which, part, selection, left, now=now, attempt=attempt
                )
                deleted, scanned = deleted + step, scanned + seen
                quota = less(quota, step)
                if last is None:
                    break
                part = part._replace(low=last, after=True)
        return Deletion(deleted, scanned)

    delete_keys = Method("write", delete_keys)
    drop = Method("write", drop)
    rename = Method("write", rename)
