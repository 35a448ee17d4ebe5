"""A deletion that is killed at any step: the job is whole or unreadable, the others are whole, and the rest is removed
after the next start."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.crash.lives import Platform
from tests.support.eventually import eventually_async
from tests.support.filled_jobs import FilledJob, new_job, unrefused
from tests.support.http import Http

PROJECT = 1
SHARE = [
    pytest.param(False, marks=pytest.mark.long),
    pytest.param(True, marks=[pytest.mark.full, pytest.mark.timeout(3600)]),
]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None


async def is_whole(job: FilledJob) -> bool:
    """Return true when the job has all that it was filled with; else nothing of it may be readable."""
    reads = await job.reads()
    paths = [*job.own_paths(), f"{job.staged}?prefix=shared"]
    found = [job.secret.encode() in reads[path].body for path in paths]
    if not any(found):
        assert not any(job.secret.encode() in answer.body for answer in reads.values())
    else:
        assert all(found), [path for path, is_there in zip(paths, found, strict=True) if not is_there]
    return all(found)


@pytest.mark.parametrize("every", SHARE, ids=["some steps", "every step"])
async def test_a_deletion_is_killed_at_each_step(tmp_path: Path, database: str | None, every: bool) -> None:
    platform = Platform(tmp_path, database=database)
    try:
        for place in itertools.count() if every else (0, 1, 6):
            async with Http(platform.url, platform.key) as http:
                job, other = await new_job(http, PROJECT), await new_job(http, PROJECT)
                await job.fill()
                await other.fill()
            platform.close()
            arguments = [database or str(tmp_path), job.key, str(place)]
            done = subprocess.run([sys.executable, "-m", "tests.support.crash.deletion", *arguments], check=False)
            platform.start_again()
            async with Http(platform.url, platform.key) as http:
                job.http = other.http = http
                assert await is_whole(other)
                # Before the commit of the deletion, nothing has happened.
                assert await is_whole(job) is (place == 0)
                await job.delete()
                assert not await is_whole(job)
                assert unrefused(await job.writes()) == {}
                if database is None:
                    await gone(tmp_path, job.secret)
            if done.returncode == 0:
                return
            assert done.returncode == -signal.SIGKILL
        assert not every
    finally:
        platform.close()


async def gone(folder: Path, secret: str) -> None:
    """Wait until no file has the secret."""

    def holders() -> list[str]:
        return [path.name for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]

    await eventually_async(holders, lambda found: not found)
