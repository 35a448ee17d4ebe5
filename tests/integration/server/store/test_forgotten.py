"""Deleted data is in none of the files of a database any more, while the server runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.server.store import Store, removals
from scrapy_ext.server.store.collections.collections import Collection
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from tests.support.eventually import eventually_async
from tests.support.filled_jobs import new_job
from tests.support.http import Http
from tests.support.servers import RunningServer

SECRET = b"people-who-want-to-be-forgotten"
COLLECTION = Collection(1, CollectionType.STORE, "people")
SLOT = Slot(1, "f", "0")


def holds_it(folder: Path, secret: bytes = SECRET) -> list[str]:
    """The files below a folder that have the secret."""
    return [path.name for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


async def gone(folder: Path, secret: bytes = SECRET) -> None:
    await eventually_async(lambda: asyncio.to_thread(holds_it, folder, secret), lambda value: not value)


async def fill(store: Store, times: int = 30) -> None:
    for number in range(times):
        rows = [(b"%d" % n, b'{"name":"%b %d"}' % (SECRET, n) + b" " * (n % 7) * 1000) for n in range(100)]
        await store.collections.write(COLLECTION, rows)
        requests = [
            QueuedRequest(SECRET + b"%d-%d" % (number, n), b'["%b",%d]' % (SECRET, n), None, 0) for n in range(100)
        ]
        await store.frontier.add(SLOT, requests)


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_deleted_collections_and_slots_are_in_no_file_of_a_server_that_runs(
    server: RunningServer, http: Http, project: int
) -> None:
    text = SECRET.decode()
    people = [{"_key": str(n), "name": text, "more": "x" * (n % 7) * 1000} for n in range(500)]
    assert (await http.post(f"/collections/{project}/s/people", people)).status == 200
    queued = [{"fp": f"{text}-{n}", "qdata": {"a": text}} for n in range(500)]
    assert (await http.post(f"/hcf/{project}/f/s/0", queued)).status == 200
    assert holds_it(server.data)
    assert (await http.delete(f"/hcf/{project}/f/s/0")).status == 200
    assert (await http.post(f"/collections/{project}/delete?name=people")).status == 202
    await gone(server.data)


async def test_writes_go_on_while_a_reader_keeps_what_was_deleted_and_it_goes_with_the_reader(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await fill(store)
    async with store._engine.snapshot():
        await store.collections.drop(1, "people")
        await store.frontier.delete_slot(SLOT)
        await store.purge()
        for number in range(50):
            await store.collections.write(COLLECTION._replace(name="others"), [(b"%d" % number, b"{}")])
        assert holds_it(tmp_path)
    await gone(tmp_path)
    await store.close()


async def test_what_a_crash_left_in_the_log_is_gone_after_the_next_start(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await fill(store, 3)
    await store.collections.drop(1, "people")
    await store.frontier.delete_slot(SLOT)
    other = await Store.open(tmp_path)  # which the log stays for when the first one ends
    await store.close()
    assert holds_it(tmp_path)
    await other.purge()
    await gone(tmp_path)
    await other.close()


async def test_what_was_removed_just_before_a_crash_is_gone_after_the_next_start(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await fill(store, 3)
    await store.collections.drop(1, "people")
    await store.frontier.delete_slot(SLOT)
    while await store._engine.read(removals._any_left):  # as a purge that is killed before its last call
        await store._engine.write(removals._purge_step, -1, 1.0, alone=False)
    other = await Store.open(tmp_path)
    await store.close()
    assert holds_it(tmp_path)
    await other.purge()
    await gone(tmp_path)
    await other.close()


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_a_deleted_job_is_in_no_file_of_a_server_that_runs(
    server: RunningServer, http: Http, project: int
) -> None:
    job, other = await new_job(http, project), await new_job(http, project)
    await job.fill()
    await other.fill()
    # Of several kilobytes, which overflow their page.
    assert (
        await http.post(f"/items/{job.key}", [{"n": n, job.secret: "x" * n * 100} for n in range(100)])
    ).status == 200
    assert holds_it(server.data, job.secret.encode())
    await job.delete()
    await gone(server.data, job.secret.encode())
    assert other.secret in (await http.get(f"/items/{other.key}")).text
