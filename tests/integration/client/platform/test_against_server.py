"""Every method of the client against the package's own server, over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import BatchWriter, PlatformClient, PlatformUrls, resource
from scrapy_ext.client.platform.errors import (
    BadRequest,
    DuplicateJob,
    NotFound,
    TooLarge,
    Unauthorized,
)
from tests.support.servers import ForkedServer, RunningServer

PROJECT = 7


@pytest.fixture(scope="module")
def platform(tmp_path_factory) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
async def client(platform: RunningServer) -> AsyncIterator[PlatformClient]:
    async with PlatformClient(PlatformUrls.single(platform.url), platform.platform_key) as client:
        yield client


@pytest.fixture
async def job(client: PlatformClient) -> JobKey:
    """A running job of its own."""
    return JobKey.parse((await client.jobq.push(PROJECT, "books", state="running")).key)


def lines(*records: object) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


async def read(records) -> list:
    return [record async for record in records]


async def test_the_clock_of_the_platform_is_in_milliseconds(client):
    assert abs(await client.system.timestamp() - time.time() * 1000) < 3_600_000


async def test_a_wrong_key_is_refused_by_every_host(platform):
    async with PlatformClient(PlatformUrls.single(platform.url), "f" * 32) as client:
        for call in (client.jobs.metadata(JobKey(1, 1, 1)), client.jobq.count(1), client.jobs.list(1)):
            with pytest.raises(Unauthorized, match="PLATFORM_API_KEY"):
                await call


# ── jobs ──


async def test_a_job_is_pushed_changed_and_found_by_its_state(client):
    pushed = await client.jobq.push(PROJECT, "queue", state="pending", tags=["a"], spider_args={"x": "y"}, priority=3)
    key = JobKey.parse(pushed.key)
    assert pushed.auth is None
    metadata = await client.jobs.metadata(key)
    assert (metadata["spider"], metadata["state"], metadata["priority"]) == ("queue", "pending", 3)
    assert metadata["spider_args"] == {"x": "y"}
    assert await client.jobq.update(PROJECT, key, state="running") == "pending"
    assert await client.jobq.update(PROJECT, key, state="finished", close_reason="finished") == "running"
    (entry,) = await client.jobq.list(PROJECT, spider="queue", has_tag="a", count=5)
    assert (entry.key, entry.state, entry.close_reason) == (str(key), "finished", "finished")
    assert await client.jobq.list(PROJECT, spider="queue", lacks_tag=["a"]) == []
    assert await client.jobq.list(PROJECT, key=[key])
    assert await client.jobq.count(PROJECT, spider="queue") == 1
    assert await client.jobq.count(PROJECT, spider="queue", state=["pending", "running"]) == 0


async def test_finishing_a_job_again_after_a_lost_answer_is_no_error(client, job):
    for _ in range(2):
        await client.jobq.update(PROJECT, job, state="finished", close_reason="finished")
    assert (await client.jobs.metadata(job))["close_reason"] == "finished"


async def test_a_job_that_may_be_active_once_is_refused_a_second_time(client):
    await client.jobq.push(PROJECT, "once", unique="u")
    with pytest.raises(DuplicateJob):
        await client.jobq.push(PROJECT, "once", unique="u")


async def test_what_does_not_exist_is_not_found(client):
    assert await client.jobs.metadata(JobKey(PROJECT, 99, 99)) == {}
    with pytest.raises(NotFound):
        await client.jobq.update(PROJECT, JobKey(PROJECT, 99, 99), state="finished")
    assert await client.items.get(JobKey(PROJECT, 99, 99).entity(0)) is None


async def test_a_running_job_comes_with_a_token_that_opens_its_data(client):
    assert (await client.jobq.push(PROJECT, "books", state="running")).auth


async def test_a_scheduled_job_is_listed_tagged_stopped_and_deleted(client):
    key = await client.jobs.run(
        PROJECT, "scheduled", arguments={"a": "1 & 2"}, settings={"X": 1}, priority=4, units=2, tags=["t"]
    )
    with pytest.raises(DuplicateJob):
        await client.jobs.run(PROJECT, "scheduled", arguments={"a": "1 & 2"})
    found = await client.jobs.list(PROJECT, spider="scheduled", state=["pending", "running"], count=10)
    assert (found.total, found.jobs[0].id, found.jobs[0].priority) == (1, str(key), 4)
    assert (await client.jobs.list(PROJECT, job=[key])).jobs[0].spider_args == {"a": "1 & 2"}
    await client.jobs.update_tags(PROJECT, key, add=["u", "v"], remove=["t"])
    assert await client.jobs.field(key, "tags") == ["u", "v"]
    await client.jobq.update(PROJECT, key, state="running")
    await client.jobs.stop(PROJECT, key)
    await client.jobq.update(PROJECT, key, state="finished")
    await client.jobs.delete(PROJECT, key)
    assert (await client.jobs.metadata(key))["state"] == "deleted"


async def test_metadata_is_merged_read_by_field_and_removed(client, job):
    await client.jobs.update(job, {"frameworkstats": {"a/b": 1}, "note": "ä" * 2000})
    assert await client.jobs.field(job, "frameworkstats") == {"a/b": 1}
    assert (await client.jobs.metadata(job))["note"] == "ä" * 2000
    await client.jobs.delete_field(job, "note")
    assert await client.jobs.field(job, "note") is None
    await client.jobs.delete_field(job, "note")


# ── items, requests, logs ──


async def test_items_are_written_at_their_index_and_read_back(client, job):
    items = [{"name": f"ä{n}", "_type": "book", "nested": {"a": [n]}} for n in range(25)]
    await client.items.write(job, lines(*items[:20]), 0)
    for _ in range(2):
        await client.items.write(job, lines(*items[15:]), 15)
    assert await read(client.items.iter(job)) == items
    assert await read(client.items.iter(job, start=20, count=3)) == items[20:23]
    assert await read(client.items.iter(job, startafter=job.entity(21))) == items[22:]
    assert await client.items.get(job.entity(3)) == items[3]
    (first,) = await read(client.items.iter(job, count=1, meta=["_key", "_ts"]))
    assert first["_key"] == f"{job}/0"
    assert abs(first["_ts"] - time.time() * 1000) < 3_600_000
    stats = await client.items.stats(job)
    assert (stats.totals.input_values, stats.counts) == (25, {"name": 25, "nested": 25})
    assert (await client.items.stats(job, hidden=True)).counts["_type"] == 25


async def test_pages_join_without_a_seam(client, job, monkeypatch):
    monkeypatch.setattr(resource, "PAGE", 7)
    items = [{"n": n} for n in range(30)]
    await client.items.write(job, lines(*items), 0)
    assert await read(client.items.iter(job)) == items
    assert await read(client.items.iter(f"{job.project}/{job.spider}", start=str(job.entity(0)), count=30)) == items


async def test_an_items_own_field_with_the_name_of_the_key_is_kept(client, job):
    await client.items.write(job, lines({"_key": "mine", "a": 1}), 0)
    assert await read(client.items.iter(job)) == [{"_key": "mine", "a": 1}]


async def test_an_item_that_is_too_large_is_refused_as_such(client, job):
    with pytest.raises(TooLarge, match="at most 1048576 bytes"):
        await client.items.write(job, lines({"a": "x" * 2**20}), 0)


async def test_what_is_no_item_is_refused_with_its_place(client, job):
    with pytest.raises(BadRequest, match="line 2"):
        await client.items.write(job, b'{"a":1}\nnonsense\n', 0)


async def test_requests_and_logs_are_written_and_read_back(client, job):
    requests = [
        {"time": n, "method": "GET", "url": f"https://a.example/{n}", "status": 200, "duration": 1, "rs": 5, "fp": "f"}
        for n in range(3)
    ]
    logs = [{"time": n, "level": 20, "message": f"line\n{n} ä"} for n in range(3)]
    await client.requests.write(job, lines(*requests), 0)
    await client.logs.write(job, lines(*logs), 0)
    await client.logs.write(job, lines(logs[2]), 2)
    assert await read(client.requests.iter(job)) == requests
    assert await read(client.logs.iter(job)) == logs
    assert await read(client.logs.iter(job, start=2, meta=["_key"])) == [{**logs[2], "_key": f"{job}/2"}]
    assert (await client.requests.stats(job)).totals.input_values == 3
    assert (await client.logs.stats(job)).counts == {"20": 3}
    assert await client.logs.get(job.entity(1)) == logs[1]


async def test_a_writer_stores_what_many_tasks_add_in_order(client, job):
    async def send(body: bytes, index: int) -> None:
        await client.items.write(job, body, index, attempts=1)

    writer = BatchWriter(send, max_records=50, max_bytes=4000, high_water_bytes=10_000)

    async def add(task: int) -> dict[int, dict]:
        added = {}
        for n in range(100):
            item = {"task": task, "n": n}
            added[writer.add(msgspec.json.encode(item))] = item
            await writer.wait_below_high_water()
        return added

    added = await asyncio.gather(*map(add, range(5)))
    await writer.close()
    expected = dict(sorted((index, item) for part in added for index, item in part.items()))
    assert await read(client.items.iter(job)) == list(expected.values())


# ── collections ──

ODD_KEYS = ["https://a.example/b?c=d&e#f", "a/b", "..", "count", "deleted", "ä %41\\", "line\nend", "'", '"', "plain"]


async def test_records_are_found_by_keys_of_any_form(client):
    for kind in ("s", "cs", "vs", "vcs"):
        await client.collections.write(
            PROJECT, kind, f"odd_{kind}", lines(*({"_key": key, "n": n} for n, key in enumerate(ODD_KEYS)))
        )
        for n, key in enumerate(ODD_KEYS):
            assert await client.collections.get(PROJECT, kind, f"odd_{kind}", key) == {"n": n}, key
            assert await client.collections.get(PROJECT, kind, f"odd_{kind}", key + "!") is None
    found = await read(client.collections.iter(PROJECT, "s", "odd_s", keys=[*ODD_KEYS, "absent"]))
    assert {record["_key"]: record["n"] for record in found} == {key: n for n, key in enumerate(ODD_KEYS)}
    await client.collections.delete_keys(PROJECT, "s", "odd_s", [*ODD_KEYS, "absent"])
    assert await client.collections.count(PROJECT, "s", "odd_s") == 0


async def test_a_collection_is_read_in_order_by_prefix_and_place(client, monkeypatch):
    monkeypatch.setattr(resource, "PAGE", 7)
    keys = [f"{letter}{n:02}" for letter in "ab" for n in range(20)]
    await client.collections.write(PROJECT, "s", "ordered", lines(*({"_key": key} for key in reversed(keys))))
    every = client.collections.iter
    assert [r["_key"] for r in await read(every(PROJECT, "s", "ordered"))] == keys
    assert [r["_key"] for r in await read(every(PROJECT, "s", "ordered", prefix="b"))] == keys[20:]
    assert [r["_key"] for r in await read(every(PROJECT, "s", "ordered", prefix="b", startafter="b05"))] == keys[26:]
    assert [r["_key"] for r in await read(every(PROJECT, "s", "ordered", start="a19", count=2))] == ["a19", "b00"]
    assert await read(every(PROJECT, "s", "ordered", count=1, meta=())) == [{}]
    assert await client.collections.count(PROJECT, "s", "ordered") == 40
    assert await client.collections.count(PROJECT, "s", "ordered", prefix="a") == 20
    await client.collections.delete(PROJECT, "s", "ordered", prefix="a")
    assert await client.collections.count(PROJECT, "s", "ordered") == 20


async def test_more_keys_than_fit_into_a_call_are_looked_up_and_deleted(client):
    keys = [f"https://a.example/{'x' * 60}/{n}" for n in range(600)]
    await client.collections.write(PROJECT, "s", "many", lines(*({"_key": key} for key in keys[::2])))
    found = [record["_key"] async for record in client.collections.iter(PROJECT, "s", "many", keys=keys)]
    assert sorted(found) == sorted(keys[::2])
    await client.collections.delete_keys(PROJECT, "s", "many", keys)
    assert await read(client.collections.iter(PROJECT, "s", "many")) == []


async def test_collections_are_listed_renamed_and_dropped(client):
    await client.collections.write(PROJECT, "s", "before", lines({"_key": "a", "v": 1}))
    await client.collections.rename(PROJECT, "before", "after")
    assert await client.collections.get(PROJECT, "s", "after", "a") == {"v": 1}
    names = {(one.type, one.name) for one in await client.collections.list(PROJECT)}
    assert ("s", "after") in names
    assert ("s", "before") not in names
    for _ in range(2):
        await client.collections.drop(PROJECT, "after")
    assert await read(client.collections.iter(PROJECT, "s", "after")) == []


async def test_a_record_without_a_key_is_refused(client):
    with pytest.raises(BadRequest, match="_key"):
        await client.collections.write(PROJECT, "s", "bad", lines({"a": 1}))


# ── frontier, activity ──


async def test_requests_go_through_a_slot_in_the_order_of_their_priorities(client):
    requests = [{"fp": f"f{n}", "qdata": {"n": n}, "p": -n % 3} for n in range(6)]
    assert await client.frontier.add(PROJECT, "main", "0", lines(*requests)) == 6
    assert await client.frontier.add(PROJECT, "main", "0", lines(*requests, {"fp": "new"})) == 1
    batches = await client.frontier.read(PROJECT, "main", "0", 100)
    order = [data["n"] for batch in batches for _, data in batch.requests if data]
    assert order == [0, 3, 2, 5, 1, 4]
    assert await client.frontier.read(PROJECT, "main", "0", 100) == batches
    await client.frontier.delete_batches(PROJECT, "main", "0", [batch.id for batch in batches])
    await client.frontier.delete_batches(PROJECT, "main", "0", [batch.id for batch in batches])
    assert await client.frontier.read(PROJECT, "main", "0") == []
    assert await read(client.frontier.fingerprints(PROJECT, "main", "0")) == [*(f"f{n}" for n in range(6)), "new"]
    assert "main" in await client.frontier.frontiers(PROJECT)
    assert await client.frontier.slots(PROJECT, "main") == ["0"]
    for _ in range(2):
        await client.frontier.delete_slot(PROJECT, "main", "0")
    assert await client.frontier.slots(PROJECT, "main") == []
    assert await read(client.frontier.fingerprints(PROJECT, "main", "0")) == []


async def test_activity_is_posted_and_read_newest_first(client):
    for n in range(3):
        await client.activity.post(PROJECT + 1, {"event": "x", "n": n})
    await client.activity.post(PROJECT + 2, {"event": "y"})
    assert [message["n"] for message in await client.activity.list(PROJECT + 1, count=2)] == [2, 1]
    messages = await client.activity.of_projects([PROJECT + 1, PROJECT + 2], pcount=1)
    assert sorted((message["event"], message["_project"]) for message in messages) == [
        ("x", PROJECT + 1),
        ("y", PROJECT + 2),
    ]


# ── faults of the server itself ──


async def test_a_writer_outlives_a_server_that_is_killed_and_comes_back(tmp_path):
    running = ForkedServer(tmp_path)
    port = running.url.rpartition(":")[2]
    async with PlatformClient(PlatformUrls.single(running.url), running.platform_key) as client:
        key = JobKey.parse((await client.jobq.push(1, "books")).key)

        async def send(body: bytes, index: int) -> None:
            await client.items.write(key, body, index, attempts=1)

        writer = BatchWriter(send, max_records=10)
        for n in range(50):
            writer.add(b'{"n":%d}' % n)
        await writer.wait_durable(10)
        await asyncio.to_thread(running.kill)
        for n in range(50, 100):
            writer.add(b'{"n":%d}' % n)
        again = await asyncio.to_thread(
            RunningServer, tmp_path, options=["--port", port, "--platform-key", running.platform_key], keys=False
        )
        try:
            await writer.close(timeout=60)
            assert await read(client.items.iter(key)) == [{"n": n} for n in range(100)]
        finally:
            await asyncio.to_thread(again.kill)


async def test_a_queue_is_counted_and_read_to_its_end_and_stays(client):
    requests = [{"fp": f"{n}", "p": n % 2} for n in range(1050)]
    await client.frontier.add(PROJECT, "whole", "0", lines(*requests))
    for _ in range(2):
        found = [batch async for batch in client.frontier.queue(PROJECT, "whole", "0", count=150)]
        assert [batch.priority for batch in found] == sorted(batch.priority for batch in found)
        assert sorted(int(fp) for batch in found for fp, _ in batch.requests) == [*range(1050)]
    assert await client.frontier.count(PROJECT, "whole", "0") == 1050
    assert await client.frontier.count(PROJECT, "whole", "absent") == 0


async def test_records_come_with_the_key_behind_which_reading_goes_on(client, job):
    await client.items.write(job, lines(*({"n": n} for n in range(3))), 0)
    first, *_ = [pair async for pair in client.items.keyed(job, count=1)]
    assert first == (f"{job}/0", {"n": 0})
    rest = [pair async for pair in client.items.keyed(job, startafter=first[0])]
    assert rest == [(f"{job}/1", {"n": 1}), (f"{job}/2", {"n": 2})]
