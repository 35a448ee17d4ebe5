"""The pages of deployed versions, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.versions import MAX_ARCHIVE, SpiderArgument, SpiderInfo
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.versions import NewVersion
from tests.support import multipart
from tests.support import packed_projects as packed
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts
from tests.support.servers import RunningServer

SPIDERS = [SpiderInfo("books", [SpiderArgument("page", default="1", annotation="int")], HOSTILE), SpiderInfo("news")]


@pytest.fixture
async def store(server: RunningServer) -> AsyncIterator[Store]:
    store = await Store.open(server.where)
    yield store
    await store.close()


async def deploy(store: Store, project: int, name: str, error: str = "") -> int:
    """Store a version that passes its check, or fails it with an error."""
    new = NewVersion(name, "wheel", "shop.settings", 4, "f" * 64, "attrs>=20\n")
    number = await store.versions.begin(project, new, "anna")
    await store.versions.put(project, number, 0, b"code")
    await store.versions.arrived(project, number)
    if error:
        await store.versions.failed(project, number, error)
    else:
        await store.versions.ready(project, number, SPIDERS)
    return number


async def current(http: Http, project: int) -> list[str]:
    listed = (await http.get(f"/api/projects/{project}/versions")).json["versions"]
    return [each["version"] for each in listed if each["current"]]


async def test_the_project_goes_back_to_an_earlier_version(http: Http, store: Store, project: int) -> None:
    path = f"/ui/{project}/versions"
    assert "No versions yet." in (await http.get(path)).text
    first, second = await deploy(store, project, "1.0"), await deploy(store, project, "2.0")
    listed = page(await http.get(path))
    assert [row[:2] for row in rows(listed)] == [["2.0", "current"], ["1.0", "ready"]]
    assert texts(listed, "//main//button[contains(., 'Roll back')]") == ["Roll back to it"]
    chosen = await submit(http, f"{path}/{first}", {"action": "use"})
    assert done(chosen) == "New jobs run this version from now on."
    assert await current(http, project) == ["1.0"]
    forward = page(await http.get(f"{path}/{second}"))
    assert texts(forward, "//main//form/button")[0] == "Make current"
    await submit(http, f"{path}/{second}", {"action": "use"})
    assert await current(http, project) == ["2.0"]
    events = [(each["event"], each["version"]) for each in (await http.get(f"/activity/{project}")).lines]
    assert events == [("version:chosen", "2.0"), ("version:chosen", "1.0")]


async def test_a_version_shows_its_spiders_and_the_jobs_that_run_it(http: Http, store: Store, project: int) -> None:
    number = await deploy(store, project, "1.0")
    # No node of the server has the tag, so that the job stays pending.
    waiting = {"node_tags": ["none"]}
    (pending,) = await store.jobs.add(project, [NewJob("books", JobState.PENDING, waiting)], "me")
    own = {"version": "of its own"}
    (running,) = await store.jobs.add(project, [NewJob("news", JobState.RUNNING, own)], "me")
    shown = page(await http.get(f"/ui/{project}/versions/{number}"))
    assert ["books", "page: int = 1"] in [row[:2] for row in rows(shown)]
    assert "attrs>=20" in " ".join(texts(shown, "//pre"))
    listed = rows(page(await http.get(f"/ui/{project}/versions")))
    assert listed[0][:4] == ["1.0", "current", "0", "1"]
    assert listed[1][:4] == [str(running), "news", "of its own", "–"]
    refused = await submit(http, f"/ui/{project}/versions/{number}", {"action": "delete"}, shown_at="/ui/keys")
    assert "pending or running jobs need it" in " ".join(texts(page(refused, 409), "//main//p"))
    await http.post(f"/jobq/{project}/update", [{"key": str(pending), "state": "finished"}])
    assert done(await submit(http, f"/ui/{project}/versions/{number}", {"action": "delete"})) == "Deleted."
    page(await http.get(f"/ui/{project}/versions/{number}"), 404)


async def test_the_page_of_a_version_has_the_running_jobs_of_no_other(http: Http, store: Store, project: int) -> None:
    first, second = await deploy(store, project, "1.0"), await deploy(store, project, "2.0")
    versions = ("1.0", "2.0", "1.0")
    jobs = [NewJob("books", JobState.RUNNING, {"version": version}) for version in versions]
    keys = [str(key) for key in await store.jobs.add(project, jobs, "me")]
    for number, wanted in ((first, {keys[0], keys[2]}), (second, {keys[1]})):
        shown = page(await http.get(f"/ui/{project}/versions/{number}"))
        assert set(shown.xpath("//tbody//a[@class='key']/text()")) == wanted


async def test_the_page_of_a_version_repeats_its_check_if_that_was_interrupted(
    http: Http, server: RunningServer, store: Store, project: int
) -> None:
    # Another server that was killed a minute ago: nothing reports since then that the check goes on.
    killed = await Store.open(server.where, lambda: store.clock() - 60_000)
    try:
        new = NewVersion("1.0", "wheel", "shop.settings", 4, "f" * 64, "")
        number = await killed.versions.begin(project, new, "anna")
        await killed.versions.put(project, number, 0, b"code")
        await killed.versions.arrived(project, number)
    finally:
        await killed.close()
    path = f"/ui/{project}/versions/{number}"
    assert texts(page(await http.get(path)), "//main//span[contains(@class, 'state')]") == ["being checked"]
    await eventually_async(lambda: http.get(path), lambda answer: "Error of the check" in answer.text)


async def test_a_version_that_is_being_checked_becomes_current_later(http: Http, store: Store, project: int) -> None:
    number = await store.versions.begin(project, NewVersion("1.0", "wheel", "shop.settings", 4, "f" * 64, ""), "anna")
    await store.versions.put(project, number, 0, b"code")
    await store.versions.arrived(project, number)
    remedy = "no job can run it. Wait until it is checked."
    refused = page(await submit(http, f"/ui/{project}/versions/{number}", {"action": "use"}), 409)
    assert remedy in " ".join(texts(refused, "//main//p"))
    answer = await http.post(f"/api/projects/{project}/versions/1.0/current")
    assert (answer.status, remedy in answer.text) == (409, True)


async def test_a_failed_version_shows_its_error_and_cannot_become_current(
    http: Http, store: Store, project: int
) -> None:
    await deploy(store, project, "1.0")
    number = await deploy(store, project, "1.1", f"ImportError: {HOSTILE}\nmore of it")
    path = f"/ui/{project}/versions/{number}"
    shown = page(await http.get(path))
    assert "more of it" in texts(shown, "//pre")[0]
    assert "Make current" not in texts(shown, "//main//button")
    refused = page(await submit(http, path, {"action": "use"}), 409)
    assert "Version 1.1 is failed: no job can run it. Deploy it again." in " ".join(texts(refused, "//main//p"))
    assert await current(http, project) == ["1.0"]
    page(await submit(http, path, {"action": "explode"}), 400)
    assert done(await submit(http, path, {"action": "delete"})) == "Deleted."


async def test_a_reader_sees_versions_without_forms(
    server: RunningServer, http: Http, store: Store, project: int
) -> None:
    first = await deploy(store, project, "1.0")
    await deploy(store, project, "2.0")
    key = await add_key(store, f"versions-{project}", frozenset({project}), may_write=False)
    path = f"/ui/{project}/versions"
    async with Http(server.url, key) as reader:
        for address in (path, f"{path}/{first}"):
            document = page(await reader.get(address))
            assert document.xpath("//main//form") == [], address
        token = document.xpath("//input[@name='token']/@value")[0]
        body = f"token={token}&action=use".encode()
        refused = await reader.post(f"{path}/{first}", body, Content_Type="application/x-www-form-urlencoded")
        assert refused.status == 403
    assert await current(http, project) == ["2.0"]


async def upload(http: Http, project: int, archive: bytes, **fields: str) -> Answer:
    """Send the form for a new version as a browser does, with its empty file of requirements."""
    path = f"/ui/{project}/versions"
    token = page(await http.get(path)).xpath("//input[@name='token']/@value")[0]
    body, kind = multipart.form(archive, "archive", **{"token": token, "settings": "", **fields})
    return await http.post(path, body, Content_Type=kind)


async def test_an_archive_is_uploaded_by_the_form_and_its_version_becomes_current(
    server: RunningServer, http: Http, store: Store, project: int
) -> None:
    answer = await upload(http, project, packed.folder(), version="1.0")
    assert "new jobs run this version" in done(answer)
    assert texts(page(answer), "//main//h1") == ["Version 1.0"]
    async with timeout_after(60):
        while await current(http, project) != ["1.0"]:
            await asyncio.sleep(0.2)
    events = [(each["event"], each["user"]) for each in (await http.get(f"/activity/{project}")).lines]
    assert events == [("version:deployed", "api")]
    key = await add_key(store, f"deploys-{project}", frozenset({project}), may_write=True)
    async with Http(server.url, key) as limited:  # code of the server's operator alone, unless --deploy project
        assert page(await limited.get(f"/ui/{project}/versions")).xpath("//input[@type='file']") == []
        refused = await upload(limited, project, packed.folder(), version="1.1")
        assert "is limited to projects" in page(refused, 403).text_content()


@pytest.mark.parametrize(
    ("field", "archive", "fields", "message"),
    [
        ("archive", b"", {}, "is required"),
        ("archive", b"hello", {}, "cannot be used"),
        ("archive", b"0" * (MAX_ARCHIVE + 3 * 2**20), {}, "is over 50 MiB"),
        ("version", b"hello", {"version": "1/0"}, "must be 1 to 100 letters"),
        ("settings", b"hello", {"settings": "no module"}, "must be the dotted name of a module"),
    ],
    ids=range(5),
)
async def test_an_archive_that_cannot_be_used_is_reported_at_its_field(
    http: Http, project: int, field: str, archive: bytes, fields: dict[str, str], message: str
) -> None:
    typed = {"version": "1.0", "settings": "shop.settings", **fields}
    document = page(await upload(http, project, archive, **typed), 413 if len(archive) > MAX_ARCHIVE else 400)
    assert message in document.xpath(f"//*[@id='{field}-hint']")[0].text_content()
    if len(archive) <= MAX_ARCHIVE:
        assert {name: document.xpath(f"//input[@id='{name}']/@value")[0] for name in typed} == typed
    assert (await http.get(f"/api/projects/{project}/versions")).json["versions"] == []


async def test_an_upload_without_the_token_of_a_page_is_refused(http: Http, project: int) -> None:
    page(await upload(http, project, packed.folder(), version="1.0", token="x"), 403)
    assert (await http.get(f"/api/projects/{project}/versions")).json["versions"] == []
