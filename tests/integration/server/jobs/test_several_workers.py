"""Jobs of several workers on real nodes: their items, one log and one end; nodes that are killed; stop and delete."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.eventually import eventually_async
from tests.support.running_jobs import Platform


async def workers(platform: Platform, job: str) -> list[dict[str, Any]]:
    return (await platform.http.get(f"/jobq/{platform.project}/workers?job={job}")).lines


async def working(platform: Platform, job: str, count: int) -> list[dict[str, Any]]:
    """Wait until so many workers of a job have sent reports."""

    async def look() -> list[dict[str, Any]] | None:
        found = await workers(platform, job)
        return found if sum(each["number"] > 0 for each in found) == count == len(found) else None

    found: list[dict[str, Any]] = await eventually_async(look, what=f"{count} workers of job {job}")
    return found


async def check(platform: Platform, job: str, pages: int) -> list[dict[str, Any]]:
    """The job is finished, with each item once; return the items."""
    metadata = await platform.ended(job)
    assert metadata["close_reason"] == "finished", await platform.log(job)
    items = await platform.records("items", job)
    assert sorted(item["number"] for item in items) == list(range(pages))
    assert metadata["frameworkstats"]["item_scraped_count"] == pages
    return items


@pytest.mark.long(keep=1)
async def test_several_workers_run_one_job(either: Platform) -> None:
    job = await either.run("spread", n="400", job_workers="2")
    items = await check(either, job, 400)
    assert len({item["process"] for item in items}) == 2
    assert await workers(either, job) == []
