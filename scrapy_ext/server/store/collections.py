"""Collections: records by key, in the order of the keys' bytes.

A collection's records hang on its number, which is never used again: renaming and deleting cost the same
however many records there are. A record that has expired is not read; its row goes with a later write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.collections import EXPIRY_MS, CollectionName, CollectionType, Count
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.counters import advance, hold
from scrapy_ext.server.store.discards import COLLECTION, discard
from scrapy_ext.server.store.engine import Engine, Row, Transaction

#: Records of one read. A record has up to 1 MiB.
_PAGE: Final = 128
#: Keys that one step of counting or deleting looks at.
COUNT_STEP: Final = 100_000
_DELETE_STEP: Final = 5_000
#: Expired records that a write removes: more than it adds, on the whole.
_SWEEP: Final = 500


class Collection(NamedTuple):
    """Which collection."""

    project: int
    type: CollectionType
    name: str


class Record(NamedTuple):
    """A stored record: its key, when it was stored (ms), and its JSON without the key."""

    key: bytes
    ts: int
    value: bytes


class Range(NamedTuple):
    """Keys from ``low`` (included, unless ``after``) to below ``high`` (None: no end)."""

    low: bytes
    high: bytes | None
    after: bool = False


class Selection(NamedTuple):
    """Which records: of these ranges, at most ``per_range`` of each, stored between two times (ms)."""

    ranges: tuple[Range, ...]
    per_range: int | None = None
    startts: int | None = None
    endts: int | None = None


class CollectionStore:
    """The collections of all projects."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    async def names(self, project: int) -> list[CollectionName]:
        """The collections of a project."""
        return await self._engine.read(_names, project)

    async def write(self, which: Collection, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Create or update records, given as key and JSON; of two with the same key the last counts."""
        given, now = dict(records), self._clock()
        if not await self._engine.write(_write, which, given, now):
            # Apart from the first attempt, which may hold a row of this name that is another's by now: whoever
            # renames holds the counter first and waits for that row.
            await self._engine.write(_create_and_write, which, given, now)

    async def get(self, which: Collection, key: bytes) -> Record | None:
        """One record."""
        return await self._engine.read(_get, which, key, self._clock())

    async def scan(
        self, which: Collection, selection: Selection, count: int | None = None
    ) -> AsyncIterator[list[Record]]:
        """The selected records, range by range, in the order of their keys."""
        left = count
        for each in selection.ranges:
            left_here = _lesser(left, selection.per_range)
            part = each
            while left_here is None or left_here > 0:
                limit = _PAGE if left_here is None else min(_PAGE, left_here)
                records = await self._engine.read(_page, which, part, selection, limit=limit, now=self._clock())
                if records:
                    yield records
                left = None if left is None else left - len(records)
                left_here = None if left_here is None else left_here - len(records)
                if len(records) < limit:
                    break
                part = part._replace(low=records[-1].key, after=True)

    async def count(self, which: Collection, selection: Selection) -> Count:
        """How many records are selected; stops after ``COUNT_STEP`` keys and says where to go on."""
        return await self._engine.read(_count, which, selection, self._clock())

    async def delete(self, which: Collection, selection: Selection) -> int:
        """Delete the selected records; returns how many."""
        deleted = 0
        for each in selection.ranges:
            left = selection.per_range
            while left is None or left > 0:
                limit = _DELETE_STEP if left is None else min(_DELETE_STEP, left)
                step = await self._engine.write(_delete, which, each, selection, limit)
                deleted += step
                left = None if left is None else left - step
                if step < limit:
                    break
        return deleted

    async def delete_keys(self, which: Collection, keys: Sequence[bytes]) -> int:
        """Delete records by key; keys that name nothing are passed over. Returns how many were there."""
        return await self._engine.write(_delete_keys, which, keys)

    async def drop(self, project: int, name: str) -> bool:
        """Delete the collections of this name, of every type; returns whether there were any."""
        return await self._engine.write(_drop, project, name)

    async def rename(self, project: int, name: str, new_name: str) -> bool:
        """Rename the collections of this name, of every type; returns whether there were any.

        Raises :class:`ContractError` when the new name is taken.
        """
        return await self._engine.write(_rename, project, name, new_name)


def prefix_range(prefix: bytes) -> Range:
    """The keys that start with ``prefix``."""
    stem = prefix.rstrip(b"\xff")
    return Range(prefix, stem[:-1] + bytes([stem[-1] + 1]) if stem else None)


def key_range(key: bytes) -> Range:
    """One key."""
    return Range(key, key + b"\x00")


def _lesser(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)


async def _number(tx: Transaction, which: Collection) -> int | None:
    row = await tx.fetchrow(
        "SELECT collection FROM collections WHERE project = $1 AND name = $2 AND type = $3",
        which.project,
        which.name,
        which.type.value,
    )
    return row[0] if row else None


async def _held_number(tx: Transaction, which: Collection) -> int | None:
    """As :func:`_number`; nobody renames or deletes the collection until the operation ends."""
    row = await tx.fetchrow(
        "SELECT collection FROM collections WHERE project = $1 AND name = $2 AND type = $3 FOR SHARE",
        which.project,
        which.name,
        which.type.value,
    )
    return row[0] if row else None


async def _create_and_write(tx: Transaction, which: Collection, records: dict[bytes, bytes], now: int) -> None:
    await hold(tx, which.project, "collection")
    if not await _write(tx, which, records, now):  # another may have been faster
        number = await advance(tx, which.project, "collection")
        await tx.execute(
            "INSERT INTO collections (project, name, type, collection) VALUES ($1, $2, $3, $4)",
            which.project,
            which.name,
            which.type.value,
            number,
        )
        await _write(tx, which, records, now)


async def _names(tx: Transaction, project: int) -> list[CollectionName]:
    rows = await tx.fetch("SELECT type, name FROM collections WHERE project = $1 ORDER BY name, type", project)
    return [CollectionName(*row) for row in rows]


async def _write(tx: Transaction, which: Collection, records: dict[bytes, bytes], now: int) -> bool:
    """Returns whether there is such a collection."""
    number = await _held_number(tx, which)
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


_UPSERT: Final = """
    INSERT INTO collection_records (project, collection, key, ts, expires, value) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (project, collection, key) DO UPDATE
    SET ts = excluded.ts, expires = excluded.expires, value = excluded.value"""

_UPSERT_WITH_COPIES: Final = (
    _UPSERT
    + """,
        ts_1 = CASE WHEN {lives} THEN collection_records.ts END,
        value_1 = CASE WHEN {lives} THEN collection_records.value END,
        ts_2 = CASE WHEN {lives} THEN collection_records.ts_1 END,
        value_2 = CASE WHEN {lives} THEN collection_records.value_1 END""".format(
        lives="(collection_records.expires IS NULL OR collection_records.expires > excluded.ts)"
    )
)


async def _sweep(tx: Transaction, project: int, number: int, now: int) -> None:
    # After the records are written, and past those that others hold: it waits for nobody.
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


async def _get(tx: Transaction, which: Collection, key: bytes, now: int) -> Record | None:
    found = await _page(tx, which, key_range(key), Selection(()), limit=1, now=now)
    return found[0] if found else None


def _conditions(part: Range, selection: Selection) -> tuple[str, list[bytes | int]]:
    """A condition on key and ts, and its arguments, which follow two others."""
    conditions: list[tuple[str, bytes | int | None]] = [
        ("key > " if part.after else "key >= ", part.low),
        ("key < ", part.high),
        ("ts >= ", selection.startts),
        ("ts < ", selection.endts),
    ]
    used = [(text, value) for text, value in conditions if value is not None]
    text = "".join(f" AND {condition}${place}" for place, (condition, _) in enumerate(used, 3))
    return text, [value for _, value in used]


async def _page(
    tx: Transaction,
    which: Collection,
    part: Range,
    selection: Selection,
    *,
    limit: int,
    now: int,
) -> list[Record]:
    number = await _number(tx, which)
    if number is None:
        return []
    condition, arguments = _conditions(part, selection)
    rows: list[Row] = await tx.fetch(
        f"""SELECT key, ts, value FROM collection_records
            WHERE project = $1 AND collection = $2{condition}
            AND (expires IS NULL OR expires > ${len(arguments) + 3})
            ORDER BY key LIMIT ${len(arguments) + 4}""",  # noqa: S608 - built from fixed conditions above
        which.project,
        number,
        *arguments,
        now,
        limit,
    )
    return [Record(*row) for row in rows]


async def _count(tx: Transaction, which: Collection, selection: Selection, now: int) -> Count:
    number = await _number(tx, which)
    total, scanned = 0, 0
    for part in selection.ranges if number is not None else ():
        left = COUNT_STEP - scanned
        condition, arguments = _conditions(part, selection._replace(startts=None, endts=None))
        row = await tx.fetchrow(
            f"""SELECT count(*), count(CASE WHEN ts >= ${len(arguments) + 4} AND ts < ${len(arguments) + 5}
                    AND (expires IS NULL OR expires > ${len(arguments) + 6}) THEN 1 END)
                FROM (SELECT key, ts, expires FROM collection_records
                      WHERE project = $1 AND collection = $2{condition}
                      ORDER BY key LIMIT ${len(arguments) + 3}) AS part""",  # noqa: S608 - as above
            which.project,
            number,
            *arguments,
            left,
            selection.startts or 0,
            2**62 if selection.endts is None else selection.endts,
            now,
        )
        assert row is not None  # noqa: S101 - an aggregate has a row
        scanned += row[0]
        total += row[1] if selection.per_range is None else min(row[1], selection.per_range)
        if row[0] == left:
            rest = await tx.fetchrow(
                f"""SELECT key FROM collection_records WHERE project = $1 AND collection = $2{condition}
                    ORDER BY key LIMIT 1 OFFSET ${len(arguments) + 3}""",  # noqa: S608 - as above
                which.project,
                number,
                *arguments,
                left,
            )
            if rest is not None:
                return Count(total, scanned, rest[0].decode())
            break
    return Count(total, scanned)


async def _delete(
    tx: Transaction,
    which: Collection,
    part: Range,
    selection: Selection,
    limit: int,
) -> int:
    number = await _number(tx, which)
    if number is None:
        return 0
    condition, arguments = _conditions(part, selection)
    rows = await tx.fetch(
        f"""SELECT key FROM collection_records WHERE project = $1 AND collection = $2{condition}
            ORDER BY key LIMIT ${len(arguments) + 3} FOR UPDATE""",  # noqa: S608 - as above
        which.project,
        number,
        *arguments,
        limit,
    )
    await _delete_rows(tx, which.project, number, rows)
    return len(rows)


async def _delete_keys(tx: Transaction, which: Collection, keys: Sequence[bytes]) -> int:
    number = await _number(tx, which)
    if number is None:
        return 0
    deleted = 0
    for key in sorted(keys):  # in the order in which others write them
        deleted += await tx.execute(
            "DELETE FROM collection_records WHERE project = $1 AND collection = $2 AND key = $3",
            which.project,
            number,
            key,
        )
    return deleted


async def _drop(tx: Transaction, project: int, name: str) -> bool:
    if not await _hold_homonyms(tx, project, name):
        return False
    rows = await tx.fetch(
        "DELETE FROM collections WHERE project = $1 AND name = $2 RETURNING collection", project, name
    )
    for (number,) in rows:
        await discard(tx, project, COLLECTION, number)
    return bool(rows)


async def _hold_homonyms(tx: Transaction, project: int, name: str) -> bool:
    """Whether there are collections of this name; if so, nobody creates, renames or deletes one of the project."""
    found = await tx.fetchrow("SELECT 1 FROM collections WHERE project = $1 AND name = $2", project, name)
    if found is None:
        return False
    await hold(tx, project, "collection")
    return True


async def _rename(tx: Transaction, project: int, name: str, new_name: str) -> bool:
    if not await _hold_homonyms(tx, project, name):
        return False
    taken = await tx.fetchrow("SELECT 1 FROM collections WHERE project = $1 AND name = $2", project, new_name)
    if taken is not None:
        raise ContractError(
            [Violation("new_name", f"is the name of a collection already: {new_name}", "Choose another name.")]
        )
    changed = await tx.execute(
        "UPDATE collections SET name = $3 WHERE project = $1 AND name = $2", project, name, new_name
    )
    return changed > 0
