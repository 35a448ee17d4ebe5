"""The pages of keys and of projects, over HTTP."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scrapy_ext.server.store import Store
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts
from tests.support.servers import RunningServer


@pytest.fixture
def name(project: int) -> str:
    return f"key-{project}"


async def make(http: Http, name: str, **fields: Any) -> str:
    """A key that a page has made and shown."""
    document = page(await submit(http, "/ui/keys", {"action": "add", "name": name, "opens": "platform", **fields}))
    (key,) = texts(document, "//code[@class='secret']")
    assert re.fullmatch("[0-9a-f]{32}", key)
    return key


async def until(http: Http, path: str, status: int) -> None:
    """Servers look at keys every other second."""
    await eventually_async(lambda: http.get(path), lambda answer: answer.status == status)


def row_of(document: Any, name: str) -> list[str]:
    return next((row for row in rows(document) if row[0] == name), [])


async def test_a_key_is_made_shown_once_and_opens_what_it_should(
    server: RunningServer, http: Http, project: int, name: str
) -> None:
    key = await make(http, name, projects=f"{project} {project + 1}", read_only="on")
    shown = await http.get("/ui/keys")
    assert key not in shown.text
    assert row_of(page(shown), name)[1:4] == [f"{project}, {project + 1}", "read", "–"]
    async with Http(server.url, key) as reader:
        await until(reader, f"/ui/{project}/activity", 200)
        assert (await reader.get(f"/ui/{project + 2}/activity")).status == 404
        document = page(await reader.get(f"/ui/{project}/collections"))
        assert not document.xpath("//nav//a[text()='Keys']")
        assert (await reader.get("/ui/keys")).status == 403
        for nothing_but_a_form in ("jobs/run", "periodic/new"):
            assert (await reader.get(f"/ui/{project}/{nothing_but_a_form}")).status == 403
        token = document.xpath("//input[@name='token']/@value")[0]
        form = f"token={token}&action=add&name=mine&opens=both".encode()
        for where in ("/ui/keys", f"/ui/{project}/periodic"):
            refused = await reader.post(where, form, Content_Type="application/x-www-form-urlencoded")
            assert refused.status == 403


async def test_a_key_with_all_projects_that_may_write_makes_no_keys(
    server: RunningServer, http: Http, name: str
) -> None:
    key = await make(http, name)
    async with Http(server.url, key) as other:
        await until(other, "/ui/activity", 200)
        token = page(await other.get("/ui/activity")).xpath("//input[@name='token']/@value")[0]
        form = f"token={token}&action=add&name=more&opens=platform".encode()
        refused = await other.post("/ui/keys", form, Content_Type="application/x-www-form-urlencoded")
        assert refused.status == 403
        assert "own key manages keys" in refused.text
    assert row_of(page(await http.get("/ui/keys")), "more") == []


async def test_a_key_is_suspended_resumed_and_removed(server: RunningServer, http: Http, name: str) -> None:
    key = await make(http, name, opens="both", organisation="acme")
    assert row_of(page(await http.get("/ui/keys")), name)[1:4] == ["all", "read, write, extract", "acme"]
    async with Http(server.url, key) as holder:
        assert "is suspended" in done(await submit(http, "/ui/keys", {"action": "suspend", "name": name}))
        assert "suspended" in row_of(page(await http.get("/ui/keys")), name)[2]
        await until(holder, "/ui/activity", 401)
        assert "is active again" in done(await submit(http, "/ui/keys", {"action": "resume", "name": name}))
        assert row_of(page(await http.get("/ui/keys")), name)[2] == "read, write, extract"
        assert "was removed" in done(await submit(http, "/ui/keys", {"action": "remove", "name": name}))
    page(await submit(http, "/ui/keys", {"action": "remove", "name": name}), 404)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"name": ""}, "name", "must be 1 to 64"),
        ({"name": HOSTILE}, "name", "must be 1 to 64"),
        ({"name": "api"}, "name", "and not 'api'"),
        ({"projects": "seven"}, "projects", "must be a whole number"),
        ({"opens": "everything"}, None, "must be one of"),
        ({"organisation": "acme"}, "organisation", "requires access to extraction"),
    ],
    ids=["no name", "hostile", "own", "project", "opens", "organisation"],
)
async def test_what_is_wrong_with_a_new_key_is_reported_at_its_field(
    http: Http, fields: dict[str, str], field: str | None, message: str
) -> None:
    answer = await submit(http, "/ui/keys", {"action": "add", "name": "fine", "opens": "platform", **fields})
    document = page(answer, 400)
    assert message in " ".join(texts(document, "//*[@role='alert']"))
    if field is not None:
        assert document.xpath(f"//input[@name='{field}'][@aria-invalid='true']/@value") == [fields[field]]
    assert row_of(document, "fine") == []


async def test_the_stored_hash_is_on_no_page(server: RunningServer, http: Http, name: str) -> None:
    await make(http, name)
    store = await Store.open(server.where)
    hashes = [key.hash for key in await store.keys.named()]
    await store.close()
    text = (await http.get("/ui/keys")).text
    assert hashes
    assert not [each for each in hashes if each in text]


async def test_projects_are_shown_with_their_jobs_and_what_they_hold(http: Http, project: int) -> None:
    states = [{"spider": "a", "state": "running"}, {"spider": "a"}, {"spider": "a"}]
    key = (await http.post(f"/jobq/{project}/push", states)).lines[0]["key"]
    await http.post(f"/items/{key}", [{"a": 1}] * 3)
    await http.post(f"/logs/{key}", [{"time": 1, "level": 20, "message": "m"}])
    found: list[str] = []
    address = "/ui/projects"
    while address and not found:
        document = page(await http.get(address))
        found = row_of(document, str(project))
        address = next(iter(document.xpath("//nav[@class='pager']/a[text()='next']/@href")), "")
    assert found[1] == "add a name"
    assert found[2:11] == ["0", "0", "0", "2", "1", "0", "3", "0", "1"]
    assert found[11].endswith(" B")
    assert found[11] != "0 B"


async def test_a_key_that_may_run_is_made_and_shown_as_such(http: Http, project: int, name: str) -> None:
    await make(http, name, projects=str(project), run_only="on")
    assert row_of(page(await http.get("/ui/keys")), name)[1:3] == [str(project), "read, run"]
    both = {"action": "add", "name": f"{name}-2", "opens": "platform", "read_only": "on", "run_only": "on"}
    refused = await submit(http, "/ui/keys", both)
    assert refused.status == 400
    assert "excludes read only" in refused.text
