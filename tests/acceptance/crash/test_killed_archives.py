"""A server that is killed while it delivers a job, removes what was delivered, or brings it back."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.crash.deletable import Readers, Thing, new_filled_job
from tests.support.crash.killed_server import KillAt
from tests.support.crash.lives import Platform
from tests.support.eventually import eventually_async
from tests.support.http import Http

#: Operations that are the steps of a delivery, of the removal by a rule, and of a restore.
DELIVERY = ("_begin", "put", "create", "_finish")
REMOVAL = ("remove_jobs", "_purge_step")
RESTORE = ("_claim", "_prepare", "_write", "_finish", "_purge_step")
#: Removals have small steps, and the server is not killed by itself.
SLOW = KillAt(sys.maxsize, REMOVAL)
RECORDS = ("/items/", "/requests/", "/logs/", "/samples/", "/ui/")


def places(*some: int) -> list[Any]:
    """Some places to kill a server at, and all of them, up to the one that it does not reach."""
    full = [pytest.mark.full, pytest.mark.timeout(7200)]
    return [pytest.param(some, id="some places"), pytest.param(itertools.count(), id="every place", marks=full)]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None


class Archive:
    """A platform that delivers jobs to a folder, by a rule."""

    def __init__(self, folder: Path, database: str | None) -> None:
        self.target = folder / "archive"
        self.target.mkdir()
        options = ("--no-runner", "--archive-target", self.target.as_uri())
        self.platform = Platform(folder / "data", database=database, options=options, kill_at=SLOW)
        self.http = Http(self.platform.url, self.platform.key)

    async def start_again(self, kill_at: KillAt = SLOW) -> None:
        await asyncio.to_thread(self.platform.start_again, kill_at)

    async def over(self, is_done: Any) -> None:
        """Wait until the server has killed itself, or has done it."""

        async def reached() -> bool:
            try:
                return self.platform.was_killed or bool(await is_done())
            except (aiohttp.ClientError, OSError):
                return False

        await eventually_async(reached, what="its death, or the end", details=lambda: self.platform.log[-3000:])

    async def add_rule(self) -> None:
        body = json.dumps({"target": self.target.as_uri(), "enabled": True}).encode()
        assert (await self.http.post("/api/projects/1/deliveries", body)).status == 201

    async def new_job(self) -> Thing:
        """A finished job, whose paths are those of its records."""
        thing = await new_filled_job(self.http)
        paths = [path for path in thing.paths if path.startswith(RECORDS) and not path.endswith("/stats")]
        return thing._replace(paths=paths, wide_paths=["/items/1", "/logs/1"])

    async def deliveries(self, job: Thing) -> list[dict[str, Any]]:
        answer = await self.http.get(f"/api/jobs/deliveries.json?project=1&job={job.name}")
        return list(answer.json["deliveries"])

    async def delivered(self, *jobs: Thing) -> None:
        """Wait until jobs are delivered, each kind of their records once."""
        for job in jobs:
            kinds = [each["kind"] for each in await eventually_async(lambda job=job: self.deliveries(job))]
            assert sorted(kinds) == ["items", "logs", "requests", "samples"]

    async def expire(self) -> None:
        """Let the leases of a process that was killed expire, and the time after it."""
        for table in ("leases", "delivery_attempts", "restores"):
            await self.platform.query(f"UPDATE {table} SET expires = 0")

    def whole(self) -> list[Path]:
        """The folders that look whole, after a check that they are: all objects are those of the manifest."""
        found = []
        for path in self.target.rglob("job.json"):
            manifest = json.loads(path.read_bytes())
            kinds = list(manifest["kinds"].values())
            objects = [*kinds, *(kind["times"] for kind in kinds), manifest["comments"]]
            for each in objects:
                assert hashlib.sha256((path.parent / each["object"]).read_bytes()).hexdigest() == each["sha256"]
            found.append(path.parent)
        return found

    def folders(self) -> set[Path]:
        return {path.parent for path in self.target.rglob("*") if path.is_file()}

    async def state(self, job: Thing) -> str:
        answer = await self.http.get(f"/api/jobs/restore.json?project=1&job={job.name}")
        return str(answer.json["jobs"][0]["state"])

    async def remove_delivered(self) -> int:
        """Add a rule that removes the delivered records of all jobs but the newest; returns its number."""
        rule = {"what": ["items", "requests", "logs", "samples"], "keep_last": 1, "only_delivered": True}
        added = await self.http.post("/api/projects/1/retention", json.dumps({**rule, "enabled": True}).encode())
        assert added.status == 201, added.text
        return int(added.json["id"])

    async def switch(self, rule: int, enabled: bool) -> None:
        path, body = f"/api/projects/1/retention/{rule}", json.dumps({"enabled": enabled}).encode()
        assert (await self.http.call("PATCH", path, body)).status == 200

    async def __aenter__(self) -> Archive:
        await self.http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.__aexit__()
        self.platform.close()


@pytest.mark.parametrize("some", places(4, 20))
async def test_a_delivery_killed_at_a_step_leaves_nothing_that_looks_whole_and_is_repeated_once(
    tmp_path: Path, database: str | None, some: Iterable[int]
) -> None:
    async with Archive(tmp_path, database) as archive:
        await archive.add_rule()
        jobs: list[Thing] = []
        for place in some:
            job = await archive.new_job()
            jobs.append(job)
            await archive.start_again(KillAt(place, DELIVERY))
            await archive.over(lambda job=job: archive.deliveries(job))
            was_killed = archive.platform.was_killed
            archive.whole()
            await archive.expire()
            await archive.start_again()
            await archive.delivered(*jobs)
            folders = {each["folder"] for job in jobs for each in await archive.deliveries(job)}
            assert len(folders) == len(jobs)
            # What the killed one has written is removed.
            expected = {Path(folder.removeprefix("file://")) for folder in folders}
            await archive.expire()
            await archive.start_again()
            await eventually_async(archive.folders, lambda found, expected=expected: found == expected)
            assert set(archive.whole()) == expected
            if not was_killed:
                break
        assert was_killed is isinstance(some, tuple)


@pytest.mark.parametrize("some", places(1, 4))
async def test_a_removal_of_delivered_records_and_a_restore_killed_at_a_step_show_all_or_nothing(
    tmp_path: Path, database: str | None, some: Iterable[int]
) -> None:
    async with Archive(tmp_path, database) as archive:
        await archive.add_rule()
        job, newest = await archive.new_job(), await archive.new_job()
        readers = Readers(archive.http)
        await readers.add(job, newest)
        await archive.start_again()
        await archive.delivered(job, newest)
        rule = await archive.remove_delivered()
        for place in some:
            await archive.start_again(KillAt(place, REMOVAL))
            await archive.over(lambda: _removed(archive))
            were_killed = [archive.platform.was_killed]
            await archive.start_again()
            await eventually_async(lambda: archive.state(job), lambda state: state == "archived")
            assert not await readers.is_whole(job)
            # What is left to remove would be removed by the next server, and its steps counted there.
            await eventually_async(partial(_removed, archive))
            await archive.switch(rule, enabled=False)

            await archive.start_again(KillAt(place, RESTORE))
            form = {"project": "1", "job": job.name}
            try:
                assert (await archive.http.post("/api/jobs/restore.json", form)).status == 202
            except (aiohttp.ClientError, OSError):
                await eventually_async(lambda: archive.platform.was_killed)
            await archive.over(lambda: _is_available(archive, job))
            were_killed.append(archive.platform.was_killed)
            await archive.start_again()
            assert await readers.is_whole(job) is (await archive.state(job) == "available")
            await archive.expire()
            if await archive.state(job) != "available":
                assert (await archive.http.post("/api/jobs/restore.json", form)).status == 202
                await eventually_async(lambda: archive.state(job), lambda state: state == "available")
            assert await readers.is_whole(job)
            assert await readers.is_whole(newest)
            # Retention leaves a restored job for some days.
            await archive.platform.query("UPDATE record_totals SET restored = 1 WHERE restored IS NOT NULL")
            await archive.switch(rule, enabled=True)
            if not any(were_killed):
                break
        assert any(were_killed) is isinstance(some, tuple)


async def _removed(archive: Archive) -> bool:
    """Return true when the records of a job were removed, and all their rows."""
    removed = await archive.platform.query("SELECT 1 FROM record_totals WHERE removed IS NOT NULL")
    return bool(removed) and not await archive.platform.query("SELECT 1 FROM removals")


async def _is_available(archive: Archive, job: Thing) -> bool:
    return await archive.state(job) == "available"
