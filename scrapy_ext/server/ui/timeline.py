"""Charts of a job's throughput and memory, from its samples or from the times when its records were stored.

The number of reads is bounded, whatever the size of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import Sample, sample_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui import charts, shapes
from scrapy_ext.server.ui.record_search import parts_of

#: Points of a line.
_POINTS: Final = 60
#: Number of times at which the record count is read.
_READS: Final = 120
#: Maximum samples that are read completely; of more, ``_SOME_SAMPLES`` are read.
_ALL_SAMPLES: Final = 5000
_SOME_SAMPLES: Final = 200
#: The last time that can be formatted (ms).
_LATEST: Final = 253_402_300_799_000


async def throughput(store: Store, job: StoredJob) -> Markup:
    """Draw requests and items per minute."""
    samples = await _samples(store, job.key)
    if len(samples) > 1:
        grown = {
            "requests": [(float(each.ts), float(each.requests)) for each in samples],
            "items": [(float(each.ts), float(each.items)) for each in samples],
        }
    else:
        grown = {
            each.kind.name: [(float(ts), float(number)) for ts, number in await each.progress(job.key, _READS)]
            for each in (store.requests, store.items)
        }
    times = [points[place][0] for points in grown.values() if points for place in (0, -1)]
    if not times:
        return Markup()
    began, start, end = job.metadata.get("running_time"), min(times), max(times)
    # Wrong clocks or clients may report nonsense.
    if isinstance(began, int) and 0 <= start - began <= end - start:
        start = began
    series = [
        charts.Series(name, charts.rates(points, start, end, _POINTS)) for name, points in grown.items() if points
    ]
    return charts.lines("Throughput, a minute", series, lambda value: shapes.number(round(value)))


async def memory(store: Store, key: JobKey) -> Markup:
    """Draw the memory of the job's processes; "" when no runner measured it."""
    points = [(float(each.ts), float(each.memory)) for each in await _samples(store, key)]
    return charts.lines("Memory", [charts.Series("memory", points)], shapes.size)


async def responses(store: Store, key: JobKey) -> Markup:
    """Draw responses per minute, from the times when request records were stored."""
    points = [(float(ts), float(number)) for ts, number in await store.requests.progress(key, _READS)]
    if len(points) < 2:
        return Markup()
    rates = charts.rates([(time, value - points[0][1]) for time, value in points], points[0][0], points[-1][0], _POINTS)
    return charts.lines("Responses, a minute", [charts.Series("responses", rates)], lambda v: shapes.number(round(v)))


async def _samples(store: Store, key: JobKey) -> Sequence[Sample]:
    total = (await store.samples.stats(key)).totals.input_values
    if total > _ALL_SAMPLES:
        numbers = [place * (total - 1) // (_SOME_SAMPLES - 1) for place in range(_SOME_SAMPLES)]
        lines = [line for part in await store.samples.at(key, numbers) for line in part.lines]
    else:
        parts = parts_of(store.samples, key, 0, _ALL_SAMPLES)
        lines = [line async for part in parts for line in part.lines]
    found = [sample for line in lines if (sample := sample_of(msgspec.json.decode(line))) is not None]
    return sorted(sample for sample in found if sample.ts <= _LATEST)
