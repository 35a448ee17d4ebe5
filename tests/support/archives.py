"""Stores with finished jobs, an S3 server on this machine, and a process that delivers until it dies at a step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from scrapy_ext.api.platform.deliveries import DeliveryRule, rule_of
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.comments import CommentSubject
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.records.chunks import Packer, RecordChunk
from scrapy_ext.server.store.records.records import RecordStore, Span

KINDS = ("items", "requests", "logs", "samples")
BUCKET = "crawls"


def chunks_of(records: RecordStore, values: Sequence[Any]) -> list[RecordChunk]:
    packer = Packer(records.kind)
    chunks = packer.add([msgspec.json.encode(value) for value in values], values)
    return [chunk for chunk in (*chunks, packer.rest()) if chunk is not None]


async def add_rule(store: Store, project: int | None = 1, **fields: Any) -> DeliveryRule:
    """Add a delivery rule, and enable it."""
    return await store.deliveries.add(project, rule_of({"enabled": True, **fields}))


async def finished_job(
    store: Store, clock: Any, *, project: int = 1, spider: str = "books", items: int = 2500
) -> JobKey:
    """A finished job with records of all kinds, stored at several times, from index 7 on."""
    (key,) = await store.jobs.add(project, [NewJob(spider, JobState.RUNNING, {"spider_args": {"a": "ü"}})], "ann")
    assert isinstance(key, JobKey)
    values = [{"n": n, "name": "é" * (n % 30), "big": 2**70, "none": None} for n in range(items)]
    await store.items.write(key, 7, chunks_of(store.items, values[: items // 2]), may_skip=True)
    clock.now += 1234
    for value in values[items // 2 : items // 2 + 10]:
        await store.items.write(key, None, chunks_of(store.items, [value]))
        clock.now += 7
    await store.items.write(key, None, chunks_of(store.items, values[items // 2 + 10 :]))
    requests = [
        {"time": n, "method": "GET", "url": f"http://a/{n}", "status": 200, "rs": 1, "duration": 2} for n in range(20)
    ]
    await store.requests.write(key, None, chunks_of(store.requests, requests))
    logs = [{"time": n, "level": 20 + 10 * (n % 3), "message": f"line {n}\nü"} for n in range(30)]
    await store.logs.write(key, None, chunks_of(store.logs, logs))
    await store.samples.write(key, None, chunks_of(store.samples, [[clock.now + n, n, 0, 1] for n in range(5)]))
    await store.comments.add(CommentSubject(EntityKey(*key, 8), "name"), "ann", "odd")
    await store.jobs.change(project, [Change(key, JobState.FINISHED, {"close_reason": "finished"})], "ann")
    return key


async def contents(store: Store, key: JobKey) -> dict[str, Any]:
    """All that readers see of a job's records: indexes, times, lines, stats and progress."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        records: RecordStore = getattr(store, kind)
        span = Span(*key)
        found[kind] = [
            (part.start + place, part.ts, line)
            async for part in records.scan(span, span.first)
            for place, line in enumerate(part.lines)
        ]
        found[f"{kind} stats"] = await records.stats(key)
        found[f"{kind} indexes"] = await records.indexes(key)
        found[f"{kind} progress"] = await records.progress(key, 10)
    found["comments"] = await store.comments.of_job(key)
    return found


async def archive(store: Store, key: JobKey, kinds: Sequence[str] = KINDS) -> None:
    """Remove the records that were delivered, as retention does."""

    async def remove(tx: Any) -> None:
        from scrapy_ext.server.store.deliveries import find_archive
        from scrapy_ext.server.store.records.removal import remove_records

        for kind in kinds:
            where = await find_archive(tx, key, kind)
            assert where is not None
            await remove_records(tx, key, [kind], store.clock(), where)

    await store._engine.write(remove)
    store.deleted.set()


class S3:
    """The server, and the objects in its bucket."""

    def __init__(self, url: str) -> None:
        # Imported here, as the server below: they take as long as half of the tests that are collected.
        import boto3

        self.url = url
        self.target = f"s3://{BUCKET}/archive"
        self.environment = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": url,
        }
        self._client = boto3.client(
            "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret"
        )

    def empty(self) -> None:
        names = [bucket["Name"] for bucket in self._client.list_buckets()["Buckets"]]
        if BUCKET not in names:
            self._client.create_bucket(Bucket=BUCKET)
        for name in self.objects():
            self._client.delete_object(Bucket=BUCKET, Key=f"archive/{name}")

    def objects(self) -> dict[str, int]:
        """The sizes of the objects below the target."""
        found = self._client.list_objects_v2(Bucket=BUCKET, Prefix="archive/").get("Contents", [])
        return {entry["Key"].removeprefix("archive/"): entry["Size"] for entry in found}


@contextmanager
def s3_server() -> Iterator[S3]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3(f"http://{host}:{port}")
    finally:
        server.stop()


def local_objects(folder: Path) -> dict[str, int]:
    """The sizes of the files below a folder."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


#: Delivers once to a target, and dies before or after the write of an object with this text in its name.
_PROCESS = """
import asyncio, os, signal, sys
from pathlib import Path
from scrapy_ext.server.delivery import delivering
from scrapy_ext.server.delivery.targets import Target
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl

where, url, when, step = sys.argv[1:]

def die(moment, path):
    if step and when == moment and path.endswith(step):
        os.kill(os.getpid(), signal.SIGKILL)

class Dying(Target):
    async def put(self, path, pieces):
        die("before", path)
        await super().put(path, pieces)
        die("after", path)

    async def create(self, path, data):
        die("before", path)
        await super().create(path, data)
        die("after", path)

async def main():
    store = await Store.open(DatabaseUrl(where) if "://" in where else Path(where))
    # The lease of one that dies expires soon.
    deliverer = delivering.Deliverer(store, [url], duration=1000 if step else 60_000, grace=0, opened=Dying)
    print(await deliverer.run_due())
    await store.close()

asyncio.run(main())
"""


def deliver_in_process(where: str, url: str, when: str = "", step: str = "") -> subprocess.Popen[str]:
    """Start a process that delivers all due jobs once, and dies with SIGKILL ``when`` (before, after) it writes the
    object whose name ends with ``step``."""
    return subprocess.Popen(
        [sys.executable, "-c", _PROCESS, where, url, when, step],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
