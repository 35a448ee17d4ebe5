"""Rows of jobs: reading them, and storing their metadata.

A job's metadata is one JSON object, read and rewritten within a transaction. Columns (state, time of its last change,
spider, priority, needs) and the table ``job_tags`` repeat what lists filter and order by; :func:`save` updates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.imports import IMPORTED
from scrapy_ext.api.platform.jobs import (
    DEFAULT_PRIORITY,
    DEFAULT_UNITS,
    MAX_NAME,
    MAX_UNITS,
    MIN_UNITS,
    RUNS,
    JobState,
    is_name,
)
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.verdicts import UNJUDGED, Finished, Verdict, reasons_of, verdict_of
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS, Bounds, bounds_of
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Maximum bytes of a job's metadata as JSON that clients may use, and reserve for changes of its state.
MAX_METADATA_BYTES: Final = 1024 * 1024
_STATE_RESERVE: Final = 64 * 1024
#: Fields that only changes of state set.
PROTECTED: Final = frozenset({"state", "project", "spider", "key", "_key", "auth", "attempt", "node", "nodes_lost"})

#: Columns of :func:`stored`.
COLUMNS: Final = "spider, job, spider_name, state, changed, updated, metadata, verdict"


class Counts(NamedTuple):
    """Numbers of a job's records, and of its log records of level WARNING, and of ERROR and above."""

    items: int = 0
    requests: int = 0
    logs: int = 0
    errors: int = 0
    warnings: int = 0


class StoredJob(NamedTuple):
    """A job. ``changed``: time (ms) of its last change of state; ``updated``: of its last change.

    ``verdict``: of a finished one, once it is given.
    """

    key: JobKey
    spider: str
    state: JobState
    changed: int
    updated: int
    metadata: dict[str, Any]
    counts: Counts = Counts()
    verdict: Verdict = Verdict.NONE


async def get_job(tx: Transaction, key: JobKey, *, lock: bool = False) -> StoredJob | None:
    """Return one job, locked with ``lock`` until the end of the transaction."""
    row = await tx.fetchrow(
        f"SELECT {COLUMNS} FROM jobs WHERE project = $1 AND spider = $2 AND job = $3" + (" FOR UPDATE" if lock else ""),
        *key,
    )
    return stored(key.project, row) if row else None


def stored(project: int, row: Row) -> StoredJob:
    """Parse a row of :data:`COLUMNS`."""
    spider, job, name, state, changed, updated, metadata, verdict = row
    return StoredJob(
        JobKey(project, spider, job),
        name,
        JobState(state),
        changed,
        updated,
        msgspec.json.decode(metadata),
        verdict=Verdict(verdict),
    )


def reason_of(job: StoredJob) -> str:
    """Return the close reason of a job, "" without one."""
    reason = job.metadata.get("close_reason")
    return reason if isinstance(reason, str) else ""


def verdict_of_job(job: StoredJob) -> Verdict | None:
    """Return the verdict on a finished job; None for any other, and for one that is not judged yet.

    A close reason that needs somebody decides at once. That of a good end does not: the log may have errors.
    """
    if job.state is not JobState.FINISHED:
        return None
    if job.verdict is not Verdict.NONE:
        return job.verdict
    reason = reason_of(job)
    verdict = verdict_of(reasons_of(Finished(reason, 0, 0, None)), reason)
    return None if verdict is Verdict.GREEN else verdict


def verdict_text(job: StoredJob) -> str | None:
    """Return red, amber, green, none (cancelled) or unjudged for a finished job; None for any other."""
    if job.state is not JobState.FINISHED:
        return None
    verdict = verdict_of_job(job)
    return UNJUDGED if verdict is None else verdict.text


def ran_for(job: StoredJob, now: int) -> int | None:
    """Return for how long (ms) a job ran in all its runs, or has run so far; None for one that never ran.

    The crawl writes a row for each run. A run that was killed ended with its last row: the job stays running then, and
    the pause before it is resumed does not count.
    """
    began, ended = job.metadata.get("running_time"), job.metadata.get("finished_time")
    if not isinstance(ended, int):
        ended = {JobState.RUNNING: now, JobState.FINISHED: job.changed}.get(job.state)
    if not isinstance(began, int) or ended is None:
        return None
    rows = job.metadata.get(RUNS)
    runs = [run for run in map(_run, rows) if run is not None] if isinstance(rows, list) else []
    if len(runs) < 2:
        return max(ended - began, 0)
    earlier = sum(max(run[1] - run[0], 0) for run in runs[:-1])
    return earlier + max(ended - max(began, runs[-1][0]), 0)


def _run(row: object) -> tuple[int, int] | None:
    """Return the times of a row; None for what is no row, since clients may write anything."""
    times = (row.get("start_time"), row.get("finish_time")) if isinstance(row, dict) else (None, None)
    first, last = times
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def importing_from(job: StoredJob) -> str | None:
    """Return the source of a job whose import is not complete, which no process runs; None for any other job."""
    origin = job.metadata.get(IMPORTED)
    if job.state is not JobState.RUNNING or "attempt" in job.metadata or not isinstance(origin, dict):
        return None
    source = origin.get("source")
    return source if isinstance(source, str) and origin.get("time") is None else None


def tags_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the tags in a job's metadata, in their order."""
    tags = metadata.get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def arguments_of(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the arguments in a job's metadata, of the spider and of a script: runs with the same are compared."""
    args, command = metadata.get("spider_args"), metadata.get("cmd_args")
    return args if isinstance(args, dict) else {}, command if isinstance(command, str) else ""


def priority_of(metadata: Mapping[str, Any]) -> int:
    """Return the priority in a job's metadata; the default one when it is not a number."""
    priority = metadata.get("priority")
    if isinstance(priority, int) and not isinstance(priority, bool) and abs(priority) <= MAX_NUMBER:
        return priority
    return DEFAULT_PRIORITY


def needs_of(metadata: Mapping[str, Any]) -> tuple[int, str]:
    """Return the units and the encoded tags that a job needs of its node."""
    units, tags = metadata.get("units"), metadata.get("node_tags")
    known = isinstance(units, int) and not isinstance(units, bool) and MIN_UNITS <= units <= MAX_UNITS
    named = {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
    return units if known and isinstance(units, int) else DEFAULT_UNITS, msgspec.json.encode(sorted(named)).decode()


def workers_of(metadata: Mapping[str, Any]) -> Bounds | None:
    """Return the bounds of the number of a job's workers; None for a job of one, and for what has no bounds."""
    text = metadata.get(JOB_WORKERS)
    try:
        bounds = bounds_of(text if isinstance(text, str) else "")
    except ContractError:  # clients may write anything
        return None
    return bounds if bounds.most > 1 else None


def merged(metadata: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata with fields set, except :data:`PROTECTED` ones."""
    return {**metadata, **{name: value for name, value in fields.items() if name not in PROTECTED}}


async def save(
    tx: Transaction, key: JobKey, metadata: Mapping[str, Any], now: int, *, from_client: bool = True
) -> None:
    """Store the metadata of a job and its columns. Changes not ``from_client`` may use the reserve."""
    await tx.execute(
        """UPDATE jobs SET metadata = $4, updated = $5, priority = $6, units = $7, node_tags = $8
           WHERE project = $1 AND spider = $2 AND job = $3""",
        *key,
        encode(metadata, MAX_METADATA_BYTES if from_client else MAX_METADATA_BYTES + _STATE_RESERVE),
        now,
        priority_of(metadata),
        *needs_of(metadata),
    )
    await index_tags(tx, key, metadata)


def encode(metadata: Mapping[str, Any], most: int = MAX_METADATA_BYTES) -> bytes:
    """Encode metadata; raise :class:`ContractError` when it is too large."""
    encoded = msgspec.json.encode(metadata)
    if len(encoded) > most:
        raise ContractError(
            [
                Violation(
                    "metadata",
                    f"of a job must be at most {MAX_METADATA_BYTES} bytes of JSON, got {len(encoded)}",
                    "Keep large values in a collection.",
                    413,
                )
            ]
        )
    return encoded


async def index_tags(tx: Transaction, key: JobKey, metadata: Mapping[str, Any], *, new: bool = False) -> None:
    """Update ``job_tags`` from the metadata; raise :class:`ContractError` for an invalid tag."""
    tags = set(tags_of(metadata))
    if not all(map(is_name, tags)):
        raise ContractError(
            [
                Violation(
                    "tags",
                    f"must be 1 to {MAX_NAME} characters each, and none of them NUL",
                    'Send tags such as "weekly".',
                )
            ]
        )
    present = set() if new else await _indexed_tags(tx, key)
    if gone := present - tags:
        await tx.execute_many(
            "DELETE FROM job_tags WHERE project = $1 AND spider = $2 AND job = $3 AND tag = $4",
            [(*key, tag) for tag in gone],
        )
    if added := tags - present:
        await tx.execute_many(
            "INSERT INTO job_tags (project, spider, job, tag) VALUES ($1, $2, $3, $4)",
            [(*key, tag) for tag in added],
        )


async def _indexed_tags(tx: Transaction, key: JobKey) -> set[str]:
    rows = await tx.fetch("SELECT tag FROM job_tags WHERE project = $1 AND spider = $2 AND job = $3", *key)
    return {row[0] for row in rows}
