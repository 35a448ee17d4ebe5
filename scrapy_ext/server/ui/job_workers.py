"""Workers of a job, as its page and its log show them."""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS, MOST_WORKERS, Bounds
from scrapy_ext.api.platform.workers import SILENCE, WorkerRow
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.group_rows import Group
from scrapy_ext.server.store.jobs.group_state import GroupState
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui import shapes

_SILENT: Final = 1000 * SILENCE
_MINUTE: Final = 60_000
#: Time (ms) over which a rate is taken at least.
_LEAST: Final = 1000


class WorkerLine(NamedTuple):
    """A worker. ``busy``: share of its time, in per cent; ``rate``: responses a minute since its start; ``age``: time
    (ms) since its last report. ``requests``: those that wait in its memory or are being downloaded."""

    row: WorkerRow
    state: str
    busy: float | None
    rate: str
    requests: int
    age: int | None


class JobWorkers(NamedTuple):
    """The workers of a running job. ``target``: the number that it should have, within ``bounds``."""

    lines: list[WorkerLine]
    target: int
    bounds: str
    lost: int
    closing: str


async def workers_of_job(store: Store, job: StoredJob) -> JobWorkers | None:
    """Return the workers of a running job with a group; None for any other, which is not read."""
    if job.state is not JobState.RUNNING or JOB_WORKERS not in job.metadata:
        return None
    found = await store.groups.state(job.key)
    return None if found is None else _shown(found, store.clock())


def _shown(found: GroupState, now: int) -> JobWorkers:
    group = found.group
    return JobWorkers(
        [_line(row, group, now) for row in found.workers],
        group.target,
        Bounds(group.least, group.most).text,
        group.losses,
        "" if group.closing is None else group.closing.reason,
    )


def _line(row: WorkerRow, group: Group, now: int) -> WorkerLine:
    since = 0 if row.reported is None else row.reported - row.placed
    rate = shapes.number(round(row.counts.responses * _MINUTE / since)) if since >= _LEAST else "–"
    busy = None if row.busy is None else 100 * row.busy
    age = None if row.reported is None else max(now - row.reported, 0)
    return WorkerLine(row, _state(row, group, age), busy, rate, row.queue.memory + row.queue.active, age)


def _state(row: WorkerRow, group: Group, age: int | None) -> str:
    if row.ended:
        return "ended"
    if not row.number:
        return "starting"
    if age is not None and age > _SILENT:
        return "silent"
    if row.leaving:
        return "leaving"
    if group.start_attempt == row.attempt and not group.started:
        return "runs start()"
    return "idle" if row.idle else "running"


def worker_number(text: str) -> int | None:
    """Return the number of a worker that a filter names; None for a text that is none."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_WORKERS)) else MOST_WORKERS
    return number if number < MOST_WORKERS else None
