"""Rows of attempts: the workers of a job, with the last report of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import SHUTDOWN
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.scaling import NEW, Load
from scrapy_ext.api.platform.stat_kinds import Stat
from scrapy_ext.api.platform.workers import MEMORY_STAT, Counts, LiveWorker, Queue, Report, WorkerRow, reason_text
from scrapy_ext.server.store.engine.interface import Row, Transaction

_COLUMNS: Final = "attempt, worker, node, placed, reports, outcome, state"
_OF_JOB: Final = "project = $1 AND spider = $2 AND job = $3"


class WorkerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Last report of a worker, as stored. ``item_time``: time (ms) of the report with its last item.

    ``reported``: time (ms) of the last report; ``load``: of its last time; ``memory``: highest (bytes) in its stats.
    ``closed``: the worker crawls no more.
    """

    nonce: str = ""
    queue: Queue = Queue()
    counts: Counts = Counts()
    item_time: int | None = None
    leaving: bool = False
    reported: int | None = None
    load: Load = NEW
    memory: int | None = None
    closed: bool = False

    def after(self, report: Report, now: int) -> WorkerState:
        """Return the state after a report, which may leave out what has not changed."""
        counts = report.counts or self.counts
        return WorkerState(
            self.nonce,
            report.queue or self.queue,
            counts,
            now if counts.items > self.counts.items else self.item_time,
            report.leaving or self.leaving,
            now,
            self._load_after(report, now),
            _memory_of(report) or self.memory,
            report.closed or self.closed,
        )

    def _load_after(self, report: Report, now: int) -> Load:
        seconds = 0.0 if self.reported is None else (now - self.reported) / 1000
        if report.queue is None or seconds <= 0:
            return self.load
        requests = sum(domain.open for domain in (report.domains or {}).values())
        return self.load.after(report.queue.idle / seconds, float(report.queue.memory > 0), seconds, requests)


def _memory_of(report: Report) -> int | None:
    stat = (report.stats or {}).get(MEMORY_STAT)
    value = None if stat is None else stat.value
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_NUMBER else None


class AttemptRow(NamedTuple):
    """A worker of a job. ``number``: of its last report. ``outcome``: the close reason that its process has sent."""

    attempt: int
    worker: int
    node: str
    placed: int
    number: int
    outcome: str | None
    state: WorkerState

    @property
    def has_ended(self) -> bool:
        return self.outcome is not None

    @property
    def crawls(self) -> bool:
        """False if it has ended, or crawls no more and waits for the others."""
        return not (self.has_ended or self.state.closed)

    @property
    def live(self) -> LiveWorker:
        return LiveWorker(self.attempt, self.worker, self.number, self.is_idle, self.has_ended, self.state.closed)

    @property
    def is_idle(self) -> bool:
        """True if its last report had no request. One that has not reported may get some."""
        return self.number > 0 and self.state.queue.is_empty

    @property
    def listed(self) -> WorkerRow:
        state = self.state
        return WorkerRow(
            *(self.attempt, self.worker, self.number, self.is_idle, self.has_ended, state.closed),
            *(self.node, self.placed, state.queue, state.counts, state.leaving),
            reported=state.reported,
            busy=None if state.load == NEW else round(1 - state.load.idle, 3),
            memory=state.memory,
        )


class RemovedRow(NamedTuple):
    """A worker whose row was removed, with its last stats."""

    row: AttemptRow
    stats: Mapping[str, Stat]


_decode_state: Final = msgspec.json.Decoder(WorkerState).decode
_decode_stats: Final = msgspec.json.Decoder(dict[str, Stat]).decode


def _row(row: Row) -> AttemptRow:
    attempt, worker, node, placed, number, outcome, state = row
    decoded = WorkerState() if state is None else _decode_state(state)
    return AttemptRow(attempt, worker, node, placed, number, outcome, decoded)


async def rows_of(tx: Transaction, key: JobKey) -> list[AttemptRow]:
    """Return the workers of a job by their numbers; of two with one number, the later first."""
    rows = await tx.fetch(f"SELECT {_COLUMNS} FROM attempts WHERE {_OF_JOB} ORDER BY worker, attempt DESC", *key)
    return list(map(_row, rows))


async def lock_row(tx: Transaction, key: JobKey, attempt: int) -> AttemptRow | None:
    """Lock the row of an attempt; None if it is over."""
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM attempts WHERE {_OF_JOB} AND attempt = $4 FOR UPDATE", *key, attempt
    )
    return None if row is None else _row(row)


async def lock_local(tx: Transaction, key: JobKey) -> None:
    """Lock the attempts that no node runs."""
    await tx.fetch(f"SELECT attempt FROM attempts WHERE {_OF_JOB} AND node = '' ORDER BY attempt FOR UPDATE", *key)


async def add_row(tx: Transaction, key: JobKey, row: AttemptRow, units: int = 0) -> None:
    """Add the attempt of a worker that has sent no report. ``units``: those of its node that it uses."""
    await tx.execute(
        """INSERT INTO attempts (project, spider, job, attempt, node, units, placed, worker, reports, state)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9)""",
        *key,
        *(row.attempt, row.node, units, row.placed, row.worker),
        msgspec.json.encode(row.state),
    )


def new_row(attempt: int, worker: int, node: str, now: int, nonce: str = "") -> AttemptRow:
    """Return the row of a worker that is placed on a node, or joins."""
    return AttemptRow(attempt, worker, node, now, 0, None, WorkerState(nonce))


def lowest_free(rows: Iterable[AttemptRow]) -> int:
    """Return the lowest number of a worker that no other has."""
    numbers = {row.worker for row in rows}
    return next(number for number in count() if number not in numbers)


async def store_report(tx: Transaction, key: JobKey, row: AttemptRow, report: Report, now: int) -> None:
    """Store a report in the locked row of its attempt. Without stats or an outcome, those of the row stay."""
    await tx.execute(
        f"""UPDATE attempts SET reports = $5, state = $6, outcome = COALESCE($7, outcome)
            WHERE {_OF_JOB} AND attempt = $4""",
        *key,
        row.attempt,
        report.number,
        msgspec.json.encode(row.state.after(report, now)),
        (reason_text(report.outcome) or SHUTDOWN) if report.last else None,
    )
    if report.stats is not None:
        await tx.execute(
            f"UPDATE attempts SET stats = $5 WHERE {_OF_JOB} AND attempt = $4",
            *key,
            row.attempt,
            msgspec.json.encode(report.stats),
        )


async def stats_of(tx: Transaction, key: JobKey) -> dict[int, dict[str, Stat]]:
    """Return the last stats of the workers of a job by attempt."""
    rows = await tx.fetch(f"SELECT attempt, stats FROM attempts WHERE {_OF_JOB} AND stats IS NOT NULL", *key)
    return {attempt: _decode_stats(stats) for attempt, stats in rows}


async def remove_row(tx: Transaction, key: JobKey, attempt: int) -> RemovedRow | None:
    """Remove the row of an attempt, whose token writes nothing from then on; None if it is over."""
    row = await tx.fetchrow(
        f"DELETE FROM attempts WHERE {_OF_JOB} AND attempt = $4 RETURNING {_COLUMNS}, stats", *key, attempt
    )
    if row is None:
        return None
    *columns, stats = row
    return RemovedRow(_row(tuple(columns)), {} if stats is None else _decode_stats(stats))
