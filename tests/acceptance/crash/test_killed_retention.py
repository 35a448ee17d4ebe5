"""A server that is killed while retention rules remove data: what they cover goes, once, and nothing else."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.crash.deletable import Readers, Thing, new_collection, new_filled_job
from tests.support.crash.killed_server import KillAt
from tests.support.crash.lives import Platform
from tests.support.eventually import eventually_async
from tests.support.http import Http

STEPS = ("remove_jobs", "remove_old", "_purge_step")
SLOW = KillAt(sys.maxsize, STEPS)
#: A time long ago (ms).
OLD = 1_700_000_000_000
PLACES = [
    pytest.param((1, 6), id="some places"),
    pytest.param(itertools.count(), id="every place", marks=[pytest.mark.full, pytest.mark.timeout(7200)]),
]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None


async def tagged(http: Http, *tags: str) -> Thing:
    """A finished job with tags."""
    job = await new_filled_job(http)
    for tag in tags:
        form = {"project": "1", "job": job.name, "add_tag": tag}
        assert (await http.call("POST", "/api/jobs/update.json", form)).status == 200
    return job


def without(job: Thing, *kinds: str) -> Thing:
    """A job with the reads of its other data, and of nothing else."""
    starts = tuple(f"/{kind}/" for kind in kinds)
    return job._replace(paths=[path for path in job.paths if not path.startswith(starts)], wide_paths=[])


async def add_rules(http: Http, *rules: dict[str, Any]) -> list[int]:
    """Enable rules; returns their numbers."""
    numbers = []
    for rule in rules:
        added = await http.post("/api/projects/1/retention", json.dumps({**rule, "enabled": True}).encode())
        assert added.status == 201, added.text
        numbers.append(added.json["id"])
    return numbers


async def has_removed(platform: Platform, http: Http, gone: Sequence[Thing], without_logs: Thing) -> bool:
    """Return true when all that the rules cover was removed, and its rows."""
    answers = [await http.get(thing.paths[0]) for thing in gone]
    are_gone = all(answer.status == 410 or not answer.body for answer in answers)
    are_gone &= (await http.get(f"/logs/{without_logs.name}")).status == 410
    return are_gone and not await platform.query("SELECT 1 FROM removals")


async def is_over(platform: Platform, is_removed: Callable[[], Awaitable[bool]]) -> bool:
    """Return true when the server has killed itself, or has done all."""
    try:
        return platform.was_killed or await is_removed()
    except (aiohttp.ClientError, OSError):
        return False


@pytest.mark.parametrize("places", PLACES)
async def test_rules_killed_at_a_step_remove_what_they_cover_once_and_nothing_else(
    tmp_path: Path, database: str | None, places: Iterable[int]
) -> None:
    platform = Platform(tmp_path, database=database, options=("--no-runner",), kill_at=SLOW)
    try:
        async with Http(platform.url, platform.key) as http:
            readers = Readers(http)
            for place in places:
                # The newest of each tag stays.
                jobs, logs = f"jobs-{place}", f"logs-{place}"
                old, without_logs = [await tagged(http, jobs) for _ in range(3)], await tagged(http, logs)
                kept = [await tagged(http, *tags) for tags in ((jobs, "keep"), (logs, "keep"), (jobs, logs))]
                people, others = await new_collection(http), await new_collection(http)
                await readers.add(*old, without_logs, *kept, people, others)
                number = f"(SELECT collection FROM collections WHERE name = '{people.name}')"
                await platform.query(f"UPDATE collection_records SET ts = {OLD} WHERE collection = {number}")
                rules = await add_rules(
                    http,
                    {"what": ["jobs"], "tag": jobs, "keep_last": 1},
                    {"what": ["logs", "requests"], "tag": logs, "keep_last": 1},
                    {"what": ["collections"], "collections": [people.name, others.name], "older_than": 1},
                )
                await asyncio.to_thread(platform.start_again, KillAt(place, STEPS))
                is_removed = partial(has_removed, platform, http, (*old, people), without_logs)
                await eventually_async(
                    lambda is_removed=is_removed: is_over(platform, is_removed), details=lambda: platform.log[-3000:]
                )
                was_killed = platform.was_killed
                await asyncio.to_thread(platform.start_again, SLOW)
                for job in old:  # each is whole or gone
                    await readers.is_whole_or_going(job)
                await eventually_async(is_removed, details=lambda: platform.log[-3000:])
                assert not any([await readers.is_whole(thing) for thing in (*old, people)])
                for thing in (without(without_logs, "logs", "requests"), *kept, others):
                    assert await readers.is_whole(thing), thing.name
                for rule in rules:
                    assert (await http.delete(f"/api/projects/1/retention/{rule}")).status == 204
                if not was_killed:
                    break
            assert was_killed is isinstance(places, tuple)
            events = (await http.get("/activity/1/?count=1000&format=json")).json
            removed = [each for each in events if each["event"] == "retention:removed"]
            named = Counter((job, *each["what"]) for each in removed for job in each.get("jobs", []))
            assert set(named.values()) == {1}
    finally:
        platform.close()
