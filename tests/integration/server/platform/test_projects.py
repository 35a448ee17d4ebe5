"""Projects, spiders and settings: what the clients from PyPI do not send."""

from __future__ import annotations

import asyncio
import json

import pytest

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support.http import Http
from tests.support.servers import RunningServer


async def test_a_key_in_the_url_is_accepted(server: RunningServer) -> None:
    async with Http(server.url, None) as nobody:
        assert (await nobody.get(f"/api/v2/users/me?apikey={server.platform_key}")).status == 200
        for path in ("/api/v2/users/me", "/api/scrapyd/listprojects.json", "/api/projects/1/periodicjobs"):
            answer = await nobody.get(path)
            assert (answer.status, answer.json) == (401, {"status": "error", "message": "Authentication failed"})
        for path in ("/projects/jobsummaries", "/projects/1/settings", "/ids/1/spider/a", "/spiders/1/lastjobsummary"):
            answer = await nobody.get(path)
            assert (answer.status, answer.body) == (401, b"Unauthorized\n")


async def test_a_setting_is_written_by_its_name_too(http: Http, project: int) -> None:
    base = f"/projects/{project}/settings"
    assert (await http.post(f"{base}/limit", b"[1, 2]")).status == 200
    assert (await http.get(base)).json == {"limit": [1, 2]}
    assert (await http.get(f"{base}/limit")).body == b"[1,2]"
    assert (await http.get(f"{base}/absent")).body == b"null"
    assert project in (await http.get("/api/scrapyd/listprojects.json")).json["projects"]


async def test_settings_have_a_size(http: Http, project: int) -> None:
    base = f"/projects/{project}/settings"
    half = json.dumps("x" * 600_000).encode()
    assert (await http.post(f"{base}/a", half)).status == 200
    answer = await http.post(f"{base}/b", half)
    assert answer.status == 413
    assert "Keep large values in a collection" in answer.text
    assert list((await http.get(base)).json) == ["a"]
    for body in (b"[]", b"{", b'{"": 1}'):
        assert (await http.post(base, body)).status == 400


async def test_the_spider_of_the_dashboard(http: Http, project: int) -> None:
    await http.get(f"/ids/{project}/spider/books?create=1")
    path = f"/api/v2/projects/{project}/spiders/1"
    spider = (await http.get(path)).json
    assert (spider["id"], spider["jobq_id"], spider["name"], spider["tags"]) == (1, 1, "books", [])
    assert spider["project"] == {"id": project, "name": str(project)}
    changed = await http.call("PATCH", f"{path}/tags", b'{"add": ["b", "a", "b"]}')
    assert changed.json["tags"] == ["b", "a"]
    nothing = await http.call("PATCH", f"{path}/tags", b"{}")
    assert nothing.status == 400
    assert nothing.json["non_field_errors"] == ['At least one of "add" or "remove" arguments must not be empty']
    assert (await http.call("PATCH", f"{path}/tags", b'{"add": "b"}')).status == 400
    assert (await http.call("PATCH", f"/api/v2/projects/{project}/spiders/2/tags", b'{"add": ["b"]}')).status == 404
    assert (await http.get(f"/api/v2/projects/{project}/spiders/2")).status == 404
    assert (await http.get(f"/api/v2/projects/{project}/spiders/1/settings")).status == 404


async def test_last_jobs_of_more_spiders_than_a_page_has(http: Http, project: int) -> None:
    jobs = [{"spider": f"s{n:03}", "state": "finished"} for n in range(230)]
    await http.post(f"/jobq/{project}/push", jobs)
    base = f"/spiders/{project}/lastjobsummary"
    assert [job["spider"] for job in (await http.get(base)).lines] == [job["spider"] for job in jobs]
    assert len((await http.get(f"{base}?count=210")).lines) == 210
    assert [job["spider"] for job in (await http.get(f"{base}?startafter={project}/228")).lines] == ["s228", "s229"]
    assert (await http.get(f"{base}?start={project + 1}/1")).status == 400
    (only,) = (await http.get(f"/spiders/{project}/7/lastjobsummary?jobmeta=units")).lines
    assert (only["key"], only["units"]) == (f"{project}/7/1", 1)


@pytest.mark.parametrize("path", ["/projects/x/settings", "/projects/1/nothing", "/spiders/1/nothing", "/ids/1/spider"])
async def test_what_is_no_path_is_refused(http: Http, path: str) -> None:
    assert (await http.get(path)).status in (400, 404, 405)


async def test_a_project_has_a_name_that_no_other_has(http: Http, project: int) -> None:
    path = f"/api/projects/{project}"
    assert (await http.get(path)).json == {"id": project, "name": None}
    named = await http.call("PATCH", path, json.dumps({"name": f"books {project}"}).encode())
    assert named.json == {"id": project, "name": f"books {project}"}
    assert {"id": project, "name": f"books {project}"} in (await http.get("/api/projects")).json
    assert (await http.get(f"/api/projects?name=books+{project}")).json == [named.json]
    other = await http.call("PATCH", "/api/projects/987654", json.dumps({"name": f"books {project}"}).encode())
    assert other.status == 409
    assert "is the name of another project" in other.text
    renamed = await http.call("PATCH", path, json.dumps({"name": f"novels {project}"}).encode())
    assert renamed.json["name"] == f"novels {project}"
    assert (await http.get(f"/api/projects?name=books+{project}")).json == []
    assert (await http.call("PATCH", path, b'{"name": null}')).json["name"] is None
    assert (await http.get("/api/projects/987654")).json == {"id": 987654, "name": None}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "name: is required"),
        (b'{"name": ""}', "must be a text that is not empty"),
        (b'{"name": 3}', "must be a text that is not empty"),
        (b'{"name": "12"}', "must not consist of digits alone"),
        (b'{"name": " a"}', "must not begin or end with white space"),
        (b'{"name": "a/b"}', "must not contain a slash"),
        (b'{"name": "a\\u202eb"}', "must not contain a slash or a control character"),
        (b'{"name": "' + b"x" * 81 + b'"}', "must be at most 80 characters, got 81"),
        (b'{"name": "a", "b": 1}', "b: is not a field of this request"),
    ],
)
async def test_a_wrong_name_of_a_project_is_refused(http: Http, project: int, body: bytes, message: str) -> None:
    answer = await http.call("PATCH", f"/api/projects/{project}", body)
    assert answer.status == 400
    assert message in answer.text


async def test_a_key_of_one_project_sees_and_names_no_other(server: RunningServer, http: Http, project: int) -> None:
    await http.call("PATCH", f"/api/projects/{project}", json.dumps({"name": f"secret {project}"}).encode())
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"named-{project}", frozenset({project + 1}), may_write=True)
        reader = await add_key(store, f"named-reader-{project}", frozenset({project}), may_write=False)
    finally:
        await store.close()
    async with Http(server.url, key) as limited:
        assert (await limited.get("/api/projects")).json == []
        assert (await limited.get(f"/api/projects?name=secret+{project}")).json == []
        assert (await limited.get(f"/api/projects/{project}")).status == 403
        assert (await limited.call("PATCH", f"/api/projects/{project}", b'{"name": "mine"}')).status == 403
        taken = json.dumps({"name": f"secret {project}"}).encode()
        refused = await limited.call("PATCH", f"/api/projects/{project + 1}", taken)
        assert refused.status == 409
        assert str(project) not in refused.text.replace(f"secret {project}", ""), "the number is not for this key"
    async with Http(server.url, reader) as read_only:
        assert [each["id"] for each in (await read_only.get("/api/projects")).json] == [project]
        assert (await read_only.call("PATCH", f"/api/projects/{project}", b'{"name": "mine"}')).status == 403


async def test_of_two_projects_that_get_a_name_at_once_one_has_it(http: Http, project: int) -> None:
    body = json.dumps({"name": f"both {project}"}).encode()
    numbers = [project * 1000 + n for n in range(8)]
    answers = await asyncio.gather(*(http.call("PATCH", f"/api/projects/{n}", body) for n in numbers))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 7
    assert len((await http.get(f"/api/projects?name=both+{project}")).json) == 1
