"""Stats of a group: those of its workers that have ended, merged with those of the others, become the stats of its job.

A run begins with the first worker of a group that has none, and ends with its last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.jobs import CRAWL_STATS, FINISHED, RUNS
from scrapy_ext.api.platform.stat_kinds import (
    ELAPSED,
    LEFT_OUT,
    MAX_BYTES,
    Stat,
    leave_out,
    merged,
    sizes_of,
    with_durations,
)
from scrapy_ext.api.platform.workers import Counts, Totals
from scrapy_ext.server.store.jobs.attempt_rows import AttemptRow, RemovedRow
from scrapy_ext.server.store.jobs.rows import MAX_METADATA_BYTES

#: Rows of runs that are kept.
_MOST_RUNS: Final = 100
#: Milliseconds for which losses of workers count together.
_LOSSES_COUNT: Final = 3_600_000
_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.Decoder(dict[str, Stat]).decode


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """Workers of a group that have ended, as stored in ``worker_groups.stats``.

    ``began``: time (ms) when this run began. ``counts``, ``item_time``: numbers of its workers, and the time (ms) of
    their last item. ``lowest``: the lowest number of these workers. ``found_end``: a worker has found the end of the
    crawl, and none has been lost or has left since, whose work a successor would complete. ``unfinished``: the number
    of those that were lost or have left. ``stats``: of all runs. ``lost``: the number of workers that were lost within
    an hour ``lost_since`` a time (ms).
    """

    began: int | None = None
    counts: Counts = Counts()
    item_time: int | None = None
    lowest: int | None = None
    found_end: bool = False
    unfinished: int = 0
    stats: msgspec.Raw = msgspec.Raw(b"{}")
    lost_since: int = 0
    lost: int = 0

    def next_run(self) -> Ended:
        """Return what stays when all workers have ended."""
        return Ended(stats=self.stats, lost_since=self.lost_since, lost=self.lost)

    def plus(self, removed: RemovedRow, outcome: str | None = None) -> Ended:
        """Return them with another worker. ``outcome``: close reason of its crawl; None: it was lost."""
        row, stats = removed
        times = [time for time in (self.item_time, row.state.item_time) if time is not None]
        return Ended(
            self.began,
            self.counts.plus(row.state.counts),
            max(times, default=None),
            row.worker if self.lowest is None else min(self.lowest, row.worker),
            self.found_end and outcome == FINISHED,
            self.unfinished + (outcome != FINISHED),
            msgspec.Raw(_encode(_bounded(self._merged(row.worker, _decode(self.stats), stats)))),
            *(self.lost_since, self.lost),
        )

    def with_loss(self, now: int) -> Ended:
        """Return them with one more lost worker. Losses count from the first one of an hour."""
        is_over = now - self.lost_since >= _LOSSES_COUNT
        since, lost = (now, 0) if is_over else (self.lost_since, self.lost)
        return msgspec.structs.replace(self, lost_since=since, lost=lost + 1)

    def with_live(self, rows: Sequence[AttemptRow], stats: Mapping[int, Mapping[str, Stat]]) -> dict[str, Stat]:
        """Return the stats of all workers. What was set has the value of the worker with the lowest number."""
        live: dict[str, Stat] = {}
        for row in sorted(rows, key=lambda row: row.worker, reverse=True):
            live = merged(live, stats.get(row.attempt, {}))
        return self._merged(min((row.worker for row in rows), default=0), _decode(self.stats), live)

    def _merged(self, worker: int, former: Mapping[str, Stat], stats: Mapping[str, Stat]) -> dict[str, Stat]:
        return merged(former, stats, keeps_last=self.lowest is not None and self.lowest < worker)

    def totals(self, rows: Sequence[AttemptRow], now: int) -> Totals:
        """Return the sums over all workers of this run."""
        counts, began = self.counts, now if self.began is None else self.began
        last = began if self.item_time is None else self.item_time
        for row in rows:
            counts = counts.plus(row.state.counts)
            last = max(last, row.state.item_time or 0)
        seconds, item_seconds = (max(now - time, 0) / 1000 for time in (began, last))
        return Totals(counts.items, counts.responses, counts.errors, seconds, item_seconds)

    def run(self, rows: Sequence[AttemptRow], now: int, reason: str | None = None) -> dict[str, Any]:
        """Return the row of this run in the metadata of the job. ``reason``: its close reason, at its end."""
        totals, began = self.totals(rows, now), now if self.began is None else self.began
        run = {
            "start_time": began,
            "finish_time": max(now, began),
            "items": totals.items,
            "responses": totals.responses,
        }
        return run if reason is None else {**run, "close_reason": reason}


def _bounded(stats: dict[str, Stat], most: int = MAX_BYTES) -> dict[str, Stat]:
    leave_out(stats, sizes_of(stats), most)
    return stats


def job_fields(metadata: Mapping[str, Any], stats: Mapping[str, Stat], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a job with these stats, and the row of its present run."""
    stored = metadata.get(RUNS)
    rows = [row for row in stored if _is_run(row)] if isinstance(stored, list) else []
    if rows and rows[-1]["start_time"] == run["start_time"]:
        rows.pop()
    rows = [*rows, dict(run)][-_MOST_RUNS:]
    values = {name: stat.value for name, stat in stats.items()}
    if ELAPSED in values:
        values = with_durations(values, sum(row["finish_time"] - row["start_time"] for row in rows) / 1000)
    room = max(MAX_METADATA_BYTES - len(_encode({**metadata, RUNS: rows, CRAWL_STATS: {}})), 0)
    if left_out := leave_out(values, sizes_of(values), min(MAX_BYTES, room)):
        values[LEFT_OUT] = left_out
    return {CRAWL_STATS: values, RUNS: rows}


def _is_run(row: object) -> bool:
    return isinstance(row, dict) and all(isinstance(row.get(name), int) for name in ("start_time", "finish_time"))
