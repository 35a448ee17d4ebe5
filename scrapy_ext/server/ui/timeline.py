"""Charts of a job's throughput, memory and workers, from its samples or from the times when its records were stored.

The number of reads is bounded, whatever the size of the job.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Final

import msgspec
from markupsafe import Markup

from scrapy_ext.api.platform.comparison import median
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import Sample, sample_of
from scrapy_ext.server.record_search import parts_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui import charts, shapes

#: Points of a line, and samples that a rate is taken over at least: records are stored in batches, so that their
#: number grows in steps.
_POINTS: Final = 60
_PER_POINT: Final = 4
#: Distance of two samples, in medians of all distances, from which the line has a gap: no process ran.
_GAP: Final = 5
#: Distance (ms) below which no two samples have a gap between them, however often there are some.
_SHORTEST: Final = 2000
#: Number of times at which the record count is read.
_READS: Final = 120
#: Maximum samples that are read completely; of more, ``_SOME_SAMPLES`` are read.
_ALL_SAMPLES: Final = 5000
_SOME_SAMPLES: Final = 200
#: The last time that can be formatted (ms).
_LATEST: Final = 253_402_300_799_000


async def throughput(store: Store, job: StoredJob, samples: Sequence[Sample]) -> Markup:
    """Draw requests and items per minute."""
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
    number = min(max(max(map(len, grown.values())) // _PER_POINT, 2), _POINTS)
    gaps = _gaps(samples)
    series = [
        charts.Series(name, _broken(charts.rates(points, start, end, number), gaps))
        for name, points in grown.items()
        if points
    ]
    return charts.lines("Throughput, a minute", series, lambda value: shapes.number(round(value)))


def memory(samples: Sequence[Sample]) -> Markup:
    """Draw the memory of the job's processes; "" when no runner measured it."""
    # A sample that is taken when the processes have ended measures none of them.
    known = [each for each in samples if each.memory]
    points = _memory_of_workers(known) if _most_workers(known) else _memory_of_one(known)
    return charts.lines("Memory", [charts.Series("memory", _broken(points, _gaps(samples)))], shapes.size)


def _memory_of_one(known: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the points of a job with one worker: of several samples in one place, the highest."""
    size = max(math.ceil(len(known) / (2 * _POINTS)), 1)
    parts = (known[place : place + size] for place in range(0, len(known), size))
    highest = (max(part, key=lambda each: each.memory) for part in parts)
    return [(float(each.ts), float(each.memory)) for each in highest]


def _memory_of_workers(known: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the memory of all workers: their number times the mean of samples, of which each worker has about one."""
    size = max(math.ceil(len(known) / (2 * _POINTS)), _most_workers(known))
    parts = (known[place : place + size] for place in range(0, len(known), size))
    return [(float(part[-1].ts), fmean(each.memory for each in part) * part[-1].workers) for part in parts]


def workers(samples: Sequence[Sample]) -> Markup:
    """Draw the number of the job's workers; "" for a job that has one, or whose workers run on no node."""
    if not _most_workers(samples):
        return Markup()
    points = [(float(each.ts), float(each.workers)) for each in samples]
    series = charts.Series("workers", _broken(_thinned(points), _gaps(samples)))
    return charts.lines("Workers", [series], lambda value: shapes.number(round(value)))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return as many points as a line has, with the last one."""
    size = max(math.ceil(len(points) / (2 * _POINTS)), 1)
    return [*points[:-1:size], *points[-1:]]


def _most_workers(samples: Sequence[Sample]) -> int:
    return max((each.workers for each in samples), default=0)


def _gaps(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the times without samples, when no process of the job ran. Workers take turns, not always evenly."""
    times = [each.ts for each in samples]
    steps = [after - before for before, after in itertools.pairwise(times[:: max(_most_workers(samples), 1)])]
    usual = median(steps)
    if usual is None:
        return []
    return [pair for pair in itertools.pairwise(times) if pair[1] - pair[0] > _GAP * max(usual, _SHORTEST)]


def _broken(
    points: Sequence[tuple[float, float]], gaps: Sequence[tuple[float, float]]
) -> list[tuple[float, float | None]]:
    """Return the points with those in a gap left out, and a value of None in each gap."""
    kept = [(time, value) for time, value in points if not any(start < time < end for start, end in gaps)]
    return sorted([*kept, *(((start + end) / 2, None) for start, end in gaps)], key=lambda point: point[0])


async def samples_of(store: Store, key: JobKey) -> Sequence[Sample]:
    """Return the samples of a job by time, some of very many."""
    total = (await store.samples.stats(key)).totals.input_values
    if total > _ALL_SAMPLES:
        numbers = [place * (total - 1) // (_SOME_SAMPLES - 1) for place in range(_SOME_SAMPLES)]
        lines = [line for part in await store.samples.at(key, numbers) for line in part.lines]
    else:
        parts = parts_of(store.samples, key, 0, _ALL_SAMPLES)
        lines = [line async for part in parts for line in part.lines]
    found = [sample for line in lines if (sample := sample_of(msgspec.json.decode(line))) is not None]
    return sorted(sample for sample in found if sample.ts <= _LATEST)
