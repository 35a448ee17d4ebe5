"""A project with something of every part, and its comparison between two platforms."""

from __future__ import annotations

from typing import Any

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient
from tests.support.http import Http
from tests.support.terminal_commands import lines

#: Kinds of records that a job has.
KINDS = ("items", "requests", "logs")
START = 1_700_000_000_000


async def fill(client: PlatformClient, project: int, *, items: int = 2500) -> list[JobKey]:
    """Store four jobs of two spiders, with ``items``, 3, 8 and 2 items, and something of every other part."""
    books = await add_job(client, project, "books", items=items)
    news = await add_job(client, project, "news", items=3)
    again = await add_job(client, project, "books", items=5)
    later = await _add_odd_records(client, again)
    for number in range(3):
        rows = [{"_key": f"k{n}", "value": n, "version": number} for n in range(3 - number)]
        for kind in ("s", "vs", "cs", "vcs"):
            await client.collections.write(project, kind, f"prices_{kind}", lines(rows))
    schedule = {"cron": "30 4 * * *", "tasks": [{"name": "books", "spider_args": {"a": "1"}}], "addtags": ["nightly"]}
    await client.periodic.create(project, schedule)
    await client.projects.update_settings(project, {"job_settings": {"LOG_LEVEL": "INFO"}, "max_running": 2})
    return [books, news, again, later]


async def _add_odd_records(client: PlatformClient, key: JobKey) -> JobKey:
    """Add items with names that the platform uses itself, and a job whose first item has another index than 0."""
    odd = b'{"_key":"mine","_ts":[1],"n":123456789012345678901234567890,"f":1.50}\n{}\n{"\\u00e9": "\\ud83d\\ude00"}\n'
    await client.items.write(key, odd, 5)
    later = JobKey.parse((await client.jobq.push(key.project, "news")).key)
    await client.items.write(later, lines([{"n": 1}, {"n": 2}]), 7)
    await client.jobq.update(key.project, later, state="finished", close_reason="shutdown")
    return later


async def add_job(client: PlatformClient, project: int, spider: str, *, items: int) -> JobKey:
    """Store a finished job with records of every kind."""
    pushed = await client.jobq.push(project, spider, tags=["nightly", "é"], spider_args={"colour": "red"}, priority=3)
    key = JobKey.parse(pushed.key)
    for start in range(0, items, 700):
        some = range(start, min(start + 700, items))
        # A form of JSON that an encoder would change.
        body = b"".join(b'{"name": "book %d", "price": 1.50, "_type": "b", "nested": {"a":[1, 2]}}\n' % n for n in some)
        await client.items.write(key, body, start)
    request = {"method": "GET", "status": 200, "duration": 1500, "rs": 2048, "fp": "a"}
    requests = [
        {"time": START + n, "url": f"http://a/{n}", **request, **({"parent": 0} if n else {})} for n in range(9)
    ]
    await client.requests.write(key, lines(requests), 0)
    log = [{"time": START + n, "level": (10, 20, 40)[n % 3], "message": f"line {n}\n  more"} for n in range(30)]
    await client.logs.write(key, lines(log), 0)
    await client.jobs.update(key, {"frameworkstats": {"item_scraped_count": items}, "units": 1})
    await client.jobq.update(project, key, state="finished", close_reason="finished", version="1.2")
    return key


async def content(http: Http, project: int) -> dict[str, Any]:
    """Return all that an import copies, as the API answers it, without the numbers of the project."""
    found: dict[str, Any] = {}
    for kind in (*KINDS, "samples"):
        meta = "" if kind == "samples" else "?meta=_key&meta=_ts"
        answer = await http.get(f"/{kind}/{project}{meta}")
        found[kind] = answer.body.replace(f'"_key":"{project}/'.encode(), b'"_key":"P/')
    jobs = [_without(job) for job in (await http.get(f"/jobs/{project}?meta=_key&format=json")).json]
    jobs = [job for job in jobs if job["state"] == "finished"]
    found["jobs"] = [{**job, "_key": job["_key"].partition("/")[2], "project": 0} for job in jobs]
    found["stats"] = [
        (await http.get(f"/{kind}/{project}/{job['_key']}/stats?all=1")).json for kind in KINDS for job in found["jobs"]
    ]
    for name in (await http.get(f"/collections/{project}/list?format=json")).json:
        place = f"/collections/{project}/{name['type']}/{name['name']}"
        keys = [record["_key"] for record in (await http.get(f"{place}?meta=_key&format=json")).json]
        found[f"{name['type']}/{name['name']}"] = [
            (await http.get(f"{place}/{key}?copies=3&meta=_key&meta=_ts")).body for key in keys
        ]
    listed = (await http.get(f"/api/spiders/list.json?project={project}")).json["spiders"]
    found["spiders"] = sorted((spider["id"], *spider["tags"]) for spider in listed)
    comments = [(await http.get(f"/api/comments/{project}/{job['_key']}")).json for job in found["jobs"]]
    found["comments"] = [
        {place: [{**each, "id": 0} for each in some] for place, some in of_job.items()} for of_job in comments
    ]
    settings = (await http.get(f"/projects/{project}/settings")).json
    found["settings"] = {name: value for name, value in settings.items() if not name.startswith("import ")}
    schedules = (await http.get(f"/api/projects/{project}/periodicjobs")).json["results"]
    own = ("id", "project", "disabled")
    found["periodic"] = [{name: value for name, value in each.items() if name not in own} for each in schedules]
    return found


def _without(job: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name != "imported"}
