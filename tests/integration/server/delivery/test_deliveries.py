"""Deliveries of finished jobs: complete, once each, and brought back as they were."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.deliveries import EMPTY_AFTER
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.retention import rule_of as retention_rule
from scrapy_ext.api.platform.rules import DAY_MS, RESTORED_DAYS
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.delivery.delivering import Deliverer
from scrapy_ext.server.delivery.restoring import Restores
from scrapy_ext.server.delivery.targets import open_target
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.deliveries import Attempt, RuleOverError
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.restores import Restore
from tests.support.archives import (
    KINDS,
    S3,
    add_rule,
    archive,
    chunks_of,
    contents,
    deliver_in_process,
    finished_job,
    local_objects,
)
from tests.support.stored_jobs import add_finished, add_items, new_job
from tests.support.stores import Clock, Where


def url_of(folder: Path) -> str:
    return folder.as_uri()


@pytest.fixture
def deliverer(store: Store, folder: Path) -> Deliverer:
    return Deliverer(store, [url_of(folder)])


async def restored(store: Store, targets: list[str], key: JobKey) -> str:
    """The state of a job after a restore, with the purge of a server beside it."""
    restores = Restores(store, targets)

    async def purge() -> None:
        while True:
            await store.purge()
            await asyncio.sleep(0.05)

    purging = asyncio.create_task(purge())
    await restores.start(key)
    while (state := await store.restores.state(key)) is not None and state.state == "restoring":
        await asyncio.sleep(0.02)
    purging.cancel()
    assert state is not None
    return state.failure or state.state


@pytest.mark.long(keep=1)
async def test_a_job_is_delivered_once_with_all_records(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    key = await finished_job(store, clock)
    await add_rule(store, target=url_of(folder))
    assert await deliverer.run_due() == 1
    (manifest_path,) = folder.rglob("job.json")
    manifest = json.loads(manifest_path.read_bytes())
    assert manifest["job"] == str(key)
    assert manifest["metadata"]["spider_args"] == {"a": "ü"}
    before = await contents(store, key)
    for kind in KINDS:
        described = manifest["kinds"][kind]
        data = (manifest_path.parent / described["object"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == described["sha256"]
        assert gzip.decompress(data).splitlines() == [line for *_, line in before[kind]]
        assert described["start"] == before[kind][0][0]
    assert manifest["comments"]["object"] == "comments.jsonl.gz"
    found = local_objects(folder)
    assert await deliverer.run_due() == 0
    assert local_objects(folder) == found
    deliveries = await store.deliveries.of_job(key)
    assert [each.kind for each in deliveries] == sorted(KINDS)
    assert {f"{each.folder}/{each.object}" for each in deliveries} <= {f"{url_of(folder)}/{name}" for name in found}


@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.long(keep=1)
async def test_a_restored_job_is_what_it_was(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer, compression: str
) -> None:
    key = await finished_job(store, clock, spider="../up/ü 猫.")
    before = await contents(store, key)
    await add_rule(store, target=url_of(folder), compression=compression)
    assert await deliverer.run_due() == 1
    await archive(store, key)
    with pytest.raises(ContractError, match=rf"were moved .* to {url_of(folder)}.*restore-job {key}") as caught:
        await contents(store, key)
    assert caught.value.status == 410
    assert await restored(store, [url_of(folder)], key) == "available"
    assert await contents(store, key) == before
    # Retention leaves it for some days, also with other rules, whose previews agree.
    fields = {"what": ["items"], "older_than": 1, "enabled": True}
    rules = [await store.retention.add(1, retention_rule(fields | {"only_delivered": only})) for only in (True, False)]
    rules.append(await store.retention.add(1, retention_rule(fields | {"what": ["jobs"]})))
    for days, jobs in ((RESTORED_DAYS - 1, 0), (1, 1)):
        clock.now += days * DAY_MS
        assert [(await store.retention.preview(rule, [1])).jobs for rule in rules] == [jobs] * 3
    # It is not delivered again, and may be removed again.
    assert await deliverer.run_due() == 0
    await archive(store, key)
    assert await restored(store, [url_of(folder)], key) == "available"
    assert await contents(store, key) == before


@pytest.mark.long
async def test_parts_of_an_upload_to_s3_make_one_object(store: Store, clock: Clock, s3: S3) -> None:
    key = await finished_job(store, clock)
    noise = [{"n": n, "text": hashlib.shake_256(str(n).encode()).hexdigest(5000)} for n in range(1300)]
    await store.items.write(key, None, chunks_of(store.items, noise))
    before = await contents(store, key)
    await add_rule(store, target=s3.target, parquet=True)
    assert await Deliverer(store, [s3.target]).run_due() == 1
    objects = s3.objects()
    (items,) = (size for name, size in objects.items() if name.endswith("/items.jsonl.gz"))
    assert items > 5 * 1024 * 1024
    assert {name.rpartition("/")[2] for name in objects} >= {"items.parquet", "requests.parquet", "job.json"}
    await archive(store, key)
    assert await restored(store, [s3.target], key) == "available"
    assert await contents(store, key) == before


async def test_what_was_written_after_a_delivery_is_not_taken_as_delivered(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    key = await finished_job(store, clock)
    await add_rule(store, target=url_of(folder))
    assert await deliverer.run_due() == 1
    assert await store.deliveries.archive(key, "items") is not None
    await store.items.write(key, 8, chunks_of(store.items, [{"replaced": True}]))
    assert await store.deliveries.archive(key, "items") is None
    assert await store.deliveries.archive(key, "logs") is not None
    assert await deliverer.run_due() == 1
    assert await store.deliveries.archive(key, "items") is not None


async def test_rules_choose_jobs_by_spider_tag_and_age(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    books, films = [await finished_job(store, clock, spider=name, items=30) for name in ("books", "films")]
    other = await finished_job(store, clock, project=2, items=30)
    await store.jobs.tag([films], ["keep"], [])
    await add_rule(store, target=url_of(folder), tag="keep", what=["logs"])
    await add_rule(store, target=url_of(folder), spider="books", older_than=2)
    assert await deliverer.run_due() == 1
    assert [each.kind for each in await store.deliveries.of_job(films)] == ["logs"]
    clock.now += 2 * 86_400_000 + 1
    assert await deliverer.run_due() == 1
    assert len(await store.deliveries.of_job(books)) == len(KINDS)
    assert not await store.deliveries.of_job(other)


async def test_a_job_that_no_rule_may_remove_is_delivered_and_a_deleted_one_is_not(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    kept, deleted = [await finished_job(store, clock, items=30) for _ in range(2)]
    await store.jobs.tag([kept], ["keep"], [])
    await store.jobs.delete(1, [deleted], "ann")
    running = await new_job(store, "books", "running")
    await add_items(store, running, 1)
    rule = await add_rule(store, target=url_of(folder))
    assert [each.job for each in (await store.deliveries.preview(rule, [1])).next] == [str(kept)]
    assert await deliverer.run_due() == 1
    assert await store.deliveries.of_job(kept)
    assert not await store.deliveries.of_job(deleted)


async def test_the_newest_jobs_of_each_spider_are_not_delivered(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    first, second, third = [await add_finished(store, "books", 2) for _ in range(3)]
    await add_rule(store, target=url_of(folder), keep_last=2)
    assert await deliverer.run_due() == 1
    # The two newest jobs are those with records, whether they were delivered or not.
    assert await deliverer.run_due() == 0
    await add_finished(store, "books", 1)
    assert await deliverer.run_due() == 1
    assert [bool(await store.deliveries.of_job(key)) for key in (first, second, third)] == [True, True, False]


async def test_a_job_without_records_is_delivered_once_as_its_metadata(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    key = await add_finished(store, "books", 0, spider_args={"a": "ü"})
    rule = await add_rule(store, target=url_of(folder))
    # Records may still come.
    assert await deliverer.run_due() == 0
    clock.now += EMPTY_AFTER + 60_000
    preview = await store.deliveries.preview(rule, [1])
    assert (preview.jobs, preview.records, preview.bytes) == (1, 0, 0)
    assert [await deliverer.run_due() for _ in range(2)] == [1, 0]
    (only,) = local_objects(folder)
    manifest = json.loads((folder / only).read_bytes())
    assert (manifest["kinds"], manifest["metadata"]["spider_args"]) == ({}, {"a": "ü"})
    (delivery,) = await store.deliveries.of_job(key)
    assert (delivery.kind, delivery.object, delivery.records) == ("job", "job.json", 0)
    # Records that come later are delivered.
    await add_items(store, key, 3)
    assert [await deliverer.run_due() for _ in range(2)] == [1, 0]
    # A job whose records were moved out is none without records.
    await archive(store, key, ["items"])
    assert await deliverer.run_due() == 0


async def test_a_rule_of_the_server_delivers_every_project_with_a_message_in_each(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    keys = [await add_finished(store, "books", 2, project) for project in (1, 2)]
    of_project = await add_rule(store, target=url_of(folder), what=["items"])
    of_server = await add_rule(store, None, target=url_of(folder), what=["items"])
    assert of_project.id == of_server.id
    assert await deliverer.run_due() == 3
    assert await deliverer.run_due() == 0
    assert [len(await store.deliveries.of_job(key)) for key in keys] == [2, 1]
    events = [await _events(store, project) for project in (1, 2)]
    assert [sorted(event["user"] for event in found) for found in events] == [
        ["delivery rule 1", "delivery rule 1 of the server"],
        ["delivery rule 1 of the server"],
    ]
    (event,) = events[1]
    (delivery,) = await store.deliveries.of_job(keys[1])
    assert event["message"] == f"Delivered 1 job ({delivery.size} bytes): items of jobs to {url_of(folder)}"
    assert (event["what"], event["jobs"], event["records"]) == (["items"], [str(keys[1])], 2)
    assert store.deliveries.delivered == (3, 6, 3 * delivery.size)


async def _events(store: Store, project: int) -> list[dict[str, Any]]:
    messages = [json.loads(message.event) async for page in store.activity.scan(project) for message in page]
    return [message for message in messages if message["event"] == "delivery:completed"]


async def test_a_preview_counts_what_is_not_delivered_and_shows_what_is_next(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    first = await add_finished(store, "books", 3)
    clock.now += DAY_MS
    second = await add_finished(store, "books", 1)
    clock.now += 1
    rule = await add_rule(store, target=url_of(folder), what=["items"], older_than=1)
    preview = await store.deliveries.preview(rule, [1])
    assert (preview.jobs, preview.records, preview.bytes > 0) == (1, 3, True)
    assert [(each.job, each.due) for each in preview.next] == [
        (str(first), clock.now),
        (str(second), clock.now - 1 + DAY_MS),
    ]
    assert await deliverer.run_due() == 1
    preview = await store.deliveries.preview(rule, [1])
    assert (preview.jobs, preview.records, preview.bytes) == (0, 0, 0)
    assert [each.job for each in preview.next] == [str(second)]


async def test_a_rule_that_is_not_in_force_delivers_nothing(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    await add_finished(store, "books", 1)
    rule = await add_rule(store, target=url_of(folder), enabled=False)
    assert await deliverer.run_due() == 0
    await store.deliveries.enable(1, rule.id, True)
    lease = await store.leases.take("delivery", "test")
    assert lease is not None
    # It is disabled after the search for due jobs.
    (due,) = (await store.deliveries.page(rule, 1)).matches
    await store.deliveries.enable(1, rule.id, False)
    with pytest.raises(RuleOverError):
        await store.deliveries.begin(lease, Attempt(due.key, "a", url_of(folder)), rule, 60_000)
    assert not local_objects(folder)


async def test_a_target_that_was_not_allowed_gets_nothing(store: Store, clock: Clock, folder: Path) -> None:
    await finished_job(store, clock, items=30)
    rule = await add_rule(store, target=url_of(folder))
    assert await Deliverer(store, [url_of(folder) + "-other"]).run_due() == 0
    assert not local_objects(folder)
    found = await store.deliveries.get(1, rule.id)
    assert found is not None
    assert "--archive-target" in (found.failure or "")


async def test_a_target_that_fails_is_reported_and_tried_again(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    await finished_job(store, clock, items=30)
    rule = await add_rule(store, target=url_of(folder))
    # A file is where the folder of the project must be.
    (folder / "1").write_text("")
    assert await deliverer.run_due() == 0
    found = await store.deliveries.get(1, rule.id)
    assert found is not None
    assert url_of(folder) in (found.failure or "")
    (folder / "1").unlink()
    assert await deliverer.run_due() == 1
    found = await store.deliveries.get(1, rule.id)
    assert found is not None
    assert found.failure is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("items.jsonl.gz", lambda data: data[:-9]),
        ("items.times.jsonl.gz", lambda _: gzip.compress(b"[[1,2]]\n")),
        ("job.json", lambda data: data.replace(b'"version":1', b'"version":2')),
        ("logs.jsonl.gz", lambda _: None),
    ],
)
@pytest.mark.long(keep=2)
async def test_a_changed_archive_is_not_restored(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer, name: str, change: Callable[[bytes], bytes | None]
) -> None:
    key = await finished_job(store, clock)
    before = await contents(store, key)
    await add_rule(store, target=url_of(folder))
    assert await deliverer.run_due() == 1
    await archive(store, key)
    (path,) = folder.rglob(name)
    data = path.read_bytes()
    if (changed := change(data)) is None:
        path.unlink()
    else:
        path.write_bytes(changed)
    failure = await restored(store, [url_of(folder)], key)
    assert name in failure or "times" in failure or "No such file" in failure, failure
    with pytest.raises(ContractError):
        await contents(store, key)
    path.write_bytes(data)
    assert await restored(store, [url_of(folder)], key) == "available"
    assert await contents(store, key) == before


@pytest.mark.long(keep=1)
async def test_an_interrupted_restore_shows_nothing_and_can_be_repeated(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer, look: Callable[[str], Any]
) -> None:
    key = await finished_job(store, clock)
    before = await contents(store, key)
    await add_rule(store, target=url_of(folder))
    assert await deliverer.run_due() == 1
    await archive(store, key)
    await store.purge()
    dead: Restore = await store.restores.claim(key)
    assert await store.restores.prepare(dead)
    reader = Restores(store, [url_of(folder)])
    where = dead.archives["items"].archive
    target, inner, manifest = await reader._manifest(key, where)
    await reader._write(dead, "items", manifest.kinds["items"], target, inner)
    assert await look("SELECT count(*) FROM record_chunks") != [(0,)]
    with pytest.raises(ContractError, match="were moved"):
        await contents(store, key)
    with pytest.raises(ContractError, match="is being restored"):
        await reader.start(key)
    clock.now += 61_000
    assert await store.restores.clean() == 1
    await store.purge()
    assert await look("SELECT count(*) FROM record_chunks") == [(0,)]
    assert await restored(store, [url_of(folder)], key) == "available"
    assert await contents(store, key) == before


async def test_a_deleted_job_is_not_restored(store: Store, clock: Clock, folder: Path, deliverer: Deliverer) -> None:
    key = await finished_job(store, clock, items=30)
    await add_rule(store, target=url_of(folder))
    assert await deliverer.run_due() == 1
    await archive(store, key)
    await store.jobs.delete(1, [key], "ann")
    with pytest.raises(ContractError, match="was deleted"):
        await Restores(store, [url_of(folder)]).start(key)


# ── crashes, and several servers ──

STEPS = [
    ("before", "/items.jsonl.gz"),
    ("after", "/items.times.jsonl.gz"),
    ("after", "/comments.jsonl.gz"),
    ("before", "/job.json"),
    ("after", "/job.json"),
]


def _named(where: Where) -> str:
    return where.secret if isinstance(where, DatabaseUrl) else str(where)


@pytest.mark.parametrize(("when", "step"), STEPS)
@pytest.mark.long(keep=2)
async def test_a_delivery_killed_at_any_step_is_repeated_and_counts_once(
    where: Where, folder: Path, when: str, step: str
) -> None:
    store = await Store.open(where)
    clock = Clock()
    clock.now = store.clock()
    try:
        key = await finished_job(store, clock, items=100)
        await add_rule(store, target=url_of(folder))
        before = await contents(store, key)
        killed = deliver_in_process(_named(where), url_of(folder), when, step)
        out, err = await asyncio.to_thread(killed.communicate)
        assert killed.returncode == -9, (out, err)
        assert not await store.deliveries.of_job(key)
        assert bool(list(folder.rglob("job.json"))) == (step == "/job.json" and when == "after")
        deliverer = Deliverer(store, [url_of(folder)], grace=0)
        until = time.monotonic() + 60
        while not await store.deliveries.of_job(key):
            assert time.monotonic() < until
            await deliverer.run_due()
        # What the killed one has written is removed.
        while len(found := {each.parent for each in folder.rglob("*") if each.is_file()}) > 1:
            assert time.monotonic() < until
            await deliverer.run_due()
        (event,) = await _events(store, 1)
        assert event["jobs"] == [str(key)]
        assert [f"{url_of(folder)}/{each.relative_to(folder)}" for each in found] == list(
            {each.folder for each in await store.deliveries.of_job(key)}
        )
        await archive(store, key)
        assert await restored(store, [url_of(folder)], key) == "available"
        assert await contents(store, key) == before
    finally:
        await store.close()


@pytest.mark.long(keep=1)
async def test_two_servers_at_once_deliver_each_job_once(where: Where, folder: Path) -> None:
    store = await Store.open(where)
    clock = Clock()
    clock.now = store.clock()
    try:
        keys = [await finished_job(store, clock, items=50) for _ in range(6)]
        await add_rule(store, target=url_of(folder))
        both = [deliver_in_process(_named(where), url_of(folder)) for _ in range(2)]
        done = [await asyncio.to_thread(each.communicate) for each in both]
        assert sum(int(out) for out, _ in done) == len(keys), done
        assert len(list(folder.rglob("job.json"))) == len(keys)
        for key in keys:
            assert len(await store.deliveries.of_job(key)) == len(KINDS)
    finally:
        await store.close()


async def test_a_server_that_lost_its_lease_completes_nothing(
    store: Store, clock: Clock, folder: Path, deliverer: Deliverer
) -> None:
    key = await finished_job(store, clock, items=30)
    await add_rule(store, target=url_of(folder))
    lost = await store.leases.take("delivery", "first")
    assert lost is not None
    assert await deliverer.run_due() == 0
    clock.now += 61_000
    assert await deliverer.run_due() == 1
    (rule,) = await store.deliveries.enabled()
    assert not (await store.deliveries.page(rule, 1)).matches
    assert len({each.folder for each in await store.deliveries.of_job(key)}) == 1
    assert open_target(url_of(folder)).url == url_of(folder)
