"""Schemas and items that are made to be slow: others are answered meanwhile, and what is left out is reported."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.monitors import NewMonitor, monitor_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.monitors import item_schemas
from scrapy_ext.server.monitors.item_schemas import Allowance, ItemSchemas, ProjectTime
from scrapy_ext.server.monitors.schema_worker import SchemaTask
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.records.chunks import ITEMS
from tests.support.http import Http
from tests.support.packing import pack_chunk
from tests.support.servers import RunningServer
from tests.support.stored_jobs import finish, new_job


def doubling(levels: int) -> dict[str, Any]:
    """A schema each of whose parts refers to the next one twice."""
    parts: dict[str, Any] = {"l0": {"not": {"type": "string"}}}
    for level in range(1, levels):
        parts[f"l{level}"] = {"allOf": [{"$ref": f"#/$defs/l{level - 1}"}] * 2}
    return {"$defs": parts, "$ref": f"#/$defs/l{levels - 1}"}


#: Within the bounds, and slow for a long array alone: 2,048 evaluations a number.
SLOW: dict[str, Any] = {"properties": {"n": {"items": {"$ref": "#/$defs/l10"}}}, "$defs": doubling(11)["$defs"]}
LONG = {"n": [0] * 300_000}


def nested(depth: int) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for _ in range(depth):
        item = {"in": item}
    return item


@pytest.fixture
async def schemas() -> AsyncIterator[ItemSchemas]:
    schemas = ItemSchemas()
    yield schemas
    await schemas.stop()


async def job_with(store: Store, items: list[dict[str, Any]]) -> Any:
    key = await new_job(store, "books", "running")
    await store.items.write(key, None, [pack_chunk(ITEMS, [msgspec.json.encode(item) for item in items], items)])
    await finish(store, key)
    return key


@pytest.mark.long
async def test_an_item_that_takes_too_long_is_left_out_with_the_reason(store: Store, schemas: ItemSchemas) -> None:
    key = await job_with(store, [{}, LONG])
    monitor, allowance = monitor_of({"schema": SLOW}), schemas.allowance(key.project)
    result = await schemas.result(store, monitor, key, 2, allowance)
    assert (result.outcome, result.items) == ("not applicable", [])
    assert "needs more than 1 s of processor time for one item" in result.sentence
    assert allowance.left == item_schemas.JOB_SECONDS - 1
    # Another schema of the same job is compared all the same, by a new process.
    result = await schemas.result(store, monitor_of({"schema": {"required": ["n"]}}), key, 2, allowance)
    assert (result.outcome, result.value) == ("failed", 1)


@pytest.mark.long
async def test_the_schemas_of_a_job_share_its_time(store: Store, schemas: ItemSchemas) -> None:
    key = await job_with(store, [LONG])
    allowance = Allowance(ProjectTime(), 1.5)
    results = [await schemas.result(store, monitor_of({"schema": SLOW}), key, 1, allowance) for _ in range(3)]
    assert [each.outcome for each in results] == ["not applicable"] * 3
    assert "the schemas of this job have used up their processor time" in results[2].sentence


async def test_a_project_that_has_used_up_its_time_waits_and_others_do_not(store: Store, schemas: ItemSchemas) -> None:
    key = await job_with(store, [{}])
    schemas.allowance(key.project).spend(item_schemas.PROJECT_SECONDS + 60)
    result = await schemas.result(store, monitor_of({"schema": {}}), key, 1, schemas.allowance(key.project))
    assert result.outcome == "not applicable"
    assert "the schemas of this project lately have used up" in result.sentence
    assert schemas.allowance(key.project + 1).left == item_schemas.JOB_SECONDS


async def test_a_schema_from_before_the_bounds_is_not_compared(store: Store, schemas: ItemSchemas) -> None:
    key = await job_with(store, [{}])
    old = NewMonitor(schema=doubling(28))
    result = await schemas.result(store, old, key, 1, schemas.allowance(key.project))
    assert result.outcome == "not applicable"
    assert "20000 evaluations" in result.sentence


@pytest.mark.long
async def test_a_schema_that_cannot_be_read_in_time_or_memory_is_refused(schemas: ItemSchemas) -> None:
    classes = "".join(rf"(\p{{L}}|\w){{{count}}}" for count in range(60, 99))
    for schema in ({"pattern": classes}, {"allOf": [{"pattern": f"{classes}{n}"} for n in range(50)]}):
        with pytest.raises(ContractError, match="schema"):
            await schemas.check(schema, 1)
    await schemas.check({"pattern": r"^\w{1,100}$"}, 1)


async def test_long_arrays_and_deep_items_are_compared(schemas: ItemSchemas) -> None:
    items = [{"n": list(range(30_000))}, {"n": [{"a": place} for place in range(5_000)]}]
    lines = [msgspec.json.encode(each) for each in items]
    lines += [b'{"in":' * depth + b"0" + b"}" * depth for depth in (300, 5_000)]
    outcome = await schemas._run(SchemaTask(b'{"properties":{"n":{"uniqueItems":true}}}', lines, 60, 5), 1)
    assert (outcome.fault, outcome.checked) == (None, 4)
    assert outcome.items == [(3, ["/: is nested too deeply to be compared"])]


@pytest.mark.long
async def test_others_are_answered_while_twelve_monitors_are_made_to_be_slow(
    server: RunningServer, http: Http, project: int
) -> None:
    """The figures of a run: ``pytest -s``."""
    path = f"/api/projects/{project}/monitors"
    await http.post(f"/items/{project}/1/1", [{"small": 1}])
    idle = await waits(http, project, asyncio.create_task(asyncio.sleep(2)))
    for place in range(9):
        schema = {**SLOW, "title": f"{place}"}
        assert (await http.post(path, json.dumps({"schema": schema, "enabled": True}).encode())).status == 201
    store = await Store.open(server.where)
    try:  # as they were stored before there were bounds
        for levels in (25, 27, 28):
            await store.monitors.add(project, NewMonitor(schema=doubling(levels), enabled=True))
    finally:
        await store.close()
    key = (await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])).json["key"]
    await http.post(f"/items/{key}", [nested(200), LONG])
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": "finished"}])

    async def results() -> Any:
        while not (found := (await http.get(f"{path}/results?job={key}")).json):
            spent = seconds_of_children(server)
            assert spent < item_schemas.JOB_SECONDS, f"no results after {spent} s of processor time"
            await asyncio.sleep(0.05)
        return found

    awaited = asyncio.create_task(results())
    during = await waits(http, project, awaited)
    found = awaited.result()
    assert [each["outcome"] for each in found] == ["not applicable"] * 12
    report = {
        name: {"p50": statistics.median(each), "p99": statistics.quantiles(each, n=100)[98], "number": len(each)}
        for name, each in (("idle", idle), ("during", during))
    }
    print(json.dumps(report))
    # A server that evaluates in a thread answers one request between two items. The work takes 9 s of a processor.
    assert len(during) > 50
    assert statistics.median(during) < 20 * statistics.median(idle)


def seconds_of_children(server: RunningServer) -> float:
    """Processor time of the processes that a server has started: of those that have ended, and of those that work."""
    pid = server.process.pid
    running = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = sum(int(each) for each in stat_of(pid)[13:15])
    with suppress(OSError):  # one that has just ended counts above, the next time
        ticks += sum(int(each) for child in running for each in stat_of(int(child))[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def stat_of(pid: int) -> list[str]:
    """The fields of a process from its state on (proc_pid_stat(5))."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


async def waits(http: Http, project: int, until: asyncio.Task[Any]) -> list[float]:
    """Return how long small requests take, until a task has ended."""
    found = []
    while not until.done():
        for path in ("/healthz", f"/items/{project}/1/1"):
            began = time.perf_counter()
            assert (await http.get(path)).status == 200
            found.append(time.perf_counter() - began)
    await until
    return found
