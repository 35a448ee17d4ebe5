"""Numbers of jobs by spider and state, kept in rows: a count of a million jobs reads some rows instead.

Every operation that adds a job, changes its state or removes its row calls :func:`count_moves` with what it did, after
its last lock on a job and before it writes activity messages (:ref:`lock-order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store.engine.interface import Transaction


class Move(NamedTuple):
    """A job of a spider that passed from one state to another; None: it did not exist before, or does not any more."""

    spider: int
    before: JobState | None
    after: JobState | None


async def count_moves(tx: Transaction, project: int, moves: Iterable[Move]) -> None:
    """Change the numbers of jobs."""
    changes = Counter[tuple[int, str]]()
    for spider, before, after in moves:
        if before is not None:
            changes[spider, before.value] -= 1
        if after is not None:
            changes[spider, after.value] += 1
    await tx.execute_many(
        """INSERT INTO job_counts (project, spider, state, jobs) VALUES ($1, $2, $3, $4)
           ON CONFLICT (project, spider, state) DO UPDATE SET jobs = job_counts.jobs + excluded.jobs""",
        [(project, *key, change) for key, change in sorted(changes.items()) if change],
    )
