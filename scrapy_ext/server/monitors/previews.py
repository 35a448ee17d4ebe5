"""Previews: the results that a monitor would have had for the last jobs, before it is enabled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from scrapy_ext.api.platform.monitors import FAILED, PASSED, PREVIEWED, SCHEDULE, Monitor, MonitorPreview
from scrapy_ext.server.monitors.evaluating import JobSchemas, result_of
from scrapy_ext.server.monitors.item_schemas import ItemSchemas
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.monitors.expected import missing_run

#: Projects of a preview of a monitor of the server.
_PROJECTS: Final = 20
#: Items of each job that a preview compares with a schema.
_SAMPLE: Final = 200
_HOUR: Final = 3_600_000


async def preview(store: Store, monitor: Monitor, projects: Sequence[int], schemas: ItemSchemas) -> MonitorPreview:
    """Return the results of a monitor, which may be off, for the last jobs that it covers; nothing is stored."""
    if monitor.expect is not None:
        return await _expected(store, monitor)
    found = []
    # Somebody waits for it.
    monitor = msgspec.structs.replace(monitor, sample=min(monitor.sample or _SAMPLE, _SAMPLE))
    for project in projects[-_PROJECTS:]:
        found += await store.monitors.last(project, monitor, PREVIEWED)
    found.sort(key=lambda job: -job.finished)
    items = JobSchemas(schemas, schemas.allowance(monitor.project or 0))
    results = [await result_of(store, monitor, job, store.clock(), items) for job in found[:PREVIEWED]]
    outcomes = [each.outcome for each in results]
    passed, failed = outcomes.count(PASSED), outcomes.count(FAILED)
    return MonitorPreview(
        jobs=len(results),
        passed=passed,
        failed=failed,
        not_applicable=len(results) - passed - failed,
        results=results,
    )


async def _expected(store: Store, monitor: Monitor) -> MonitorPreview:
    if monitor.expect == SCHEDULE:
        return MonitorPreview(sentence="each run of the periodic jobs is checked when it is due")
    if monitor.project is None or monitor.spider is None:
        return MonitorPreview()
    last = await store.monitors.success(monitor.project, monitor)
    now = store.clock()
    if last is None:
        return MonitorPreview(sentence=f"no run of {monitor.spider} has finished successfully so far")
    since, job = last
    if now - since > (monitor.hours or 0) * _HOUR:
        return MonitorPreview(failed=1, sentence=missing_run(monitor, since, job, now))
    hours = max((now - since) // _HOUR, 0)
    return MonitorPreview(passed=1, sentence=f"the last successful run, job {job}, ended {hours} h ago")
