"""``/ui/<project>/compare``: two jobs beside each other: figures, stats, fields, and items by the value of a field.

The items of both jobs are compared up to a bounded number and size; the page says how far it looked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.comparison import (
    Change,
    ItemChanges,
    ItemIndex,
    changed_fields,
    changes,
    compare_items,
    suggested_field,
)
from scrapy_ext.api.platform.jobs import stats_of
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.record_search import parts_of
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import Counts, StoredJob, arguments_of
from scrapy_ext.server.store.records.records import Slice
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_summary import arguments_in_a_line, summary
from scrapy_ext.server.ui.spider_runs import FIGURES, earlier_runs, medians, run_before

_PATH: Final = "/ui/{project:number}/compare"
#: Maximum items of each job that are compared, and their bytes.
MOST_ITEMS: Final = 50_000
_MOST_BYTES: Final = 64 * 1024 * 1024
#: Items of each kind of change that are shown, fields of each, and stats.
_SHOWN: Final = 20
_FIELDS_SHOWN: Final = 12
_STATS_SHOWN: Final = 500
#: Fields to choose from.
_CHOICES: Final = 200


class _Figure(NamedTuple):
    title: str
    before: str
    after: str
    change: str
    is_worse: bool
    median: str


class _Field(NamedTuple):
    """A field of the items; shares in per cent, None for a job without the field."""

    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float:
        return (self.after or 0) - (self.before or 0)


class _Shown(NamedTuple):
    """An item of one or both jobs, with its value of the field, and the changes of its fields."""

    value: str
    before: int | None
    after: int | None
    fields: Sequence[Change]
    more: int = 0


class _Items(NamedTuple):
    found: ItemChanges
    before: ItemIndex
    after: ItemIndex
    looked: tuple[int, int]
    new: list[_Shown]
    gone: list[_Shown]
    changed: list[_Shown]


async def _show(visit: Visit) -> Response:
    keys = [_key(visit, name) for name in ("a", "b")]
    if keys[0] is None and keys[1] is not None:
        keys[0] = await _run_before(visit, keys[1])
    jobs = [await visit.store.jobs.get(key) if key else None for key in keys]
    context: dict[str, Any] = {
        "typed": [str(key) if key else "" for key in keys],
        "missing": [str(key) for key, job in zip(keys, jobs, strict=True) if key and job is None],
        "jobs": None,
        "is_chosen": not visit.text("a"),
    }
    if all(jobs):
        context |= await _compared(visit, [job for job in jobs if job is not None])
    return visit.rendered("compare.html", **context)


def _key(visit: Visit, name: str) -> JobKey | None:
    text = visit.text(name)
    return own_key(text, visit.project, name) if text else None


async def _run_before(visit: Visit, key: JobKey) -> JobKey | None:
    job = await visit.store.jobs.get(key)
    before = await run_before(visit.store, job) if job is not None else None
    return before.key if before is not None else None


async def _compared(visit: Visit, jobs: Sequence[StoredJob]) -> dict[str, Any]:
    store, now = visit.store, visit.store.clock()
    which = JobFilter(keys=tuple(job.key for job in jobs))
    counted = {job.key: job for job in (await store.jobs.window(visit.project, which, counts=Counts._fields)).jobs}
    before, after = (counted.get(job.key, job) for job in jobs)
    earlier = await earlier_runs(store, after.key, await store.verdicts.of_job(after.key))
    item_stats = [await store.items.stats(job.key) for job in jobs]
    counts = [each.counts for each in item_stats]
    totals = [each.totals.input_values for each in item_stats]
    by = visit.text("by") or suggested_field(*counts)
    ignored = [name.strip() for name in visit.text("without").split(",") if name.strip()]
    stats = [change for change in changes(*(_stats(job) for job in jobs)) if not change.is_same]
    shares = [_shares(each, total) for each, total in zip(counts, totals, strict=True)]
    fields = [_Field(name, shares[0].get(name), shares[1].get(name)) for name in sorted({*shares[0], *shares[1]})]
    return {
        "arguments": [arguments_in_a_line(job) for job in jobs],
        # Not by their lines, in which secret values are hidden.
        "are_alike": arguments_of(jobs[0].metadata) == arguments_of(jobs[1].metadata),
        "jobs": [summary(job, now) for job in (before, after)],
        "figures": _figures(before, after, medians(earlier)),
        "earlier": earlier,
        "stats": [_stat_row(change) for change in stats[:_STATS_SHOWN]],
        "stats_left": max(len(stats) - _STATS_SHOWN, 0),
        "fields": sorted(fields, key=lambda field: (-abs(field.difference), field.name))[:_CHOICES],
        "by": by or "",
        "choices": sorted({*counts[0]} & {*counts[1]})[:_CHOICES],
        "without": ", ".join(ignored),
        "totals": totals,
        "items": await _compare_items(visit, [job.key for job in jobs], by, ignored) if by and all(totals) else None,
        "shown": _SHOWN,
        "now": now,
    }


def _stats(job: StoredJob) -> Mapping[str, Any]:
    return stats_of(job.metadata)


def _shares(counts: Mapping[str, int], total: int) -> dict[str, float]:
    return {name: 100 * count / total for name, count in counts.items()} if total else {}


def _figures(before: StoredJob, after: StoredJob, middles: Mapping[str, str]) -> list[_Figure]:
    rows = []
    for figure in FIGURES:
        first, second = figure.value(before), figure.value(after)
        texts = ["–" if value is None else figure.unit(value) for value in (first, second)]
        change = "" if first is None or second is None else shapes.change(first, second)
        is_worse = figure.is_bad and (second or 0) > (first or 0)
        rows.append(_Figure(figure.title, texts[0], texts[1], change, is_worse, middles[figure.name]))
    return rows


def _stat_row(change: Change) -> tuple[str, str, str, str]:
    before, after = (shapes.stat(change.name, each) for each in (change.before, change.after))
    is_time = change.name in shapes.TIMES
    return change.name, before, after, "" if is_time or not change.difference else shapes.difference(change.difference)


# ── items ──


async def _compare_items(visit: Visit, keys: Sequence[JobKey], by: str, ignored: Sequence[str]) -> _Items:
    before, after = ItemIndex(by, ignored), ItemIndex(by, ignored)
    looked = (await _read(visit, keys[0], before), await _read(visit, keys[1], after))
    every = bool(visit.text("every"))
    found = await in_data_thread(lambda: compare_items(before, after, every_field=every))
    new, gone = sorted(found.new)[:_SHOWN], sorted(found.gone)[:_SHOWN]
    pairs = found.changed[:_SHOWN]
    old = await _items_at(visit, keys[0], [*gone, *(pair[0] for pair in pairs)])
    fresh = await _items_at(visit, keys[1], [*new, *(pair[1] for pair in pairs)])
    changed = []
    for first, second in pairs:
        differing = changed_fields(old.get(first, {}), fresh.get(second, {}), (*ignored, *found.aside))
        left = max(len(differing) - _FIELDS_SHOWN, 0)
        value = shapes.cell(fresh.get(second, {}).get(by))
        changed.append(_Shown(value, first, second, differing[:_FIELDS_SHOWN], left))
    return _Items(
        found,
        before,
        after,
        looked,
        [_Shown(shapes.cell(fresh.get(number, {}).get(by)), None, number, ()) for number in new],
        [_Shown(shapes.cell(old.get(number, {}).get(by)), number, None, ()) for number in gone],
        changed,
    )


async def _read(visit: Visit, key: JobKey, index: ItemIndex) -> int:
    """Add the items of a job to an index, up to the limits; return the number of items read."""

    def add(part: Slice) -> int:
        for number, line in enumerate(part.lines, part.start):
            index.add(number, line)
        return sum(map(len, part.lines))

    read = size = 0
    async for part in parts_of(visit.store.items, key, 0, MOST_ITEMS):
        size += await in_data_thread(add, part)
        read += len(part.lines)
        if size >= _MOST_BYTES:
            break
    return read


async def _items_at(visit: Visit, key: JobKey, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    if not numbers:
        return {}
    slices = await visit.store.items.at(key, sorted(set(numbers)))
    return {number: msgspec.json.decode(line) for part in slices for number, line in enumerate(part.lines, part.start)}


PAGES: Final = (UiPage(_PATH, "jobs", _show),)
