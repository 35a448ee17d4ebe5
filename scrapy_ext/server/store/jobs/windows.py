"""The newest matching jobs, without most of their metadata, for filters and orders that no index has.

A window has a bounded number of jobs, and a bounded number of bytes of metadata is read for it: a caller examines the
jobs of the window alone, and knows the oldest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.verdicts import Verdict
from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage, from_rows, list_keys, pairs, with_counts
from scrapy_ext.server.store.jobs.rows import StoredJob

#: Maximum jobs of a window.
WINDOW: Final = 10_000
#: Jobs read at once.
_STEP: Final = 500
#: Metadata above this size is read one by one, up to so many bytes in all.
_LARGE: Final = 64 * 1024
_MOST_BYTES: Final = 64 * 1024 * 1024


class _Fields(msgspec.Struct, omit_defaults=True):
    """The members of the metadata that a window has; the others are skipped, not decoded."""

    close_reason: object = None
    pending_time: object = None
    running_time: object = None
    finished_time: object = None
    tags: object = None
    priority: object = None
    version: object = None
    spider_args: object = None
    cmd_args: object = None
    runs: object = None
    node: object = None
    frontier: object = None
    waits_since: object = None


_decode: Final = msgspec.json.Decoder(_Fields).decode


class JobWindow(NamedTuple):
    """Jobs, newest first, with a few fields of their metadata. ``more``: there are older ones that match."""

    jobs: list[StoredJob]
    more: bool


async def window(
    tx: Transaction, project: int, which: JobFilter, *, counts: Sequence[str] = (), size: int = WINDOW
) -> JobWindow:
    """Return the newest matching jobs; ``counts`` names the numbers of their records that are added."""
    keys = [key for _, key in await list_keys(tx, project, which, JobPage(size + 1))]
    jobs: list[StoredJob] = []
    left = _MOST_BYTES
    for first in range(0, min(len(keys), size), _STEP):
        part, used = await _read(tx, project, keys[first : min(first + _STEP, size)], left)
        jobs += await with_counts(tx, project, part, counts) if counts else part
        left -= used
        if left <= 0:
            break
    return JobWindow(jobs, len(keys) > len(jobs))


async def _read(tx: Transaction, project: int, keys: Sequence[JobKey], most: int) -> tuple[list[StoredJob], int]:
    """Return jobs in the order of their keys until their metadata has ``most`` bytes, and the number of bytes."""
    rows = await tx.fetch(
        f"""SELECT jobs.spider, jobs.job, spider_name, state, changed, updated, length(metadata), verdict,
                   CASE WHEN length(metadata) <= {_LARGE} THEN metadata END
            FROM {from_rows(f"VALUES {pairs(keys, 2)}", "jobs")}
            WHERE jobs.project = $1 AND jobs.spider = chosen.column1 AND jobs.job = chosen.column2""",
        project,
        *(number for key in keys for number in (key.spider, key.job)),
    )
    by_key = {(row[0], row[1]): row for row in rows}
    jobs: list[StoredJob] = []
    used = 0
    for key in keys:
        if (row := by_key.get((key.spider, key.job))) is not None:
            jobs.append(await _job(tx, key, row))
            used += row[6]
        if used >= most:
            break
    return jobs, used


async def _job(tx: Transaction, key: JobKey, row: Row) -> StoredJob:
    _, _, name, state, changed, updated, _, verdict, metadata = row
    if metadata is None:
        of_one = "SELECT metadata FROM jobs WHERE project = $1 AND spider = $2 AND job = $3"
        large = await tx.fetchrow(of_one, *key)
        metadata = large[0] if large else b"{}"
    fields = msgspec.to_builtins(_decode(metadata))
    return StoredJob(key, name, JobState(state), changed, updated, fields, verdict=Verdict(verdict))
