"""Writes, deletions and imports of collections' records.

An import gives records their times and copies of another platform. The newest of two versions of a record stays, so
that repeated and interrupted imports change nothing, and a record that was written here later is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.collections import EXPIRY_MS, record_faults
from scrapy_ext.api.platform.job_data import OWNED_COLLECTIONS
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.store.collections.selections import (
    Collection,
    Range,
    RecordSelection,
    check_jobs,
    conditions,
    number_of,
)
from scrapy_ext.server.store.engine.interface import EngineStore, Row, TimedMethod, Transaction
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.projects import advance, hold
from scrapy_ext.server.store.removals import COLLECTION, RemovedOwner, add_removal

# ── records as received: the checks of the contract, and the separation of their keys ──

#: Start of an object whose first member is its key, up to the second member.
_KEY_FIRST: Final = re.compile(rb'\s*\{\s*"_key"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*')

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def checked(given: Sequence[tuple[int, bytes, dict[str, Any]]], key: str | None) -> list[tuple[bytes, bytes]]:
    """Return keys and records without them, from line numbers, lines and objects; raise ``ContractError``."""
    records: list[tuple[bytes, bytes]] = []
    for number, line, record in given:
        place = f"line {number}"
        if key is not None and record.setdefault("_key", key) != key:
            raise refused(place, f"has _key {record['_key']!r}, and the path says {key!r}", "Make them the same.")
        faults = list(record_faults(record, len(line), place))
        if faults:
            raise ContractError(faults)
        records.append((record["_key"].encode(), _without_key(line, record)))
    return records


def _without_key(line: bytes, record: dict[str, Any]) -> bytes:
    """Return the record without its key; the other members keep their bytes."""
    if len(record) == 1:
        return b"{}"
    if (first := _KEY_FIRST.match(line)) and not _perhaps_key(rest := line[first.end() :]):
        return b"{" + rest.strip()
    members = _members(line)
    members.pop("_key", None)
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in members.items()) + b"}"


def _perhaps_key(rest: bytes) -> bool:
    """Return true when another member may be named _key, literally or with escapes."""
    return b'_key"' in rest or b"\\u00" in rest


#: The counter of collection numbers.
_COUNTER: Final = "collection"
#: Keys per step of a deletion: their records may have a megabyte each.
_DELETE_STEP: Final = 1_000
#: Expired records removed per write: more than a write adds on average.
_SWEEP: Final = 500


async def write_records(
    tx: Transaction, which: Collection, records: dict[bytes, bytes], now: int, attempt: Attempt | None = None
) -> bool:
    """Create or update records by key; return false when the collection does not exist.

    Raises :class:`ContractError` (410) for records that belong to a deleted job.
    """
    await check_attempt(tx, attempt)
    await check_jobs(tx, which, records)
    number = await number_of(tx, which, hold=True)
    if number is None:
        return False
    expires = now + EXPIRY_MS if which.type.expires else None
    await tx.execute_many(
        _UPSERT_WITH_COPIES if which.type.copies > 1 else _UPSERT,
        [(which.project, number, key, now, expires, records[key]) for key in sorted(records)],
    )
    if which.type.expires:
        await _sweep(tx, which.project, number, now)
    return True


async def create_and_write(
    tx: Transaction, which: Collection, records: dict[bytes, bytes], now: int, attempt: Attempt | None = None
) -> None:
    """Create a collection that :func:`write_records` has not found, and write the records."""
    await check_attempt(tx, attempt)
    await hold(tx, which.project, _COUNTER)
    # Another writer may have created the collection meanwhile.
    if not await write_records(tx, which, records, now):
        await tx.execute(
            "INSERT INTO collections (project, name, type, collection) VALUES ($1, $2, $3, $4)",
            which.project,
            which.name,
            which.type.value,
            await advance(tx, which.project, _COUNTER),
        )
        await write_records(tx, which, records, now)


_UPSERT: Final = """
    INSERT INTO collection_records (project, collection, key, ts, expires, value) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (project, collection, key) DO UPDATE
    SET ts = excluded.ts, expires = excluded.expires, value = excluded.value"""

#: Rewriting an unchanged record makes no copy, so that repeating a write keeps the copies. An expired record makes none
#: either.
_UPSERT_WITH_COPIES: Final = _UPSERT + "".join(
    f""",
        {column} = CASE WHEN collection_records.expires <= excluded.ts THEN NULL
                   WHEN collection_records.value = excluded.value THEN collection_records.{column}
                   ELSE collection_records.{before} END"""
    for column, before in (("ts_1", "ts"), ("value_1", "value"), ("ts_2", "ts_1"), ("value_2", "value_1"))
)


async def _sweep(tx: Transaction, project: int, number: int, now: int) -> None:
    # After the records are written, and without rows locked by others, so it never waits.
    rows = await tx.fetch(
        """SELECT key FROM collection_records
           WHERE project = $1 AND collection = $2 AND expires IS NOT NULL AND expires <= $3
           LIMIT $4 FOR UPDATE SKIP LOCKED""",
        project,
        number,
        now,
        _SWEEP,
    )
    await _delete_rows(tx, project, number, rows)


async def _delete_rows(tx: Transaction, project: int, number: int, keys: Sequence[Row]) -> None:
    await tx.execute_many(
        "DELETE FROM collection_records WHERE project = $1 AND collection = $2 AND key = $3",
        [(project, number, *key) for key in keys],
    )


async def delete_step(
    tx: Transaction,
    which: Collection,
    part: Range,
    selection: RecordSelection,
    left: int | None,
    *,
    now: int,
    attempt: Attempt | None = None,
) -> tuple[int, int, bytes | None]:
    """Delete one step; return the numbers of records deleted and keys examined, and the last key if more may follow."""
    await check_attempt(tx, attempt)
    number = await number_of(tx, which)
    if number is None:
        return 0, 0, None
    condition, arguments = conditions(part, selection._replace(startts=None, endts=None))
    rows = await tx.fetch(
        f"""SELECT key, ts, expires FROM collection_records WHERE project = $1 AND collection = $2{condition}
            ORDER BY key LIMIT ${len(arguments) + 3} FOR UPDATE""",
        which.project,
        number,
        *arguments,
        _DELETE_STEP,
    )
    low = 0 if selection.startts is None else selection.startts
    high = MAX_NUMBER if selection.endts is None else selection.endts
    # An expired record does not count as deleted, since no reader sees it.
    keys = [key for key, ts, expires in rows if low <= ts < high and (expires is None or expires > now)][:left]
    await _delete_rows(tx, which.project, number, [(key,) for key in keys])
    return len(keys), len(rows), rows[-1][0] if len(rows) == _DELETE_STEP else None


async def delete_keys(
    tx: Transaction, which: Collection, keys: Sequence[bytes], attempt: Attempt | None = None
) -> None:
    await check_attempt(tx, attempt)
    number = await number_of(tx, which)
    if number is None:
        return
    # All writers lock rows in this order.
    await _delete_rows(tx, which.project, number, [(key,) for key in sorted(keys)])


async def drop(tx: Transaction, project: int, name: str, attempt: Attempt | None = None) -> bool:
    """Delete the collections of a name; their rows are purged later."""
    await check_attempt(tx, attempt)
    if not await _hold_homonyms(tx, project, name):
        return False
    rows = await tx.fetch(
        "DELETE FROM collections WHERE project = $1 AND name = $2 RETURNING collection", project, name
    )
    for (number,) in rows:
        await add_removal(tx, RemovedOwner(project, COLLECTION, number))
    return bool(rows)


async def _hold_homonyms(tx: Transaction, project: int, name: str) -> bool:
    """Lock the project's collections if there are any of this name; return whether there are."""
    if not await _is_there(tx, project, name):
        return False
    await hold(tx, project, _COUNTER)
    # Another writer may have renamed or deleted them before the lock was acquired.
    return await _is_there(tx, project, name)


async def _is_there(tx: Transaction, project: int, name: str) -> bool:
    row = await tx.fetchrow("SELECT 1 FROM collections WHERE project = $1 AND name = $2", project, name)
    return row is not None


async def rename(tx: Transaction, project: int, name: str, new_name: str, attempt: Attempt | None = None) -> bool:
    """Rename the collections of a name; raise :class:`ContractError` when the new name is taken.

    A collection whose records belong to jobs keeps its name, by which those of deleted jobs are recognized.
    """
    await check_attempt(tx, attempt)
    for field, given in (("name", name), ("new_name", new_name)):
        if given in OWNED_COLLECTIONS:
            raise refused(
                field, f"must not be {given}, whose records belong to jobs", "Choose the name of another collection."
            )
    if not await _hold_homonyms(tx, project, name):
        return False
    if await _is_there(tx, project, new_name):
        raise ContractError(
            [Violation("new_name", f"is the name of a collection already: {new_name}", "Choose another name.")]
        )
    changed = await tx.execute(
        "UPDATE collections SET name = $3 WHERE project = $1 AND name = $2", project, name, new_name
    )
    return changed > 0


#: A time (ms) and a record.
Copy = tuple[int, bytes]

_IMPORT: Final = """
    INSERT INTO collection_records (project, collection, key, ts, expires, value, ts_1, value_1, ts_2, value_2)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (project, collection, key) DO UPDATE
    SET ts = excluded.ts, expires = excluded.expires, value = excluded.value, ts_1 = excluded.ts_1,
        value_1 = excluded.value_1, ts_2 = excluded.ts_2, value_2 = excluded.value_2
    WHERE collection_records.ts < excluded.ts"""


async def write(tx: Transaction, now: int, which: Collection, records: Mapping[bytes, Sequence[Copy]]) -> None:
    """Store records by key, the oldest copy first; expired ones are left out."""
    number = await number_of(tx, which, hold=True)
    if number is None:
        await create_and_write(tx, which, {}, now)
        number = await number_of(tx, which, hold=True)
    rows = [(which.project, number, key, *_columns(which, records[key])) for key in sorted(records)]
    kept = [row for row in rows if row[4] is None or row[4] > now]
    await tx.execute_many(_IMPORT, kept)


def _columns(which: Collection, copies: Sequence[Copy]) -> list[Any]:
    newest_first = [*reversed(copies)][: which.type.copies]
    ts, value = newest_first[0]
    older = [part for copy in newest_first[1:] for part in copy]
    return [ts, ts + EXPIRY_MS if which.type.expires else None, value, *older, *[None] * (4 - len(older))]


class CollectionImportStore(EngineStore):
    """Writes of imported records."""

    write = TimedMethod("write", write)
