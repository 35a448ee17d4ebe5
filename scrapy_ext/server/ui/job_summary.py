"""Summary of a job in a list of jobs."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store.jobs.rows import (
    Counts,
    StoredJob,
    arguments_of,
    importing_from,
    priority_of,
    ran_for,
    reason_of,
    tags_of,
    verdict_text,
    workers_of,
)
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.pending_reason import Capacity, waiting


class Summary(NamedTuple):
    """One row for a job."""

    key: str
    spider: str
    state: str
    outcome: str
    counts: Counts
    #: Times (ms) at which it began to run, and at which it was scheduled.
    started: int | None
    scheduled: int | None
    elapsed: int | None
    tags: list[str]
    waiting: str
    #: True while the job is copied from another platform: no process runs it.
    importing: bool
    #: Time (ms) of the last change of state.
    changed: int
    priority: int
    version: str
    node: str
    #: Arguments in one line, with secret values hidden.
    arguments: str
    #: Time (ms) between the scheduling and the start; so far, of a pending job.
    queued: int | None
    #: Of a finished job: green, amber, red, none for a cancelled one, or unjudged; "" for any other.
    verdict: str
    #: Number of its workers or its bounds, as ``4..32``; "" for a job with one.
    workers: str


def summary(job: StoredJob, now: int, capacity: Capacity | None = None) -> Summary:
    """Return the row of a job; ``capacity`` explains why a pending one waits."""
    source = importing_from(job)
    return Summary(
        key=str(job.key),
        spider=job.spider,
        state=job.state.value,
        outcome=reason_of(job),
        counts=job.counts,
        started=started_of(job),
        scheduled=_time_of(job, "pending_time"),
        elapsed=elapsed_of(job, now) if source is None else None,
        tags=tags_of(job.metadata),
        waiting=_waiting(job, source, capacity),
        importing=source is not None,
        changed=job.changed,
        priority=priority_of(job.metadata),
        version=text_of(job, "version"),
        node=text_of(job, "node"),
        arguments=arguments_in_a_line(job),
        queued=queued_for(job, now),
        verdict=verdict_text(job) or "",
        workers=bounds.text if (bounds := workers_of(job.metadata)) else "",
    )


def started_of(job: StoredJob) -> int | None:
    """Return when a job started to run (ms); None for one that did not."""
    return _time_of(job, "running_time")


def elapsed_of(job: StoredJob, now: int) -> int | None:
    """Return how long a job ran (ms) in all its runs, or has run so far; None for one that did not run."""
    return ran_for(job, now)


def queued_for(job: StoredJob, now: int) -> int | None:
    """Return how long a job waited for its start (ms), or has waited so far; None for one that was not scheduled."""
    scheduled, started = _time_of(job, "pending_time"), started_of(job)
    until = now if job.state is JobState.PENDING else started
    return None if scheduled is None or until is None else max(until - scheduled, 0)


def arguments_in_a_line(job: StoredJob) -> str:
    """Return the arguments of a job in one line, with secret values hidden; "" without any."""
    values, command = arguments_of(job.metadata)
    given = [f"{name}={shapes.cell(value)}" for name, value in sorted(shapes.hidden(values).items())]
    return ", ".join([*given, *(str(value) for value in shapes.hidden({"cmd_args": command}).values() if value)])


def text_of(job: StoredJob, name: str) -> str:
    """Return a text of a job's metadata, "" without one."""
    value = job.metadata.get(name)
    return value if isinstance(value, str) else ""


def _waiting(job: StoredJob, source: str | None, capacity: Capacity | None) -> str:
    if source is not None:
        return f"being imported from {source}; if the import was interrupted, repeat it"
    since = _time_of(job, "waits_since")
    if job.state is JobState.RUNNING and since is not None:
        return f"waits for requests since {shapes.when(since)} UTC"
    return waiting(job.metadata, capacity) if capacity and job.state is JobState.PENDING else ""


def _time_of(job: StoredJob, name: str) -> int | None:
    value = job.metadata.get(name)
    return value if isinstance(value, int) else None
