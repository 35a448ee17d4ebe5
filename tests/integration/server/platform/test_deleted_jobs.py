"""Nothing of a deleted job is readable, by any reader and key, and nothing comes back."""

from __future__ import annotations

import pytest

from tests.support.filled_jobs import KINDS, SECRET, FilledJob, new_job, unrefused
from tests.support.http import Http


@pytest.mark.parametrize("state", ["pending", "running", "finished"])
async def test_nothing_of_a_deleted_job_is_readable_and_nothing_comes_back(
    http: Http, project: int, state: str
) -> None:
    job, other = await new_job(http, project, state), await new_job(http, project)
    await job.fill()
    await other.fill()
    await job.delete()
    for path, answer in (await job.reads()).items():
        assert job.secret.encode() not in answer.body, path
        if path.startswith(tuple(f"/{kind}/{job.key}" for kind in (*KINDS, "api/comments"))):
            assert answer.status == 410, path
    for path in (f"/items/{project}", f"{other.staged}?prefix=shared", f"{other.frontier}/s/0/q"):
        assert other.secret in (await http.get(path)).text
    assert unrefused(await job.writes()) == {}
    assert [line["_key"] for line in (await http.get(f"/items/{project}?meta=_key")).lines] == [f"{other.key}/0"]
    assert (await http.get(f"/hcf/{project}/list")).json == [other.frontier.rpartition("/")[2], "of-groups", "shared"]


async def test_a_frontier_with_a_name_of_its_own_stays(http: Http, project: int) -> None:
    job = await new_job(http, project)
    path = f"/hcf/{project}/named"
    assert (await job.enqueue("0", path)).json == {"newcount": 1}
    await job.delete()
    assert len((await http.get(f"{path}/s/0/q")).lines) == 1
    assert (await job.enqueue("0", path)).json == {"newcount": 0}


async def test_a_job_that_is_deleted_again_stays_as_it_is(http: Http, project: int) -> None:
    job = await new_job(http, project)
    await job.delete()
    before = (await http.get(f"/jobs/{job.key}")).json
    await job.delete()
    answer = await http.post(f"/jobq/{project}/update", [{"key": job.key, "state": "deleted", "a": 1}])
    assert answer.lines == [{"key": job.key, "prevstate": "deleted"}]
    assert (await http.get(f"/jobs/{job.key}")).json == before


async def test_a_job_that_is_added_as_deleted_takes_no_records(http: Http, project: int) -> None:
    job = await new_job(http, project, "deleted")
    assert unrefused(await job.writes()) == {}


async def test_records_without_a_job_are_deleted_by_their_key_and_no_job_gets_it(http: Http, project: int) -> None:
    first = await new_job(http, project)
    spider = first.spider
    key = f"{project}/{spider}/2"
    assert (await http.post(f"/items/{key}", [{"name": SECRET}])).status == 200
    body = {"project": str(project), "job": key}
    assert (await http.post("/api/jobs/delete.json", body)).json["count"] == 1
    assert (await http.post("/api/jobs/delete.json", body)).json["count"] == 0
    assert (await http.get(f"/items/{key}")).status == (await http.post(f"/items/{key}", [{"a": 1}])).status == 410
    second = await new_job(http, project)
    assert second.key == f"{project}/{spider}/3"
    assert (await http.post(f"/items/{second.key}", [{"a": 1}])).status == 200
    assert (await http.post("/api/jobs/delete.json", {**body, "job": f"{project}/{spider}/9"})).json["count"] == 0


async def test_a_queue_that_is_read_up_to_a_deleted_job_neither_repeats_nor_skips_one(http: Http, project: int) -> None:
    jobs = [(await new_job(http, project)).key for _ in range(5)]

    async def after(key: str) -> list[str]:
        return [line["key"] for line in (await http.get(f"/jobq/{project}/list?stop={key}")).lines]

    assert await after(jobs[2]) == [jobs[4], jobs[3]]
    await FilledJob(http, jobs[2]).delete()
    assert await after(jobs[2]) == [jobs[4], jobs[3]]
    await FilledJob(http, jobs[4]).delete()
    assert await after(jobs[2]) == [jobs[3]]
    unknown = await http.get(f"/jobq/{project}/list?stop={project}/1/99")
    assert (unknown.status, "startts" in unknown.json["message"]) == (410, True)
