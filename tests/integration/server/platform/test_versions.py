"""Deploying over HTTP: versions, what they change for jobs and spiders, and who may do it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform.versions import MAX_ARCHIVE
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support import multipart
from tests.support import packed_projects as packed
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import RunningServer

NEWER = packed.SPIDER.replace('"news"', '"reviews"')


def form(project: int | None, archive: bytes, name: str = "egg", **fields: str) -> tuple[bytes, str]:
    """A form of a project as other tools write it, and its content type."""
    return multipart.form(archive, name, **fields, **({} if project is None else {"project": str(project)}))


async def send(http: Http, path: str, body: tuple[bytes, str]) -> Answer:
    return await http.post(path, body[0], Content_Type=body[1])


async def deploy(http: Http, project: int, version: str, archive: bytes, **fields: str) -> dict[str, Any]:
    """Deploy as other tools do; returns the last line of the answer."""
    answer = await send(http, "/api/scrapyd/addversion.json", form(project, archive, version=version, **fields))
    assert answer.status == 200, answer.text
    said: dict[str, Any] = json.loads(answer.text.splitlines()[-1])
    return said


async def checked(http: Http, project: int, version: str) -> dict[str, Any]:
    """The version once its check has ended."""
    path = f"/api/projects/{project}/versions/{version}"
    answer = await eventually_async(lambda: http.get(path), lambda answer: answer.json["state"] != "uploaded")
    shown: dict[str, Any] = answer.json
    return shown


async def run(http: Http, project: int, spider: str, **fields: str) -> Answer:
    return await http.post("/api/run.json", {"project": str(project), "spider": spider, **fields})


async def test_from_the_first_version_to_going_back(http: Http, project: int) -> None:
    versions = f"/api/projects/{project}/versions"
    assert (await run(http, project, "anything", state="x")).status == 200
    archive = packed.folder()
    taken = await http.post(f"{versions}?version=1.0", archive)
    assert (taken.status, taken.json["state"], taken.json["current"]) == (201, "uploaded", False)
    shown = await checked(http, project, "1.0")
    assert (shown["state"], shown["current"], shown["size"]) == ("ready", True, len(archive))
    assert [spider["name"] for spider in shown["spiders"]] == ["books", "news"]
    assert shown["spiders"][0]["arguments"] == [
        {"name": "category", "required": True},
        {"name": "page", "default": "1", "annotation": "int"},
    ]
    said = await deploy(http, project, "2.0", packed.egg(shop__spiders=NEWER))
    assert said == {"status": "ok", "project": project, "version": "2.0", "spiders": 3}
    listed = (await http.get(versions)).json["versions"]
    assert [(each["version"], each["current"], each["format"]) for each in listed] == [
        ("2.0", True, "egg"),
        ("1.0", False, "folder"),
    ]
    back = await http.post(f"{versions}/1.0/current")
    assert (back.status, back.json["current"]) == (200, True)
    assert (await http.delete(f"{versions}/1.0")).status == 409
    assert (await http.delete(f"{versions}/2.0")).status == 204
    assert (await http.get(f"{versions}/2.0")).status == 404
    assert (await http.post(f"{versions}/2.0/current")).status == 404


async def test_jobs_and_lists_go_by_the_current_version(http: Http, project: int) -> None:
    await deploy(http, project, "1.0", packed.egg())
    listed = (await http.get(f"/api/spiders/list.json?project={project}")).json["spiders"]
    assert listed == [{"id": name, "tags": [], "type": "manual", "version": "1.0"} for name in ("books", "news")]
    described = (await http.get(f"/api/spiders/list.json?project={project}&spider=books&described=1")).json["spiders"]
    arguments = [{"name": "category", "required": True}, {"name": "page", "default": "1", "annotation": "int"}]
    assert described == [{**listed[0], "summary": "Books of the shop.", "arguments": arguments}]
    refused = await run(http, project, "boks")
    assert refused.status == 400
    assert "'boks' is no spider of version 1.0" in refused.json["message"]
    assert "Use one of books, news, py:clean.py" in refused.json["message"]
    assert (await http.post("/api/schedule.json", {"project": str(project), "spider": "boks"})).status == 400
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "news"}, {"spider": "boks"}])
    assert (pushed.status, "line 2: spider" in pushed.text) == (400, True)
    own = await http.post(f"/jobq/{project}/push", [{"spider": "mine", "state": "running"}])
    assert own.status == 200  # who runs a job without the server has code of its own
    assert "version" not in (await http.get(f"/jobs/{own.lines[0]['key']}")).json
    job = (await run(http, project, "py:clean.py")).json["jobid"]
    metadata = (await http.get(f"/jobs/{job}")).json
    assert (metadata["version"], metadata["deploy_id"]) == ("1.0", 1)
    jobs = (await http.get(f"/api/jobs/list.json?project={project}&job={job}")).json["jobs"]
    assert jobs[0]["version"] == "1.0"


@pytest.mark.long
async def test_a_version_that_fails_is_reported_to_the_command_that_deploys_it(http: Http, project: int) -> None:
    said = await deploy(http, project, "1.0", packed.folder(shop__spiders="import nothing_like_this"))
    assert said["status"] == "error"
    assert "cannot be imported" in said["message"]
    shown = await checked(http, project, "1.0")
    assert "No module named 'nothing_like_this'" in shown["message"]
    assert (await http.post(f"/api/projects/{project}/versions/1.0/current")).status == 409
    assert (await run(http, project, "anything")).status == 200


async def test_what_is_no_upload_is_refused(http: Http, project: int) -> None:
    url, path = f"/api/projects/{project}/versions", "/api/scrapyd/addversion.json"
    good = packed.folder()
    for body, message in [
        (form(project, b"hello", version="1.0"), "archive"),
        (form(project, good), "version"),
        (form(project, good, version="local"), "server's own folder"),
        (form(project, good, version="a/b"), "version"),
        (form(project, good, version="1.0", settings="a b"), "settings"),
        (form(None, good, version="1.0"), "project"),
        (form(project, good, "eggs", version="1.0"), "eggs"),
        ((f"project={project}&version=1.0".encode(), "application/x-www-form-urlencoded"), "archive"),
    ]:
        answer = await send(http, path, body)
        assert (answer.status, message in answer.json["message"]) == (400, True), answer.text
    assert (await http.post(f"{url}?version=1.0", b"")).status == 400
    cut = await http.post(
        path, b"--x\r\nContent-Disposition: form-data; na", Content_Type="multipart/form-data; boundary=x"
    )
    assert cut.status == 400
    assert (await http.post(path, b"", Content_Type="multipart/form-data")).status == 400
    long = b"X-A: " + b"a" * 70_000 + b"\r\n"
    many = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 3000) for number in range(7))
    part = b'--limit\r\nContent-Disposition: form-data; name="a%d"\r\n%b\r\n1\r\n'
    message = ("is not a form", "the headers of its parts are over 65536 bytes")
    for parts, why in zip((part % (1, long), b"".join(part % (n, many) for n in range(4))), message, strict=True):
        answer = await send(http, path, (parts + b"--limit--\r\n", "multipart/form-data; boundary=limit"))
        assert (answer.status, why in answer.json["message"]) == (400, True), answer.text
    assert (await http.post(f"{url}?version=1.0", bytes(MAX_ARCHIVE + 1))).status == 413
    assert (await http.get(url)).json == {"versions": []}


async def test_only_keys_of_all_projects_deploy(server: RunningServer, http: Http, project: int) -> None:
    store = await Store.open(server.where)
    try:
        limited = await add_key(store, f"limited-{project}", frozenset({project}), may_write=True)
        reader = await add_key(store, f"reader-{project}", None, may_write=False)
    finally:
        await store.close()
    for key, message in ((limited, "--deploy project"), (reader, "may read, and not write")):
        async with Http(server.url, key) as other:
            await eventually_async(
                lambda: other.get(f"/api/projects/{project}/versions"), lambda answer: answer.status == 200
            )
            for path in (f"/api/projects/{project}/versions?version=1", "/api/scrapyd/addversion.json"):
                answer = await send(other, path, form(project, packed.folder(), version="1"))
                assert (answer.status, message in answer.json["message"]) == (403, True), answer.text
    assert (await http.get(f"/api/projects/{project}/versions")).json == {"versions": []}


@pytest.mark.long
async def test_a_large_archive_comes_back_as_it_was(server: RunningServer, http: Http, project: int) -> None:
    noise = "x = '" + "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(400_000)) + "'\n"
    archive = packed.folder(shop__data=noise)
    assert len(archive) > 2**20
    assert (await deploy(http, project, "1.0", archive))["status"] == "ok"
    store = await Store.open(server.where)
    try:
        assert b"".join([piece async for piece in store.versions.archive(project, 1)]) == archive
    finally:
        await store.close()
