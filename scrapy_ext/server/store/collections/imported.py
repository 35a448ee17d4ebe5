"""Records of collections that are imported from another platform, with their times and copies.

The newest of two versions of a record stays, so that repeated and interrupted imports change nothing, and a record that
was written here later is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scrapy_ext.api.platform.collections import EXPIRY_MS
from scrapy_ext.server.store.collections.selections import Collection, number_of
from scrapy_ext.server.store.collections.writes import create_and_write
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.engine.methods import EngineStore, TimedMethod

#: A time (ms) and a record.
Copy = tuple[int, bytes]

_UPSERT: Final = """
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
    await tx.execute_many(_UPSERT, kept)


def _columns(which: Collection, copies: Sequence[Copy]) -> list[Any]:
    newest_first = [*reversed(copies)][: which.type.copies]
    ts, value = newest_first[0]
    older = [part for copy in newest_first[1:] for part in copy]
    return [ts, ts + EXPIRY_MS if which.type.expires else None, value, *older, *[None] * (4 - len(older))]


class CollectionImportStore(EngineStore):
    """Writes of imported records."""

    write = TimedMethod("write", write)
