"""Rules, deliveries and restores through a server: its API and its commands."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.store import now_ms
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import done, rows, submit, texts
from tests.support.page_forms import page as page_of
from tests.support.servers import ForkedServer, RunningServer
from tests.support.stores import ENGINES
from tests.support.terminal_commands import scrapy


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, place: Path) -> Iterator[Any]:
    database = request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None
    options = ("--archive-target", place.as_uri())
    with ForkedServer(tmp_path_factory.mktemp("server") / "data", database=database, options=options) as server:
        yield server


async def run(server: RunningServer, project: int, *arguments: str) -> tuple[int, str, str]:
    named = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": str(project)}
    done = await asyncio.to_thread(scrapy, "platform", *arguments, environment={**os.environ, **named})
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("only_delivered", [True, False])
async def test_a_job_is_delivered_archived_and_restored(
    server: RunningServer, http: Http, project: int, place: Path, only_delivered: bool
) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "a/../b", "state": "running"}])).lines
    key = pushed["key"]
    items = b"".join(b'{"n":%d}\n' % n for n in range(1500))
    assert (await http.post(f"/items/{key}", items)).status == 200
    assert (await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])).status == 200
    code, out, _ = await run(server, project, "deliveries", "add", place.as_uri(), "items", "--yes", "--json")
    assert code == 0
    assert json.loads(out)["what"] == ["items"]

    async def delivered() -> list[dict[str, Any]]:
        answer = await http.get(f"/api/jobs/deliveries.json?project={project}&job={key}")
        return list(answer.json["deliveries"])

    (delivery,) = await eventually_async(delivered)
    assert (delivery["kind"], delivery["records"]) == ("items", 1500)
    assert (Path(delivery["folder"].removeprefix("file://")) / delivery["object"]).is_file()
    code, out, _ = await run(server, project, "deliveries", "of", key, "--json")
    assert json.loads(out)["folder"] == delivery["folder"]
    rule = {"what": ["items", "logs"], "older_than": 1, "only_delivered": only_delivered, "enabled": True}
    assert (await http.post(f"/api/projects/{project}/retention", json.dumps(rule).encode())).status == 201
    assert (await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": "m"}])).status == 200
    beside = await Store.open(server.where, clock=lambda: now_ms() + 2 * 86_400_000)
    (enabled,) = [each for each in await beside.retention.enabled() if each.project == project]
    async for _ in beside.retention.apply(enabled, project):
        pass
    await beside.close()
    # They were not delivered.
    assert (await http.get(f"/logs/{key}")).status == (200 if only_delivered else 410)
    gone = await http.get(f"/items/{key}")
    assert gone.status == 410
    assert delivery["folder"] in gone.text
    assert f"scrapy platform restore-job {key}" in gone.text
    assert (await http.get(f"/items/{key}/stats")).json["totals"]["input_values"] == 1500
    state = await http.get(f"/api/jobs/restore.json?project={project}&job={key}")
    assert state.json["jobs"] == [{"job": key, "state": "archived", "archive": delivery["folder"]}]
    code, out, error = await run(server, project, "restore-job", key, "--json")
    if only_delivered:
        assert (code, json.loads(out)["state"]) == (0, "available"), error
    else:
        assert (code, "removed without a copy" in error) == (1, True)
        assert "They cannot be brought back" in (await run(server, project, "restore-job", key))[2]
    assert (await http.get(f"/items/{key}")).body == items
    refused = await http.post("/api/jobs/restore.json", {"project": str(project), "job": key})
    assert refused.status == 400


async def test_pages_add_a_rule_and_bring_back_the_records_of_a_job(
    server: RunningServer, http: Http, project: int, place: Path
) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])).lines
    key = pushed["key"]
    await http.post(f"/items/{key}", b'{"n":1}\n')
    await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])
    path, of_job = f"/ui/{project}/deliveries", f"/ui/{project}/deliveries/job?job={key}"
    form = {"target": place.as_uri(), "what": ["items"], "compression": "gz"}
    shown = page_of(await submit(http, f"{path}/new", {**form, "action": "preview"}))
    assert "the data of 1 job: 1 record" in " ".join(texts(shown, "//section[@aria-label='Preview']/p"))
    previewed = shown.xpath("//input[@name='previewed']/@value")[0]
    await submit(http, f"{path}/new", {**form, "previewed": previewed, "action": "add"})
    delivered = await eventually_async(lambda: http.get(of_job), lambda answer: place.as_uri() in answer.text)
    assert rows(page_of(delivered))[0][:3] == ["items", "1", "1"]
    assert "can be read" in texts(page_of(delivered), "//main//p")[0]
    rule = {"what": ["items"], "older_than": 1, "enabled": True}
    assert (await http.post(f"/api/projects/{project}/retention", json.dumps(rule).encode())).status == 201
    beside = await Store.open(server.where, clock=lambda: now_ms() + 2 * 86_400_000)
    (enabled,) = [each for each in await beside.retention.enabled() if each.project == project]
    async for _ in beside.retention.apply(enabled, project):
        pass
    await beside.close()
    assert "are archived" in texts(page_of(await http.get(of_job)), "//main//p")[0]
    restored = await submit(http, f"{path}/job", {"action": "restore", "job": key}, shown_at=of_job)
    assert done(restored).startswith("The records are being restored.")
    await eventually_async(lambda: http.get(of_job), lambda answer: "can be read" in answer.text)
    assert (await http.get(f"/items/{key}")).body == b'{"n":1}\n'
    again = page_of(await submit(http, f"{path}/job", {"action": "restore", "job": key}, shown_at=path + "/new"), 400)
    assert texts(again, "//*[@role='alert']") != []
    wrong = page_of(await http.get(f"{path}/job?job={project + 1}/1/1"), 400)
    assert "is not of project" in texts(wrong, "//*[@id='job-wrong']")[0]
    assert "There is no job" in (await http.get(f"{path}/job?job={project}/77/1")).text


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://key:secret@bucket/a", "must have no credentials"),
        ("s3://bucket/a?sig=secret", "must have no credentials"),
        ("s3://elsewhere/a", "is not one that this server may deliver to"),
        ("file:///etc", "is not one that this server may deliver to"),
        ("file:///srv/../etc", "without . and .."),
        ("http://host/a", "must begin with file://, s3://, gs://, az://"),
        ("file://host/a", "must be file:///"),
        (7, "must be a URL"),
    ],
)
async def test_a_rule_names_only_targets_of_the_operator(http: Http, project: int, url: Any, reason: str) -> None:
    answer = await http.post(f"/api/projects/{project}/deliveries", json.dumps({"target": url}).encode())
    assert answer.status == 400
    assert reason in answer.text
    assert "secret" not in answer.text
    assert (await http.get(f"/api/projects/{project}/deliveries")).json == []


async def test_the_command_previews_a_rule_before_it_adds_it(
    server: RunningServer, http: Http, project: int, place: Path
) -> None:
    key = await _finished(http, project, b'{"n":1}\n{"n":2}\n')
    other = await _finished(http, project, b'{"n":3}\n')
    url = place.as_uri() + "/deeper"
    rule = (url, "items", "--spider", "books")
    code, out, error = await run(server, project, "deliveries", "add", *rule, "--dry-run")
    assert code == 0
    assert f"The rule delivers items of jobs of spider books to {url}. " in error
    assert "Now this is the data of 2 jobs: 3 records, " in error
    preview = json.loads(out)
    assert (preview["jobs"], preview["records"], preview["bytes"] > 0) == (2, 3, True)
    assert [each["job"] for each in preview["next"]] == [key, other]
    code, _, error = await run(server, project, "deliveries", "add", url, "--dry-run")
    assert code == 0
    assert f"The rule delivers items, requests, logs and samples of jobs to {url}. " in error
    code, _, error = await run(server, project, "deliveries", "add", url, "comments", "--dry-run")
    assert (code, "must be one of items" in error) == (2, True)
    path = f"/api/projects/{project}/deliveries"
    assert (await http.get(path)).json == []
    code, _, error = await run(server, project, "deliveries", "add", *rule)
    assert (code, "add --yes" in error) == (1, True)
    code, out, _ = await run(server, project, "deliveries", "add", *rule, "--off")
    assert (code, json.loads(out)["enabled"]) == (0, False)
    assert (await http.get(f"{path}/1/preview")).json["jobs"] == 2
    assert (await http.get(f"{path}/next")).json == []  # it is off
    page = await http.get(f"/ui/{project}/deliveries")
    assert "items of jobs of spider books" in page.text
    code, out, _ = await run(server, project, "deliveries", "enable", "1", "--yes")
    assert json.loads(out)["enabled"] is True

    async def reported() -> set[str]:
        messages = [json.loads(line) for line in (await http.get(f"/activity/{project}/")).body.splitlines()]
        found = [each for each in messages if each["event"] == "delivery:completed"]
        assert {each["user"] for each in found} <= {"delivery rule 1"}
        return {job for each in found for job in each["jobs"]}

    await eventually_async(reported, lambda jobs: jobs == {key, other})
    assert (await http.get(f"{path}/next")).json == []
    assert "scrapy_ext_delivery_jobs_total" in (await http.get("/metrics")).text
    code, out, _ = await run(server, project, "deliveries", "disable", "1")
    assert json.loads(out)["enabled"] is False
    (stored,) = (await http.get(path)).json
    assert (stored["target"], stored["spider"], stored["failure"]) == (url, "books", None)
    assert (await run(server, project, "deliveries", "remove", "1"))[0] == 0
    code, _, error = await run(server, project, "deliveries", "remove", "1")
    assert (code, f"project {project} has no rule 1" in error) == (1, True)


async def test_the_preview_of_a_rule_names_the_folder_that_is_missing(
    server: RunningServer, http: Http, project: int, place: Path
) -> None:
    url = place.as_uri()
    moved = place.with_name("not-mounted")
    path = f"/api/projects/{project}/deliveries"
    place.rename(moved)
    try:
        code, out, error = await run(server, project, "deliveries", "add", url, "--dry-run")
        reason = f"{url}: there is no such folder. Create it, or mount its file system"
        assert (code, json.loads(out)["failure"]) == (0, reason)
        assert f" The rule waits: {reason}." in error
        # It may be added all the same, since the disk may be mounted later.
        code, out, _ = await run(server, project, "deliveries", "add", url, "--off")
        number = json.loads(out)["id"]
        assert (await http.get(f"{path}/{number}/preview")).json["failure"] == reason
        assert "there is no such folder" in (await http.get(f"/ui/{project}/deliveries/{number}")).text
    finally:
        moved.rename(place)
    assert (await http.get(f"{path}/{number}/preview")).json["failure"] is None
    assert "there is no such folder" not in (await http.get(f"/ui/{project}/deliveries/{number}")).text


async def _finished(http: Http, project: int, items: bytes) -> str:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])).lines
    key: str = pushed["key"]
    assert (await http.post(f"/items/{key}", items)).status == 200
    assert (await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])).status == 200
    return key


async def test_a_rule_of_the_server_delivers_the_jobs_of_every_project(
    server: RunningServer, http: Http, project: int, place: Path
) -> None:
    tag = f"nightly-{project}"
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "s", "state": "running", "tags": [tag]}])).lines
    assert (await http.post(f"/logs/{pushed['key']}", [{"time": 1, "level": 20, "message": "m"}])).status == 200
    assert (await http.post(f"/jobq/{project}/update", [{"key": pushed["key"], "state": "finished"}])).status == 200
    body = {"target": place.as_uri(), "tag": tag, "enabled": True}
    added = await http.post("/api/deliveries", json.dumps(body).encode())
    assert (added.status, added.json["project"]) == (201, None)
    assert added.json in (await http.get(f"/api/projects/{project}/deliveries")).json

    async def delivered() -> list[dict[str, Any]]:
        answer = await http.get(f"/api/jobs/deliveries.json?project={project}&job={pushed['key']}")
        return list(answer.json["deliveries"])

    (delivery,) = await eventually_async(delivered)
    assert (delivery["of_server"], delivery["kind"], delivery["object"]) == (True, "logs", "logs.jsonl.gz")
    number = str(added.json["id"])
    code, _, error = await run(server, project, "deliveries", "remove", number, "--server")
    assert code == 0, error


CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"older_than": 1.5}, "older_than: must be a whole number of days from 1 to 36500"),
    ({"older_than": 0}, "older_than: must be a whole number of days"),
    ({"keep_last": True}, "keep_last: must be a whole number of jobs from 1 to 1000"),
    ({"spider": ""}, "spider: must be 1 to 255 characters"),
    ({"tag": "a\0b"}, "tag: must be 1 to 255 characters"),
    ({"what": ["jobs"]}, "what: must be an array of some of items, requests, logs, samples"),
    ({"what": []}, "what: must be an array"),
    ({"compression": "br"}, "compression: must be gz or zst"),
    ({"parquet": "yes"}, "parquet: must be true or false"),
    ({"enabled": 1}, "enabled: must be true or false"),
    ({"collections": ["*"]}, "collections: is not a field of this request"),
]


@pytest.mark.parametrize(("fields", "message"), CONDITIONS)
async def test_a_wrong_rule_is_refused_as_one_of_retention_is(
    http: Http, project: int, place: Path, fields: dict[str, Any], message: str
) -> None:
    body = json.dumps({"target": place.as_uri(), **fields}).encode()
    for path in (f"/api/projects/{project}/deliveries", f"/api/projects/{project}/deliveries/preview"):
        refused = await http.post(path, body)
        assert (refused.status, message in refused.text) == (400, True), refused.text
