"""Jobs: run, list, update, stop, delete; their metadata; the job queue; activity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.http import Http
from tests.support.servers import RunningServer


async def run(http: Http, project: int, spider: str = "books", **parameters: Any) -> str:
    answer = await http.post("/api/run.json", {"project": str(project), "spider": spider, **parameters})
    assert answer.status == 200, answer.text
    assert answer.json["status"] == "ok"
    return str(answer.json["jobid"])


async def push(http: Http, project: int, **record: Any) -> dict[str, Any]:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "books", **record}])).lines
    return dict(pushed)


async def update(http: Http, project: int, key: str, **fields: Any) -> list[Any]:
    return (await http.post(f"/jobq/{project}/update", [{"key": key, **fields}])).lines


async def listed(http: Http, project: int, query: str = "") -> list[str]:
    return [job["id"] for job in (await http.get(f"/api/jobs/list.json?project={project}{query}")).json["jobs"]]


async def queued(http: Http, project: int, query: str = "") -> list[str]:
    return [job["key"] for job in (await http.get(f"/jobq/{project}/list?{query}")).lines]


async def test_a_run_is_a_pending_job_with_what_was_asked(http: Http, project: int) -> None:
    settings = {"LOG_LEVEL": "INFO"}
    parameters = {"priority": "3", "units": "2", "job_settings": json.dumps(settings), "category": "new"}
    key = await run(http, project, add_tag="one", **parameters)
    assert key == f"{project}/1/1"
    metadata = (await http.get(f"/jobs/{key}")).json
    assert metadata["spider_args"] == {"category": "new"}
    assert metadata["job_settings"] == settings
    assert (metadata["priority"], metadata["units"], metadata["tags"]) == (3, 2, ["one"])
    assert (metadata["state"], metadata["spider"], metadata["project"]) == ("pending", "books", project)
    assert metadata["spider_type"] == "manual"
    assert isinstance(metadata["pending_time"], int)


async def test_any_other_field_of_the_form_is_an_argument_of_the_spider(http: Http, project: int) -> None:
    arguments = {"apikey": "that of a shop", "job": "1/1/1", "state": "running", "version": "1", "tags": "a"}
    key = await run(http, project, **arguments)
    assert (await http.get(f"/jobs/{key}/spider_args")).json == arguments


async def test_the_key_of_the_caller_in_the_form_is_not_stored(http: Http, server: RunningServer, project: int) -> None:
    key = await run(http, project, apikey=server.platform_key, colour="red")
    assert (await http.get(f"/jobs/{key}/spider_args")).json == {"colour": "red"}


async def test_the_same_run_twice_is_refused_while_the_first_is_active(http: Http, project: int) -> None:
    key = await run(http, project, page="1")
    again = await http.post("/api/run.json", {"project": str(project), "spider": "books", "page": "1"})
    assert again.status == 400
    assert again.json == {"status": "error", "message": "books already scheduled"}
    assert await run(http, project, page="2") == f"{project}/1/2"
    await update(http, project, key, state="finished")
    assert await run(http, project, page="1") == f"{project}/1/3"


async def test_a_spider_and_a_number_must_be_of_the_same_spider(http: Http, project: int) -> None:
    await run(http, project, "a")
    await run(http, project, "b")
    assert await run(http, project, "b", jobq_id="2", n="1") == f"{project}/2/2"
    assert await run(http, project, "b", jobq_id="", n="2") == f"{project}/2/3"
    for spider, number, said in (
        ("a", "2", "jobq_id: 2 is the spider b, and spider is a"),
        ("a", "9", "jobq_id: 9 is no"),
    ):
        answer = await http.post("/api/run.json", {"project": str(project), "spider": spider, "jobq_id": number})
        assert (answer.status, said in answer.json["message"]) == (400, True)


async def test_a_script_runs_at_once_with_other_words_only(http: Http, project: int) -> None:
    for words in ("a", "b"):
        await run(http, project, "py:report.py", cmd_args=words)
    again = await http.post("/api/run.json", {"project": str(project), "spider": "py:report.py", "cmd_args": "a"})
    assert again.json == {"status": "error", "message": "py:report.py already scheduled"}


async def test_spiders_have_numbers_and_their_jobs_too(http: Http, project: int) -> None:
    keys = [await run(http, project, spider, n=str(n)) for n in range(2) for spider in ("a", "b")]
    assert keys == [f"{project}/{spider}/{job}" for job in (1, 2) for spider in (1, 2)]
    answer = await http.post("/api/run.json", {"project": str(project), "jobq_id": "2"})
    assert answer.json["jobid"] == f"{project}/2/3"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "spider: is required unless jobq_id is given"),
        ({"spider": "a", "priority": "9"}, "priority: must be 0 to 4"),
        ({"spider": "a", "units": "0"}, "units: must be 1 to 6"),
        ({"spider": "a", "job_settings": "[]"}, "job_settings: must be a JSON object"),
        ({"spider": "a", "job_settings": "{"}, "job_settings: is not JSON"),
        ({"spider": "a", "job_settings": '{"A": 1, "A": 2}'}, "job_settings.A: is given more than once"),
        ({"spider": "a", "meta": '{"state":"lost"}'}, "meta.state: must be one of"),
        ({"jobq_id": "77"}, "jobq_id: 77 is no spider"),
        ({"project": "x", "spider": "a"}, "project: must be a whole number"),
    ],
)
async def test_bad_runs_are_explained_in_json(http: Http, project: int, parameters: dict[str, str], said: str) -> None:
    answer = await http.post("/api/run.json", {"project": str(project), **parameters})
    assert answer.status == 400
    assert answer.json["status"] == "badrequest"
    assert said in answer.json["message"]
    assert await listed(http, project) == []


async def test_the_list_shows_what_a_job_stored(http: Http, project: int) -> None:
    key = (await push(http, project, state="running", tags=["x"], version="1.2"))["key"]
    await http.post(f"/items/{key}", [{}, {}, {}])
    request = {"time": 1, "method": "GET", "url": "http://a/", "status": 200, "duration": 3, "rs": 4}
    await http.post(f"/requests/{key}", [request] * 2)
    await http.post(f"/logs/{key}", [{"time": 1, "level": level, "message": "m"} for level in (20, 40, 50, 50)])
    await update(http, project, key, state="finished", close_reason="finished")
    answer = (await http.get(f"/api/jobs/list.json?project={project}")).json
    (job,) = answer["jobs"]
    assert (answer["status"], answer["count"], answer["total"]) == ("ok", 1, 1)
    assert (job["id"], job["spider"], job["state"], job["close_reason"]) == (key, "books", "finished", "finished")
    assert (job["items_scraped"], job["responses_received"], job["logs"], job["errors_count"]) == (3, 2, 4, 3)
    assert (job["tags"], job["version"], job["priority"], job["spider_type"]) == (["x"], "1.2", 2, "manual")
    assert len(job["started_time"]) == len(job["updated_time"]) == len("2020-01-01T00:00:00")
    assert job["elapsed"] >= 0


async def test_the_list_is_filtered_and_paged(http: Http, project: int) -> None:
    a = (await push(http, project, tags=["t1", "t2"]))["key"]
    b = (await push(http, project, state="running", tags=["t2"]))["key"]
    c = (await push(http, project, spider="news", state="finished"))["key"]
    d = (await push(http, project, state="finished", tags=["t3"]))["key"]
    await http.post("/api/jobs/delete.json", {"project": str(project), "job": d})
    assert set(await listed(http, project)) == {a, b, c}
    assert await listed(http, project, "&state=running") == [b]
    assert set(await listed(http, project, "&state=running&state=pending")) == {a, b}
    assert await listed(http, project, "&state=deleted") == [d]
    assert await listed(http, project, "&spider=news") == [c]
    assert await listed(http, project, f"&job={d}") == [d]
    assert set(await listed(http, project, "&has_tag=t1&has_tag=t2")) == {a, b}
    assert await listed(http, project, "&has_tag=t2&lacks_tag=t1") == [b]
    assert await listed(http, project, "&lacks_tag=t1&lacks_tag=t2") == [c]
    everything = await listed(http, project)
    assert await listed(http, project, "&count=2&offset=1") == everything[1:]
    page = (await http.get(f"/api/jobs/list.json?project={project}&count=1")).json
    assert (page["count"], page["total"]) == (1, 3)
    head, first, *_ = (await http.get(f"/api/jobs/list.jl?project={project}")).lines
    assert head == {"status": "ok", "count": 3, "total": 3}
    assert first["id"] == everything[0]


async def test_tags_are_added_and_removed_in_order(http: Http, project: int) -> None:
    key = await run(http, project)
    body = b"project=%d&job=%s&job=%s&add_tag=b&add_tag=a&add_tag=b" % (project, key.encode(), key.encode())
    assert (await http.post("/api/jobs/update.json", body)).json == {"count": 1, "status": "ok"}
    await http.post("/api/jobs/update.json", {"project": str(project), "spider": "books", "add_tag": "c"})
    await http.post("/api/jobs/update.json", {"project": str(project), "job": key, "remove_tag": "b"})
    assert (await http.get(f"/jobs/{key}/tags")).json == ["a", "c"]
    assert await listed(http, project, "&has_tag=c") == [key]
    assert await listed(http, project, "&has_tag=b") == []


async def test_stopping_ends_a_pending_job_and_asks_a_running_one(http: Http, project: int) -> None:
    pending, running = await run(http, project), (await push(http, project, state="running"))["key"]
    for key in (pending, running):
        answer = await http.post("/api/jobs/stop.json", {"project": str(project), "job": key})
        assert answer.json == {"status": "ok"}
    assert (await http.get(f"/jobs/{pending}/state")).json == "finished"
    assert (await http.get(f"/jobs/{pending}/close_reason")).json == "cancelled"
    assert (await http.get(f"/jobs/{running}/state")).json == "running"
    assert (await http.get(f"/jobs/{running}/cancelled_by")).json
    absent = await http.post("/api/jobs/stop.json", {"project": str(project), "job": f"{project}/1/99"})
    assert absent.status == 404


async def test_several_jobs_are_deleted_and_stay_readable(http: Http, project: int) -> None:
    keys = [(await push(http, project))["key"] for _ in range(3)]
    body = f"project={project}&job={keys[0]}&job={keys[1]}".encode()
    assert (await http.post("/api/jobs/delete.json", body)).json == {"status": "ok", "count": 2}
    assert (await http.post("/api/jobs/delete.json", body)).json == {"status": "ok", "count": 0}
    assert (await http.get(f"/jobs/{keys[0]}/state")).json == "deleted"
    wrong = {"project": str(project), "job": "999999/1/1"}
    assert (await http.post("/api/jobs/delete.json", wrong)).status == 400


async def test_metadata_is_merged_and_deleted_by_field(http: Http, project: int) -> None:
    key = await run(http, project)
    assert (await http.post(f"/jobs/{key}", b'{"frameworkstats":{"a":1},"note":null,"state":"finished"}')).status == 200
    await http.post(f"/jobs/{key}/colour", b'"red"')
    metadata = (await http.get(f"/jobs/{key}")).json
    assert (metadata["frameworkstats"], metadata["note"], metadata["colour"]) == ({"a": 1}, None, "red")
    assert metadata["state"] == "pending"
    for _ in range(2):
        assert (await http.delete(f"/jobs/{key}/colour")).status == 200
    absent = await http.get(f"/jobs/{key}/colour")
    assert (absent.status, absent.json) == (200, None)
    assert (await http.post(f"/jobs/{key}/state", b'"finished"')).status == 400
    assert (await http.post(f"/jobs/{key}", b"[1]")).status == 400
    assert (await http.post(f"/jobs/{key}", json.dumps({"x": "y" * 1048576}).encode())).status == 413
    unknown = f"/jobs/{project}/1/99"
    assert (await http.get(unknown)).json == {}
    assert (await http.post(unknown, b'{"a":1}')).status == 404
    assert (await http.get(f"{unknown}/auth")).status == 404


async def test_states_change_as_jobs_do_and_say_when(http: Http, project: int) -> None:
    key = (await push(http, project))["key"]
    assert await update(http, project, key, state="running", started="here") == [{"prevstate": "pending", "key": key}]
    assert await update(http, project, key, state="running") == [{"prevstate": "running", "key": key}]
    assert await update(http, project, key, state="finished") == [{"prevstate": "running", "key": key}]
    metadata = (await http.get(f"/jobs/{key}")).json
    assert metadata["pending_time"] <= metadata["running_time"] <= metadata["finished_time"]
    assert metadata["started"] == "here"
    back = await http.post(f"/jobq/{project}/update", [{"key": key, "state": "pending"}])
    assert back.status == 400
    assert "finished and cannot become pending" in back.json["message"]
    assert await update(http, project, f"{project}/1/99", state="running") == []


async def test_a_resumed_job_has_no_end_any_more(http: Http, project: int) -> None:
    key = (await push(http, project, state="running"))["key"]
    await http.post("/api/jobs/stop.json", {"project": str(project), "job": key})
    await update(http, project, key, state="finished", close_reason="shutdown")
    await update(http, project, key, state="running")
    metadata = (await http.get(f"/jobs/{key}")).json
    assert metadata["state"] == "running"
    assert not {"finished_time", "close_reason", "cancelled_by"} & set(metadata)
    assert await listed(http, project, "&state=running") == [key]


async def test_an_update_of_several_jobs_is_made_whole_or_not_at_all(http: Http, project: int) -> None:
    one, two = [(await push(http, project, state=state))["key"] for state in ("running", "finished")]
    changes = [{"key": one, "state": "finished"}, {"key": two, "state": "pending"}]
    assert (await http.post(f"/jobq/{project}/update", changes)).status == 400
    assert (await http.get(f"/jobs/{one}/state")).json == "running"


async def test_the_queue_lists_finished_jobs_newest_first(http: Http, project: int) -> None:
    keys = [(await push(http, project, state="running", tags=[f"t{n % 2}"]))["key"] for n in range(4)]
    assert await queued(http, project) == []
    for key in keys:
        await update(http, project, key, state="finished", close_reason="finished")
    assert await queued(http, project) == keys[::-1]
    assert await queued(http, project, f"stop={keys[1]}") == [keys[3], keys[2]]
    assert await queued(http, project, "count=1&start=1") == [keys[2]]
    assert await queued(http, project, "has_tag=t1") == [keys[3], keys[1]]
    assert await queued(http, project, f"key={keys[0]}&key={keys[2]}") == [keys[2], keys[0]]
    entry = (await http.get(f"/jobq/{project}/list?count=1")).lines[0]
    assert (entry["state"], entry["spider"], entry["close_reason"]) == ("finished", "books", "finished")
    assert entry["ts"] == entry["finished_time"]
    assert await queued(http, project, f"startts={entry['ts'] + 60_000}") == []
    assert await queued(http, project, f"endts={entry['ts'] + 60_000}") == keys[::-1]
    assert (await http.get(f"/jobq/{project}/count")).text == "4"
    assert (await http.get(f"/jobq/{project}/count?state=running")).text == "0"
    assert (await http.get(f"/jobq/{project}/count?spider=books&has_tag=t0")).text == "2"


@pytest.mark.parametrize("query", ["/jobq/{}/list?key=", "/jobq/{}/list?stop=", "/api/jobs/list.json?project={}&job="])
async def test_jobs_of_another_project_are_not_mixed_in(http: Http, project: int, query: str) -> None:
    key = (await push(http, project, state="finished"))["key"]
    answer = await http.get(query.format(project + 1000) + key)
    assert answer.status == 400
    assert f"is not of project {project + 1000}" in answer.json["message"]


async def test_unique_jobs_are_refused_while_active(http: Http, project: int) -> None:
    first = await push(http, project, unique="h1")
    assert await push(http, project, unique="h1") == {
        "request": {"spider": "books", "unique": "h1"},
        "error": f"Active job exists with key {first['key']}",
    }
    await update(http, project, first["key"], state="finished")
    assert "key" in await push(http, project, unique="h1")
    assert "key" in await push(http, project, unique=None)


@pytest.mark.parametrize(
    "record", [b'{"state":"running"}', b'{"spider":"a","state":"x"}', b'{"spider":"a","tags":"t"}']
)
async def test_bad_pushes_are_refused_whole(http: Http, project: int, record: bytes) -> None:
    answer = await http.post(f"/jobq/{project}/push", b'{"spider":"good"}\n' + record)
    assert answer.status == 400
    assert "line 2" in answer.json["message"]
    assert await queued(http, project, "state=pending") == []


async def test_changes_of_state_are_activity(http: Http, project: int) -> None:
    done, dropped = (await push(http, project, state="running"))["key"], (await push(http, project))["key"]
    await update(http, project, done, state="finished")
    await http.post("/api/jobs/stop.json", {"project": str(project), "job": dropped})
    messages = (await http.get(f"/activity/{project}/")).lines
    assert [(message["event"], message["job"], message["user"]) for message in messages] == [
        ("job:cancelled", dropped, "api"),
        ("job:completed", done, "api"),
        ("job:scheduled", dropped, "api"),
        ("job:started", done, "api"),
    ]
    await http.post("/api/jobs/delete.json", {"project": str(project), "job": done})
    assert (await http.get(f"/activity/{project}?count=1")).lines[0]["event"] == "job:deleted"


@pytest.mark.parametrize("slash", ["", "/"])
async def test_messages_are_read_newest_first(http: Http, project: int, slash: str) -> None:
    for n in range(3):
        await http.post(f"/activity/{project}{slash}", [{"event": "a", "n": n}, {"event": "b", "n": n}])
    messages = (await http.get(f"/activity/{project}{slash}?count=3&meta=_ts&meta=_project")).lines
    assert [(m["event"], m["n"], m["_project"]) for m in messages] == [
        ("b", 2, project),
        ("a", 2, project),
        ("b", 1, project),
    ]
    assert all(isinstance(message["_ts"], int) for message in messages)


async def test_messages_of_several_projects(http: Http, project: int) -> None:
    other = project + 100_000
    for n in range(4):
        await http.post(f"/activity/{project if n % 2 else other}", [{"n": n}])
    base = f"/activity/projects/?p={project}&p={other}"
    assert sorted(m["n"] for m in (await http.get(base)).lines) == [0, 1, 2, 3]
    one_each = (await http.get(f"{base}&pcount=1&meta=_project")).lines
    assert {m["_project"]: m["n"] for m in one_each} == {project: 3, other: 2}
    assert len((await http.get(f"{base}&count=3")).lines) == 3


async def test_a_jobs_token_opens_that_jobs_data_only(server: RunningServer, http: Http, project: int) -> None:
    mine = await push(http, project, state="running")
    other = (await push(http, project))["key"]
    assert (await push(http, project))["auth"] is None
    async with Http(server.url, mine["key"], mine["auth"]) as job:
        assert (await job.post(f"/items/{mine['key']}", [{"a": 1}])).status == 200
        assert (await job.post(f"/jobs/{mine['key']}", b'{"a":1}')).status == 200
        for path in (f"/items/{other}", f"/items/{project}", f"/jobs/{other}", f"/hcf/{project}/list"):
            assert (await job.get(path)).status == 401
        assert (await job.get(f"/jobq/{project}/list")).status == 401
    async with Http(server.url, other, mine["auth"]) as thief:
        assert (await thief.get(f"/items/{other}")).status == 401
    assert (await http.get(f"/jobs/{mine['key']}/auth")).json == mine["auth"]


@pytest.mark.parametrize("stored", ["frameworkstats", "scrapystats"])
async def test_stats_of_a_job_are_read_by_both_of_their_names(http: Http, project: int, stored: str) -> None:
    (job,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a", "state": "running"}])).lines
    stats = {"item_scraped_count": 3, "downloader/response_count": 7}
    await http.post(f"/jobs/{job['key']}", json.dumps({stored: stats}).encode())
    for name in ("frameworkstats", "scrapystats"):
        assert (await http.get(f"/jobs/{job['key']}/{name}")).json == stats
        (line,) = (await http.get(f"/jobq/{project}/list?state=running&jobmeta={name}")).lines
        assert line[name] == stats
    (metadata,) = (await http.get(f"/jobs/{job['key']}")).lines
    assert {"frameworkstats", "scrapystats"} & {*metadata} == {stored}
    (listed,) = (await http.get(f"/api/jobs/list.json?project={project}")).json["jobs"]
    assert listed["responses_received"] == 7
