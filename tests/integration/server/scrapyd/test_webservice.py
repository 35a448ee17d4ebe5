"""Scrapyd's API: what its clients send, and what they read of the answers."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.routes import ROUTES
from scrapy_ext.server.store import Store
from tests.support import packed_projects as packed
from tests.support.http import Answer, Http
from tests.support.multipart import form
from tests.support.servers import RunningServer


async def deploy(http: Http, project: str, version: str, egg: bytes | None = None) -> dict[str, Any]:
    body, kind = form(egg or packed.egg(), project=project, version=version)
    answer = await http.post("/addversion.json", body, Content_Type=kind)
    assert answer.status == 200, answer.text
    return answer.json


async def schedule(http: Http, project: str, spider: str = "news", **fields: str) -> Answer:
    return await http.post("/schedule.json", {"project": project, "spider": spider, **fields})


async def ask(http: Http, call: str, **query: str) -> dict[str, Any]:
    answer = await http.get(f"/{call}.json?{urlencode(query)}")
    assert answer.status == 200, answer.text
    return answer.json


async def test_a_project_from_its_first_version_to_its_deletion(http: Http) -> None:
    name = "life-of-a-project"
    said = await deploy(http, name, "1.0")
    assert {**said, "node_name": ""} == {
        "node_name": "",
        "status": "ok",
        "project": name,
        "version": "1.0",
        "spiders": 2,
    }
    assert name in (await ask(http, "listprojects"))["projects"]
    await deploy(http, name, "2.0")
    assert (await ask(http, "listversions", project=name))["versions"] == ["1.0", "2.0"]
    assert (await ask(http, "listspiders", project=name))["spiders"] == ["books", "news"]
    assert (await ask(http, "listspiders", project=name, _version="1.0"))["spiders"] == ["books", "news"]

    # An older version takes the place of the current one.
    assert (await http.post("/delversion.json", {"project": name, "version": "2.0"})).json["status"] == "ok"
    assert (await ask(http, "listversions", project=name))["versions"] == ["1.0"]
    assert (await http.post("/delproject.json", {"project": name})).json["status"] == "ok"
    assert name not in (await ask(http, "listprojects"))["projects"]


@pytest.mark.long
async def test_forms_come_as_multipart_too(http: Http) -> None:
    """Some clients send every form as they send an egg."""
    name = "all-multipart"
    await deploy(http, name, "1.0")
    await deploy(http, name, "2.0")

    async def send(call: str, **fields: str) -> dict[str, Any]:
        body = "".join(
            f'--limit\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
            for field, value in fields.items()
        )
        answer = await http.post(
            f"/{call}.json", f"{body}--limit--\r\n".encode(), Content_Type="multipart/form-data; boundary=limit"
        )
        assert answer.status == 200, answer.text
        return answer.json

    said = await send("schedule", project=name, spider="news", category="künstler", setting="DOWNLOAD_DELAY=2")
    assert said["status"] == "ok"
    assert len(said["jobid"]) == 32
    pending = (await ask(http, "listjobs", project=name))["pending"]
    assert [(each["id"], each["spider"]) for each in pending] == [(said["jobid"], "news")]
    cancelled = await send("cancel", project=name, job=said["jobid"])
    assert (cancelled["status"], cancelled["prevstate"]) == ("ok", "pending")
    assert (await send("delversion", project=name, version="1.0"))["status"] == "ok"
    assert (await send("delproject", project=name))["status"] == "ok"


async def test_a_multipart_form_that_is_damaged_or_has_files_is_refused_with_the_reason(http: Http) -> None:
    for kind, body, rule in (
        ("multipart/form-data", b"--x--", "is not a form of texts"),
        ("multipart/form-data; boundary=limit", b"--limit\r\nno header", "is not a form of texts"),
        (
            "multipart/form-data; boundary=limit",
            b'--limit\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\nc\r\n--limit--\r\n',
            "Too many files",
        ),
        (
            "multipart/form-data; boundary=limit",
            b'--limit\r\nContent-Disposition: form-data; name="a"\r\n\r\nc\r\n' * 1001 + b"--limit--\r\n",
            "Too many fields",
        ),
    ):
        answer = await http.post("/schedule.json", body, Content_Type=kind)
        assert (answer.status, answer.json["status"]) == (200, "error"), answer.text
        assert rule in answer.json["message"]


@pytest.mark.long
async def test_the_activity_names_who_changed_versions_and_nothing_that_failed(http: Http) -> None:
    name = "changes-of-versions"
    for version in ("1.0", "2.0", "3.0"):
        await deploy(http, name, version)
    assert (await http.post("/delversion.json", {"project": name, "version": "9"})).json["status"] == "error"
    assert (await http.post("/addversion.json", {"project": name, "version": "4.0"})).json["status"] == "error"
    await http.post("/delversion.json", {"project": name, "version": "3.0"})
    await http.post("/delproject.json", {"project": name})
    number = next(each["id"] for each in (await http.get("/api/projects")).json if each["name"] == name)
    messages = [each for each in (await http.get(f"/activity/{number}")).lines if each["event"].startswith("version:")]
    assert {each["user"] for each in messages} == {"api"}
    assert sorted((each["event"], each.get("version") or tuple(each["versions"])) for each in messages[2:]) == [
        ("version:deployed", "1.0"),
        ("version:deployed", "2.0"),
        ("version:deployed", "3.0"),
    ]
    assert [each.get("version") or each["versions"] for each in messages[:2]] == [["1.0", "2.0"], "3.0"]


@pytest.mark.long
async def test_a_deploy_by_number_has_that_project_and_names_have_their_rules(http: Http) -> None:
    said = await deploy(http, "3001", "1.0")
    assert (said["status"], said["project"]) == ("ok", "3001")
    assert {"id": 3001, "name": None} in (await http.get("/api/projects")).json
    for name, rule in (("a/b", "must not contain a slash"), (" 7", "white space"), ("n" * 81, "at most 80 characters")):
        said = await deploy(http, name, "1.0")
        assert (said["status"], rule in said["message"]) == ("error", True), said


@pytest.mark.long
async def test_jobs_keep_the_id_settings_arguments_and_version_of_their_client(http: Http) -> None:
    name = "jobs-of-a-client"
    await deploy(http, name, "1.0")
    fields = {"jobid": "2026-01-02T03_04_05", "_version": "1.0", "priority": "1", "since": "2020"}
    body = urlencode(
        [*fields.items(), ("project", name), ("spider", "news"), *[("setting", "A=1=2"), ("setting", "B=")]]
    )
    said = await http.post("/schedule.json", body.encode(), Content_Type="application/x-www-form-urlencoded")
    assert said.json["jobid"] == "2026-01-02T03_04_05"
    (pending,) = (await ask(http, "listjobs", project=name))["pending"]
    assert pending == {
        "id": "2026-01-02T03_04_05",
        "project": name,
        "spider": "news",
        "version": "1.0",
        "settings": {"A": "1=2", "B": ""},
        "args": {"since": "2020"},
    }
    job, own = {"job": "2026-01-02T03_04_05"}, {"project": name}
    assert (await ask(http, "status", **job))["currstate"] == "pending"
    assert (await ask(http, "status", **job, **own))["currstate"] == "pending"
    assert (await http.post("/cancel.json", {**job, **own})).json["prevstate"] == "pending"
    assert (await ask(http, "status", **job))["currstate"] == "finished"
    assert (await http.post("/cancel.json", {**job, **own})).json["prevstate"] is None
    (finished,) = (await ask(http, "listjobs", project=name))["finished"]
    assert (finished["id"], finished["log_url"], finished["items_url"]) == ("2026-01-02T03_04_05", None, None)


@pytest.mark.long
async def test_the_same_spider_with_the_same_arguments_is_scheduled_twice(http: Http) -> None:
    name = "twice"
    await deploy(http, name, "1.0")
    ids = {(await schedule(http, name)).json["jobid"] for _ in range(2)}
    assert len(ids) == 2
    assert {job["id"] for job in (await ask(http, "listjobs", project=name))["pending"]} == ids


async def test_jobs_of_the_platform_have_ids_made_of_their_keys(http: Http) -> None:
    number = "1000"
    key = (await http.post("/api/run.json", {"project": number, "spider": "x"})).json["jobid"]
    (pending,) = (await ask(http, "listjobs", project=number))["pending"]
    assert (pending["id"], pending["project"]) == (key.replace("/", "-"), number)
    assert (await ask(http, "status", job=pending["id"], project=number))["currstate"] == "pending"
    assert (await http.post("/cancel.json", {"project": number, "job": pending["id"]})).json["prevstate"] == "pending"


async def test_what_cannot_be_done_is_an_error_with_status_200_that_says_why(http: Http) -> None:
    name = "errors"
    await deploy(http, name, "1.0")
    for call, fields, message in (
        ("schedule", {"spider": "news"}, "project: is required"),
        ("schedule", {"project": name}, "spider: is required"),
        ("schedule", {"project": "nothing", "spider": "news"}, "project: 'nothing' was not found"),
        ("schedule", {"project": name, "spider": "nobody"}, "spider: 'nobody' was not found"),
        ("schedule", {"project": name, "spider": "news", "_version": "9"}, "version: '9' was not found"),
        ("schedule", {"project": name, "spider": "news", "jobid": "../x"}, "jobid: must be 1 to 120"),
        ("schedule", {"project": name, "spider": "news", "priority": "high"}, "priority: must be a number"),
        ("schedule", {"project": name, "spider": "news", "priority": "nan"}, "priority: must be a number"),
        ("schedule", {"project": name, "spider": "news", "setting": "X"}, "setting: must be NAME=VALUE"),
        ("delversion", {"project": name, "version": "9"}, "version: '9' was not found"),
        ("cancel", {"project": name}, "job: is required"),
        ("addversion", {"project": name, "version": "1.1", "egg": "no egg"}, "archive: cannot be used"),
        ("addversion", {"project": name, "egg": "x"}, "version: is required"),
        ("addversion", {"project": name, "version": "1.1"}, "archive: is required"),
    ):
        answer = await http.post(f"/{call}.json", fields, Content_Type="application/x-www-form-urlencoded")
        assert (answer.status, answer.json["status"]) == (200, "error"), (call, fields)
        assert message in answer.json["message"], answer.json
    assert (await ask(http, "listjobs", project=name))["pending"] == []


@pytest.mark.long
async def test_an_egg_comes_as_the_escaped_bytes_of_a_form(http: Http) -> None:
    body = urlencode({"project": "escaped", "version": "1.0", "egg": packed.egg()}).encode()
    answer = await http.post("/addversion.json", body, Content_Type="application/x-www-form-urlencoded")
    assert (answer.json["status"], answer.json["spiders"]) == ("ok", 2)


@pytest.mark.long
async def test_an_egg_that_fails_its_check_is_an_error_and_no_version(http: Http) -> None:
    said = await deploy(http, "failing", "1.0", packed.egg(shop__spiders="import nothing_like_this\n"))
    assert said["status"] == "error"
    assert "nothing_like_this" in said["message"]
    assert (await ask(http, "listversions", project="failing"))["versions"] == []


@pytest.mark.long
async def test_the_status_counts_the_jobs_of_the_projects_of_a_key(http: Http, server: RunningServer) -> None:
    name = "counted"
    await deploy(http, name, "1.0")
    await schedule(http, name)
    number = next(each["id"] for each in (await http.get("/api/projects")).json if each["name"] == name)
    store = await Store.open(server.where)
    try:
        key = await add_key(store, "counting", frozenset({number}), may_write=False)
    finally:
        await store.close()
    async with Http(server.url, key) as limited:
        status = await ask(limited, "daemonstatus")
        assert (status["pending"], status["running"], status["finished"]) == (1, 0, 0)
        assert (await ask(limited, "listprojects"))["projects"] == [name]
        refused = await schedule(limited, name)
        assert (refused.status, refused.json["status"]) == (403, "error")
        other = await ask(limited, "listjobs", project="twice")
        assert other["status"] == "error"


async def test_every_call_refuses_strangers(server: RunningServer) -> None:
    own = [each for each in ROUTES if each.tag == "scrapyd"]
    assert len(own) > 15
    async with Http(server.url, None) as stranger:
        for each in own:
            answer = await stranger.call(each.method, re.sub(r"{\w+(:name)?}", "x", each.path))
            assert answer.status == 401, each.path
            if each.path.endswith(".json"):
                assert answer.json["status"] == "error"


@pytest.mark.long
async def test_a_key_of_another_project_finds_nothing(http: Http, server: RunningServer) -> None:
    name = "of-others"
    await deploy(http, name, "1.0")
    job_id = (await schedule(http, name)).json["jobid"]
    number = next(each["id"] for each in (await http.get("/api/projects")).json if each["name"] == name)
    store = await Store.open(server.where)
    try:
        key = await add_key(store, "stranger", frozenset({4499}), may_write=True)
    finally:
        await store.close()
    async with Http(server.url, key) as other:
        for call, fields in (
            ("schedule", {"spider": "news"}),
            ("cancel", {"job": job_id}),
            ("delversion", {"version": "1.0"}),
            ("delproject", {}),
        ):
            for project in (name, str(number)):
                answer = await other.post(
                    f"/{call}.json", {"project": project, **fields}, Content_Type="application/x-www-form-urlencoded"
                )
                assert (answer.json["status"], answer.status in (200, 403)) == ("error", True), call
        assert (await ask(other, "status", job=job_id))["currstate"] is None
        assert name not in (await other.get("/jobs")).text
        assert name not in (await other.get("/logs/")).text
        assert (await other.get(f"/logs/{name}/news/{job_id}.log")).status == 400
    assert (await ask(http, "status", job=job_id, project=name))["currstate"] == "pending"
    assert (await ask(http, "listversions", project=name))["versions"] == ["1.0"]


async def test_logs_and_items_of_a_job_are_files(http: Http) -> None:
    name = "files"
    await deploy(http, name, "1.0")
    job_id = (await schedule(http, name, jobid="run.1")).json["jobid"]
    number = next(each["id"] for each in (await http.get("/api/projects")).json if each["name"] == name)
    (job,) = (await http.get(f"/jobq/{number}/list?state=pending")).lines
    log = '{"time": 1767323045678, "level": 40, "message": "Spider error\\nTraceback <b>"}'
    assert (await http.post(f"/logs/{job['key']}", log.encode())).status == 200
    assert (await http.post(f"/items/{job['key']}", b'{"name": "kettle"}')).status == 200
    (pending,) = (await ask(http, "listjobs", project=name))["pending"]
    assert pending["id"] == job_id
    text = await http.get(f"/logs/{name}/news/run.1.log")
    assert text.text == "2026-01-02 03:04:05 [scrapy] ERROR: Spider error\nTraceback <b>\n"
    assert text.headers["Content-Type"].startswith("text/plain")
    assert (await http.get(f"/items/{name}/news/run.1.jl")).text == '{"name": "kettle"}\n'
    for path, entry in (("", f"{name}/"), (f"{name}/", "news/"), (f"{name}/news/", "run.1.log")):
        page = await http.get(f"/logs/{path}")
        assert f"Directory listing for /logs/{path}" in page.text
        assert f'<a href="{entry}">{entry}</a>' in page.text
    assert (await http.get(f"/logs/{name}/news/run.2.log")).status == 404
    assert (await http.get(f"/logs/{name}/books/run.1.log")).status == 404
    page = await http.get("/jobs")
    assert "<h1>Jobs</h1>" in page.text
    assert f"<td>{name}</td>" in page.text


@pytest.mark.parametrize("time", [10**18, -(10**15), 2**63 - 1, -(2**63)])
async def test_a_log_record_whose_time_is_none_spoils_no_file(http: Http, project: int, time: int) -> None:
    job = (await http.post("/api/run.json", {"project": str(project), "spider": "s"})).json["jobid"]
    await http.post(
        f"/logs/{job}", [{"time": time, "level": 20, "message": "a"}, {"time": 0, "level": 20, "message": "b"}]
    )
    text = await http.get(f"/logs/{project}/s/{job.replace('/', '-')}.log")
    assert (text.status, text.text) == (
        200,
        "0000-00-00 00:00:00 [scrapy] INFO: a\n1970-01-01 00:00:00 [scrapy] INFO: b\n",
    )


@pytest.mark.long
async def test_names_are_escaped_on_pages(http: Http) -> None:
    name = "<i>&x"
    await deploy(http, name, "1.0")
    await schedule(http, name)
    for path in ("/jobs", "/logs/"):
        text = (await http.get(path)).text
        assert name not in text
        assert "&lt;i&gt;&amp;x" in text


@pytest.mark.long
async def test_a_new_project_gets_a_number_although_another_has_the_greatest_one(http: Http) -> None:
    greatest = 2**63 - 1
    assert (await http.post("/api/run.json", {"project": str(greatest), "spider": "x"})).status == 200
    assert (await deploy(http, "after-the-greatest", "1.0"))["status"] == "ok"
    numbers = {each["name"]: each["id"] for each in (await http.get("/api/projects")).json}
    assert isinstance(numbers["after-the-greatest"], int)
    assert 0 < numbers["after-the-greatest"] < greatest


async def test_a_job_runs_in_as_many_workers_as_are_asked_for(http: Http) -> None:
    await deploy(http, "workers", "1.0")
    refused = (await schedule(http, "workers", job_workers="many")).json
    assert (refused["status"], "must be a number of workers" in refused["message"]) == ("error", True)
    assert (await schedule(http, "workers", job_workers="2..4", jobid="four")).json["status"] == "ok"
    number = next(each["id"] for each in (await http.get("/api/projects")).json if each["name"] == "workers")
    (job,) = (await http.get(f"/api/jobs/list.json?project={number}")).json["jobs"]
    assert (job["job_workers"], job.get("spider_args")) == ("2..4", None)
