"""Jobs with their verdicts over HTTP, and by the client."""

from __future__ import annotations

from typing import Any

from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import RunningServer


async def finished(http: Http, project: int, reason: str = "finished", errors: int = 0, **fields: Any) -> str:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running", **fields}])
    key = str(pushed.lines[0]["key"])
    await http.post(f"/items/{key}", [{"a": 1}] * 3)
    if errors:
        await http.post(f"/logs/{key}", [{"time": n, "level": 40, "message": f"Bad page {n}"} for n in range(errors)])
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished", "close_reason": reason}])
    return key


async def test_jobs_are_listed_with_their_verdicts(server: RunningServer, http: Http, project: int) -> None:
    good = await finished(http, project)
    wrong = await finished(http, project, errors=2, tags=["nightly"])
    failed = await finished(http, project, "start_error")
    cancelled = await finished(http, project, "cancelled")
    running = (await http.post(f"/jobq/{project}/push", [{"spider": "news", "state": "running"}])).lines[0]["key"]
    path = f"/api/projects/{project}/verdicts"
    answer = await eventually_async(lambda: http.get(path), lambda answer: answer.json["unjudged"] == 0)
    assert (answer.json["total"], answer.json["unjudged"]) == (5, 0)
    found = {job["id"]: (job.get("verdict"), job.get("reasons", [])) for job in answer.json["jobs"]}
    assert found == {
        running: (None, []),
        cancelled: ("none", []),
        failed: ("red", ["it failed: start_error"]),
        wrong: ("amber", ["2 errors in the log"]),
        good: ("green", []),
    }
    contract = (await http.get(f"/api/jobs/list.json?project={project}&state=finished")).json["jobs"]
    own = ("verdict", "reasons", "error")
    ended = [job for job in answer.json["jobs"] if job["state"] == "finished"]
    assert [{name: job[name] for name in job if name not in own} for job in ended] == contract
    assert [job["error"] for job in answer.json["jobs"] if job["id"] == wrong] == ["Bad page N × 2"]

    async def ids(query: str) -> tuple[int, list[str]]:
        page = (await http.get(f"{path}?{query}")).json
        return page["total"], [job["id"] for job in page["jobs"]]

    assert await ids("needs_attention=1") == (2, [failed, wrong])
    assert await ids("needs_attention=1&count=1&offset=1") == (2, [wrong])
    assert await ids("needs_attention=1&has_tag=nightly") == (1, [wrong])
    assert await ids(f"job={good}&job={running}") == (2, [running, good])
    assert await ids("spider=news&state=running") == (1, [running])
    async with PlatformClient(PlatformUrls.single(server.url), server.platform_key) as client:
        page = await client.jobs.judged(project, needs_attention=True)
    assert [(job.id, job.verdict) for job in page.jobs] == [(failed, "red"), (wrong, "amber")]
