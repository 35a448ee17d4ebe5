"""Jobs with records, written to a store directly."""

from __future__ import annotations

from typing import Any

import msgspec

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.records.chunks import ITEMS, LOGS
from tests.support.packing import pack_chunk


async def new_job(store: Store, spider: str, state: str, project: int = 1, **metadata: Any) -> JobKey:
    (key,) = await store.jobs.add(project, [NewJob(spider, JobState(state), metadata)], "test")
    assert isinstance(key, JobKey)
    return key


async def add_items(store: Store, key: JobKey, number: int) -> None:
    records = [{"name": f"item {place}"} for place in range(number)]
    packed = pack_chunk(ITEMS, [msgspec.json.encode(record) for record in records], records)
    await store.items.write(key, None, [packed])


async def add_log(store: Store, key: JobKey) -> None:
    record = {"message": "A line", "level": 20, "time": 1}
    await store.logs.write(key, None, [pack_chunk(LOGS, [msgspec.json.encode(record)], [record])])


async def finish(store: Store, *keys: JobKey) -> None:
    await store.jobs.change(keys[0].project, [Change(key, JobState.FINISHED, {}) for key in keys], "test")


async def add_finished(store: Store, spider: str, items: int, project: int = 1, **metadata: Any) -> JobKey:
    """Add a finished job with so many items."""
    key = await new_job(store, spider, "running", project, **metadata)
    if items:
        await add_items(store, key, items)
    await finish(store, key)
    return key
