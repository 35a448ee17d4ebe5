"""Jobs of several workers on real nodes: their items, one log and one end; nodes that are killed; stop and delete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.records import sample_of
from tests.support.eventually import eventually_async
from tests.support.running_jobs import Platform, has_each_item_once


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


@pytest.mark.long(keep=1)
async def test_several_workers_run_one_job(either: Platform, gate: Path) -> None:
    # All pages but the first are found when both workers have slots.
    job = await either.run("spread", n="100", gate=str(gate), held="1", job_workers="2")
    for worker in range(2):
        await either.says(job, f"[{worker}] This worker owns slots")
    gate.touch()
    items = await has_each_item_once(either, job, 100)
    assert len({item["process"] for item in items}) == 2
    assert (await either.metadata(job))["frameworkstats"]["item_scraped_count"] == 100
    log = await either.log(job)
    assert {line[:4] for line in log} == {"[0] ", "[1] "}
    assert [line[4:] for line in log if "Closing spider" in line] == ["Closing spider (finished)"] * 2
    assert await either.workers(job) == []
    samples = [sample_of(sample) for sample in await either.records("samples", job)]
    assert {sample.workers for sample in samples if sample is not None} <= {1, 2}


@pytest.mark.long
async def test_a_stopped_job_ends_all_of_its_workers(either: Platform, gate: Path) -> None:
    job = await either.run("spread", n="200", gate=str(gate), job_workers="3")
    workers = await either.working(job, 3)
    assert all(each["node"] and each["reported"] >= each["placed"] for each in workers)
    page = (await either.http.get(f"/ui/{job}")).text
    assert all(f'href="/ui/{job}/log?worker={each}&amp;start=0"' in page for each in range(3))
    await either.stop(job)
    gate.touch()
    assert await either.reason(job) == "cancelled"
    assert await either.workers(job) == []
    items = [item["number"] for item in await either.records("items", job)]
    assert len(items) == len(set(items))


@pytest.mark.long
async def test_a_deleted_job_ends_all_of_its_workers(either: Platform, gate: Path) -> None:
    job = await either.run("spread", n="200", gate=str(gate), job_workers="2")
    await either.working(job, 2)
    fields = {"project": str(either.project), "job": job}
    assert (await either.http.call("POST", "/api/jobs/delete.json", fields)).status == 200
    gate.touch()

    async def ended() -> bool:
        return not await either.workers(job)

    await eventually_async(ended, what="the end of the workers")
    assert (await either.http.get(f"/items/{job}")).status == 410


@pytest.mark.long
async def test_a_running_job_gets_other_numbers_of_workers(either: Platform, gate: Path) -> None:
    job = await either.run("spread", n="100", gate=str(gate), job_workers="2")
    await either.working(job, 2)

    async def change(number: int) -> None:
        fields = {"project": str(either.project), "job": job, "job_workers": str(number)}
        answer = await either.http.call("POST", "/api/jobs/update.json", fields)
        assert answer.status == 200, answer.text

    async def staying() -> bool:
        return [each["worker"] for each in await either.workers(job) if not each.get("leaving")] == [0]

    await change(4)
    await either.working(job, 4)
    await change(1)
    await eventually_async(staying, what="all workers but the first to leave")
    gate.touch()
    await has_each_item_once(either, job, 100)


@pytest.mark.long
async def test_a_time_limit_ends_all_workers(platform: Platform, gate: Path) -> None:
    settings = {"PLATFORM_JOB_TIMEOUT": 8}
    job = await platform.run("spread", n="200", gate=str(gate), job_workers="2", job_settings=settings)
    assert await platform.reason(job) == "timed out"
    assert await platform.workers(job) == []


@pytest.mark.long
async def test_a_busy_job_grows_and_each_item_is_there_once(either: Platform, gate: Path) -> None:
    # Requests wait, since callbacks do, and the limits of the site allow more.
    settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 2000, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 50_000}
    job = await either.run("spread", n="600", gate=str(gate), job_workers="1..2", job_settings=settings)
    await either.working(job, 1)
    await either.working(job, 2)
    gate.touch()
    await has_each_item_once(either, job, 600)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"spider": "spread", "job_workers": "many"}, "must be a number of workers from 1 to 256"),
        ({"spider": "py:hello.py", "job_workers": "2"}, "a script has one process"),
        ({"spider": "spread", "job_settings": {"CRAWL_GROUP": "2"}}, "is set by the node"),
    ],
)
async def test_workers_that_no_job_can_have_are_refused(platform: Platform, fields: dict[str, Any], text: str) -> None:
    answer = await platform.ask(**fields)
    assert (answer.status, text in answer.text) == (400, True), answer.text
