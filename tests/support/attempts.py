"""Attempts of a group of workers, without their processes."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.interface import Transaction


async def add_workers(store: Store, key: JobKey, numbers: Iterable[int]) -> None:
    """Give a job a group whose workers have attempts of these numbers."""

    async def add(tx: Transaction) -> None:
        rows = [(*key, number, worker) for worker, number in enumerate(sorted(numbers))]
        await tx.execute_many(
            """INSERT INTO attempts (project, spider, job, attempt, worker, node, units, placed)
               VALUES ($1, $2, $3, $4, $5, '', 0, 0)""",
            rows,
        )
        await tx.execute(
            """INSERT INTO worker_groups (project, spider, job, least, most, target, changed, last_attempt)
               VALUES ($1, $2, $3, 1, 8, $4, 0, $5)""",
            *key,
            len(rows),
            max(numbers),
        )

    await store._engine.write(add)


async def end_worker(store: Store, key: JobKey, number: int) -> bool:
    """Remove an attempt, as after its death; return false when it was over."""

    async def end(tx: Transaction) -> int:
        return await tx.execute(
            "DELETE FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4", *key, number
        )

    return bool(await store._engine.write(end))
