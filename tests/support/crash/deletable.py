"""Things that can be deleted, with their readers, and a client that reads them while a server is killed."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import aiohttp

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from tests.support.filled_jobs import FilledJob, new_job
from tests.support.http import Answer, Http

PROJECT: Final = 1
#: Items of a job beside those that it is filled with: several chunks of records.
ITEMS: Final = 2500

_numbers = itertools.count()


class Thing(NamedTuple):
    """A job, collection or slot.

    ``paths``: reads of its own data. ``wide_paths``: reads of the data of several things. ``secret`` is part of its
    data, and of that of no other thing. ``deletions``: all calls that delete it.
    """

    name: str
    secret: bytes
    paths: Sequence[str]
    wide_paths: Sequence[str]
    deletions: Sequence[Callable[[Http], Awaitable[Answer]]]


async def new_filled_job(http: Http) -> Thing:
    """A finished job with data of each kind, more items than a chunk has, and its readers."""
    job = await new_job(http, PROJECT)
    items = [{"name": job.secret, "n": number, f"field{number % 3}": None} for number in range(ITEMS)]
    assert (await http.post(f"/items/{job.key}", items)).status == 200
    await job.fill()
    key = job.key
    records = [f"/{kind}/{key}" for kind in ("items", "requests", "logs", "samples")]
    stats = [f"{path}/stats" for path in records if "samples" not in path]
    forms = ("csv&fields=name,n", "json", "xml", "xlsx", "parquet", "msgpack", "jl&meta=_key&meta=_ts")
    downloads = [*(f"/items/{key}?format={form}" for form in forms), f"/items/{key}?start={key}/{ITEMS - 1}"]
    pages = [f"/ui/{key}/items.{form}" for form in ("csv", "jl", "xlsx", "parquet")]
    own = [f"/api/comments/{key}", *(f"{job.frontier}/s/{slot}/{part}" for slot in ("0", job.journal) for part in "qf")]
    staged = [f"{job.staged}?key={job.staged_key('shared')}"]
    wide = ["/items/1", "/logs/1", "/requests/1?count=5000", f"/jobs/{key}", "/jobs/1", f"{job.staged}?prefix=shared"]
    return Thing(
        name=key,
        secret=job.secret.encode(),
        paths=[*records, *stats, *downloads, *pages, *own, *staged],
        wide_paths=[*wide, "/jobq/1/list?state=deleted&jobmeta=spider_args", f"/ui/{key}", f"/ui/{key}/items"],
        deletions=_deletions_of(job),
    )


def _deletions_of(job: FilledJob) -> list[Callable[[Http], Awaitable[Answer]]]:
    key = job.key
    return [
        lambda http: http.delete(f"/jobs/{key}"),
        lambda http: http.post("/jobq/1/update", [{"key": key, "state": "deleted"}]),
        lambda http: http.post("/api/jobs/delete.json", {"project": "1", "job": key}),
    ]


async def new_collection(http: Http) -> Thing:
    name = f"people{next(_numbers)}"
    path = f"/collections/1/s/{name}"
    secret = f"a-person-of-{name}-who"
    records = [{"_key": f"{number:04}", "value": secret} for number in range(300)]
    assert (await http.post(path, records)).status == 200
    return Thing(
        name=name,
        secret=secret.encode(),
        paths=[
            path,
            f"{path}/0007",
            f"{path}?format=csv&fields=value",
            f"{path}?format=xlsx",
            f"{path}?format=parquet",
        ],
        wide_paths=[f"/ui/1/collections/s/{name}"],
        deletions=[lambda http: http.post(f"/collections/1/delete?name={name}")],
    )


async def new_slot(http: Http) -> Thing:
    name = f"queue{next(_numbers)}"
    path = f"/hcf/1/{name}/s/0"
    secret = f"a-person-of-{name}-who"
    requests = [{"fp": f"{number}-{secret}", "qdata": secret, "fdata": secret} for number in range(300)]
    assert (await http.post(path, requests)).status == 200
    return Thing(
        name=name,
        secret=secret.encode(),
        paths=[f"{path}/q", f"{path}/f"],
        wide_paths=[],
        deletions=[lambda http: http.delete(path)],
    )


class Readers:
    """A client that reads things without a pause, and checks each answer.

    An answer has all of a thing or nothing of it. One to a request that was sent after the deletion was acknowledged
    has nothing of it.
    """

    def __init__(self, http: Http) -> None:
        self._http = http
        self._whole: dict[str, Answer] = {}
        self._things: list[Thing] = []
        self._acknowledged: set[str] = set()
        self.checked = 0
        #: Answers that broke off, or that did not come.
        self.broken = 0

    async def add(self, *things: Thing) -> None:
        """Read things that are whole."""
        for thing in things:
            for path in thing.paths:
                answer = self._whole[path] = await self._http.get(path)
                assert answer.status == 200, (path, answer.text)
        self._things += things

    def acknowledge(self, thing: Thing) -> None:
        """Expect nothing more of a thing."""
        self._acknowledged.add(thing.name)

    def is_acknowledged(self, thing: Thing) -> bool:
        return thing.name in self._acknowledged

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            for thing in list(self._things):
                for path in (*thing.paths, *thing.wide_paths):
                    await self._read(thing, path)
            await asyncio.sleep(0)

    async def _read(self, thing: Thing, path: str) -> None:
        was_acknowledged = thing.name in self._acknowledged
        try:
            answer = await self._http.get(path)
        except (aiohttp.ClientError, OSError, *TIMEOUT_ERRORS):
            self.broken += 1
            await asyncio.sleep(0.02)
            return
        self.checked += 1
        if answer.status == 503:
            return
        if was_acknowledged or (path in self._whole and answer.body != self._whole[path].body):
            self._check_gone(thing, path, answer)

    async def is_whole_or_going(self, thing: Thing) -> bool:
        """As :meth:`is_whole`, for a thing that may go between two reads: then nothing of it is there afterwards."""
        try:
            return await self.is_whole(thing)
        except AssertionError:
            assert not await self.is_whole(thing)
            return False

    async def is_whole(self, thing: Thing) -> bool:
        """Read a thing; return true when all of it is there, else nothing of it may be."""
        answers = {path: await self._http.get(path) for path in (*thing.paths, *thing.wide_paths)}
        same = [answers[path].body == self._whole[path].body for path in thing.paths]
        if not any(same):
            for path, answer in answers.items():
                self._check_gone(thing, path, answer)
        else:
            assert all(same), [path for path, is_same in zip(thing.paths, same, strict=True) if not is_same]
        return all(same)

    def _check_gone(self, thing: Thing, path: str, answer: Answer) -> None:
        assert answer.status in (200, 404, 410), (path, answer)
        # The number of one job begins that of another.
        secret = re.search(re.escape(thing.secret) + rb"(?![0-9])", answer.body)
        assert secret is None, (path, answer.status, answer.body[secret.start() :][:500])
        # A compressed body would not show the secret.
        if "xlsx" in path or "parquet" in path:
            assert answer.status in (404, 410) or len(answer.body) < len(self._whole[path].body), path
