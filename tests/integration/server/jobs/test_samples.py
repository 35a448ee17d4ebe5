"""Samples of a job, on each engine, by a clock of the test."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import sample_of
from scrapy_ext.server.jobs.attempts import samples
from scrapy_ext.server.jobs.attempts.samples import Sampler
from scrapy_ext.server.record_search import parts_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode


@pytest.mark.parametrize("workers", [1, 3])
async def test_the_workers_of_a_job_take_as_many_samples_as_one_does(
    store: Store, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    now = 0.0
    monkeypatch.setattr(samples, "elapsing", lambda: now)
    await store.nodes.join(StoredNode("a", "host", 6, frozenset(), 1, 1, 1, draining=False))
    (key,) = await store.jobs.add(1, [NewJob("spider", JobState.PENDING, {"job_workers": str(workers)})], "tests")
    assert isinstance(key, JobKey)
    samplers = [Sampler(store, attempt) for attempt in await store.attempts.place()]
    assert len(samplers) == workers
    taken: Counter[float] = Counter()
    for sampler in samplers:
        sampler.in_group = workers > 1
    while now < 300:
        for number, sampler in enumerate(samplers):
            if sampler.is_due:
                await sampler.take(number + 1)
                taken[now] += 1
        now += 1
    found = [msgspec.json.decode(line) async for part in parts_of(store.samples, key, 0, 1000) for line in part.lines]
    assert len(found) == taken.total()
    assert 60 <= len(found) <= 60 + workers
    assert [number for time, number in taken.items() if time > 0] == [1] * (len(taken) - 1)  # never two at once
    assert {len(sample) for sample in found} == {5 if workers == 1 else 6}
    parsed = [sample_of(sample) for sample in found]
    assert {sample.workers for sample in parsed if sample} == {0 if workers == 1 else workers}
