"""The job queue under many callers at once, and what the clients from PyPI cannot send."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.http import Answer, Http

CALLERS = 8


async def together(*calls: Any) -> list[Answer]:
    """Make calls at the same time, each on a connection of its own."""
    return list(await asyncio.gather(*calls))


async def states(http: Http, project: int) -> dict[str, int]:
    summary = (await http.get(f"/projects/{project}/jobsummary")).json
    return {state: summary[state] for state in ("pending", "running", "finished")}


async def test_each_job_is_started_once_and_in_order(http: Http, project: int) -> None:
    jobs = [{"spider": f"s{n % 3}", "priority": n % 5, "n": n} for n in range(40)]
    assert len((await http.post(f"/jobq/{project}/push", jobs)).lines) == len(jobs)
    order: list[list[tuple[int, int]]] = []
    keys: list[str] = []

    async def worker() -> None:
        mine: list[tuple[int, int]] = []
        order.append(mine)
        while body := (await http.post(f"/jobq/{project}/startjob", b"{}")).body:
            job = json.loads(body)
            mine.append((-job["priority"], job["n"]))
            keys.append(job["key"])

    await asyncio.gather(*(worker() for _ in range(CALLERS)))
    assert len(set(keys)) == len(keys) == len(jobs)
    assert all(mine == sorted(mine) for mine in order)
    assert await states(http, project) == {"pending": 0, "running": 40, "finished": 0}
    events = [message["event"] for message in (await http.get(f"/activity/{project}")).lines]
    assert (events.count("job:scheduled"), events.count("job:started")) == (40, 40)


async def test_of_equal_unique_pushes_one_is_taken(http: Http, project: int) -> None:
    pushes = [http.post(f"/jobq/{project}/push", [{"spider": f"s{n}", "unique": "u"}]) for n in range(CALLERS)]
    answers = [answer.lines[0] for answer in await together(*pushes)]
    (taken,) = [answer["key"] for answer in answers if "key" in answer]
    refused = {answer["error"] for answer in answers if "error" in answer}
    assert refused == {f"Active job exists with key {taken}"}
    assert await states(http, project) == {"pending": 1, "running": 0, "finished": 0}


async def test_of_equal_runs_one_is_taken(http: Http, project: int) -> None:
    form = {"project": str(project), "spider": "books", "page": "1"}
    answers = await together(*(http.post("/api/run.json", form) for _ in range(CALLERS)))
    assert sorted(answer.status for answer in answers) == [200] + [400] * (CALLERS - 1)


async def test_a_new_spider_gets_one_number(http: Http, project: int) -> None:
    calls = [http.get(f"/ids/{project}/spider/books?create=True") for _ in range(CALLERS)]
    runs = [http.post(f"/jobq/{project}/push", [{"spider": "books"}]) for _ in range(CALLERS)]
    answers = await together(*calls, *runs)
    assert {answer.body for answer in answers[:CALLERS]} == {b"1"}
    assert {answer.lines[0]["key"] for answer in answers[CALLERS:]} == {f"{project}/1/{n + 1}" for n in range(CALLERS)}


async def test_a_job_ends_once(http: Http, project: int) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a", "state": "running"}])).lines
    change = [{"key": pushed["key"], "state": "finished"}]
    answers = await together(*(http.post(f"/jobq/{project}/update", change) for _ in range(CALLERS)))
    previous = sorted(answer.lines[0]["prevstate"] for answer in answers)
    assert previous == ["finished"] * (CALLERS - 1) + ["running"]
    events = [message["event"] for message in (await http.get(f"/activity/{project}")).lines]
    assert events.count("job:completed") == 1


async def test_fields_written_at_once_are_all_kept(http: Http, project: int) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a"}])).lines
    await together(*(http.post(f"/jobs/{pushed['key']}/field{n}", b"%d" % n) for n in range(CALLERS)))
    metadata = (await http.get(f"/jobs/{pushed['key']}")).json
    assert [metadata[f"field{n}"] for n in range(CALLERS)] == list(range(CALLERS))


async def test_a_push_of_many_lines_answers_each(http: Http, project: int) -> None:
    lines = [{"spider": "a", "unique": "u"}, {"spider": "b", "unique": "u"}, {"spider": "a"}]
    lines += [{"spider": "many"}] * 600
    first, second, third, *others = (await http.post(f"/jobq/{project}/push", lines)).lines
    assert [line["key"] for line in others] == [f"{project}/2/{n + 1}" for n in range(600)]
    assert first == {"key": f"{project}/1/1", "auth": None}
    assert second == {"request": lines[1], "error": f"Active job exists with key {first['key']}"}
    assert third["key"] == f"{project}/1/2"


async def test_times_bound_a_list_from_below_and_above(http: Http, project: int) -> None:
    keys = []
    for n in range(3):
        (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a", "state": "finished", "n": n}])).lines
        keys.append(pushed["key"])
    oldest, middle, newest = (await http.get(f"/jobq/{project}/list")).lines[::-1]
    assert [oldest["key"], middle["key"], newest["key"]] == keys
    base = f"/jobq/{project}/list?startts={middle['ts']}"
    # Two jobs may have ended in the same millisecond.
    after = [job["key"] for job in (newest, middle, oldest) if job["ts"] >= middle["ts"]]
    assert [job["key"] for job in (await http.get(f"{base}&endts={newest['ts'] + 1}")).lines] == after
    before = [job["key"] for job in (newest, middle, oldest) if middle["ts"] <= job["ts"] < newest["ts"]]
    assert [job["key"] for job in (await http.get(f"{base}&endts={newest['ts']}")).lines] == before
    assert (await http.get(f"/jobq/{project}/count?startts={newest['ts'] + 1}")).text == "0"


async def test_a_line_says_what_the_job_stored(http: Http, project: int) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a", "state": "finished"}])).lines
    await http.post(f"/items/{pushed['key']}", [{}, {}])
    await http.post(f"/logs/{pushed['key']}", [{"time": 1, "level": level, "message": "m"} for level in (20, 40)])
    for path in (f"/jobq/{project}/list", f"/spiders/{project}/lastjobsummary", f"/spiders/{project}/1/lastjobsummary"):
        (line,) = (await http.get(path)).lines
        assert (line["items"], line["logs"], line["errors"]) == (2, 2, 1)
        assert "pages" not in line


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("startjob", b"[]", "body: must be a JSON object"),
        ("cancel", b'{"key": "1/1/1"}', "body: must be a JSON array"),
        ("cancel", b'[{"key": "x"}]', "key: must be <project>/<spider>/<job>"),
        ("cancel?count=x", b"", "count: must be a whole number"),
        ("cancel?count=1000000", b"", "count: may be 5000 at most"),
        ("update", b'{"key": "999999999/1", "state": "running"}', "line 1: key: must be a job or a spider of project"),
        ("update", b'{"key": "1/2/3/4"}', "line 1: key: must be <project>/<spider>/<job>"),
        ("push", b'{"spider": "a", "tags": [""]}', "line 1: tags: must be 1 to 255 characters"),
        ("push", b'{"spider": "a\\u0000b"}', "line 1: spider: must be 1 to 255 characters, none of them NUL"),
    ],
)
async def test_bad_requests_are_explained(http: Http, project: int, path: str, body: bytes, said: str) -> None:
    answer = await http.post(f"/jobq/{project}/{path}", body)
    assert answer.status == 400
    assert said in answer.json["message"]


async def test_more_changes_than_one_request_may_make(http: Http, project: int) -> None:
    answer = await http.post(f"/jobq/{project}/push", b'{"spider":"a"}\n' * 5001)
    assert answer.status == 413
    assert await states(http, project) == {"pending": 0, "running": 0, "finished": 0}


async def test_tags_are_checked_however_they_come(http: Http, project: int) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a"}])).lines
    long = {"tags": ["x" * 256]}
    assert (await http.post(f"/jobs/{pushed['key']}", json.dumps(long).encode())).status == 400
    assert (await http.post(f"/jobq/{project}/update", [{"key": pushed["key"], **long}])).status == 400
    assert "tags" not in (await http.get(f"/jobs/{pushed['key']}")).json


@pytest.mark.parametrize("path", ["summary/lost", "1/summary/pending/more", "nothing", "1/2/3/nothing"])
async def test_what_is_no_path_is_not_found(http: Http, project: int, path: str) -> None:
    assert (await http.get(f"/jobq/{project}/{path}")).status in (400, 404)
    assert (await http.post(f"/jobq/{project}/{path}")).status in (404, 405)


async def test_methods_that_a_path_does_not_take(http: Http, project: int) -> None:
    for path in (f"/jobq/{project}/startjob", f"/jobq/{project}/1/1/cancel", f"/jobq/{project}/cancel"):
        assert (await http.get(path)).status == 405
    for path in (f"/jobq/{project}/summary", f"/projects/{project}/jobsummary", f"/spiders/{project}/lastjobsummary"):
        assert (await http.post(path)).status == 405
    for path in ("/api/scrapyd/listprojects.json", "/api/v2/users/me", f"/api/spiders/list.json?project={project}"):
        assert (await http.post(path)).status == 405


async def test_many_changes_are_checked_before_the_first_is_made(http: Http, project: int) -> None:
    """More than one transaction takes: a line that cannot be made stops them all, also those of the parts before."""
    pushed = (await http.post(f"/jobq/{project}/push", [{"spider": "s", "n": n} for n in range(600)])).lines
    await http.post(f"/jobq/{project}/update", [{"key": pushed[599]["key"], "state": "deleted"}])
    changes = [{"key": each["key"], "state": "running"} for each in pushed]
    answer = await http.post(f"/jobq/{project}/update", changes)
    assert (answer.status, "is deleted and cannot become running" in answer.text) == (400, True)
    assert (await http.get(f"/jobq/{project}/count?state=running")).json == 0
    # Two changes of one job, in different parts, are looked at one after the other.
    changes = [*changes[:599], {"key": pushed[0]["key"], "state": "finished"}]
    answer = await http.post(f"/jobq/{project}/update", changes)
    assert [each["prevstate"] for each in answer.lines] == ["pending"] * 599 + ["running"]
    assert (await http.post(f"/jobq/{project}/cancel", b"[]")).json == {"count": 0}
    assert (await http.post(f"/jobq/{project}/cancel?count=5000")).json == {"count": 598}
