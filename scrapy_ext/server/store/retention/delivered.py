"""Condition ``only_delivered``: records that were delivered, and have not changed since."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.deliveries import find_archive
from scrapy_ext.server.store.engine.interface import Transaction


async def delivered(tx: Transaction, key: JobKey, kinds: Iterable[str]) -> dict[str, str]:
    """Return the URL of the delivery of each kind of records of a locked job that has its present revision.

    The totals are locked, so that the caller can remove these kinds in the same transaction.
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
